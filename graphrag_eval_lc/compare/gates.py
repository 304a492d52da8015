"""Gates of one run: the means that it must reach, and what it may spend at most."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_direction, check_gates
from graphrag_eval_lc.compare.gate_texts import (
    MEAN,
    UNDER_EXAMPLE,
    Statistic,
    gate_text,
    gates_over,
    gates_under,
    metric_and_statistic,
)
from graphrag_eval_lc.compare.gate_values import GateValues, statistic_of
from graphrag_eval_lc.compare.runs import RunResults, RunSource, run_results
from graphrag_eval_lc.config import ConfigSource, GateConfig, load_config
from graphrag_eval_lc.errors import ConfigError, OptionError, RunFolderError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.run_folder import RUN_FILE
from graphrag_eval_lc.texts import counted, on_one_line

# A mean of 0.9 is 0.9, whatever rounding makes of it.
_ROUNDING: Final = 1e-9

Gates = str | Mapping[str, float] | Iterable[str | Mapping[str, Any] | GateConfig] | None
"""Gates as texts of the command line, as mappings or sections of the config; or the least mean by metric."""


class Gate(Protocol):
    """A gate that was checked, of one run or beside a baseline; as text it says what was found, and why."""

    @property
    def has_passed(self) -> bool:
        """Whether it is passed."""

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check; where not it is not passed either."""


def state_of(gate: Gate) -> Literal["passed", "failed", "not checked"]:
    """Return what came of a gate, as a word."""
    if gate.has_passed:
        return "passed"
    return "failed" if gate.is_comparable else "not checked"


def fails(gate: Gate) -> bool:
    """Return whether a run fails a gate; one about a template of which it has no question is only not checked."""
    if not isinstance(gate, GateResult):
        return state_of(gate) == "failed"
    return not gate.has_passed and (gate.has_questions or gate.template is None)


