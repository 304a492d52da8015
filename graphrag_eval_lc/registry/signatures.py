"""The signatures of users' functions."""

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, also if names in its annotations do not exist.

    From Python 3.14 annotations without quotes are evaluated when they are read, so that names that only a type checker
    imports would be a ``NameError``.

    Raises:
        TypeError: It is not callable.
        ValueError: It has none, as some builtins.

    Example:
        >>> list(signature_of(lambda question, config=None: "yes").parameters)
        ['question', 'config']
    """
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)
