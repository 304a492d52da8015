"""What each condition of a gate decides, and how it says so: one table of conditions for all gates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import copysign, fsum, inf
from typing import Any, Final, Literal

from graphrag_eval_lc.compare.flips import direction_of, is_right
from graphrag_eval_lc.compare.gate_names import MEAN, can_be_right, metric_and_statistic
from graphrag_eval_lc.compare.gate_values import GateValues, statistic_of
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
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.metric_spec import Unit
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.texts import counted, listed, visible

Gate = GateConfig
State = Literal["passed", "failed", "not checked"]

# A mean of 0.9 is 0.9, and a drop of 0.05 is 0.05, whatever rounding makes of it.
ROUNDING: Final = 1e-9
# The test decides if it would find a drop of 0.05 at least so often: what Cohen 1988, "Statistical Power Analysis for
# the Behavioral Sciences", proposes as enough.
_ENOUGH_POWER: Final = 0.8
_NAMED: Final = 5  # so many questions or templates are named


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What came of a gate; as text its sentence.

    Attributes:
        gate: The condition with its numbers.
        state: ``passed``, ``failed``, or ``not checked`` if the runs have nothing to check it on.
        value: What the bound is compared with: the statistic itself, the drop (points of a score from 0 to 1, else a
            share of the baseline's mean), the increase, or the number of lost questions; with ``…_per_template`` the
            largest of a template. None if nothing was measured.
        bound: The greatest value that passes; of ``under`` the least.
        sentence: All that for people, on one line and without a full stop.
        metric: The metric.
        statistic: Its statistic.
        letter: The run's letter in a comparison; empty for a run alone.
        details: The ids of the lost questions, or of the templates that dropped by more than allowed.
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
        """Whether it is passed."""
        return self.state == "passed"

    @property
    def name(self) -> str:
        """The metric with its template and statistic, as on the command line."""
        return _name(self.metric, self.gate.template, self.statistic)

    @property
    def title(self) -> str:
        """The name and the condition, such as ``steps_score ≥ 0.9``, which stay the same from run to run."""
        gate = self.gate
        if gate.needs_baseline:
            return f"{self.name} {gate.over or f'{gate.condition} {self.bound:g}'}"
        return f"{self.name} {'≥' if gate.under is not None else '≤'} {self.bound:,.10g}"

    def __str__(self) -> str:
        return self.sentence


def check(gate: Gate, values: GateValues, baseline: GateValues | None = None) -> GateResult:
    """Return what comes of a gate on the values of a run, and of its baseline if ``gate.needs_baseline``."""
    condition = _absolute if not gate.needs_baseline else _CONDITIONS[gate.condition]
    return condition(_Checked(gate, values, baseline or values))


@dataclass(frozen=True)
class _Checked:
    """A gate with what it is checked on: the values of a run, and of its baseline A if it needs one."""

    gate: Gate
    values: GateValues
    baseline: GateValues

    def result(
        self,
        sentence: str,
        state: State | bool,
        value: float | None,
        bound: float,
        *,
        metric: str | None = None,
        statistic: str = MEAN,
        details: Sequence[str] = (),
    ) -> GateResult:
        """Return the gate's result; by default of the mean of ``metric``."""
        letter = self.values.letter
        return GateResult(
            gate=self.gate,
            state=("passed" if state else "failed") if isinstance(state, bool) else state,
            value=value,
            bound=bound,
            sentence=visible(f"{letter}: {sentence}" if letter else sentence, keeps_lines=False),
            metric=metric or self.metric or "",
            statistic=statistic,
            letter=letter,
            details=tuple(details),
        )

    def nothing(self, bound: float, metric: str | None = None, statistic: str = MEAN) -> GateResult:
        """Return the result if nothing can be compared, which says why."""
        metric, letter, template = metric or self.metric, self.values.letter, self.gate.template
        in_a, in_b = (metric is not None and side.has(metric) for side in (self.baseline, self.values))
        if metric is None:
            why = f"A and {letter} have no score in common"
        elif template is not None and template not in self.template_ids.values():
            why = f"A and {letter} have no question of the template {template} in common"
        elif in_a is in_b:
            why = "no question has it in both runs" if in_a else "neither run measured it"
        else:
            why = f"{letter if in_a else 'A'} has not measured it"
        name = _name(metric or "the main metric", template, statistic)
        sentence = f"{name} cannot be compared: {why}"
        return self.result(sentence, "not checked", None, bound, metric=metric, statistic=statistic)

    @property
    def limit(self) -> float:
        """The drop that is allowed."""
        return float(self.gate.drop_limit or 0.0)

    @property
    def name(self) -> str:
        """The metric with the template."""
        return _name(str(self.metric), self.gate.template)

    @cached_property
    def pairing(self) -> Pairing:
        """The questions that the run and A have in common."""
        return Pairing.of(self.baseline.run, self.values.run)

    @cached_property
    def template_ids(self) -> Mapping[str, str]:
        """Their templates by question id, as A has them."""
        return self.pairing.template_ids()

    @cached_property
    def metric(self) -> str | None:
        """The gate's metric; None if the runs have no score in common."""
        given = self.gate.metric or self.values.main
        if given is None or self.pairing.can_compare(given):
            return given
        metric, statistic = metric_and_statistic(given)
        return metric if statistic == MEAN else given

    @cached_property
    def pairs(self) -> Mapping[str, Pair]:
        """The metric in A and in the run by question id, in the gate's template."""
        if self.metric is None or not self.pairing.can_compare(self.metric):
            return {}
        found, template = self.pairing.values(self.metric), self.gate.template
        return {each: pair for each, pair in found.items() if template in (None, self.template_ids[each])}

    def compared(self, template: str | None, pairs: Mapping[str, Pair]) -> MetricComparison:
        """Return the comparison in the metric alone, with its interval at 95 %; in a template by its questions."""
        metric, known = str(self.metric), self.values.compared
        if template is None and known is not None and known.metric == metric and known.is_main:
            return known
        groups = self.pairing.by_template(pairs) if template is None else {template: list(pairs.values())}
        values = MetricValues(metric_spec(metric), groups, left_out=0)
        number = len(set(self.template_ids.values())) if template is None else 1
        return compared_metrics([values], main=metric, number_of_templates=number, letter=self.values.letter)[0]

    @cached_property
    def _are_proportions(self) -> bool:
        """Whether all values of the metric are between 0 and 1, in all templates."""
        spec = metric_spec(str(self.metric))
        return MetricValues(spec, self.pairing.by_template(self.pairing.values(spec.key)), left_out=0).are_proportions()

    def drop(self, template: str | None, pairs: Mapping[str, Pair]) -> "_Drop":
        """Return how much worse the mean of the pairs is, and how much of that is certain if only that counts."""
        spec = metric_spec(str(self.metric))
        mean_a, mean_b = (fsum(pair[side] for pair in pairs.values()) / len(pairs) for side in (0, 1))
        drop = _Drop(template, mean_a, mean_b, spec, self._are_proportions, self.limit)
        if not self.gate.confident or not _is_above(drop.size, self.limit):
            return drop
        compared = self.compared(template, pairs)
        if compared.interval is None or not compared.can_tell:
            return replace(drop, doubt=too_few_text(compared))
        ends = (compared.interval.low, compared.interval.high, compared.difference)
        return replace(drop, certain=min(map(drop.worse_by, ends)))


