"""Checks the names and bounds in gates before anything runs: unknown metrics and templates, impossible bounds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args

from graphrag_eval_lc.compare.flips import best_value
from graphrag_eval_lc.config import EvaluationConfig, GateConfig
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, OptionError
from graphrag_eval_lc.judges.custom_functions import CustomFunction, all_functions
from graphrag_eval_lc.metrics import parse_measure
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    JUDGES,
    JUDGES_COST,
    MAIN_METRIC,
    RETRIEVAL_IDS,
    RETRIEVAL_TEXT,
    is_declared,
    metric_spec,
)
from graphrag_eval_lc.registry.plugins import signature_of
from graphrag_eval_lc.texts import listed, range_text

Statistic = Literal["mean", "median", "p95", "min", "max", "sum"]
STATISTICS: Final[tuple[Statistic, ...]] = get_args(Statistic)
MEAN: Final[Statistic] = "mean"

_PLAIN: Final = ("float", "int", "bool", "str")
_MOST_NAMED: Final = 12
_ADD_LLM: Final = "Add llm: {} for OpenAI's default models, or name yours in llm.generation."


def metric_and_statistic(name: str) -> tuple[str, Statistic]:
    """Split a name such as ``elapsed_sec.p95`` into metric and statistic, unless a metric has the whole name.

    Example:
        >>> metric_and_statistic("elapsed_sec.p95"), metric_and_statistic("steps_score")
        (('elapsed_sec', 'p95'), ('steps_score', 'mean'))
    """
    metric, _, ending = name.rpartition(".")
    statistic = next((each for each in STATISTICS if each == ending), None)
    return (name, MEAN) if statistic is None or not metric or is_declared(name) else (metric, statistic)


@dataclass(frozen=True, slots=True)
class KnownMetrics:
    """The metrics that a run may have, as far as that is known before it begins.

    Attributes:
        measured: The metrics that it may have.
        unmeasured: For metrics that it cannot have, the reason and a hint, by metric.
        open_functions: The evaluators whose metrics are not known beforehand.
    """

    measured: Sequence[str]
    unmeasured: Mapping[str, tuple[str, str]]
    open_functions: Sequence[str] = ()

    @classmethod
    def of(
        cls,
        config: EvaluationConfig,
        evaluators: Iterable[Callable[..., Any]] = (),
        *,
        has_llm: bool = False,
        has_embeddings: bool = False,
    ) -> "KnownMetrics":
        """Return the metrics of a run with this configuration, whose plugins must be loaded.

        ``has_llm`` and ``has_embeddings`` say whether models are passed in Python.
        """
        functions, custom = all_functions(evaluators), config.custom_evaluations or ()
        off = _judges_that_are_off(config, has_llm=has_llm, has_embeddings=has_embeddings)
        specs = [spec for spec in BUILT_IN if spec.judge in off]
        unmeasured = {key: off[spec.judge] for spec in specs for key in (spec.key, spec.cost_key) if key is not None}
        if config.llm is None and not has_llm:
            unmeasured[JUDGES_COST] = ("is what models cost that judge, and the config has no llm section", _ADD_LLM)
        measured = [
            *(spec.key for spec in BUILT_IN if not spec.is_family and spec.key not in unmeasured),
            *(key for family in config.retrieval.metric_keys().values() for key in family),
            *(function.name for function in functions),
            *(key for evaluation in custom for key in (*evaluation.outputs, evaluation.cost_key)),
            *(spec.cost_key for spec in BUILT_IN if spec.cost_key is not None and spec.judge not in off),
        ]
        return cls(tuple(dict.fromkeys(measured)), unmeasured, [each.name for each in functions if not _is_known(each)])

    @classmethod
    def of_runs(cls, configs: Iterable[EvaluationConfig], measured: Iterable[str]) -> "KnownMetrics":
        """Return the metrics of finished runs: those they measured, and those their configurations enable."""
        known = [metric for config in configs for metric in cls.of(config, has_llm=True, has_embeddings=True).measured]
        return cls(tuple(dict.fromkeys([*measured, *known])), {})

    def why_not(self, name: str) -> tuple[str, str] | None:
        """Return why the metric does not exist, and a hint; None if it exists, or may exist."""
        metric, _ = metric_and_statistic(name)
        if metric in self.measured:
            return None
        if metric in self.unmeasured:
            what, hint = self.unmeasured[metric]
            return f"{metric} {what}, so that it would not be measured", hint
        if (family := metric_spec(metric).family) is not None:
            members = [key for key in self.measured if metric_spec(key).family == family]
            if family != RETRIEVAL_TEXT:
                what = f"{metric} is not measured, as retrieval.measures of the config (--measures) does not list it"
                return what, nearest(metric, members)
            if not members:
                return f"{metric} is not measured, as retrieval.text is off in the config", "Switch it on."
            return f"unknown metric {metric}", nearest(metric, members)
        stem, _, ending = metric.rpartition(".")
        if stem in self.measured:
            if ending in STATISTICS:  # the name has one statistic too many
                return f"{name} names two statistics of {stem}", f"Name one of them, such as {metric}."
            return f"unknown statistic {ending or '(empty)'} of {stem}", nearest(ending, STATISTICS)
        if self.open_functions:
            return None
        meant = metric
        with suppress(ValueError):  # a measure of retrieved ids, named as in the config, such as P@5
            meant = f"{RETRIEVAL_IDS}{parse_measure(metric).key}"
        hint = nearest(meant, (*self.measured, *self.unmeasured))
        more = "" if hint.startswith("Did") else " Names of plugins and evaluators count if these are loaded."
        return f"unknown metric {metric}", hint + more

    def doubt(self, name: str) -> str | None:
        """Return a warning if only an evaluator may return this metric; None if the metric is known."""
        metric, _ = metric_and_statistic(name)
        if metric in self.measured or not self.open_functions:
            return None
        hint = nearest(metric, (*self.measured, *self.unmeasured))
        meant = f" {hint}" if hint.startswith("Did") else ""
        return f"no metric {metric} is known beforehand, so {listed(self.open_functions, 3)} must give it.{meant}"


def nearest(name: str, known: Sequence[str]) -> str:
    """Return a hint with the nearest name, or with some of the known names if none is near.

    Example:
        >>> nearest("step_score", ["steps_score", "answer_f1"])
        'Did you mean steps_score?'
    """
    near = next((each for each in known if each.casefold() == name.casefold()), None)
    near = near or next(iter(get_close_matches(name, known, n=1, cutoff=0.6)), None)
    return f"Did you mean {near}?" if near else f"There are {listed(known, _MOST_NAMED)}."


def check_gates(
    gates: Sequence[GateConfig],
    known: KnownMetrics,
    templates: Iterable[str],
    *,
    of_config: bool,
    where: str = "the dataset has",
) -> list[str]:
    """Check the names and bounds in gates, and return warnings about names that only evaluators can return.

    A bound must be on the right side, and a run must be able to pass and to fail it. ``where`` begins the list of
    known templates in messages.

    Raises:
        ConfigError: A gate of the config (``of_config``) has an unknown metric or template, or such a bound.
        OptionError: The same of another gate.
    """
    ids = list(dict.fromkeys(templates))
    for index, gate in enumerate(gates):
        name, place = gate.metric or MAIN_METRIC, index if of_config else None
        if (problem := known.why_not(name)) is not None:
            what, hint = problem
            template, slash, metric = name.rpartition("/")
            if slash and template in ids and known.why_not(metric) is None:
                hint = f"Write metric: {metric} and template: {template}."
            raise _error(what, hint, place, "metric")
        if gate.template is not None and gate.template not in ids:
            raise _error(f"{where} no template {gate.template}", nearest(gate.template, ids), place, "template")
        check_direction(gate, place)
        check_condition(gate, place)
    doubts = (known.doubt(gate.metric or MAIN_METRIC) for gate in gates)
    return list(dict.fromkeys(doubt for doubt in doubts if doubt is not None))


def check_direction(gate: GateConfig, index: int | None = None, *, only_declared: bool = False) -> None:
    """Refuse ``under`` for a metric for which lower is better, and ``over`` for one for which higher is better.

    Raises:
        ConfigError: It is such a gate, and ``index`` is its place in the section ``gates`` of the config.
        OptionError: The same elsewhere.
    """
    metric, _ = metric_and_statistic(name := gate.metric or MAIN_METRIC)
    lower_is_better = metric_spec(metric).lower_is_better
    if only_declared and not is_declared(metric):
        return
    form = f"--fail-{{}} {name}={{:g}}" if index is None else "{}: {:g}"
    if gate.under is not None and lower_is_better:
        what = f"less is better for {metric}, so a least mean makes no sense"
        raise _error(what, f"Bound it from above: {form.format('over', gate.under)}.", index, "under")
    if gate.over is not None and not lower_is_better:
        if isinstance(gate.over, str):
            hint = f"Set how much it may drop: {'max_drop' if index is not None else f'--max-drop {metric}=0.05'}."
        else:
            hint = f"Require a least mean: {form.format('under', gate.over)}."
        if not is_declared(metric):
            hint += " If less of it is better, declare it: register_metric(..., lower_is_better=True)."
        raise _error(f"more is better for {metric}, so an upper bound makes no sense", hint, index, "over")


def check_condition(gate: GateConfig, index: int | None) -> None:
    """Reject a condition that every run would pass, or fail, regardless of its values.

    Raises:
        ConfigError: It is such a gate, and ``index`` is its place in the section ``gates`` of the config.
        OptionError: The same elsewhere.
    """
    name = gate.metric or MAIN_METRIC
    metric, statistic = metric_and_statistic(name)
    spec = metric_spec(metric)
    is_absolute, drop = gate.condition in ("under", "over"), gate.drop_limit
    if statistic != MEAN and not is_absolute:
        what = f"{gate.condition} is about the mean, and {name} names another statistic"
        rise = f"over: +20% (--fail-over {name}=+20%), or name " if drop is not None and spec.lower_is_better else ""
        raise _error(what, f"Name {rise}{metric}.", index, "metric")
    if drop is not None and drop > 1:
        raise _error(f"{drop:g} is not a drop from 0 to 1", "Give a number from 0 to 1.", index, gate.condition)
    if gate.metric is not None and gate.condition.startswith("max_lost") and not can_be_right(spec):
        what = f"{metric} has no best value, so no question is right in it, and none can be broken"
        raise _error(what, f"Name a score such as {MAIN_METRIC}, or limit its drop: max_drop.", index, "metric")
    bound, (least, greatest) = gate.under if gate.under is not None else gate.over, spec.range
    if not isinstance(bound, int | float) or statistic == "sum" or not is_declared(metric):
        return
    if (least is not None and bound < least) or (greatest is not None and bound > greatest):
        hint = "Give a bound that it can pass and fail."
        if spec.range == (0.0, 1.0) and 2 <= bound <= 100:  # 1.01 hardly means 1.01 %
            hint = f"Write {bound:g} % as {bound / 100:g}."
        what = f"{name} goes {range_text(*spec.range)}, and {bound:g} lies outside"
        raise _error(what, hint, index, gate.condition)


def can_be_right(spec: MetricSpec) -> bool:
    """Return whether questions can be right in a metric, so that ``max_lost`` can count them."""
    return not spec.is_spent and best_value(spec) is not None


def _error(what: str, hint: str, index: int | None, key: str) -> GraphRAGEvalError:
    """Return the error about a gate: a ConfigError with its key if the gate is in the config."""
    return OptionError(what, hint=hint) if index is None else ConfigError(what, key=f"gates.{index}.{key}", hint=hint)


def _judges_that_are_off(
    config: EvaluationConfig, *, has_llm: bool, has_embeddings: bool
) -> dict[str | None, tuple[str, str]]:
    """Return for each judge that is off the reason and a hint."""
    if not has_llm and config.llm is None:
        return dict.fromkeys(
            (judge.key for judge in JUDGES), ("is judged by a model, and the config has no llm section", _ADD_LLM)
        )
    # Imported here so that a run without judges need not load them.
    from graphrag_eval_lc.judges.judging import wanted_judges

    has_embeddings = has_embeddings or (config.llm is not None and config.llm.embedding is not None)
    wanted = {judge.key for judge in wanted_judges(config, has_embeddings=has_embeddings)}
    return {
        judge.key: ("needs an embedding model, and there is none", "Name one in llm.embedding.")
        if judge.needs_embeddings and not has_embeddings
        else (
            f"is judged by {judge.key}, which the config leaves out",
            f"Name it in judges.metrics, and set no {judge.key}.enabled to false.",
        )
        for judge in JUDGES
        if judge.key not in wanted
    }


def _is_known(function: CustomFunction) -> bool:
    """Return whether an evaluator's only metric has its own name: a declared metric, or a function annotated so."""
    try:
        given = "float" if function.spec is not None else signature_of(function.function).return_annotation
    except (TypeError, ValueError):
        return False
    return (given if isinstance(given, str) else getattr(given, "__name__", "")) in _PLAIN
