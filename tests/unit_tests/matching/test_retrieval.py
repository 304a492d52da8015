import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_speed import processor_seconds

from graphrag_eval_lc.matching import StepScore, StepView, match_steps
from graphrag_eval_lc.matching.matchers import comparison_of
from graphrag_eval_lc.matching.retrieval import found_ids, match_retrieval_steps, relevant_ids
from graphrag_eval_lc.metrics import recall_at_k


def documents(*ids: str) -> str:
    return json.dumps([{"id": identifier, "text": f"text of {identifier}"} for identifier in ids])


def compared(reference: dict[str, Any], actual: dict[str, Any]) -> StepScore:
    return comparison_of(match_retrieval_steps, StepView(reference), StepView(actual))


@pytest.mark.parametrize(
    ("reference_args", "actual_args", "score"),
    [
        ({"k": 1}, {"k": 3}, 0.0),
        ({"k": 3}, {"k": 1}, 1.0),
        ({}, {"k": 1}, 0.0),
        ({}, {"k": "3"}, 1.0),
        ({}, {}, 1.0),
        (None, None, 1.0),
    ],
)
def test_k_is_the_references_else_the_actual_steps_else_all(
    reference_args: Any, actual_args: Any, score: float
) -> None:
    reference = {"args": reference_args, "output": documents("a", "b")}
    actual = {"args": actual_args, "output": documents("x", "a", "b")}
    assert compared(reference, actual).score == score


def test_partial_recall_is_a_partial_score_with_what_is_missing() -> None:
    comparison = compared({"output": documents("a", "b")}, {"output": documents("x", "b")})
    assert comparison.score == 0.5
    assert comparison.reason() == "1 of 2 relevant documents in the 2 retrieved; missing, e.g. a"


@pytest.mark.parametrize(
    ("output", "complaint"),
    [
        ("nothing found", "the output is not JSON: nothing found"),
        ('{"id": "a"}', "the output is no list of documents but dict"),
        ('[{"text": "a"}]', "document 1 has no id"),
        ('[{"id": ["a"]}]', "document 1 has no id"),
        (None, "there is no output"),
    ],
)
def test_output_without_ids_is_unreadable(output: str | None, complaint: str) -> None:
    comparison = compared({"output": documents("a")}, {"output": output})
    assert (comparison.score, comparison.unreadable) == (0.0, complaint)


def test_text_in_place_of_documents_comes_with_the_option_that_keeps_them() -> None:
    comparison = compared({"output": documents("a")}, {"output": "Oslo is in NO1."})
    assert comparison.reason() == (
        "the output is not JSON: Oslo is in NO1.; if a LangChain retriever gave it, keep its documents: "
        "run with --retrieval-documents TOOL (config: capture: {retrieval_documents: [TOOL]})"
    )
    cut_off = compared({"output": documents("a")}, {"output": '[{"id": "a", "te'})
    assert "retriever" not in cut_off.reason()


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "many"])
def test_k_that_is_no_number_of_documents_is_the_reason(k: Any) -> None:
    comparison = compared({"output": documents("a")}, {"args": {"k": k}, "output": documents("a")})
    assert comparison.score == 0.0
    assert "args.k" in comparison.reason()


@pytest.mark.parametrize("output", ["[]", "oops", None])
def test_reference_without_documents_is_blamed(output: str | None) -> None:
    assert "reference" in compared({"output": output}, {"output": documents("a")}).reason()


def test_relevant_ids_go_before_the_output() -> None:
    comparison = compared({"relevant_ids": ["b"], "output": documents("a")}, {"output": documents("b")})
    assert comparison.score == 1.0


@pytest.mark.parametrize(("k", "score"), [(None, 2 / 3), (2, 0.5), (1, 0.0), (3, 2 / 3)])
def test_of_a_group_one_will_do(k: int | None, score: float) -> None:
    reference = {"relevant_ids": [["a", "b"], ["c"], ["d"]], "args": {"k": k}}
    comparison = compared(reference, {"output": documents("x", "b", "c", "a")})
    assert comparison.score == pytest.approx(score)
    if k == 2:
        assert comparison.reason() == "1 of 3 relevant groups of documents in the top 2; missing, e.g. c"


def test_gain_of_0_is_not_relevant() -> None:
    assert compared({"relevant_ids": {"a": 3, "b": 0}}, {"output": documents("a")}).score == 1.0


@pytest.mark.parametrize("relevant_ids", [[], ["a", ["b"]], {"a": -1}, "a"])
def test_relevant_ids_that_are_none_are_the_reason(relevant_ids: Any) -> None:
    comparison = compared({"relevant_ids": relevant_ids}, {"output": documents("a")})
    assert (comparison.score, comparison.unreadable) == (0.0, None)
    assert comparison.reason().startswith("the reference cannot be compared: relevant_ids")


@pytest.mark.parametrize(
    ("relevant_ids", "reason"),
    [
        ({"1": 3, "7": 1}, "1 of 2 relevant documents in the 1 retrieved; missing, e.g. 7"),
        ([1.0, 7.0], "1 of 2 relevant documents in the 1 retrieved; missing, e.g. 7.0"),
        (
            [[1], ["<urn:1>", 7.0]],
            "1 of 2 relevant groups of documents in the 1 retrieved; missing, e.g. <urn:1> or 7.0",
        ),
    ],
)
def test_ids_of_another_kind_are_found_and_shown_as_given(relevant_ids: Any, reason: str) -> None:
    output = '[{"id": "1"}]' if isinstance(relevant_ids, list) else '[{"id": 1}]'
    comparison = compared({"relevant_ids": relevant_ids}, {"output": output})
    assert (comparison.score, comparison.reason()) == (0.5, reason)


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


def test_what_a_step_cannot_give_is_told_at_each_comparison() -> None:
    reference = StepView({"relevant_ids": [], "output": documents("a")})
    reasons = {
        comparison_of(match_retrieval_steps, reference, StepView({"output": documents("a")})).reason() for _ in range(2)
    }
    assert reasons == {"the reference cannot be compared: relevant_ids is empty"}
