"""The conditions of gates, checked against what their metrics can be, before anything is asked or compared."""

from collections.abc import Mapping
from typing import Final

from graphrag_eval_lc.compare.flips import has_best_value
from graphrag_eval_lc.compare.gate_texts import MEAN, metric_and_statistic
from graphrag_eval_lc.compare.regression import no_drop
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import ConfigError, GraphRAGEvalError, OptionError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metric_spec import MetricSpec
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, is_declared
from graphrag_eval_lc.texts import range_text

_WORDS: Final[Mapping[str, str]] = {
    "max_drop": "--max-drop",
    "max_drop_per_template": "--max-drop-per-template",
    "max_lost": "--max-lost",
    "max_lost_per_template": "--max-lost",
}


def check_condition(gate: GateConfig, index: int | None) -> None:
    """Refuse a condition that every run would meet or fail, whatever its values.

    Args:
        gate: The gate.
        index: Where it stands in the config's section ``gates``; None elsewhere.

    Raises:
        ConfigError: There is one, and the gate stands in the config.
        OptionError: The same elsewhere.
    """
    name = gate.metric or MAIN_METRIC
    metric, statistic = metric_and_statistic(name)
    spec = metric_spec(metric)
    is_of_drops = gate.condition in ("max_drop", "max_drop_per_template")
    word = gate.condition if index is not None else _WORDS.get(gate.condition, gate.condition)
    if statistic != MEAN and gate.condition in _WORDS:
        hint = f"Give {metric}."
        if is_of_drops and spec.lower_is_better:
            bound = f'over: "+20%" of {name}' if index is not None else f"--fail-over {name}=+20%"
            hint = f"Bound how much it may rise: {bound}; or give {metric}."
        raise gate_error(f"{word} is of the mean, and {name} names another statistic", hint, index, "metric")
    drop = gate.max_drop if gate.max_drop is not None else gate.max_drop_per_template
    if drop is not None and drop > 1:
        if index is None:
            raise no_drop(drop)
        what = f"{drop:g} is no drop that can be allowed"
        raise gate_error(what, "Give a number from 0 to 1.", index, gate.condition)
    is_of_lost = gate.condition in ("max_lost", "max_lost_per_template")
    if gate.metric is not None and is_of_lost and not can_be_right(spec):
        what = f"{metric} has no best value, so that no question is right in it, and none can be lost"
        raise gate_error(what, f"Name a score such as {MAIN_METRIC}, or limit its drop: max_drop.", index, "metric")
    if statistic != "sum" and is_declared(metric):
        _check_bound(gate, name, spec, index)


def can_be_right(spec: MetricSpec) -> bool:
    """Return whether a question can be right in a metric, so that it can be lost."""
    return not spec.is_spent and has_best_value(spec)


def gate_error(what: str, hint: str, index: int | None, key: str) -> GraphRAGEvalError:
    """Return the error of a gate, with its key where it stands in the config."""
    if index is None:
        return OptionError(what, hint=hint)
    return ConfigError(what, key=f"gates.{index}.{key}", hint=hint)


def _check_bound(gate: GateConfig, name: str, spec: MetricSpec, index: int | None) -> None:
    bound = gate.under if gate.under is not None else gate.over
    if bound is None or isinstance(bound, str):
        return
    least, greatest = spec.range
    if (least is None or bound >= least) and (greatest is None or bound <= greatest):
        return
    hint = "Give a bound that it can meet and fail."
    if spec.range == (0.0, 1.0) and 2 <= bound <= 100:  # as 1.01 is no slip for 0.0101
        hint = f"Write {bound:g} % as {bound / 100:g}."
    raise gate_error(f"{name} goes {range_text(*spec.range)}, and {bound:g} lies outside", hint, index, gate.condition)
