"""A pipeline with an external comparer produces the same results as one without."""

from collections.abc import AsyncGenerator, Iterable
from typing import Any

import pytest

from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.evaluation.pipeline import Compared, Pipeline
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample, samples_of
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response

CONFIG = EvaluationConfig()

STEPS: Any = [[{"name": "add", "output": "1"}]]
TEMPLATE: Any = {"template_id": "t", "questions": []}
QUESTIONS: Any = [{"id": f"q{each}", "question_text": "?", "reference_steps": STEPS} for each in range(3)]
SAMPLES = sorted(samples_of([(TEMPLATE, each) for each in QUESTIONS], 2), key=lambda sample: sample.position)


class RemoteComparer:
    """Compares as the workers of a cluster do, but in this process."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.calls: list[tuple[int, bool]] = []
        self._fails_at = fails_at

    async def acompared(
        self, samples: Iterable[tuple[Sample, Response | None]], *, number: int, has_repeats: bool
    ) -> AsyncGenerator[Compared]:
        self.calls.append((number, has_repeats))
        for sample, response in samples:
            if sample.position == self._fails_at:
                raise ValueError("no comparison")
            repeat = sample.repeat if has_repeats else None
            views = StepViews(CONFIG.steps, CONFIG.sparql, CONFIG.retrieval)
            result = evaluate_question(sample.template, sample.question, response, CONFIG, views=views, repeat=repeat)
            yield Compared(sample, response, result)


def pipeline(comparer: RemoteComparer | None = None) -> Pipeline:
    return Pipeline(EvaluationConfig(), [TEMPLATE], repeats=2, pricing=Pricing(), comparer=comparer)


def response_of(sample: Sample) -> Response | None:
    if sample.key[0] == "q2":
        return None
    output = str(sample.repeat)
    response: Any = {"question_id": sample.key[0], "actual_steps": [{"name": "add", "output": output}]}
    return response  # type: ignore[no-any-return]


def test_results_and_aggregates_are_the_same() -> None:
    comparer = RemoteComparer()
    local, remote = pipeline(), pipeline(comparer)
    for each in (local, remote):
        each.add_all(SAMPLES, response_of)
    assert comparer.calls == [(6, True)]
    assert remote.kept() == local.kept()
    assert remote.finish() == local.finish()


def test_failed_comparison_keeps_the_results_before_it() -> None:
    failing = pipeline(RemoteComparer(fails_at=4))
    with pytest.raises(ValueError, match="no comparison"):
        failing.add_all(SAMPLES, response_of)
    assert len(failing.kept()) == 4
