"""Import ragas, or say in one sentence why that fails."""

import os
from importlib import import_module
from types import ModuleType

from graphrag_eval_lc.errors import ConfigError, MissingExtraError
from graphrag_eval_lc.retrying import masked_error_text

ENGINE_KEY = "judges.engine"


def ragas_module(name: str) -> ModuleType:
    """Return a module of ragas, such as ``ragas.llms``, without telemetry unless the environment allows it.

    Raises:
        ConfigError: It is installed, and its import fails.
        MissingExtraError: It is not installed.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    try:
        return import_module(name)
    except Exception as problem:  # of all the packages that it imports
        if isinstance(problem, ModuleNotFoundError) and problem.name == "ragas":
            raise MissingExtraError(f"{ENGINE_KEY}: ragas", "ragas", "ragas") from None
        raise ConfigError(
            f"ragas is installed and cannot be imported: {masked_error_text(problem)}",
            key=ENGINE_KEY,
            hint="Run: pip install 'graphrag-eval-lc[ragas]', or leave engine out.",
        ) from problem
