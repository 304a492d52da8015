"""Metrics and evaluators of users: how they are registered, and which keys they may have."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, get_args, overload
from unicodedata import category

from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.records import Question, Response, Result
from graphrag_eval_lc.registry.metric_spec import LARGEST, Kind, MetricSpec
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    JUDGES,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
    RegisteredMetric,
    is_declared,
    metric_spec,
    metrics_of_records,
    metrics_of_users,
)
from graphrag_eval_lc.registry.plugins import declare_registry, registered_now, saved_mappings, spec_of

Function = TypeVar("Function", bound=Callable[..., Any])
Range = tuple[float | None, float | None]

# What a run's record tells of a metric.
_RECORDED = ("title", "kind", "unit", "lower_is_better", "range")


# What is said only of metrics that this package measures itself.
_NOT_OWN = ("needs", "missing_key", "part_of", "spent_by", "judge", "cost_key", "reason_key")
_LONGEST_UNIT = 30
# Line breaks and what else steers a terminal, and halves of characters, which no file takes.
_NOT_ON_A_LINE = ("Cc", "Cs", "Zl", "Zp")

declare_registry(
    lambda: {f"metric {key}": metric.function for key, metric in metrics_of_users.items()},
    partial(saved_mappings, metrics_of_users),
)


@overload
def register_metric(spec: MetricSpec, function: Function, /) -> Function: ...


@overload
def register_metric(spec: MetricSpec, /) -> Callable[[Function], Function]: ...


@overload
def register_metric(
    *,
    key: str,
    title: str = "",
    kind: Kind = "score",
    unit: str = "score",
    lower_is_better: bool = False,
    range: Range | None = None,
    requires: str = "",
    source: str = "",
) -> Callable[[Function], Function]: ...


def register_metric(
    spec: Any = None,
    function: Any = None,
    /,
    *,
    key: str | None = None,
    title: str = "",
    kind: Kind = "score",
    unit: str = "score",
    lower_is_better: bool = False,
    range: Range | None = None,
    requires: str = "",
    source: str = "",
) -> Any:
    """Register a metric: a function that measures each response, and what it measures.

    From then on all that evaluates has it: its values stand in the results under its key, and aggregates, comparisons,
    gates, plots and reports know its title, its unit and which way is better. A key that is registered again with the
    same function, as when a module is loaded again, takes the place of the first.

    The function is ``(question, response) -> float | None``, async or not: it gets the dataset's question and the
    agent's response, and gives a number, or None where there is nothing to measure. It is called for each response,
    also of a failed question. Where it fails, or gives no number or one outside of its range, the result has the reason
    in ``{key}_error`` and no value.

    Args:
        spec: The declaration, in place of the keywords.
        function: The function; without it a decorator is given.
        key: Its name in results, aggregates, gates and tables: letters, digits, ``_``, ``.``, ``@`` and ``-``.
        title: A few words on what it says.
        kind: ``score`` says how good an answer is, ``spent`` what it took, ``count`` how often something happened.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``; any other text is written behind the numbers.
        lower_is_better: Whether less of it is better; always so of what is ``spent``.
        range: The least and the greatest value, None where there is no bound; by default 0 to 1 for what has no unit,
            else without bounds. A failed question counts as the worst value of a score: 0 or what is below it, or the
            greatest where less is better, if there is one.
        requires: What it needs, in words for people.
        source: Whose definition it follows.

    Returns:
        A decorator, or the function.

    Raises:
        PluginError: The key cannot be one, is one of the results' own, or another function's; or the unit or the range
            cannot be one.

    Example:
        >>> from graphrag_eval_lc.registry import registered_only_here
        >>> with registered_only_here():
        ...     @register_metric(key="saved_sec", title="seconds saved", unit="seconds")
        ...     def saved_sec(question, response):
        ...         return question["manual_sec"] - response["elapsed_sec"]
    """
    if spec is None:
        bounds = range if range is not None else (0.0, 1.0) if (kind, unit) == ("score", "score") else (None, None)
        spec = MetricSpec(
            key=key if key is not None else "",
            title=title,
            kind=kind,
            unit=unit,
            lower_is_better=lower_is_better,
            range=bounds,
            requires=requires,
            source=source,
        )
        if key is None:
            raise PluginError("a metric needs a key", hint='Write @register_metric(key="saved_sec").')
    elif not isinstance(spec, MetricSpec):
        raise PluginError(
            f"a metric is declared by its key or a MetricSpec, not by {spec!r:.80}",
            hint='Write @register_metric(key="saved_sec"), or register_metric(MetricSpec(key="saved_sec"), function).',
        )
    elif key is not None:
        raise PluginError(f"the metric {spec.key} is declared twice", hint="Give a MetricSpec or keywords, not both.")
    return partial(_register_metric_of, spec) if function is None else _register_metric_of(spec, function)


def _register_metric_of(spec: MetricSpec, function: Function) -> Function:
    if not callable(function):
        raise PluginError(f"a metric cannot be {type(function).__name__}", hint="Give a function.")
    key = check_own_key(spec.key, "metric", function)
    _check_declaration(spec)
    metrics_of_users[key] = RegisteredMetric(replace(spec, error_key=f"{key}_error"), function)
    return function


def _check_declaration(spec: MetricSpec) -> None:
    """Refuse what no metric of questions can be."""
    if not _is_range(spec.range):
        raise _wrong_declaration(
            spec, "range", "Give the least and the greatest value, such as (0, 1), or None for no bound."
        )
    if not _is_line(spec.unit) or not 0 < len(spec.unit.strip()) <= _LONGEST_UNIT:
        raise _wrong_declaration(spec, "unit", "Give score, tokens, seconds, usd, count, or a word of your own.")
    if spec.kind not in get_args(Kind):
        raise _wrong_declaration(spec, "kind", f"Give one of {', '.join(get_args(Kind))}.")
    if not isinstance(spec.lower_is_better, bool):
        raise _wrong_declaration(spec, "lower_is_better", "Give True or False.")
    if not _is_line(spec.title):
        raise _wrong_declaration(spec, "title", "Give a few words in a line.")
    if spec.over != "questions":
        raise _wrong_declaration(
            spec, "over", "A metric of your own is over questions: it gets a question and its response."
        )
    for name in (*_NOT_OWN, "is_family"):
        if getattr(spec, name):
            raise _wrong_declaration(spec, name, "Leave it out; it is for metrics that this package measures itself.")


def _is_range(given: Any) -> bool:
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    low, high = given
    return all(bound is None or _is_number(bound) for bound in given) and (low is None or high is None or low < high)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_line(text: object) -> bool:
    return isinstance(text, str) and not any(category(character) in _NOT_ON_A_LINE for character in text)


def _wrong_declaration(spec: MetricSpec, name: str, hint: str) -> PluginError:
    return PluginError(f"the {name} of the metric {spec.key} cannot be {getattr(spec, name)!r:.80}", hint=hint)


def declaration(spec: MetricSpec) -> dict[str, Any]:
    """Return what a run's record tells of a metric."""
    return {name: list(value) if name == "range" else value for name in _RECORDED for value in (getattr(spec, name),)}


