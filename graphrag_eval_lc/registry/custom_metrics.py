"""Registers the metrics and evaluators of users, and checks their keys and declarations."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar, get_args, overload
from unicodedata import category

from graphrag_eval_lc.errors import PluginError
from graphrag_eval_lc.records import Question, Response, Result
from graphrag_eval_lc.registry.metric_spec import (
    COST_ENDING,
    ERROR_ENDING,
    LARGEST,
    REASON_ENDING,
    Kind,
    MetricSpec,
    error_key,
)
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    FAMILIES,
    JUDGES,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
    STEPS_COUNTS,
    RegisteredMetric,
    is_declared,
    metric_spec,
    metrics_of_records,
    metrics_of_users,
)
from graphrag_eval_lc.registry.plugins import declared, registered_now, spec_of, without_partials

Function = TypeVar("Function", bound=Callable[..., Any])
Range = tuple[float | None, float | None]

# The fields of a metric's declaration that run.json records.
_RECORDED = ("title", "kind", "unit", "lower_is_better", "range")
# The fields that only metrics of this package may set.
_NOT_OWN = (
    *("needs", "missing_key", "counted_in", "part_of", "upper_of"),
    *("spent_by", "judge", "cost_key", "reason_key", "is_family"),
)
_LONGEST_UNIT = 30
# Unicode categories: line breaks and other control characters, and lone surrogates, which no file can hold.
_NOT_ON_A_LINE = ("Cc", "Cs", "Zl", "Zp")

# The evaluators that users registered, by their names.
evaluators_of_users: Final[dict[str, Callable[..., Any]]] = declared["evaluator"]


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
    """Register a metric: a function that measures each response, and the declaration of what it measures.

    Every later evaluation computes it: results have its values under its key, and aggregates, comparisons, gates,
    plots and reports know its title, its unit and which direction is better. The same function may be registered again
    under its key, for example when its module is reloaded.

    The function is ``(question, response) -> float | None``, async or not. It receives the dataset's question and the
    agent's response, and returns a number, or None if there is nothing to measure. It is called for each response,
    even for a failed question. If it raises, or does not return a number in its range, the result has the reason in
    ``{key}_error`` and no value.

    Args:
        spec: The declaration, in place of the keywords.
        function: The function; without it a decorator is returned.
        key: Its name in results, aggregates, gates and tables: letters, digits, ``_``, ``.``, ``@`` and ``-``.
        title: A few words on what it measures.
        kind: ``score`` for how good an answer is, ``spent`` for what it cost, ``count`` for how often something
            happened.
        unit: ``score``, ``tokens``, ``seconds``, ``usd`` or ``count``; any other text is written after the values.
        lower_is_better: Whether lower values are better; always true for ``spent``.
        range: The least and the greatest value, None if unbounded. The default is 0 to 1 without a unit, and unbounded
            with one. A failed question counts as the worst value of a score: 0, or the least value if that is below 0;
            if lower is better, the greatest value, if there is one.
        requires: What it needs, in words for people.
        source: Whose definition it follows.

    Returns:
        A decorator, or the function.

    Raises:
        PluginError: The key has a wrong form, is one of the results' own, or is another function's; or a part of the
            declaration is wrong.

    Example:
        >>> from graphrag_eval_lc.registry import registered_only_here
        >>> with registered_only_here():
        ...     @register_metric(key="saved_sec", title="seconds saved", unit="seconds")
        ...     def saved_sec(question, response):
        ...         return question["manual_sec"] - response["elapsed_sec"]
    """
    if spec is None:
        if key is None:
            raise PluginError("a metric needs a key", hint='Write @register_metric(key="saved_sec").')
        bounds = range if range is not None else (0.0, 1.0) if (kind, unit) == ("score", "score") else (None, None)
        spec = MetricSpec(
            key=key,
            title=title,
            kind=kind,
            unit=unit,
            lower_is_better=lower_is_better,
            range=bounds,
            requires=requires,
            source=source,
        )
    elif not isinstance(spec, MetricSpec):
        hint = 'Write @register_metric(key="saved_sec"), or register_metric(MetricSpec(key="saved_sec"), function).'
        raise PluginError(f"a metric is declared by its key or a MetricSpec, not by {spec!r:.80}", hint=hint)
    elif key is not None:
        raise PluginError(f"the metric {spec.key} is declared twice", hint="Give a MetricSpec or keywords, not both.")
    return partial(_register_metric_of, spec) if function is None else _register_metric_of(spec, function)


def _register_metric_of(spec: MetricSpec, function: Function) -> Function:
    if not callable(function):
        raise PluginError(f"a metric cannot be {type(function).__name__}", hint="Give a function.")
    key = _checked_key(spec.key, "metric", function)
    _check_declaration(spec)
    metrics_of_users[key] = RegisteredMetric(replace(spec, error_key=error_key(key)), function)
    return function


def _check_declaration(spec: MetricSpec) -> None:
    """Refuse a declaration that is not allowed for a user's metric."""
    is_unit = _is_line(spec.unit) and 0 < len(spec.unit.strip()) <= _LONGEST_UNIT
    not_own = "Leave it out; it is for metrics that this package measures itself."
    bounds = "Give the least and the greatest value, such as (0, 1), or None for no bound."
    for name, is_right, hint in (
        ("range", _is_range(spec.range), bounds),
        ("unit", is_unit, "Write score, tokens, seconds, usd, count, or any other word."),
        ("kind", spec.kind in get_args(Kind), f"Give one of {', '.join(get_args(Kind))}."),
        ("lower_is_better", isinstance(spec.lower_is_better, bool), "Give True or False."),
        ("title", _is_line(spec.title), "Give a few words in a line."),
        ("over", spec.over == "questions", "Your metric is over questions: it gets a question and its response."),
        *((name, not getattr(spec, name), not_own) for name in _NOT_OWN),
    ):
        if not is_right:
            what = f"the {name} of the metric {spec.key} cannot be {getattr(spec, name)!r:.80}"
            raise PluginError(what, hint=hint)