def state_in_run(gate: Gate) -> Literal["passed", "failed", "not checked"]:
    """Return what came of a gate of one run, as a word: a metric that was not measured fails it."""
    return "failed" if fails(gate) else state_of(gate)


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a statistic of a metric, as a rule the mean, is on the right side of a bound.

    Attributes:
        metric: The metric.
        required: The bound: the least value, or the greatest where less is better.
        mean: The mean over the questions, failed samples as the worst score, or with what they spent; None where no
            question has the metric.
        number_of_questions: How many questions have the metric.
        number_of_errors: How many of their samples failed.
        left_out: How many questions do not have it.
        value_of_failure: What a failed sample counts as.
        upper: The mean if all undecided steps fitted; None where none is undecided, or the score is none of steps.
        template: The template whose questions count; None: all.
        statistic: What is bounded: the mean over questions; another one is over samples.
        direction: ``under`` where less than ``required`` fails, ``over`` where more does.
        value: The statistic; None where no question has the metric.
        number_of_values: How many values the statistic is of.

    Example:
        >>> results = [{"template_id": "t", "question_id": "q1", "elapsed_sec": 3.5}]
        >>> print(gate_results(results, ["elapsed_sec.max=3"])[0])
        elapsed_sec.max 3.5 exceeds 3 (1 sample of 1 question)
    """

    metric: str
    required: float
    mean: float | None
    number_of_questions: int
    number_of_errors: int
    left_out: int
    value_of_failure: float = 0.0
    upper: float | None = None
    template: str | None = None
    statistic: Statistic = MEAN
    direction: Literal["under", "over"] = "under"
    value: float | None = None
    number_of_values: int = 0

    def __post_init__(self) -> None:
        if self.statistic == MEAN:
            object.__setattr__(self, "value", self.mean)
            object.__setattr__(self, "number_of_values", self.number_of_questions)

    @property
    def name(self) -> str:
        """The metric with its template and statistic, as texts of the command line have it."""
        metric = self.metric if self.statistic == MEAN else f"{self.metric}.{self.statistic}"
        return metric if self.template is None else f"{self.template}/{metric}"

    @property
    def has_passed(self) -> bool:
        """Whether the value is on the right side of the bound."""
        if self.value is None:
            return False
        if self.direction == "under":
            return self.value >= self.required - _ROUNDING
        return self.value <= self.required + _ROUNDING * abs(self.required)  # which may be of any size

    @property
    def is_comparable(self) -> bool:
        """Whether the metric was measured."""
        return self.value is not None

    @property
    def has_questions(self) -> bool:
        """Whether the run has questions that the gate is about; where not, nothing could be checked."""
        return self.number_of_questions + self.left_out > 0

    @on_one_line
    def __str__(self) -> str:
        if self.template is not None and not self.has_questions:
            return f"{self.name} could not be checked: the run has no question of the template {self.template}"
        bound = (
            f"{self.required:g} is required"
            if self.direction == "under"
            else f"at most {self.required:,.10g} is allowed"
        )
        if self.value is None:
            return f"{self.name} was not measured, and {bound}"
        if self.direction == "under":
            verdict = "reaches" if self.has_passed else "falls short of"
        else:
            verdict = "stays within" if self.has_passed else "exceeds"
        return f"{self.name} {self._value_text()} {verdict} {self.required:,.10g} ({', '.join(self._counts())})"

    def _counts(self) -> list[str]:
        questions = counted(self.number_of_questions, "question")
        counts = [questions if self.statistic == MEAN else f"{counted(self.number_of_values, 'sample')} of {questions}"]
        if self.number_of_errors:
            is_score = metric_spec(self.metric).kind == "score"
            counted_as = f"and counted as {self.value_of_failure:g}" if is_score else "and counted as measured"
            counts.append(f"{self.number_of_errors:,} failed {counted_as}")
        if self.left_out:
            counts.append(f"{self.left_out:,} without it")
        if self.upper is not None and self.statistic == MEAN:
            counts.append(f"{self.upper:.3f} if all undecided steps fitted")
        return counts

    def _value_text(self) -> str:
        """Return the value as text, with more digits where fewer would round it to the other side of the bound."""
        assert self.value is not None
        is_score = self.direction == "under" or metric_spec(self.metric).unit == "score"
        text = format(self.value, ".3f") if is_score else _amount_text(self.value, 6)
        shown = float(text.replace(",", ""))
        is_right = shown >= self.required if self.direction == "under" else shown <= self.required
        if is_right is self.has_passed:
            return text
        return format(self.value, ".9f") if is_score else _amount_text(self.value, 12)


def _amount_text(value: float, digits: int) -> str:
    """Return an amount with so many digits, or all that stand before the point.

    Example:
        >>> _amount_text(55136712.0, 6), _amount_text(5794.875, 6), _amount_text(0.0007439741, 6), _amount_text(30, 6)
        ('55,136,712', '5,794.88', '0.000743974', '30')
    """
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    text = format(value, f",.{max(0, decimals)}f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def gate_requirements(texts: Sequence[str]) -> dict[str, float]:
    """Read the least mean by metric from texts such as ``steps_score=0.9``.

    Raises:
        OptionError: A text has another form, names a template, or names a metric twice or one of which less is better.

    Example:
        >>> gate_requirements(["steps_score=0.9", "answer_f1=0.8"])
        {'steps_score': 0.9, 'answer_f1': 0.8}
    """
    requirements: dict[str, float] = {}
    for gate in gates_under(texts):
        if gate.template is not None:
            what = f"{gate.template}/{gate.metric} is of a template, and not of all questions"
            raise OptionError(what, hint="Give the texts to gate_results(run, [...]) themselves.")
        check_direction(gate)
        requirements[str(gate.metric)] = float(gate.under or 0.0)
    return requirements


def read_gates(given: Gates, *, has_baseline: bool = False) -> list[GateConfig]:
    """Read gates in any of their forms.

    Args:
        given: Texts as on the command line (the least mean, or where less is better the most), mappings as in the
            config's section ``gates``, or ``GateConfig``; or the least mean by metric. None: no gates.
        has_baseline: Whether gates beside a baseline can be checked.

    Raises:
        OptionError: One of them is no gate, bounds its metric on the wrong side, or needs a baseline that there is not.

    Example:
        >>> [(gate.metric, gate.condition) for gate in read_gates(["notes/steps_score=0.8", "elapsed_sec.p95=30"])]
        [('steps_score', 'under'), ('elapsed_sec.p95', 'over')]
    """
    if isinstance(given, Mapping):
        gates = [_gate_of({"metric": str(metric), "under": required}) for metric, required in given.items()]
    elif isinstance(given, Iterable):
        gates = [_gate_of(each) for each in ([given] if isinstance(given, str) else given)]
    elif given is None:
        gates = []
    else:
        gates = [_gate_of(given)]
    for gate in gates:
        check_direction(gate, only_declared=True)
        if gate.needs_baseline and not has_baseline:
            what = f"{gate.condition} holds a run against a baseline, and one run has none"
            raise OptionError(what, hint="Compare it with another run: compare RUN_A RUN_B.")
    return gates


def _gate_of(given: object) -> GateConfig:
    if isinstance(given, GateConfig):
        return given
    if isinstance(given, str):
        metric, _ = metric_and_statistic(gate_text(given, UNDER_EXAMPLE, "requirement").metric)
        return (gates_over if metric_spec(metric).lower_is_better else gates_under)([given])[0]
    if not isinstance(given, Mapping):
        hint = 'Give a text such as "steps_score=0.9", or a mapping such as {"metric": "steps_score", "under": 0.9}.'
        raise OptionError(f"{given!r:.80} is no gate", hint=hint)
    try:
        return load_config({"gates": [dict(given)]}).gates[0]
    except ConfigError as problem:
        key = str(problem.key).removeprefix("gates.0").lstrip(".")
        raise OptionError(
            f"{dict(given)!r:.120} is no gate: {problem.what}", key=key or None, hint=problem.hint
        ) from None


def gates_in(results: RunResults) -> list[GateConfig]:
    """Return the gates in the configuration of a run.

    Raises:
        RunFolderError: Those in run.json are none.
    """
    config = results.section("config")
    listed = config.get("gates") if config is not None else None
    if not listed:
        return []
    try:
        return load_config({"gates": listed}).gates
    except ConfigError as problem:
        path = None if results.path is None else results.path / RUN_FILE
        raise RunFolderError(problem.what, path=path, key=f"config.{problem.key}", hint=problem.hint) from problem


def without_baseline(gates: Iterable[GateConfig]) -> list[GateConfig]:
    """Return the gates that one run can be held against."""
    return [gate for gate in gates if not gate.needs_baseline]


@recorded_only_here()
def gate_results(run: RunSource, gates: Gates = None, config: ConfigSource = None) -> list[GateResult]:
    """Return for each gate whether a run passes it.

    Each question counts once, with the mean of its repeats; failed samples count as 0, what was spent as it was.
    Statistics other than the mean are over samples (a question asked three times has three): ``median``, ``p95``
    (interpolated), ``min``, ``max``, and ``sum``, which counts what failed attempts spent too. A metric that no
    question has fails its gate.

    Args:
        run: The folder of a run, a BenchmarkRun, or results.
        gates: Texts such as ``steps_score=0.9``, ``notes/steps_score=0.8`` and ``elapsed_sec.p95=30`` (the least mean;
            where less is better the most), mappings as in the config's section ``gates``, or the least mean by metric.
            None: the gates of the run's configuration that need no baseline.
        config: The configuration of a run without a folder, which has no run.json that tells it.

    Raises:
        RunFolderError: The folder cannot be read.
        OptionError: A gate bounds a metric on the wrong side, or needs a baseline.

    Example:
        >>> results = [
        ...     {"template_id": "t", "question_id": "q1", "status": "success", "steps_score": 1.0},
        ...     {"template_id": "t", "question_id": "q2", "status": "error", "steps_score": 0.0},
        ... ]
        >>> for gate in gate_results(results, {"steps_score": 0.9, "answer_f1": 0.8}):
        ...     print(gate)
        steps_score 0.500 falls short of 0.9 (2 questions, 1 failed and counted as 0)
        answer_f1 was not measured, and 0.8 is required
    """
    results = run_results(run, config)
    if gates is None:
        wanted = without_baseline(gates_in(results) if config is None else load_config(config).gates)
    else:
        wanted = read_gates(gates)
    return _checked(_values_of(results, wanted), wanted) if wanted else []


@recorded_only_here()
def gate_results_of(
    runs: Sequence[RunSource], gates: Sequence[GateConfig], baseline: RunSource
) -> list[list[GateResult]]:
    """Return for each run whether it passes each gate, where the gates name what some of the runs have.

    Args:
        runs: The runs.
        baseline: The run that they are compared with; it may have a template that they do not have.
        gates: Gates that need no baseline.

    Raises:
        RunFolderError: A folder cannot be read.
        OptionError: A gate names a metric or a template that none of the runs has, or bounds a metric on the wrong
            side.
    """
    if not gates:
        return [[] for _ in runs]
    read = [run_results(run) for run in runs]
    values = [_values_of(results, gates) for results in read]
    known = KnownMetrics.of_runs(
        [results.config() for results in read], [metric for each in values for metric in each.measured()]
    )
    templates = dict.fromkeys(question.template_id for each in values for question in each.questions.values())
    if any(gate.template is not None and gate.template not in templates for gate in gates):
        templates |= dict.fromkeys(str(result.get("template_id")) for result in run_results(baseline))
    check_gates(gates, known, templates, of_config=False, where="the runs have")
    return [_checked(each, gates) for each in values]


def results_of_gates(results: RunResults, gates: Sequence[GateConfig]) -> list[GateResult]:
    """Return for each gate that needs no baseline whether a run that is opened passes it."""
    return _checked(_values_of(results, gates), gates) if gates else []


def _values_of(results: RunResults, gates: Sequence[GateConfig]) -> GateValues:
    names = [gate.metric or MAIN_METRIC for gate in gates]
    # A number of the results may be called as a metric and a statistic.
    return GateValues(results, [*map(metric_and_statistic, names), *((name, MEAN) for name in names)])


def _checked(values: GateValues, gates: Sequence[GateConfig]) -> list[GateResult]:
    for gate in gates:  # again, as the run's record may declare some
        metric, _ = metric_and_statistic(gate.metric or MAIN_METRIC)
        check_direction(gate, only_declared=not values.has(metric))
    return [_gate_result(values, gate) for gate in gates]


def _gate_result(values: GateValues, gate: GateConfig) -> GateResult:
    name = gate.metric or MAIN_METRIC
    metric, statistic = (name, MEAN) if values.has(name) else metric_and_statistic(name)
    bounded = values.of(metric, statistic, gate.template)
    bound = gate.under if gate.under is not None else gate.over
    return GateResult(
        metric=metric,
        required=float(bound or 0.0),
        mean=bounded.mean,
        number_of_questions=bounded.questions,
        number_of_errors=bounded.errors,
        left_out=bounded.left_out,
        value_of_failure=metric_spec(metric).value_of_failure or 0.0,
        upper=bounded.upper,
        template=gate.template,
        statistic=statistic,
        direction="under" if gate.under is not None else "over",
        value=statistic_of(bounded.values, statistic) if bounded.values else None,
        number_of_values=len(bounded.values),
    )
