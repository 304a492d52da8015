"""The one place that says what to install when a package of the extra ``demo`` is missing."""

from importlib.util import find_spec

from graphrag_eval_lc.errors import MissingExtraError


def check_demo_extra() -> None:
    """Do nothing where the extra is installed.

    Raises:
        MissingExtraError: A package of the extra is missing.
    """
    for package in ("pyoxigraph", "langchain"):
        if find_spec(package) is None:
            raise MissingExtraError("The demo", "demo", package)