def changed_since(key: str, told: Mapping[str, Any]) -> list[str]:
    """Return what a run's record tells of a metric otherwise than it is declared now, but for its title."""
    now = declaration(metric_spec(key))
    return [name for name in _RECORDED if name != "title" and name in told and told[name] != now[name]]


@contextmanager
def recorded_only_here() -> Iterator[None]:
    """Forget at the end of a block, or of a function, what records of runs told in it of metrics.

    What is evaluated afterwards is not to depend on which folders were read before. It counts for this thread or task.
    """
    before = metrics_of_records.set({})
    try:
        yield
    finally:
        metrics_of_records.reset(before)


def note_recorded(declarations: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Take what the record of a run tells of metrics for their declaration, where nothing here declares them.

    So a run's folder is compared and shown right where the plugin is not there. What is no declaration is left out;
    outside of ``recorded_only_here`` all is.

    Args:
        declarations: Keys, each with what ``declaration`` gave.
    """
    known = metrics_of_records.get(None)
    if known is None:
        return
    noted = dict(known)
    for key, told in declarations:
        if not is_declared(key):
            given = {name: told[name] for name in _RECORDED if name in told}
            if isinstance(given.get("range"), list):
                given["range"] = tuple(given["range"])
            spec = MetricSpec(key=key, **given)
            try:
                _check_declaration(spec)
            except PluginError:
                continue
            noted[key] = spec
    metrics_of_records.set(noted)


_evaluators: dict[str, Callable[..., Any]] = {}


declare_registry(
    lambda: {f"evaluator {name}": function for name, function in _evaluators.items()},
    partial(saved_mappings, _evaluators),
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
    return partial(_register_evaluator_of, name=name) if function is None else _register_evaluator_of(function, name)


def registered_evaluators() -> Mapping[str, Callable[..., Any]]:
    """Return the evaluators that users registered, by their names."""
    return _evaluators


def _register_evaluator_of(function: Function, name: str | None) -> Function:
    if not callable(function):
        raise PluginError(f"an evaluator cannot be {function!r:.80}", hint="Give a function.")
    given = name if name is not None else _function_name(function)
    if given == "<lambda>":
        raise PluginError("a lambda has no name to stand in the results", hint="Write register_evaluator(name=…).")
    _evaluators[check_own_key(given, "evaluator", function)] = function
    return function


def _function_name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


# Commas, equals signs and blanks stand between keys on the command line.
_KEY_PATTERN = re.compile(r"[^\W\d][\w.@-]*")


# What stands beside a metric has its key with one of these.
_SUFFIXES_OF_OTHERS = ("_error", "_reason", "_cost")


_KINDS = ("metric", "evaluator")


def check_own_key(key: object, kind: str, function: Any) -> str:
    """Return the key under which a function may be registered.

    Args:
        key: The key.
        kind: What is registered, ``metric`` or ``evaluator``.
        function: The function; where it is the one that has the key already, as when a module is loaded again, it
            takes the other's place.

    Raises:
        PluginError: The key is none, is one of the results' own, or is another function's.
    """
    if not isinstance(key, str) or not _KEY_PATTERN.fullmatch(key):
        raise PluginError(
            f"the key of {_with_article(kind)} cannot be {key!r:.80}",
            hint="Write letters, digits, _ . @ or -, and a letter or _ first, such as saved_sec.",
        )
    ending = next((ending for ending in _SUFFIXES_OF_OTHERS if key.endswith(ending)), None)
    if ending is not None:
        raise PluginError(
            f"the key of {_with_article(kind)} cannot be {key}, as keys that end in {ending} say more of another",
            hint="Rename it.",
        )
    if is_reserved_key(key) or is_reserved_key(f"{key}_error"):
        raise PluginError(f"the key {key} is one of the results' own, so that no {kind} can have it", hint="Rename it.")
    registered = registered_now()
    for other in _KINDS:
        owner = registered.get(f"{other} {key}")
        if owner is not None and (other != kind or spec_of(owner) != spec_of(function)):
            raise PluginError(
                f"the key {key} of {spec_of(function)} is that of the {other} {spec_of(owner)}",
                hint=_hint_of_two(owner, function),
            )
    return key


def _hint_of_two(owner: Any, function: Any) -> str:
    names = [spec_of(each).partition(":")[0] for each in (owner, function)]
    code, others = (getattr(each, "__code__", None) for each in (owner, function))
    if code is not None and code == others and code.co_filename == others.co_filename and len({*names}) > 1:
        return f"Both are of one file, which came as {' and as '.join(names)}; name it in one way everywhere."
    return "Give one of them another key."


def _with_article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


# What stands beside the metrics, and is no key of the records.
_OF_RESULTS = (
    "custom_metrics",
    "repeat",
    "interrupted",
    "attempts",
    "failed_attempts",
    "steps_diagnosis",
    "steps_counts",
)
_OF_AGGREGATES = (
    "steps",
    "repeats",
    "totals",
    "per_template",
    "micro",
    "macro",
    NUMBER_OF_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
)
# What is told of those that are judged at once, also where it is not told today.
_SUFFIXES_OF_JUDGED = ("", "_reason", "_cost", "_error")


_JUDGED = {spec.cost_key.removesuffix("_cost") for spec in BUILT_IN if spec.cost_key is not None}
_RESERVED = frozenset(
    {
        *Result.__annotations__,
        *Response.__annotations__,
        *Question.__annotations__,
        *_OF_RESULTS,
        *_OF_AGGREGATES,
        *(key for spec in BUILT_IN for key in spec.keys),
        *(key for judge in JUDGES for key in judge.keys),
        *(f"{key}{ending}" for key in _JUDGED for ending in _SUFFIXES_OF_JUDGED),
    }
)


_FAMILY_PREFIXES = tuple(spec.key for spec in BUILT_IN if spec.is_family)


def is_reserved_key(key: str) -> bool:
    """Return whether a key is one that results and aggregates have of themselves.

    Example:
        >>> is_reserved_key("steps_score"), is_reserved_key("retrieval_ids_ndcg@10"), is_reserved_key("politeness")
        (True, True, False)
    """
    return key in _RESERVED or key.startswith(_FAMILY_PREFIXES)
