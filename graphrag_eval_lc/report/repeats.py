"""How reliably questions were passed that were asked several times: pass@k and pass^k."""

from typing import Any

from graphrag_eval_lc.aggregation.measurements import Metrics
from graphrag_eval_lc.aggregation.repeats import repeats_summary, shown_chances
from graphrag_eval_lc.aggregation.samples import Samples
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.registry.metrics import NUMBER_OF_QUESTIONS, metric_spec
from graphrag_eval_lc.report.samples import ReportedSample


def passing_sign(metric: str) -> str:
    """Give how a metric of a sample that passed stands to the threshold."""
    return "≤" if metric_spec(metric).lower_is_better else "≥"


class Repeats:
    """Follows which samples of each question passed, as the aggregates do.

    Args:
        config: The metric and the threshold that say whether a sample passed.
        metrics: The metrics of the results.
    """

    def __init__(self, config: RepeatsConfig, metrics: Metrics) -> None:
        self._config = config
        self._samples = Samples(metrics)

    def add(self, sample: ReportedSample) -> None:
        """Take up a sample."""
        self._samples.add({"template_id": None, **sample.result}, is_counted=not sample.has_failed)

    def records(self) -> list[dict[str, Any]]:
        """Give the section ``repeats``: pass@1, and pass@k and pass^k for the most samples that all questions have."""
        return [{"name": name, "value": value} for name, value in shown_chances(self._summary())]

    def note(self) -> str | None:
        """Say what passing means, and how many questions are left out; None where nothing was asked several times."""
        summary = self._summary()
        if not summary:
            return None
        unmeasured = summary["number_of_unmeasured_questions"]
        without = f"; {unmeasured:,} of {summary[NUMBER_OF_QUESTIONS]:,} questions were not measured"
        passing = f"{self._config.metric} {passing_sign(self._config.metric)} {self._config.threshold:g}"
        return f"passed: {passing}{without if unmeasured else ''}"

    def _summary(self) -> dict[str, Any]:
        return repeats_summary(self._samples, {}, self._config) if self._samples.repeats > 1 else {}