@dataclass(frozen=True, slots=True)
class _Drop:
    """How much worse a mean is than that of A: in points of a proportion, else as a share of A's mean.

    Attributes:
        template: The template whose questions count; None: all of the gate.
        mean_a: The mean of A.
        mean_b: The mean of the run.
        spec: The metric.
        is_proportion: Whether all its values are between 0 and 1.
        limit: The drop that is allowed.
        certain: The lower end of the drop's 95 % interval, if only that counts.
        doubt: Why nothing is certain; empty if something is, or if any drop counts.
    """

    template: str | None
    mean_a: float
    mean_b: float
    spec: MetricSpec
    is_proportion: bool
    limit: float
    certain: float | None = None
    doubt: str = ""

    def worse_by(self, difference: float) -> float:
        """Return a difference as a drop, negative if the run is better; infinite if it is a share of 0."""
        worse_by = difference if self.spec.lower_is_better else -difference
        if self.is_proportion or not worse_by:
            return worse_by
        return worse_by / abs(self.mean_a) if self.mean_a else copysign(inf, worse_by)

    @property
    def size(self) -> float:
        """The drop."""
        return self.worse_by(difference_of((self.mean_a, self.mean_b)))

    @property
    def has_passed(self) -> bool:
        """Whether the drop, or as much of it as is certain, is within the limit."""
        return bool(self.doubt) or not _is_above(self.size if self.certain is None else self.certain, self.limit)

    @property
    def means(self) -> str:
        """Both means as text."""
        return _change(self.mean_a, self.mean_b, self.spec.unit)

    @property
    def allowed(self) -> str:
        """The limit as text."""
        return f"{self.limit:g}" if self.is_proportion else f"{100 * self.limit:g} %"

    @property
    def sentence(self) -> str:
        """What became of the mean."""
        way = "rise" if self.spec.lower_is_better else "drop"
        if self.size <= 0:
            return f"{self.means}, no {way}"
        text = f"{self.means}, {way} {_against(self.size, self.limit, self.allowed, self.is_proportion)}"
        if self.doubt:
            return f"{text}, but not certain: {self.doubt}"
        if self.certain is None:
            return text
        return f"{text}; certain are {_against(self.certain, self.limit, self.allowed, self.is_proportion)}"


