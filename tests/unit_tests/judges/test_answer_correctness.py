import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import ConfigError, JudgeError
from graphrag_eval_lc.judges import AnswerCorrectness
from graphrag_eval_lc.judges.answer_correctness import ClaimLists
from graphrag_eval_lc.judges.prompts import load_prompt

GIVEN = {"user_input": "What is on it?", "reference": "Tomato and ham.", "response": "Tomato and basil."}


def lists(supported: int, wrong: int, missing: int) -> dict[str, Any]:
    return {
        "reason": "Counted.",
        "true_positives": [f"supported {number}" for number in range(supported)],
        "false_positives": [f"wrong {number}" for number in range(wrong)],
        "false_negatives": [f"missing {number}" for number in range(missing)],
    }


async def test_pizza_with_two_claims_right_one_wrong_and_one_missing_scores_two_thirds() -> None:
    judge = ScriptedJudge(
        [
            {
                "reason": "Flat bread and origin agree; the reference has tomatoes where the answer has pineapple.",
                "true_positives": ["Pizza is a flat bread.", "Pizza comes from Italy."],
                "false_positives": ["Pizza is topped with pineapple."],
                "false_negatives": ["Pizza is topped with tomatoes."],
            }
        ]
    )
    score = await AnswerCorrectness(judge).ascore(
        user_input="What is pizza?",
        reference="A flat bread from Italy, topped with tomatoes.",
        response="A flat bread from Italy, topped with pineapple.",
    )
    assert score.value == pytest.approx(0.66667, abs=1e-5)
    assert score.reason is not None
    assert score.reason.startswith("Flat bread and origin agree")
    assert score.cost == 0.01
    assert score.details == {
        "true_positives": ["Pizza is a flat bread.", "Pizza comes from Italy."],
        "false_positives": ["Pizza is topped with pineapple."],
        "false_negatives": ["Pizza is topped with tomatoes."],
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }


async def test_one_request_is_sent_with_the_three_texts_fenced() -> None:
    judge = ScriptedJudge([lists(1, 0, 0)])
    await AnswerCorrectness(judge).ascore(**GIVEN)
    (asked,) = judge.asked
    assert asked.n == 1
    assert asked.schema is ClaimLists
    assert asked.system == load_prompt("answer_correctness").system
    for name, text in zip(("question", "reference_answer", "actual_answer"), GIVEN.values(), strict=True):
        assert re.search(rf"<({name}-\w+)>\n{re.escape(text)}\n</\1>", asked.user)


@pytest.mark.parametrize(
    ("counts", "precision", "recall", "f1"),
    [
        ((2, 0, 0), 1.0, 1.0, 1.0),
        ((0, 2, 2), 0.0, 0.0, 0.0),
        ((0, 0, 2), None, 0.0, 0.0),
        ((0, 2, 0), 0.0, None, 0.0),
    ],
)
async def test_share_of_nothing_is_not_measured(
    counts: tuple[int, int, int], precision: float | None, recall: float | None, f1: float | None
) -> None:
    score = await AnswerCorrectness(ScriptedJudge([lists(*counts)])).ascore(**GIVEN)
    assert (score.details["precision"], score.details["recall"], score.value) == (precision, recall, f1)


def sorted_claims(**changed: list[str]) -> dict[str, Any]:
    return {**lists(0, 0, 0), "covered_claims": [], **changed}


async def test_answer_that_says_one_thing_in_many_claims_raises_no_recall() -> None:
    many = [f"The tower is in district {number} of Paris." for number in range(6)]
    claims = sorted_claims(
        true_positives=many, covered_claims=["It is in Paris."], false_negatives=["It is of iron.", "It is high."]
    )
    score = await AnswerCorrectness(ScriptedJudge([claims])).ascore(**GIVEN)
    assert (score.details["precision"], score.details["recall"]) == (1.0, pytest.approx(1 / 3))
    assert score.value == pytest.approx(0.5)


async def test_claim_that_is_repeated_counts_once() -> None:
    claims = sorted_claims(
        true_positives=["It is in Paris.", "it is  in Paris", "It is of iron."],
        covered_claims=["In Paris.", "In Paris"],
    )
    score = await AnswerCorrectness(ScriptedJudge([claims])).ascore(**GIVEN)
    assert score.details["true_positives"] == ["It is in Paris.", "It is of iron."]
    assert score.details["covered_claims"] == ["In Paris."]


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (sorted_claims(), "the lists hold no claim at all"),
        (sorted_claims(true_positives=["Yes."], false_positives=["yes"]), "stands in true_positives and in false"),
        (sorted_claims(covered_claims=["A b"], false_negatives=["a B."]), "stands in covered_claims and in false"),
    ],
)
def test_lists_without_a_claim_or_with_one_on_both_sides_are_no_answer(broken: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        ClaimLists.model_validate(broken)


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(any))
def test_precision_counts_claims_of_the_answer_and_recall_those_of_the_reference(
    counts: tuple[int, int, int, int],
) -> None:
    supported, wrong, covered, missing = counts
    claims = {**lists(supported, wrong, missing), "covered_claims": [f"covered {number}" for number in range(covered)]}
    score = AnswerCorrectness(ScriptedJudge([claims])).score(**GIVEN)
    precision = supported / (supported + wrong) if supported + wrong else None
    recall = covered / (covered + missing) if covered + missing else None
    assert (score.details["precision"], score.details["recall"]) == (precision, recall)
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall) if precision and recall else 0.0)


