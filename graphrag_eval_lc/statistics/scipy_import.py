"""The one place that imports scipy, and says what to install where it is missing."""

from typing import Any

from graphrag_eval_lc.errors import MissingExtraError


def scipy_stats() -> Any:
    """Give the module ``scipy.stats``, which is loaded by the first that asks for it.

    Raises:
        MissingExtraError: scipy or numpy is not installed.
    """
    try:
        import scipy.stats
    except ModuleNotFoundError as problem:
        missing = str(problem.name).partition(".")[0]
        if missing not in ("scipy", "numpy"):
            raise
        raise MissingExtraError("An interval or a test of significance", "stats", missing) from problem
    return scipy.stats
