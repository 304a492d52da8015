"""Importing ragas, or saying in one sentence why that does not work."""

import os
from importlib import import_module
from types import ModuleType

from graphrag_eval_lc.errors import ConfigError, MissingExtraError
from graphrag_eval_lc.retrying import error_text

ENGINE_KEY = "judges.engine"


def ragas_module(name: str) -> ModuleType:
    """Return a module of ragas, which sends no telemetry unless the environment says that it may.

    Args:
        name: Such as ``ragas.llms``.

    Raises:
        ConfigError: It is there, and it or something that it needs cannot be imported.
        MissingExtraError: It is not installed.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    try:
        return import_module(name)
    except Exception as problem:  # of all the packages that it imports
        if isinstance(problem, ModuleNotFoundError) and problem.name == "ragas":
            raise MissingExtraError(f"{ENGINE_KEY}: ragas", "ragas", "ragas") from None
        raise ConfigError(
            f"ragas is installed and cannot be imported: {error_text(problem)}",
            key=ENGINE_KEY,
            hint="Run: pip install 'graphrag-eval-lc[ragas]', or leave engine out.",
        ) from problem