@given(st.tuples(*[st.integers(0, 30)] * 3).filter(any))
def test_f1_is_the_harmonic_mean_and_does_not_change_when_the_answers_are_swapped(counts: tuple[int, int, int]) -> None:
    supported, wrong, missing = counts
    score = AnswerCorrectness(ScriptedJudge([lists(*counts)])).score(**GIVEN)
    swapped = AnswerCorrectness(ScriptedJudge([lists(supported, missing, wrong)])).score(**GIVEN)
    assert score.value == swapped.value
    assert score.value is not None
    assert 0.0 <= score.value <= 1.0
    precision, recall = score.details["precision"], score.details["recall"]
    assert (precision, recall) == (swapped.details["recall"], swapped.details["precision"])
    if precision and recall:
        assert score.value == pytest.approx(2 * precision * recall / (precision + recall))
    else:
        assert score.value == 0.0


async def test_blank_answer_scores_zero_and_is_not_asked_about() -> None:
    judge = ScriptedJudge([])
    score = await AnswerCorrectness(judge).ascore(**{**GIVEN, "response": " \n"})
    assert (score.value, score.cost, score.reason) == (0.0, 0.0, "The answer is blank.")
    assert score.details["false_negatives"] == [GIVEN["reference"]]
    assert (score.details["recall"], score.details["precision"]) == (0.0, None)
    assert judge.asked == []


@pytest.mark.parametrize("name", ["user_input", "reference"])
async def test_blank_question_or_reference_is_an_error_without_a_request(name: str) -> None:
    judge = ScriptedJudge([])
    with pytest.raises(JudgeError, match=f"{name} is blank"):
        await AnswerCorrectness(judge).ascore(**{**GIVEN, name: ""})
    assert judge.asked == []


async def test_answer_that_is_no_text_is_an_error() -> None:
    with pytest.raises(JudgeError, match="response is no text but NoneType"):
        await AnswerCorrectness(ScriptedJudge([])).ascore(user_input="?", reference="A.", response=None)  # type: ignore[arg-type]


async def test_error_of_the_model_is_handed_on() -> None:
    with pytest.raises(JudgeError, match="refused"):
        await AnswerCorrectness(ScriptedJudge([JudgeError("refused")])).ascore(**GIVEN)


async def test_cost_that_is_not_known_is_none() -> None:
    assert (await AnswerCorrectness(ScriptedJudge([lists(1, 0, 0)], cost=None)).ascore(**GIVEN)).cost is None


async def test_score_works_where_a_loop_runs_as_in_a_notebook() -> None:
    assert AnswerCorrectness(ScriptedJudge([lists(1, 0, 0)])).score(**GIVEN).value == 1.0


@pytest.mark.parametrize(
    "broken",
    [
        {"more": 1},
        {"true_positives": None},
        {"true_positives": "a claim"},
        {"false_negatives": ["a claim", " "]},
        {"reason": None},
    ],
)
def test_schema_is_closed(broken: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ClaimLists.model_validate({**lists(1, 1, 1), **broken})


def test_own_prompt_is_sent_in_place_of_the_packages() -> None:
    judge = ScriptedJudge([lists(1, 0, 0)])
    template = "Compare!\n# Query\n{question}\n# Reference\n{reference_answer}\n# Candidate\n{actual_answer}\n{{}}"
    AnswerCorrectness(judge, prompt=template).score(**GIVEN)
    assert judge.asked[0].system == load_prompt("answer_correctness_own").system
    assert judge.asked[0].schema is ClaimLists
    plain = re.sub(r"</?(question|reference_answer|actual_answer)-\w{16}>\n?", "", judge.asked[0].user)
    assert [line for line in plain.splitlines() if line] == [
        "Compare!",
        "# Query",
        "What is on it?",
        "# Reference",
        "Tomato and ham.",
        "# Candidate",
        "Tomato and basil.",
        "{}",
    ]


@pytest.mark.parametrize("template", ["{answer}", "{question} {reference_answer} {actual_answer} {context}"])
def test_own_prompt_with_another_placeholder_is_a_config_error(template: str) -> None:
    with pytest.raises(ConfigError, match=r"key answer_correctness\.prompt: .*which is no placeholder"):
        AnswerCorrectness(ScriptedJudge([]), prompt=template)


def test_own_prompt_without_the_answers_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"lacks \{reference_answer\}, \{actual_answer\}"):
        AnswerCorrectness(ScriptedJudge([]), prompt="Is it right? {question}")