def _is_range(given: Any) -> bool:
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    known = [bound for bound in given if bound is not None]
    are_numbers = all(type(bound) in (int, float) and abs(bound) <= LARGEST for bound in known)
    return are_numbers and (len(known) < 2 or known[0] < known[1])


def _is_line(text: object) -> bool:
    return isinstance(text, str) and not any(category(character) in _NOT_ON_A_LINE for character in text)


def declaration(spec: MetricSpec) -> dict[str, Any]:
    """Return the declaration of a metric for run.json."""
    return {name: getattr(spec, name) for name in _RECORDED} | {"range": list(spec.range)}


def changed_since(key: str, recorded: Mapping[str, Any]) -> list[str]:
    """Return the fields of a recorded declaration, apart from the title, that are declared differently now."""
    now = declaration(metric_spec(key))
    return [name for name in _RECORDED if name != "title" and name in recorded and recorded[name] != now[name]]


@contextmanager
def recorded_only_here() -> Iterator[None]:
    """Forget, at the end of a block or decorated function, the declarations that ``note_recorded`` added inside it.

    Otherwise an evaluation would depend on the folders that were read before. It applies to this thread or task only.
    """
    before = metrics_of_records.set({})
    try:
        yield
    finally:
        metrics_of_records.reset(before)


def note_recorded(declarations: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Use the declarations in a run's record for metrics that nothing declares here.

    This way a run is compared and shown correctly even if its plugins are missing. A wrong declaration is ignored;
    outside ``recorded_only_here`` all are.
    """
    if (known := metrics_of_records.get(None)) is None:
        return
    noted = dict(known)
    for key, recorded in declarations:
        if not is_declared(key):
            given = {name: recorded[name] for name in _RECORDED if name in recorded}
            if isinstance(given.get("range"), list):
                given["range"] = tuple(given["range"])
            spec = MetricSpec(key=key, **given)
            try:
                _check_declaration(spec)
            except PluginError:
                continue
            noted[key] = spec
    metrics_of_records.set(noted)


@overload
def register_evaluator(function: Function, /) -> Function: ...


@overload
def register_evaluator(*, name: str) -> Callable[[Function], Function]: ...


def register_evaluator(function: Any = None, /, *, name: str | None = None) -> Any:
    """Register a function that evaluates each response, like the functions in ``evaluators=``.

    Its form is ``(question, response) -> float | str | bool | dict``, or with keywords ``(inputs, outputs,
    reference_outputs) -> {key, score, comment}``, async or not; see ``run_evaluation``. For a number with a unit or a
    direction, use ``register_metric``.

    Args:
        function: The function; without it a decorator is returned.
        name: The key of a single value, and the beginning of ``{name}_error``; None for the function's name.

    Raises:
        PluginError: It is not a function, or its name has a wrong form, is one of the results' own, or is another
            function's.

    Example:
        >>> from graphrag_eval_lc.registry import registered_only_here
        >>> with registered_only_here():
        ...     @register_evaluator
        ...     def is_short(question, response):
        ...         return len(response["actual_answer"]) < 100
    """
    return partial(_register_evaluator_of, name=name) if function is None else _register_evaluator_of(function, name)


def _register_evaluator_of(function: Function, name: str | None) -> Function:
    if not callable(function):
        raise PluginError(f"an evaluator cannot be {function!r:.80}", hint="Give a function.")
    if name is None:
        inner = without_partials(function)
        name = str(getattr(inner, "__name__", type(inner).__name__))
    if name == "<lambda>":
        raise PluginError("a lambda has no name for the results", hint="Write register_evaluator(name=…).")
    evaluators_of_users[_checked_key(name, "evaluator", function)] = function
    return function


# Commas, equals signs and blanks separate keys on the command line.
_KEY_PATTERN = re.compile(r"[^\W\d][\w.@-]*")
_ENDINGS = (ERROR_ENDING, REASON_ENDING, COST_ENDING)
_WITH_ARTICLE: Final = {"metric": "a metric", "evaluator": "an evaluator"}


def _checked_key(key: object, kind: str, function: Any) -> str:
    """Return the key of a metric or an evaluator, unless another function or the results have it."""
    what = f"the key of {_WITH_ARTICLE[kind]} cannot be"
    if not isinstance(key, str) or not _KEY_PATTERN.fullmatch(key):
        hint = "Write letters, digits, _ . @ or -, and a letter or _ first, such as saved_sec."
        raise PluginError(f"{what} {key!r:.80}", hint=hint)
    if ending := next((ending for ending in _ENDINGS if key.endswith(ending)), None):
        raise PluginError(f"{what} {key}, as keys that end in {ending} say more of another", hint="Rename it.")
    if is_reserved_key(key) or is_reserved_key(error_key(key)):
        raise PluginError(f"the key {key} is one of the results' own, so that no {kind} can have it", hint="Rename it.")
    registered = registered_now()
    for other in _WITH_ARTICLE:
        owner = registered.get(f"{other} {key}")
        # The same function is registered again if its module is reloaded.
        if owner is not None and (other != kind or spec_of(owner) != spec_of(function)):
            hint = "Give one of them another key."
            names = [spec_of(each).partition(":")[0] for each in (owner, function)]
            code, others = (getattr(each, "__code__", None) for each in (owner, function))
            is_same = code is not None and code == others and code.co_filename == others.co_filename
            if is_same and len({*names}) > 1:
                hint = f"Both are of one file, which came as {' and as '.join(names)}; name it in one way everywhere."
            raise PluginError(
                f"the key {key} of {spec_of(function)} is that of the {other} {spec_of(owner)}", hint=hint
            )
    return key


_JUDGED = [spec.cost_key.removesuffix(COST_ENDING) for spec in BUILT_IN if spec.cost_key is not None]
_RESERVED = frozenset(
    {
        *Result.__annotations__,
        *Response.__annotations__,
        *Question.__annotations__,
        *(key for spec in BUILT_IN for key in spec.keys),
        *(key for judge in JUDGES for key in judge.keys),
        # Also those that no judge writes today.
        *(f"{name}{ending}" for name in _JUDGED for ending in ("", *_ENDINGS)),
        # More of results, and of aggregates.
        *("custom_metrics", "repeat", "interrupted", "attempts", "failed_attempts", "steps_diagnosis", STEPS_COUNTS),
        *("steps", "repeats", "totals", "per_template", "micro", "macro"),
        *(NUMBER_OF_SAMPLES, NUMBER_OF_QUESTIONS, NUMBER_OF_ERROR_SAMPLES, NUMBER_OF_SUCCESS_SAMPLES),
    }
)


def is_reserved_key(key: str) -> bool:
    """Return whether results or aggregates use a key themselves, so that users' metrics cannot have it.

    Example:
        >>> is_reserved_key("steps_score"), is_reserved_key("retrieval_ids_ndcg@10"), is_reserved_key("politeness")
        (True, True, False)
    """
    return key in _RESERVED or key.startswith(tuple(FAMILIES))
