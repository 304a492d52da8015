"""Gates of one run: the means that it must reach."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.compare.runs import RunSource, run_results
from graphrag_eval_lc.config import ConfigSource
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC
from graphrag_eval_lc.texts import counted

_EXAMPLE = f"--fail-under {MAIN_METRIC}=0.9"

# A mean of 0.9 is 0.9, whatever rounding makes of it.
_ROUNDING = 1e-9
_NO_NAME = re.compile(r"[<>\s]")


class Gate(Protocol):
    """A gate that was checked, of one run or beside a baseline; as text it says what was found, and why."""

    @property
    def has_passed(self) -> bool:
        """Whether it is passed."""

    @property
    def is_comparable(self) -> bool:
        """Whether there was anything to check; where not it is not passed either."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether the mean of a score reaches what is required.

    Attributes:
        metric: The score.
        required: The least mean.
        mean: The mean over the questions, failed samples as the worst score; None where no question has the score.
        number_of_questions: How many questions have the score.
        number_of_errors: How many of their samples failed.
        left_out: How many questions do not have it.
        value_of_failure: What a failed sample counts as.
        upper: The mean if all undecided steps fitted; None where none is undecided, or the score is none of steps.
    """

    metric: str
    required: float
    mean: float | None
    number_of_questions: int
    number_of_errors: int
    left_out: int
    value_of_failure: float = 0.0
    upper: float | None = None

    @property
    def has_passed(self) -> bool:
        """Whether the mean is at least what is required."""
        return self.mean is not None and self.mean >= self.required - _ROUNDING

    @property
    def is_comparable(self) -> bool:
        """Whether the score was measured."""
        return self.mean is not None

    def __str__(self) -> str:
        if self.mean is None:
            return f"{self.metric} was not measured, and {self.required:g} is required"
        counts = [counted(self.number_of_questions, "question")]
        if self.number_of_errors:
            counts.append(f"{self.number_of_errors:,} failed and counted as {self.value_of_failure:g}")
        if self.left_out:
            counts.append(f"{self.left_out:,} without it")
        if self.upper is not None:
            counts.append(f"{self.upper:.3f} if all undecided steps fitted")
        reached = "reaches" if self.has_passed else "falls short of"
        mean = _mean_text(self.mean, self.required)
        return f"{self.metric} {mean} {reached} {self.required:g} ({', '.join(counts)})"


def gate_requirements(texts: Sequence[str]) -> dict[str, float]:
    """Read the least mean by metric from texts such as ``steps_score=0.9``.

    Raises:
        OptionError: A text has another form, or names a metric twice or one of which less is better.

    Example:
        >>> gate_requirements(["steps_score=0.9", "answer_f1=0.8"])
        {'steps_score': 0.9, 'answer_f1': 0.8}
    """
    requirements: dict[str, float] = {}
    for text in texts:
        metric, _, value = (part.strip() for part in text.partition("="))
        try:
            required = float(value)
        except ValueError:
            required = math.nan
        # Else steps_score>=0.9 would be of a metric "steps_score>", and float takes 1_0 for 10.
        if not metric or _NO_NAME.search(metric) or "_" in value or not math.isfinite(required):
            raise OptionError(f"{text!r} is no requirement", hint=f"Write it as {_EXAMPLE}.")
        if metric in requirements:
            raise OptionError(f"{metric} is required twice", hint="Leave one of them out.")
        _check_more_is_better(metric)
        requirements[metric] = required
    return requirements


def _check_more_is_better(metric: str) -> None:
    spec = metric_spec(metric)
    if not spec.lower_is_better:
        return
    if spec.is_spent:
        what = "says what was spent, of which less is better"
        hint = f"Require a score, such as {_EXAMPLE}; --max-tokens, --max-cost and --max-time bound what a run spends."
    elif spec.counted_in is not None:
        what = "is a count, of which less is better"
        hint = f"Require a score, such as {_EXAMPLE}."
    elif any(other.missing_key == metric for other in BUILT_IN):
        what = "counts what is missing, of which less is better"
        hint = "Require a score; retrieval: {missing: zero} in the config takes what is missing into the means."
    else:
        what = "is a metric of which less is better, and --fail-under requires a least mean"
        hint = (
            f"Require a score of which more is better, such as {_EXAMPLE}, or hold the run against another one: "
            f"compare RUN_A RUN_B --metric {metric} --fail-on-regression."
        )
    raise OptionError(f"{metric} {what}", hint=hint)


@recorded_only_here()
def gate_results(run: RunSource, requirements: Mapping[str, float], config: ConfigSource = None) -> list[GateResult]:
    """Return for each requirement whether a run meets it.

    Each question counts once, with the mean of its repeats; failed samples count as 0. A score that no question has
    fails its gate.

    Args:
        run: The folder of a run, a BenchmarkRun, or results.
        requirements: The least mean by metric.
        config: The configuration of a run without a folder, which has no run.json that tells it.

    Raises:
        RunFolderError: The folder cannot be read.
        OptionError: A metric is required of which less is better.

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
    numbers = run_results(run, config).numbers(requirements)
    for metric in requirements:  # again, as the run's record may declare some
        _check_more_is_better(metric)
    return [_gate_result(numbers, metric, required) for metric, required in requirements.items()]


def _gate_result(numbers: RunValues, metric: str, required: float) -> GateResult:
    questions = numbers.questions.values() if numbers.has(metric) else ()
    scored = [(score, question.errors) for question in questions if (score := question.score(metric)) is not None]
    return GateResult(
        metric=metric,
        required=required,
        mean=math.fsum(score for score, _ in scored) / len(scored) if scored else None,
        number_of_questions=len(scored),
        number_of_errors=sum(errors for _, errors in scored),
        left_out=len(numbers.questions) - len(scored),
        value_of_failure=metric_spec(metric).value_of_failure or 0.0,
        upper=numbers.mean_of_upper_bound(metric),
    )


def _mean_text(mean: float, required: float) -> str:
    """Return a mean as text, with more digits where three would round it up to what it does not reach."""
    text = format(mean, ".3f")
    return format(mean, ".9f") if mean < required <= float(text) else text