def _absolute(checked: _Checked) -> GateResult:
    """Check a statistic of the run alone."""
    gate, values = checked.gate, checked.values
    given = gate.metric or MAIN_METRIC
    metric, statistic = (given, MEAN) if values.has(given) else metric_and_statistic(given)
    spec, bounded, is_under = metric_spec(metric), values.of(metric, statistic, gate.template), gate.under is not None
    bound = float(gate.under if gate.under is not None else gate.over or 0.0)
    name, limit = _name(metric, gate.template, statistic), f"{bound:,.10g}"
    about: dict[str, Any] = {"metric": metric, "statistic": statistic}
    if not bounded.values:
        if gate.template is not None and not bounded.questions + bounded.left_out:
            sentence = f"{name}: the run has no question of the template {gate.template}"
            return checked.result(sentence, "not checked", None, bound, **about)
        sentence = f"{name} was not measured ({'≥' if is_under else '≤'} {limit} is required)"
        return checked.result(sentence, "failed", None, bound, **about)
    value = statistic_of(bounded.values, statistic)
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
    if text == value_text(bound, spec.unit) and value != bound:  # rounded they look alike
        text = f"{value:,.10g}"
    sign = ("≥" if has_passed else "<") if is_under else ("≤" if has_passed else ">")
    sentence = f"{name} {text} {sign} {limit}" + (f" ({', '.join(notes)})" if notes else "")
    return checked.result(sentence, has_passed, value, bound, **about)


def _drop(checked: _Checked) -> GateResult:
    """Check the drop of the mean."""
    if not checked.pairs:
        return checked.nothing(checked.limit)
    drop = checked.drop(checked.gate.template, checked.pairs)
    return checked.result(f"{checked.name} {drop.sentence}", drop.has_passed, drop.size, checked.limit)


def _drop_per_template(checked: _Checked) -> GateResult:
    """Check the drop of the mean of each template."""
    if not checked.pairs:
        return checked.nothing(checked.limit)
    groups: dict[str, dict[str, Pair]] = {}
    for identifier, pair in checked.pairs.items():
        groups.setdefault(checked.template_ids[identifier], {})[identifier] = pair
    drops = sorted((checked.drop(each, pairs) for each, pairs in groups.items()), key=lambda each: -each.size)
    worst, failed = drops[0], [drop for drop in drops if not drop.has_passed]
    number = counted(len(drops), "template")
    if failed:
        named = listed([f"{drop.template} {drop.means}" for drop in failed], _NAMED)
        certainly = "certainly " if checked.gate.confident else ""
        sentence = f"worse by {certainly}more than {worst.allowed} in {len(failed):,} of {number}: {named}"
    else:
        sentence = f"in the worst of {number}, {worst.template}: {worst.sentence}"
    if unsure := [str(drop.template) for drop in drops if drop.doubt]:
        sentence += f"; too few questions to be certain in {listed(unsure, _NAMED)}"
    details = [str(drop.template) for drop in failed]
    return checked.result(f"{checked.name} {sentence}", not failed, worst.size, checked.limit, details=details)


def _regression(checked: _Checked) -> GateResult:
    """Check whether the run is worse: by the p-value if the test is strong, or shows what the effect does not.

    If the test would find a drop of 0.05 in at least 80 % of such comparisons, its p-value decides: the run is worse if
    that is below 0.05. Else the effect decides: the run is worse if the drop is above the limit. A run that the test
    calls worse is worse in any case, so the gate never contradicts the table.
    """
    if not checked.pairs:
        return checked.nothing(checked.limit)
    drop = checked.drop(checked.gate.template, checked.pairs)
    compared = checked.compared(checked.gate.template, checked.pairs)
    if is_same(compared):
        return checked.result(f"{checked.name} is the same for each question", True, drop.size, checked.limit)
    is_strong = compared.can_tell and (compared.power or 0.0) >= _ENOUGH_POWER
    if is_strong or (compared.verdict == "worse" and drop.has_passed):
        sentence, has_passed = f"{drop.means}, {p_statement(compared.p_value)}", compared.verdict != "worse"
        decided = "the p-value decided"
    else:
        sentence, has_passed = drop.sentence, drop.has_passed
        why = f"the test finds a drop of 0.05 in only {int(100 * (compared.power or 0.0))} % of such comparisons"
        decided = f"the effect decided: {why if compared.can_tell else too_few_text(compared)}"
    return checked.result(f"{checked.name} {sentence} ({decided})", has_passed, drop.size, checked.limit)


