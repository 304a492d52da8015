"""What a report finds out about each sample alone."""

from collections.abc import Sequence
from typing import NamedTuple

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_bytes
from graphrag_eval_lc.report.problems import Outcome, Problem, outcome_of, problems_of
from graphrag_eval_lc.report.questions import MeasuredKeys, detail_of
from graphrag_eval_lc.report.steps import SampleSteps, step_views
from graphrag_eval_lc.view.samples import Sample


class Facts(NamedTuple):
    """What a report finds out about a sample alone.

    ``detail`` is what opens below its question, as a member of a JSON object under the sample's key; ``outcome`` is
    that of the funnel.
    """

    detail: bytes
    outcome: Outcome
    problems: Sequence[Problem]


class FactsReader:
    """Finds the facts about samples.

    ``metrics`` read the samples, ``error_keys`` are the keys of results that hold errors of judges.
    """

    def __init__(self, config: EvaluationConfig, metrics: Metrics, error_keys: Sequence[str]) -> None:
        self._config, self._metrics, self._error_keys = config, metrics, error_keys
        self._views, self._measured = step_views(config), MeasuredKeys(config, metrics.names())
        self._found = len(metrics.found)

    def facts(self, sample: Sample) -> Facts:
        """Return the facts about a sample."""
        if self._found != len(self._metrics.found):  # some metrics are only discovered while results are read
            self._measured, self._found = MeasuredKeys(self._config, self._metrics.names()), len(self._metrics.found)
        steps = SampleSteps(sample.result, self._config, self._views)
        problems, outcome = list(problems_of(sample, steps, self._error_keys)), outcome_of(sample, steps)
        detail = json_bytes({sample.key: detail_of(sample, steps, self._measured)})[1:-1]
        return Facts(detail, outcome, problems)
