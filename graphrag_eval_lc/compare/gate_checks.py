"""Checks gates: a table at the end has the function for each condition, which decides and words the result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import copysign, fsum, inf
from typing import Any, Final, Literal, NamedTuple

from graphrag_eval_lc.compare.flips import direction_of, is_right
from graphrag_eval_lc.compare.gate_names import MEAN, can_be_right, metric_and_statistic
from graphrag_eval_lc.compare.gate_values import STATISTIC_OF, GateValues
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    Pair,
    difference_of,
    is_same,
    p_statement,
    too_few_text,
    value_text,
)
from graphrag_eval_lc.compare.metric_tests import MetricValues, compared_metrics
from graphrag_eval_lc.compare.runs import Pairing
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metric_spec import Unit
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.texts import counted, listed, visible

Gate = GateConfig
State = Literal["passed", "failed", "not checked"]

# Tolerance for rounding errors, so that a mean of 0.9 passes 0.9, and a drop of 0.05 passes 0.05.
ROUNDING: Final = 1e-9
# The test decides if its power for a drop of 0.05 is at least this, which Cohen 1988, "Statistical Power Analysis for
# the Behavioral Sciences", proposes as sufficient.
_ENOUGH_POWER: Final = 0.8
_NAMED: Final = 5  # at most this many questions or templates are named


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """The result of checking a gate; ``str`` returns its sentence.

    Attributes:
        gate: The condition with its numbers.
        state: ``passed``, ``failed``, or ``not checked`` if the runs have nothing to check it on.
        value: What is compared with the bound: the statistic itself, the drop (points of a score from 0 to 1,
            otherwise a share of the baseline's mean), the increase, or the number of broken questions; with
            ``…_per_template`` the largest of any template. None if nothing was measured.
        bound: The greatest value that passes; for ``under`` the lowest.
        sentence: The result in words, on one line and without a full stop.
        metric: The metric.
        statistic: Its statistic.
        letter: The run's letter in a comparison; empty for a run alone.
        details: The ids of the broken questions, or of the templates that dropped by more than allowed.
    """

    gate: Gate
    state: State
    value: float | None
    bound: float
    sentence: str
    metric: str
    statistic: str = MEAN
    letter: str = ""
    details: tuple[str, ...] = ()

    @property
    def has_passed(self) -> bool:
        """Whether the run passes the gate."""
        return self.state == "passed"

    @property
    def name(self) -> str:
        """The metric with its template and statistic, as on the command line."""
        return _name(self.metric, self.gate.template, self.statistic)

    @property
    def title(self) -> str:
        """The name and the condition, such as ``steps_score ≥ 0.9``; it is the same from run to run."""
        gate = self.gate
        if gate.needs_baseline:
            return f"{self.name} {gate.over or f'{gate.condition} {self.bound:g}'}"
        return f"{self.name} {'≥' if gate.under is not None else '≤'} {self.bound:,.10g}"

    def __str__(self) -> str:
        return self.sentence


class _Drop(NamedTuple):
    """How much worse a mean is than A's: in points for a proportion, otherwise as a share of A's mean."""

    template: str | None
    size: float
    means: str
    sentence: str
    doubt: str  # with ``confident``: why no drop is certain; otherwise empty
    has_passed: bool


def _result(
    gate: Gate, letter: str, sentence: str, state: State | bool, value: float | None, bound: float, **more: Any
) -> GateResult:
    return GateResult(
        gate=gate,
        state=("passed" if state else "failed") if isinstance(state, bool) else state,
        value=value,
        bound=bound,
        sentence=visible(f"{letter}: {sentence}" if letter else sentence, keeps_lines=False),
        letter=letter,
        **more,
    )


class _Pair:
    """A run and its baseline A, for one gate.

    Attributes:
        metric: The gate's metric; None if the runs have no score in common.
        pairs: The metric in A and in the run by question id, in the gate's template.
        template_ids: The templates of the common questions by question id, as A has them.
        limit: The allowed drop, increase, or number of broken questions.
        are_proportions: Whether all values of the metric are between 0 and 1, in all templates.
    """

    def __init__(self, gate: Gate, values: GateValues, baseline: GateValues) -> None:
        self.gate, self.values, self.baseline, self.letter = gate, values, baseline, values.letter
        self._pairing = Pairing.of(baseline.run, values.run)
        self.metric = gate.metric or values.main
        if self.metric is not None and self.metric.endswith(f".{MEAN}") and not self._pairing.can_compare(self.metric):
            self.metric, _ = metric_and_statistic(self.metric)
        self.name, self.spec = _name(str(self.metric), gate.template), metric_spec(str(self.metric))
        limit = getattr(gate, gate.condition)
        if isinstance(limit, str):  # an increase
            limit = float(limit.strip("+%")) / (100 if limit.endswith("%") else 1)
        self.limit = float(limit)
        self.template_ids = self._pairing.template_ids()
        found = self._pairing.values(self.metric) if self.metric and self._pairing.can_compare(self.metric) else {}
        self.are_proportions = MetricValues(self.spec, self._pairing.by_template(found), left_out=0).are_proportions()
        self.allowed = f"{self.limit:g}" if self.are_proportions else f"{100 * self.limit:g} %"
        self.pairs = {each: pair for each, pair in found.items() if gate.template in (None, self.template_ids[each])}
        self.result = partial(_result, gate, self.letter, bound=self.limit, metric=self.metric or "")

    def not_comparable(self, metric: str | None, statistic: str = MEAN) -> GateResult:
        """Return the result ``not checked``, with the reason why nothing can be compared."""
        letter, template = self.letter, self.gate.template
        in_a, in_b = (metric is not None and side.numbers.has(metric) for side in (self.baseline, self.values))
        if metric is None:
            why = f"A and {letter} have no score in common"
        elif template is not None and template not in self.template_ids.values():
            why = f"A and {letter} have no question of the template {template} in common"
        elif in_a is in_b:
            why = "no question has it in both runs" if in_a else "neither run measured it"
        else:
            why = f"{letter if in_a else 'A'} has not measured it"
        sentence = f"{_name(metric or 'the main metric', template, statistic)} cannot be compared: {why}"
        return self.result(sentence, "not checked", None, metric=metric or "", statistic=statistic)

    def compared(self, template: str | None, pairs: Mapping[str, Pair]) -> MetricComparison:
        """Compare the metric alone, with its interval at 95 %; within one template, questions are the clusters."""
        metric, known = self.spec.key, self.values.compared
        if template is None and known is not None and known.metric == metric and known.is_main:
            return known
        groups = self._pairing.by_template(pairs) if template is None else {template: list(pairs.values())}
        values = MetricValues(self.spec, groups, left_out=0)
        number = len(set(self.template_ids.values())) if template is None else 1
        return compared_metrics([values], main=metric, number_of_templates=number, letter=self.letter)[0]

    def drop(self, template: str | None, pairs: Mapping[str, Pair]) -> _Drop:
        """Return how much worse the mean of the pairs is; with ``confident``, how much of that is certain."""
        spec, limit, is_proportion = self.spec, self.limit, self.are_proportions
        mean_a, mean_b = (fsum(pair[side] for pair in pairs.values()) / len(pairs) for side in (0, 1))

        def worse_by(difference: float) -> float:
            worse = difference if spec.lower_is_better else -difference
            if is_proportion or not worse:
                return worse
            return worse / abs(mean_a) if mean_a else copysign(inf, worse)

        counts = size = worse_by(difference_of((mean_a, mean_b)))
        means, way, doubt = _change(mean_a, mean_b, spec.unit), "rise" if spec.lower_is_better else "drop", ""
        what = _against(size, limit, self.allowed, is_proportion)
        sentence = f"{means}, {way} {what}" if size > 0 else f"{means}, no {way}"
        if self.gate.confident and size > limit + ROUNDING:
            compared = self.compared(template, pairs)
            if compared.interval is None or not compared.can_tell:
                doubt = too_few_text(compared)
                sentence += f", but not certain: {doubt}"
            else:
                counts = min(map(worse_by, (*compared.interval, compared.difference)))
                sentence += f"; certain are {_against(counts, limit, self.allowed, is_proportion)}"
        return _Drop(template, size, means, sentence, doubt, bool(doubt) or counts <= limit + ROUNDING)


def _absolute(gate: Gate, values: GateValues) -> GateResult:
    """Check a statistic of one run, without a baseline."""
    given = gate.metric or MAIN_METRIC
    metric, statistic = (given, MEAN) if values.numbers.has(given) else metric_and_statistic(given)
    spec, bounded, is_under = metric_spec(metric), values.of(metric, statistic, gate.template), gate.under is not None
    bound = float(gate.under if gate.under is not None else gate.over or 0.0)
    name, limit = _name(metric, gate.template, statistic), f"{bound:,.10g}"
    result = partial(_result, gate, values.letter, bound=bound, metric=metric, statistic=statistic)
    if not bounded.values:
        if gate.template is not None and not bounded.questions + bounded.left_out:
            sentence = f"{name}: the run has no question of the template {gate.template}"
            return result(sentence, "not checked", None)
        sentence = f"{name} was not measured ({'≥' if is_under else '≤'} {limit} is required)"
        return result(sentence, "failed", None)
    value = STATISTIC_OF[statistic](bounded.values)
    has_passed = value >= bound - ROUNDING if is_under else value <= bound + ROUNDING * abs(bound)
    notes = []
    if bounded.errors and spec.kind == "score":
        samples = counted(bounded.errors, "failed sample counts", "failed samples count")
        notes.append(f"{samples} as {spec.value_of_failure or 0.0:g}")
    if bounded.left_out:
        notes.append(f"{counted(bounded.left_out, 'question')} without it")
    if bounded.upper is not None and statistic == MEAN:
        notes.append(f"{bounded.upper:.3f} if all undecided steps matched")
    text = value_text(value, spec.unit)
    if text == value_text(bound, spec.unit) and value != bound:  # rounded, they would look the same
        text = f"{value:,.10g}"
    sign = ("≥" if has_passed else "<") if is_under else ("≤" if has_passed else ">")
    sentence = f"{name} {text} {sign} {limit}" + (f" ({', '.join(notes)})" if notes else "")
    return result(sentence, has_passed, value)


def _drop(checked: _Pair) -> GateResult:
    """Check the drop of the mean."""
    drop = checked.drop(checked.gate.template, checked.pairs)
    return checked.result(f"{checked.name} {drop.sentence}", drop.has_passed, drop.size)


def _drop_per_template(checked: _Pair) -> GateResult:
    """Check the drop of the mean of each template."""
    groups: dict[str, dict[str, Pair]] = {}
    for identifier, pair in checked.pairs.items():
        groups.setdefault(checked.template_ids[identifier], {})[identifier] = pair
    drops = sorted((checked.drop(each, pairs) for each, pairs in groups.items()), key=lambda each: -each.size)
    worst, failed = drops[0], [drop for drop in drops if not drop.has_passed]
    number = counted(len(drops), "template")
    if failed:
        named = listed([f"{drop.template} {drop.means}" for drop in failed], _NAMED)
        certainly = "certainly " if checked.gate.confident else ""
        sentence = f"worse by {certainly}more than {checked.allowed} in {len(failed):,} of {number}: {named}"
    else:
        sentence = f"in the worst of {number}, {worst.template}: {worst.sentence}"
    if unsure := [str(drop.template) for drop in drops if drop.doubt]:
        sentence += f"; too few questions to be certain in {listed(unsure, _NAMED)}"
    details = [str(drop.template) for drop in failed]
    return checked.result(f"{checked.name} {sentence}", not failed, worst.size, details=tuple(details))


def _regression(checked: _Pair) -> GateResult:
    """Check whether the run is worse, by the p-value if the test is strong enough, otherwise by the effect.

    If the test would find a drop of 0.05 in at least 80 % of such comparisons, its p-value decides: the run is worse if
    it is below 0.05. Otherwise the effect decides: the run is worse if the drop is above the limit. A run that the test
    calls worse fails in any case, so the gate never contradicts the table.
    """
    drop = checked.drop(checked.gate.template, checked.pairs)
    compared = checked.compared(checked.gate.template, checked.pairs)
    if is_same(compared):
        return checked.result(f"{checked.name} is the same for each question", True, drop.size)
    is_strong = compared.can_tell and (compared.power or 0.0) >= _ENOUGH_POWER
    if is_strong or (compared.verdict == "worse" and drop.has_passed):
        sentence, has_passed = f"{drop.means}, {p_statement(compared.p_value)}", compared.verdict != "worse"
        decided = "the p-value decided"
    else:
        sentence, has_passed = drop.sentence, drop.has_passed
        why = f"the test finds a drop of 0.05 in only {int(100 * (compared.power or 0.0))} % of such comparisons"
        decided = f"the effect decided: {why if compared.can_tell else too_few_text(compared)}"
    return checked.result(f"{checked.name} {sentence} ({decided})", has_passed, drop.size)


def _lost(checked: _Pair) -> GateResult:
    """Check how many questions were right in A (they had the metric's best value) and are not right now."""
    gate, limit, spec = checked.gate, checked.limit, checked.spec
    if not can_be_right(spec):
        sentence = f"{checked.name} cannot be compared: it has no best value, so no question is right in it"
        return checked.result(sentence, "not checked", None)
    lost: dict[str, list[str]] = {}  # by template, or all together
    for each, (a, b) in checked.pairs.items():
        if difference_of((a, b)) and direction_of(a, b, spec) == "broken":
            lost.setdefault(checked.template_ids[each] if gate.max_lost is None else "", []).append(each)
    worst, most = max(lost.items(), key=lambda each: len(each[1]), default=("", []))
    undecided = checked.values.undecided if spec.key == checked.values.main else ()
    over = {template: ids for template, ids in lost.items() if len(ids) > limit}
    shown = [each for ids in (over or lost).values() for each in ids]
    named = listed([f"{each} (undecided)" if each in undecided else each for each in shown], _NAMED)
    right = sum(is_right(a, spec) for a, _ in checked.pairs.values())
    against = f"{'>' if over else '≤'} {limit:,g}"
    if gate.max_lost is None:
        others = [template for template in over if template != worst]
        more = f", also too many in {listed(others, _NAMED)}" if others else ""
        where = worst or "each template"
        sentence = f"{checked.name}: {counted(len(most), 'right question')} broken in {where} {against}{more}"
    else:
        sentence = f"{checked.name}: {len(most):,} of {right:,} right questions broken {against}"
    return checked.result(
        f"{sentence}: {named}" if named else sentence, not over, float(len(most)), details=tuple(chain(*lost.values()))
    )


def _increase(checked: _Pair) -> GateResult:
    """Check how much a statistic is above that of A, over the questions that both have."""
    gate, sides = checked.gate, (checked.baseline, checked.values)
    numbers = [side.numbers for side in sides]
    given, allowed = gate.metric or MAIN_METRIC, str(gate.over)
    metric, statistic = (given, MEAN) if any(side.has(given) for side in numbers) else metric_and_statistic(given)
    spec, is_share, limit = metric_spec(metric), allowed.endswith("%"), checked.limit
    if statistic == MEAN and spec.kind == "score":  # failed samples count as the worst value
        found = [[pair[side] for pair in checked.pairs.values()] for side in (0, 1)]
    else:
        ids = [
            each
            for each, template_id in checked.template_ids.items()
            if gate.template in (None, template_id)
            and all(side.has(metric) and side.questions[each].score(metric) is not None for side in numbers)
        ]
        found = [[*side.of(metric, statistic, only=ids).values] for side in sides]
    if not all(found):
        return checked.not_comparable(metric, statistic)
    a, b = (STATISTIC_OF[statistic](each) for each in found)
    increase = b - a
    if is_share and increase:
        increase = increase / abs(a) if a else inf * increase
    # Values of any size: a millionth of a dollar, or millions of tokens.
    has_passed = increase <= limit + ROUNDING * (1 if is_share else max(abs(a), abs(b)))
    sentence = f"{_name(metric, gate.template, statistic)} {_change(a, b, spec.unit)}"
    what = f"+{increase:,.6g} {'≤' if has_passed else '>'} {allowed}"
    if is_share and increase > 0:
        what = f"{'+' if a else ''}{_against(increase, limit, allowed, is_proportion=False)}"
    sentence += f", {what if increase > 0 else 'no increase'}"
    return checked.result(sentence, has_passed, increase, metric=metric, statistic=statistic)


_CONDITIONS: Final[Mapping[str, Callable[[_Pair], GateResult]]] = {
    "over": _increase,
    "max_drop": _drop,
    "max_drop_per_template": _drop_per_template,
    "max_lost": _lost,
    "max_lost_per_template": _lost,
    "regression": _regression,
}


def check(gate: Gate, values: GateValues, baseline: GateValues | None = None) -> GateResult:
    """Check a gate on the values of a run, compared with its baseline if ``gate.needs_baseline``."""
    if not gate.needs_baseline:
        return _absolute(gate, values)
    pair = _Pair(gate, values, baseline or values)
    return _CONDITIONS[gate.condition](pair) if pair.pairs or gate.over else pair.not_comparable(pair.metric)


def _name(metric: str, template: str | None, statistic: str = MEAN) -> str:
    name = metric if statistic == MEAN else f"{metric}.{statistic}"
    return name if template is None else f"{template}/{name}"


def _against(drop: float, limit: float, allowed: str, is_proportion: bool) -> str:
    """Return a drop and its limit as text, exact enough to show which is larger.

    Example:
        >>> _against(0.25, 0.05, "0.05", True), _against(0.25, 0.05, "5 %", False), _against(0.0501, 0.05, "0.05", True)
        ('0.250 > 0.05', '25.0 % > 5 %', '0.0501 > 0.05')
    """
    if drop == inf:
        return f"from 0 > {allowed}"
    sign = ">" if drop > limit + ROUNDING else "≤"
    drop, limit, form, unit = (drop, limit, ".3f", "") if is_proportion else (100 * drop, 100 * limit, ".1f", " %")
    text = format(drop, ".9g" if format(drop, form) == format(limit, form) and drop != limit else form)
    return f"{text.replace('-', '−')}{unit} {sign} {allowed}"


def _change(value_a: float, value_b: float, unit: Unit) -> str:
    """Return two values as text, with more digits if they differ but would look the same."""
    before, after = value_text(value_a, unit), value_text(value_b, unit)
    if before == after and value_a != value_b:
        more = next((each for each in (4, 6) if f"{value_a:.{each}g}" != f"{value_b:.{each}g}"), None)
        if more is not None:
            before, after = (format(value, f",.{more}g").replace("-", "−", 1) for value in (value_a, value_b))
    return f"{before} → {after}"
