"""The packages of other tools, imported when they are used."""

from importlib import import_module
from typing import Any

from graphrag_eval_lc.errors import MissingExtraError


def needed(module: str, feature: str, extra: str) -> Any:
    """Return a module of a package that an extra installs.

    Args:
        module: The module, such as ``phoenix.client``.
        feature: What needs it, as the beginning of a sentence.
        extra: The extra.

    Raises:
        MissingExtraError: The package is not installed.

    Example:
        >>> needed("no_such_package.client", "Publishing", "no_such")
        Traceback (most recent call last):
        ...
        graphrag_eval_lc.errors.MissingExtraError: Publishing needs the package no_such_package, ...
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingExtraError(feature, extra, str(problem.name or module).partition(".")[0]) from problem
