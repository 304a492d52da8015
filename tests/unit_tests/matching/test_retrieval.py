import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching import StepView
from graphrag_eval_lc.matching.matchers import comparison_of
from graphrag_eval_lc.matching.retrieval import found_ids, match_retrieval_steps, relevant_ids
from graphrag_eval_lc.metrics import recall_at_k

ids = st.sampled_from(["1", "2", "doc", "<urn:a>", "urn:a", 1, 2, 2.0, 1.5])
relevance = (
    st.lists(ids, min_size=1, max_size=5)
    | st.lists(st.lists(ids, min_size=1, max_size=3), min_size=1, max_size=4)
    | st.dictionaries(ids, st.sampled_from([0, 1, 2.5]), min_size=1).filter(lambda gains: any(gains.values()))
)


@given(relevance, st.lists(ids, max_size=6), st.none() | st.integers(1, 6))
def test_score_is_recall_at_k_of_the_normalised_ids(relevant: Any, retrieved: list[Any], k: int | None) -> None:
    reference = StepView({"relevant_ids": relevant, "args": {} if k is None else {"k": k}})
    actual = StepView({"output": json.dumps([{"id": identifier} for identifier in retrieved])})
    wanted, found = found_ids(relevant_ids(reference), actual)
    assert [comparison_of(match_retrieval_steps, reference, actual).score for _ in range(2)] == [
        recall_at_k(wanted, found, k)
    ] * 2


def test_derived_values_of_a_step_are_computed_once() -> None:
    calls: list[StepView] = []

    def counted(step: StepView) -> int:
        calls.append(step)
        return len(calls)

    step = StepView({"output": "[]"})
    assert (step.once(counted), step.once(counted), calls) == (1, 1, [step])
