import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.machine_speed import processor_seconds

from graphrag_eval_lc.matching import StepView, match_steps
from graphrag_eval_lc.matching.matchers import comparison_of
from graphrag_eval_lc.matching.retrieval import found_ids, match_retrieval_steps, relevant_ids
from graphrag_eval_lc.metrics import recall_at_k


def documents(*ids: str) -> str:
    return json.dumps([{"id": identifier, "text": f"text of {identifier}"} for identifier in ids])


ids = st.sampled_from(["1", "2", "doc", "<urn:a>", "urn:a", 1, 2, 2.0, 1.5])
relevance = (
    st.lists(ids, min_size=1, max_size=5)
    | st.lists(st.lists(ids, min_size=1, max_size=3), min_size=1, max_size=4)
    | st.dictionaries(ids, st.sampled_from([0, 1, 2.5]), min_size=1).filter(lambda gains: any(gains.values()))
)


@given(relevance, st.lists(ids, max_size=6), st.none() | st.integers(1, 6))
def test_score_is_recall_at_k_of_the_ids_in_one_form(relevant: Any, retrieved: list[Any], k: int | None) -> None:
    reference = StepView({"relevant_ids": relevant, "args": {} if k is None else {"k": k}})
    actual = StepView({"output": json.dumps([{"id": identifier} for identifier in retrieved])})
    wanted, found = found_ids(relevant_ids(reference), actual)
    assert [comparison_of(match_retrieval_steps, reference, actual).score for _ in range(2)] == [
        recall_at_k(wanted, found, k)
    ] * 2


def retrieval_steps(count: int, outputs: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"name": "retrieval", "args": {}, "id": str(at), "status": "success", "output": outputs[at % len(outputs)]}
        for at in range(count)
    ]


@pytest.mark.parametrize(("references", "actual"), [(3, 5), pytest.param(300, 1_000, marks=pytest.mark.full)])
def test_mean_of_equal_scores_is_that_score_however_many_steps(references: int, actual: int) -> None:
    names = [f"doc-{number}" for number in range(20)]
    with processor_seconds(20):
        match = match_steps(
            [retrieval_steps(references, [documents(*names)])], retrieval_steps(actual, [documents(*names[:3])])
        )
        assert match.steps_score == 0.15
        assert [one.actual for one in match.matches] == list(range(actual - references, actual))


def test_what_is_made_of_a_step_is_made_once() -> None:
    calls: list[StepView] = []

    def counted(step: StepView) -> int:
        calls.append(step)
        return len(calls)

    step = StepView({"output": "[]"})
    assert (step.once(counted), step.once(counted), calls) == (1, 1, [step])