def _lost(checked: _Checked) -> GateResult:
    """Check how many questions were right in A, which is to have the metric's best value, and are wrong now."""
    gate, metric = checked.gate, checked.metric
    limit = (gate.max_lost_per_template or 0) if gate.max_lost is None else gate.max_lost
    if metric is None or not checked.pairs:
        return checked.nothing(limit)
    spec = metric_spec(metric)
    if not can_be_right(spec):
        sentence = f"{checked.name} cannot be compared: it has no best value, so no question is right in it"
        return checked.result(sentence, "not checked", None, limit)
    lost: dict[str, list[str]] = {}  # by template, or all together
    for each, (a, b) in checked.pairs.items():
        if difference_of((a, b)) and direction_of(a, b, spec) == "now wrong":
            lost.setdefault(checked.template_ids[each] if gate.max_lost is None else "", []).append(each)
    worst, most = max(lost.items(), key=lambda each: len(each[1]), default=("", []))
    undecided = checked.values.undecided if metric == checked.values.main else ()
    over = {template: ids for template, ids in lost.items() if len(ids) > limit}
    shown = [each for ids in (over or lost).values() for each in ids]
    named = listed([f"{each} (undecided)" if each in undecided else each for each in shown], _NAMED)
    right = sum(is_right(a, spec) for a, _ in checked.pairs.values())
    against = f"{'>' if over else '≤'} {limit:,}"
    if gate.max_lost is None:
        others = [template for template in over if template != worst]
        more = f", also too many in {listed(others, _NAMED)}" if others else ""
        sentence = (
            f"{checked.name}: {counted(len(most), 'right question')} lost in {worst or 'each template'} {against}{more}"
        )
    else:
        sentence = f"{checked.name}: {len(most):,} of {right:,} right questions lost {against}"
    return checked.result(
        f"{sentence}: {named}" if named else sentence, not over, len(most), limit, details=[*chain(*lost.values())]
    )


def _increase(checked: _Checked) -> GateResult:
    """Check how much a statistic is above that of A, over the questions that both have."""
    gate, sides = checked.gate, (checked.baseline, checked.values)
    given, allowed = gate.metric or MAIN_METRIC, str(gate.over)
    metric, statistic = (given, MEAN) if any(side.has(given) for side in sides) else metric_and_statistic(given)
    spec, is_share = metric_spec(metric), allowed.endswith("%")
    limit = float(allowed.strip("+%")) / (100 if is_share else 1)
    if statistic == MEAN and spec.kind == "score":  # of which failed samples count as the worst value
        found = [[pair[side] for pair in checked.pairs.values()] for side in (0, 1)]
    else:
        ids = [
            each
            for each, template_id in checked.template_ids.items()
            if gate.template in (None, template_id)
            and all(side.has(metric) and side.questions[each].score(metric) is not None for side in sides)
        ]
        found = [[*side.of(metric, statistic, only=ids).values] for side in sides]
    if not all(found):
        return checked.nothing(limit, metric, statistic)
    a, b = (statistic_of(each, statistic) for each in found)
    increase = b - a
    if is_share and increase:
        increase = increase / abs(a) if a else inf * increase
    # Values of any size: a millionth of a dollar, or millions of tokens.
    has_passed = increase <= limit + ROUNDING * (1 if is_share else max(abs(a), abs(b)))
    sentence = f"{_name(metric, gate.template, statistic)} {_change(a, b, spec.unit)}"
    if increase <= 0:
        sentence += ", no increase"
    elif is_share:
        sign = "+" if a else ""
        sentence += f", {sign}{_against(increase, limit, allowed, is_proportion=False)}"
    else:
        sentence += f", +{increase:,.6g} {'≤' if has_passed else '>'} {allowed}"
    return checked.result(sentence, has_passed, increase, limit, metric=metric, statistic=statistic)


_CONDITIONS: Final[Mapping[str, Callable[[_Checked], GateResult]]] = {
    "over": _increase,
    "max_drop": _drop,
    "max_drop_per_template": _drop_per_template,
    "max_lost": _lost,
    "max_lost_per_template": _lost,
    "regression": _regression,
}


def _is_above(value: float, limit: float) -> bool:
    return value > limit + ROUNDING


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
    sign = ">" if _is_above(drop, limit) else "≤"
    drop, limit, form, unit = (drop, limit, ".3f", "") if is_proportion else (100 * drop, 100 * limit, ".1f", " %")
    text = format(drop, ".9g" if format(drop, form) == format(limit, form) and drop != limit else form)
    return f"{text.replace('-', '−')}{unit} {sign} {allowed}"


def _change(value_a: float, value_b: float, unit: Unit) -> str:
    """Return two values as text, with more digits if they differ and look alike."""
    before, after = value_text(value_a, unit), value_text(value_b, unit)
    if before == after and value_a != value_b:
        more = next((each for each in (4, 6) if f"{value_a:.{each}g}" != f"{value_b:.{each}g}"), None)
        if more is not None:
            before, after = (format(value, f",.{more}g").replace("-", "−", 1) for value in (value_a, value_b))
    return f"{before} → {after}"
