import pytest

from graphrag_eval_lc import GraphRAGEvalWarning, run_evaluation, score_responses, score_run
from graphrag_eval_lc.dataset.ids import nearest_id, unknown_questions_warning

DATASET = [{"template_id": "t", "questions": [{"id": f"q-{n}", "question_text": f"Q{n}?"} for n in (1, 2)]}]
ONE = "1 response is to a question that the dataset does not have, and is not scored: Q-1 (perhaps q-1)"


def test_a_few_ids_are_named_and_the_others_counted() -> None:
    assert unknown_questions_warning([f"x{n}" for n in range(5)], ["a"]) == (
        "5 responses are to questions that the dataset does not have, and are not scored: x0, x1, x2 and 2 more"
    )


@pytest.mark.parametrize(
    ("unknown", "nearest"), [("Q-1", "q-1"), ("q-1 ", "q-1"), ("q_2", None), ("weather", None), ("x" * 10_000, None)]
)
def test_nearest_id_is_like_the_unknown_one(unknown: str, nearest: str | None) -> None:
    assert nearest_id(unknown, ["q-1", "q-2"]) == nearest


def test_response_without_a_question_is_told_by_the_evaluation_however_it_is_given() -> None:
    response = {"question_id": "Q-1", "actual_answer": "x"}
    for responses in ([response], {"Q-1": {"actual_answer": "x"}}):
        with pytest.warns(GraphRAGEvalWarning) as caught:
            results = run_evaluation(DATASET, responses)  # type: ignore[arg-type]
        assert [str(each.message) for each in caught] == [ONE]
        assert [result["status"] for result in results] == ["error", "error"]


def test_response_without_a_question_is_told_by_scoring_and_scoring_again(tmp_path: object) -> None:
    run = score_responses(DATASET, [{"question_id": "Q-1"}], output_dir=f"{tmp_path}/run")
    assert run.warnings == [ONE]
    assert score_run(f"{tmp_path}/run", dataset=DATASET).warnings == [ONE]
