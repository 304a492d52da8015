"""Gates: the means that a run must reach, and how much worse than the baseline it may be."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    is_same,
    means_text,
    p_statement,
    too_few_text,
)
from graphrag_eval_lc.compare.runs import RunSource, run_results
from graphrag_eval_lc.config import ConfigSource
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import BUILT_IN, MAIN_METRIC
from graphrag_eval_lc.texts import counted

DEFAULT_MAX_DROP = 0.05
_EXAMPLE = f"--fail-under {MAIN_METRIC}=0.9"

# A mean of 0.9 is 0.9, whatever rounding makes of it.
_ROUNDING = 1e-9
_NO_NAME = re.compile(r"[<>\s]")


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


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """Whether a run is worse than the baseline in the comparison's main metric, and what decided that.

    Where the test can tell a difference, its p-value decides: the run is worse where that is below 0.05. Where it
    cannot, as too few templates differ, the effect decides: the run is worse where ``drop`` is above ``max_drop``.

    Attributes:
        letter: What the run is called in the comparison.
        metric: The main metric of the run and the baseline A.
        max_drop: How much worse the run may be where the effect decides, 0 to 1.
    """

    letter: str
    metric: MetricComparison
    max_drop: float

    @property
    def drop(self) -> float:
        """How much worse the run is than A, negative where it is better.

        Of a score of which all values lie between 0 and 1 it is A's mean minus that of the run (where less is better,
        the run's minus A's). Of all else, as scores from 1 to 5 or tokens, it is a share of A's mean; infinite where
        that is 0.
        """
        worse_by = self.metric.difference if self.metric.lower_is_better else -self.metric.difference
        if self.metric.is_proportion or not worse_by:
            return worse_by
        return worse_by / abs(self.metric.mean_a) if self.metric.mean_a else math.copysign(math.inf, worse_by)

    @property
    def decided_by(self) -> Literal["p-value", "effect"]:
        """What decides: the p-value where the test can tell a difference, else the effect."""
        return "p-value" if self.metric.can_tell else "effect"

    @property
    def has_passed(self) -> bool:
        """Whether the run is not worse."""
        if self.decided_by == "p-value":
            return self.metric.verdict != "worse"
        return self.drop <= self.max_drop + _ROUNDING

    def __str__(self) -> str:
        metric = self.metric
        if is_same(metric):
            return metric.sentence.removesuffix(".")
        means, change = means_text(metric), change_text(metric.difference, metric.unit)
        claim = f"{self.letter} is {'not worse' if self.has_passed else 'worse'}"
        if self.decided_by == "p-value":
            if metric.verdict == "no evidence" and self.drop > 0:
                claim = f"no evidence that {self.letter} is worse"
            p_value = p_statement(metric.p_value)
            return f"{claim} in {metric.metric}: {means} ({change}, {p_value}); the p-value decided"
        limit = f"{self.max_drop:g}" if metric.is_proportion else f"{100 * self.max_drop:g} % of A's mean"
        return (
            f"{claim} in {metric.metric} by more than {limit}: {means} ({change}{self._drop_text()}); "
            f"the effect decided: {too_few_text(metric)}"
        )

    def _drop_text(self) -> str:
        """Return the drop as text, exact enough to show its side of the limit; empty where the difference does."""
        if not 0 < self.drop < math.inf:
            return ""
        scale, unit = (1, "") if self.metric.is_proportion else (100, " %")
        decimals = 3 if self.metric.is_proportion else 1
        text = format(scale * self.drop, f".{decimals}f")
        if (float(text) > scale * self.max_drop) is self.has_passed:
            return f", by {scale * self.drop:.9f}{unit}"
        return "" if self.metric.is_proportion else f", by {text}{unit}"


def allowed_drop(text: str) -> float:
    """Read how much worse a run may be from a text such as ``0.05``.

    Raises:
        OptionError: The text is no number from 0 to 1.

    Example:
        >>> allowed_drop("0.02")
        0.02
    """
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise _no_drop(text)
    return value


def regression_gate(letter: str, metric: MetricComparison, max_drop: float) -> RegressionGate:
    """Return whether a run is worse than the baseline in a metric.

    Args:
        letter: What the run is called in the comparison.
        metric: The metric of the run and the baseline.
        max_drop: How much worse the run may be where the test cannot tell, 0 to 1.

    Raises:
        OptionError: ``max_drop`` is no number from 0 to 1.
    """
    if isinstance(max_drop, bool) or not isinstance(max_drop, int | float) or not 0 <= max_drop <= 1:
        raise _no_drop(max_drop)
    return RegressionGate(letter, metric, float(max_drop))


def _no_drop(value: object) -> OptionError:
    return OptionError(
        f"{value!r} is no drop that can be allowed",
        hint="Give one number from 0 to 1, for the main metric, as in --max-drop 0.05.",
    )


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
