"""Evaluators of users' own that are called for each response of each run."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar, overload

from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.registry.own_keys import check_own_key
from graphrag_eval_lc.registry.registrations import declare_registry, saved_mappings

Function = TypeVar("Function", bound=Callable[..., Any])

_registered: dict[str, Callable[..., Any]] = {}

declare_registry(
    lambda: {f"evaluator {name}": function for name, function in _registered.items()},
    partial(saved_mappings, _registered),
)


@overload
def register_evaluator(function: Function, /) -> Function: ...


@overload
def register_evaluator(*, name: str) -> Callable[[Function], Function]: ...


def register_evaluator(function: Any = None, /, *, name: str | None = None) -> Any:
    """Register a function that evaluates each response, beside those of ``evaluators=``, and of the same shape.

    That is ``(question, response) -> float | str | bool | dict``, or with keywords ``(inputs, outputs,
    reference_outputs) -> {key, score, comment}``, async or not; see ``run_evaluation``. A number whose unit and
    direction are to be known is a metric: ``register_metric``.

    Args:
        function: The function; without it a decorator is given.
        name: The key of a single value, and the beginning of ``{name}_error``; None for the function's name.

    Raises:
        PluginError: It is no function, or its name cannot be one, is one of the results' own, or another function's.

    Example:
        >>> from graphrag_eval_lc.registry import registered_only_here
        >>> with registered_only_here():
        ...     @register_evaluator
        ...     def is_short(question, response):
        ...         return len(response["actual_answer"]) < 100
    """
    return partial(_register, name=name) if function is None else _register(function, name)


def registered_evaluators() -> Mapping[str, Callable[..., Any]]:
    """Give the evaluators that users registered, by their names."""
    return _registered


def _register(function: Function, name: str | None) -> Function:
    if not callable(function):
        raise PluginError(f"an evaluator cannot be {function!r:.80}", mend="Give a function.")
    given = name if name is not None else _name_of(function)
    if given == "<lambda>":
        raise PluginError("a lambda has no name to stand in the results", mend="Write register_evaluator(name=…).")
    _registered[check_own_key(given, "evaluator", function)] = function
    return function


def _name_of(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))
