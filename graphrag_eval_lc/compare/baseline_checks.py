"""Checks gates of runs beside a baseline, over the questions that both have."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum

from graphrag_eval_lc.compare.baseline_gates import (
    DropGate,
    IncreaseGate,
    LostGate,
    LostQuestion,
    NotComparable,
    RunGate,
    TemplatesGate,
)
from graphrag_eval_lc.compare.drops import drop_between, is_above, sure_drop_of
from graphrag_eval_lc.compare.flips import direction_of, is_right
from graphrag_eval_lc.compare.gate_conditions import can_be_right, check_condition
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_direction, check_gates
from graphrag_eval_lc.compare.gate_texts import MEAN, Statistic, metric_and_statistic
from graphrag_eval_lc.compare.gate_values import GateValues, statistic_of
from graphrag_eval_lc.compare.gates import Gate, gates_in, results_of_gates
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, Pair, difference_of, too_few_text
from graphrag_eval_lc.compare.metric_tests import MetricValues, compared_metrics
from graphrag_eval_lc.compare.runs import NamedRun, Pairing, RunResults
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.errors import ConfigError, RunFolderError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import note_recorded, recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.registry.plugins import broken_plugins_left_out
from graphrag_eval_lc.run_folder import RUN_FILE


@dataclass(frozen=True, slots=True)
class RunBeside:
    """What gates need of a run beside the baseline A.

    Attributes:
        letter: What it is called in the comparison.
        results: Its results.
        metrics: The metrics that were compared already.
        undecided: The ids of the questions of which undecided steps count 0.
    """

    letter: str
    results: RunResults
    metrics: Sequence[MetricComparison] = ()
    undecided: Collection[str] = ()


@recorded_only_here()
@broken_plugins_left_out()
def results_of_gates_beside(
    a: RunResults, runs: Sequence[RunBeside], gates: Sequence[GateConfig], main: str | None, *, of_config: bool
) -> list[Gate]:
    """Return for each run whether it passes each gate.

    Args:
        a: The baseline.
        runs: The runs beside it.
        gates: The gates.
        main: The comparison's main metric.
        of_config: Whether the gates are those of a configuration, for messages.

    Raises:
        ConfigError: A gate of a configuration names a metric or a template that there is not, or holds a metric
            against something that it has not.
        OptionError: The same of another gate.
    """
    _note_declarations(a, runs)
    if not gates:
        return []
    pairs = _pairs(a, runs, gates, main)
    numbers = [pairs[0].pairing.a.numbers, *(pair.pairing.b.numbers for pair in pairs)]
    measured = [metric for each in numbers for metric in each.measured()]
    measured += [metric for pair in pairs for values in pair.sides for metric in values.measured()]
    known = KnownMetrics.of_runs([each.config() for each in (a, *(run.results for run in runs))], measured)
    templates = [question.template_id for each in numbers for question in each.questions.values()]
    check_gates(gates, known, templates, of_config=of_config, where="the runs have")
    return [result for pair in pairs for result in pair.results(gates)]


@recorded_only_here()
@broken_plugins_left_out()
def results_of_own_gates(a: RunResults, runs: Sequence[RunBeside], main: str | None) -> list[Gate]:
    """Return for each run whether it passes each gate of its own configuration.

    Args:
        a: The baseline.
        runs: The runs beside it.
        main: The comparison's main metric.

    Raises:
        RunFolderError: A gate in run.json is none that this version knows.
    """
    _note_declarations(a, runs)
    found: list[Gate] = []
    for run in runs:
        gates = gates_in(run.results)
        try:
            for index, gate in enumerate(gates):
                check_direction(gate, index)
                check_condition(gate, index)
        except ConfigError as problem:
            path = None if run.results.path is None else run.results.path / RUN_FILE
            raise RunFolderError(problem.what, path=path, key=f"config.{problem.key}", hint=problem.hint) from problem
        if gates:
            (pair,) = _pairs(a, [run], gates, main)
            found += pair.results(gates)
    return found


def _note_declarations(a: RunResults, runs: Sequence[RunBeside]) -> None:
    for results in (a, *(run.results for run in runs)):
        note_recorded(results.declarations().items())


def _pairs(
    a: RunResults, runs: Sequence[RunBeside], gates: Sequence[GateConfig], main: str | None
) -> list["_PairBeside"]:
    """Return each run beside A, with the values that the gates need."""
    named = [name for gate in gates if (name := gate.metric or main) is not None]
    increases = [gate.metric or MAIN_METRIC for gate in gates if isinstance(gate.over, str)]
    wanted = list(dict.fromkeys([*(metric_and_statistic(name)[0] for name in named), *named]))
    bounded: list[tuple[str, Statistic]] = [
        *map(metric_and_statistic, increases),
        *((name, MEAN) for name in increases),
    ]

    def read(letter: str, results: RunResults) -> tuple[NamedRun, GateValues | None]:
        values = GateValues(results, bounded) if bounded else None
        return NamedRun(letter, results, results.numbers(wanted)), values

    named_a, values_a = read("A", a)
    pairs = []
    for run in runs:
        named_b, values_b = read(run.letter, run.results)
        sides = () if values_a is None or values_b is None else (values_a, values_b)
        pairs.append(_PairBeside(run, Pairing.of(named_a, named_b), main, sides))
    return pairs


@dataclass(frozen=True)
class _PairBeside:
    """A run beside A, as its gates are checked.

    Attributes:
        run: The run.
        pairing: The common questions.
        main: The comparison's main metric.
        sides: The values of A and of the run whose increase is bounded; empty where none is.
    """

    run: RunBeside
    pairing: Pairing
    main: str | None
    sides: Sequence[GateValues]
    _known: dict[str, MetricValues] = field(default_factory=dict)

    @cached_property
    def template_ids(self) -> Mapping[str, str]:
        """The templates of the common questions by question id, as A has them."""
        return self.pairing.template_ids()

    def results(self, gates: Sequence[GateConfig]) -> list[Gate]:
        """Return whether the run passes each gate, in their order."""
        of_run = iter(results_of_gates(self.run.results, [gate for gate in gates if not gate.needs_baseline]))
        letter = self.run.letter
        return [self._result(gate) if gate.needs_baseline else RunGate(letter, next(of_run)) for gate in gates]

    def _result(self, gate: GateConfig) -> Gate:
        if isinstance(gate.over, str):
            return self._increase(gate, gate.over)
        metric = gate.metric or self.main
        if metric is None:
            what = f"A and {self.run.letter} have no score in common"
            return NotComparable(self.run.letter, gate.condition, what)
        of_mean, statistic = metric_and_statistic(metric)
        if statistic == MEAN and not self.pairing.can_compare(metric):
            metric = of_mean  # steps_score.mean is steps_score, where no result has that name itself
        pairs = self._values(metric, gate.template)
        if not pairs:
            return self._nothing(metric, gate.template)
        match gate.condition:
            case "max_drop":
                return self._drop(metric, gate.template, pairs, gate.max_drop or 0.0, gate.confident)
            case "max_drop_per_template":
                limit = gate.max_drop_per_template or 0.0
                by_template = self._by_template(pairs)
                drops = [
                    self._drop(metric, each, values, limit, gate.confident) for each, values in by_template.items()
                ]
                return TemplatesGate(self.run.letter, metric, limit, sorted(drops, key=lambda each: -each.drop))
        return self._lost(metric, gate, pairs)

    def _values(self, metric: str, template: str | None) -> dict[str, Pair]:
        if not self.pairing.can_compare(metric):
            return {}
        values = self.pairing.values(metric).items()
        return {each: pair for each, pair in values if template is None or self.template_ids[each] == template}

    def _by_template(self, pairs: Mapping[str, Pair]) -> dict[str, dict[str, Pair]]:
        groups: dict[str, dict[str, Pair]] = {}
        for identifier, pair in pairs.items():
            groups.setdefault(self.template_ids[identifier], {})[identifier] = pair
        return groups

    def _nothing(self, metric: str, template: str | None, name: str | None = None) -> NotComparable:
        """Say why a metric cannot be compared."""
        letter = self.run.letter
        in_a, in_b = (
            run.numbers.has(metric) or any(values.has(metric) for values in self.sides[index : index + 1])
            for index, run in enumerate((self.pairing.a, self.pairing.b))
        )
        if template is not None and template not in self.template_ids.values():
            why = f"A and {letter} have no question of the template {template} in common"
        elif not (in_a or in_b):
            why = "it was measured in neither run"
        elif not in_a or not in_b:
            why = f"{letter if in_a else 'A'} has not measured it"
        else:
            why = "no question has it in both runs"
        return NotComparable(letter, name or (metric if template is None else f"{template}/{metric}"), why)

    def _whole(self, metric: str) -> MetricValues:
        """Return the values of a metric, of all questions that have it in both runs."""
        if metric not in self._known:
            pairs = self.pairing.by_template(self.pairing.values(metric))
            self._known[metric] = MetricValues(metric_spec(metric), pairs, self.pairing.left_out(metric))
        return self._known[metric]

    def _compared(self, values: MetricValues, number_of_templates: int) -> MetricComparison:
        """Return the comparison in a metric for itself, with its interval at 95 %."""
        (compared,) = compared_metrics(
            [values], main=values.spec.key, number_of_templates=number_of_templates, letter=self.run.letter
        )
        return compared

    def _compared_whole(self, metric: str) -> MetricComparison:
        # Only of the main metric the comparison's own interval is sure to be at 95 %.
        known = (each for each in self.run.metrics if each.metric == metric and each.is_main)
        return next(known, None) or self._compared(self._whole(metric), len(set(self.template_ids.values())))

    def _drop(
        self, metric: str, template: str | None, pairs: Mapping[str, Pair], limit: float, is_confident: bool
    ) -> DropGate:
        whole = self._whole(metric)
        is_proportion = whole.are_proportions()
        values = list(pairs.values())
        mean_a = fsum(a for a, _ in values) / len(values)
        difference = fsum(map(difference_of, values)) / len(values)
        drop = drop_between(mean_a, difference, lower_is_better=whole.spec.lower_is_better, is_proportion=is_proportion)
        gate = DropGate(
            letter=self.run.letter,
            metric=metric,
            template=template,
            limit=limit,
            drop=drop,
            is_proportion=is_proportion,
            is_confident=is_confident,
            mean_a=mean_a,
            mean_b=fsum(b for _, b in values) / len(values),
            unit=whole.spec.unit,
            number_of_questions=len(values),
            number_of_templates=len({self.template_ids[each] for each in pairs}),
            lower_is_better=whole.spec.lower_is_better,
        )
        if not is_confident or not is_above(drop, limit):
            return gate
        # The questions of one template count each for itself.
        compared = (
            self._compared_whole(metric)
            if template is None
            else self._compared(MetricValues(whole.spec, {template: values}, 0), 1)
        )
        sure = sure_drop_of(compared, is_proportion=is_proportion)
        return replace(gate, sure_drop=sure, why_unsure=too_few_text(compared) if sure is None else "")

    def _lost(self, metric: str, gate: GateConfig, pairs: Mapping[str, Pair]) -> Gate:
        spec = metric_spec(metric)
        if not can_be_right(spec):
            return NotComparable(self.run.letter, metric, "it has no best value, so that no question is right in it")
        lost = [
            LostQuestion(each, self.template_ids[each], each in self.run.undecided and metric == self.main)
            for each, pair in pairs.items()
            if difference_of(pair) and direction_of(*pair, spec) == "now wrong"
        ]
        limit = gate.max_lost if gate.max_lost is not None else gate.max_lost_per_template
        return LostGate(
            letter=self.run.letter,
            metric=metric,
            template=gate.template,
            is_per_template=gate.max_lost is None,
            limit=limit or 0,
            lost=tuple(lost),
            right_in_a=sum(is_right(a, spec) for a, _ in pairs.values()),
            number_of_questions=len(pairs),
        )

    def _increase(self, gate: GateConfig, over: str) -> Gate:
        name = gate.metric or MAIN_METRIC
        has_name = any(values.has(name) for values in self.sides)
        metric, statistic = (name, MEAN) if has_name else metric_and_statistic(name)
        told = name if gate.template is None else f"{gate.template}/{name}"
        spec = metric_spec(metric)
        if statistic == MEAN and spec.kind == "score":  # of which failed samples count as the worst value
            pairs = self._values(metric, gate.template)
            values = [[pair[side] for pair in pairs.values()] for side in (0, 1)]
            number = len(pairs)
        else:
            ids = self._with(metric, gate.template)
            values = [[*side.of(metric, statistic, only=ids).values] for side in self.sides]
            number = len(ids)
        if not all(values):
            return self._nothing(metric, gate.template, told)
        value_a, value_b = (statistic_of(each, statistic) for each in values)
        return IncreaseGate(
            letter=self.run.letter,
            name=told,
            over=over,
            value_a=value_a,
            value_b=value_b,
            unit=spec.unit,
            number_of_questions=number,
            samples=None if statistic == MEAN else (len(values[0]), len(values[1])),
        )

    def _with(self, metric: str, template: str | None) -> list[str]:
        """Return the ids of the common questions that have a metric in both runs."""
        return [
            each
            for each, template_id in self.template_ids.items()
            if (template is None or template_id == template)
            and all(side.has(metric) and side.questions[each].score(metric) is not None for side in self.sides)
        ]
