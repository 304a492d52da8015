"""One scored sample as the sections of a report take it up, and the keys by which they name it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from graphrag_eval_lc.aggregation import is_error
from graphrag_eval_lc.aggregation.measurements import Metrics
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.registry.metrics import ANSWER_F1, STEPS_SCORE, metric_spec
from graphrag_eval_lc.report.texts import shown_name

ANSWER_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class ReportedSample:
    """A result with what the sections share.

    Attributes:
        key: Its question's id, with the repeat from the second on; no other sample has it.
        template_id: Its template, to be shown.
        result: The result.
        scores: Its scores by metric as it is shown, those of steps as their mean; of a failed sample what
            it counts as.
        has_failed: Whether the agent gave no answer.
    """

    key: str
    template_id: str
    result: Mapping[str, Any]
    scores: Mapping[str, float]
    has_failed: bool

    @property
    def steps_right(self) -> bool | None:
        """Whether the steps scored in full; None where they were not scored."""
        score = number(self.result.get(STEPS_SCORE))
        return None if score is None else score >= 1.0

    @property
    def answer_right(self) -> bool | None:
        """Whether the answer was judged to be right, as that of a failed sample is not; None where nothing is known."""
        if self.has_failed:
            return None if self.result.get("reference_answer") is None else False
        score = number(self.result.get(ANSWER_F1))
        return None if score is None else score >= ANSWER_THRESHOLD

    @property
    def is_judged(self) -> bool:
        """Whether its answer was compared with the reference answer."""
        return not self.has_failed and number(self.result.get(ANSWER_F1)) is not None


def reported_samples(results: Iterable[Mapping[str, Any]], metrics: Metrics) -> Iterator[ReportedSample]:
    """Give the results one at a time as samples with unique keys."""
    taken: set[str] = set()
    for result in results:
        has_failed = is_error(result)
        yield ReportedSample(
            key=_unique_key(result, taken),
            template_id=shown_name(result.get("template_id")),
            result=result,
            scores=_scores(result, metrics),
            has_failed=has_failed,
        )


def _unique_key(result: Mapping[str, Any], taken: set[str]) -> str:
    repeat = result.get("repeat")
    name = shown_name(result.get("question_id"))
    key = wanted = f"{name} #{repeat}" if isinstance(repeat, int) and repeat > 1 else name
    count = 1
    while key in taken:
        count += 1
        key = f"{wanted} ({count})"
    taken.add(key)
    return key


def _scores(result: Mapping[str, Any], metrics: Metrics) -> dict[str, float]:
    """Give the scores of a result; of a failed question what it counts as."""
    numbers = dict(metrics.sample_numbers(result))
    numbers |= {metric: fmean(values) for metric, values in metrics.step_scores(result).items()}
    return {shown_name(metric): value for metric, value in numbers.items() if not metric_spec(metric).is_spent}
