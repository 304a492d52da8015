import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from support.scripted_judges import ScriptedJudge

from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.judges import AnswerCorrectness
from graphrag_eval_lc.judges.answer_correctness import Claim, ClaimLists
from graphrag_eval_lc.judges.model_interface import UnusableAnswerError
from graphrag_eval_lc.judges.prompts import load_prompt

SAMPLE = {"user_input": "What is on it?", "reference": "Tomato and ham.", "response": "Tomato and basil."}


# Without names or numbers, and with every word of the claims below.
TEXTS = {
    "user_input": "What is on it?",
    "reference": "It is right, covered or missing.",
    "response": "It is right, wrong or covered.",
}


def claims_of(word: str, count: int) -> list[str]:
    return [f"it is {word} {chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(count)]


def lists(supported: int, wrong: int, missing: int) -> dict[str, Any]:
    return {
        "reason": "Counted.",
        "true_positives": claims_of("right", supported),
        "false_positives": claims_of("wrong", wrong),
        "false_negatives": claims_of("missing", missing),
    }


async def test_two_right_claims_one_wrong_and_one_missing_score_two_thirds() -> None:
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
    await AnswerCorrectness(judge).ascore(**TEXTS)
    (request,) = judge.asked
    assert request.schema is ClaimLists
    assert request.system == load_prompt("answer_correctness").system
    for name, text in zip(("question", "reference_answer", "actual_answer"), TEXTS.values(), strict=True):
        assert re.search(rf"<({name}-\w+)>\n{re.escape(text)}\n</\1>", request.user)


@pytest.mark.parametrize(
    ("counts", "precision", "recall", "f1"),
    [
        ((2, 0, 0), 1.0, 1.0, 1.0),
        ((0, 2, 2), 0.0, 0.0, 0.0),
        ((0, 0, 2), None, 0.0, 0.0),
        ((0, 2, 0), 0.0, 0.0, 0.0),
    ],
)
async def test_share_of_nothing_is_none(
    counts: tuple[int, int, int], precision: float | None, recall: float | None, f1: float | None
) -> None:
    score = await AnswerCorrectness(ScriptedJudge([lists(*counts)] * 2)).ascore(**TEXTS)
    assert (score.details["precision"], score.details["recall"], score.value) == (precision, recall, f1)


def sorted_claims(**changed: list[str]) -> dict[str, Any]:
    return {**lists(0, 0, 0), "covered_claims": [], **changed}


async def test_repeated_claim_counts_once() -> None:
    claims = sorted_claims(
        true_positives=["It is right.", "it is  right", "It is covered."],
        covered_claims=["It is covered.", "It is covered"],
    )
    score = await AnswerCorrectness(ScriptedJudge([claims])).ascore(**TEXTS)
    assert score.details["true_positives"] == ["It is right.", "It is covered."]
    assert score.details["covered_claims"] == ["It is covered."]


@given(st.tuples(*[st.integers(0, 30)] * 4).filter(lambda counts: any(counts[:2]) and any(counts[2:])))
def test_precision_counts_claims_of_the_answer_and_recall_those_of_the_reference(
    counts: tuple[int, int, int, int],
) -> None:
    supported, wrong, covered, missing = counts
    claims = {**lists(supported, wrong, missing), "covered_claims": claims_of("covered", covered)}
    score = AnswerCorrectness(ScriptedJudge([claims])).score(**TEXTS)
    precision, recall = supported / (supported + wrong), covered / (covered + missing)
    assert (score.details["precision"], score.details["recall"]) == (precision, recall)
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall) if precision and recall else 0.0)


# --- claims are checked against the texts
# ------------------------------------------------------------------------------

ZONE = {
    "user_input": "Which substations are in NO5?",
    "reference": "NO5 has 2 substations: AURLAND and BERGEN.",
    "response": "AURLAND and OSLO are in NO5.",
}
RIGHT = {
    "reason": "One of two.",
    "true_positives": ["AURLAND is in NO5."],
    "false_positives": ["OSLO is in NO5."],
    "covered_claims": ["AURLAND is in NO5."],
    "false_negatives": ["BERGEN is in NO5."],
}
ALL_RIGHT = {
    **RIGHT,
    "true_positives": ["AURLAND is in NO5.", "OSLO is in NO5."],
    "false_positives": [],
    "covered_claims": ["AURLAND is in NO5.", "OSLO is in NO5."],
    "false_negatives": [],
}


async def test_claims_that_contradict_the_texts_are_requested_once_more() -> None:
    judge = ScriptedJudge([ALL_RIGHT, RIGHT])
    score = await AnswerCorrectness(judge).ascore(**ZONE)
    assert (score.value, score.cost, score.reason) == (0.5, 0.02, "One of two.")
    first, second = judge.asked
    assert second.user.startswith(first.user)
    assert "'OSLO is in NO5.' is not a true positive: the reference answer does not have OSLO" in second.user
    assert "'OSLO is in NO5.' is not covered: the reference answer does not have OSLO" in second.user


async def test_claims_that_contradict_the_texts_twice_are_corrected_with_a_note() -> None:
    score = await AnswerCorrectness(ScriptedJudge([ALL_RIGHT, ALL_RIGHT])).ascore(**ZONE)
    assert score.details["true_positives"] == score.details["covered_claims"] == ["AURLAND is in NO5."]
    assert score.details["false_positives"] == ["OSLO is in NO5."]
    assert (score.value, score.details["false_negatives"]) == (0.5, [ZONE["reference"]])
    assert score.reason is not None
    assert score.reason.startswith("One of two.\nCorrected by comparing the claims with the texts: 'OSLO is in NO5.'")


async def test_if_the_second_request_fails_the_first_answer_is_corrected() -> None:
    score = await AnswerCorrectness(ScriptedJudge([ALL_RIGHT, UnusableAnswerError("overloaded", cost=0.01)])).ascore(
        **ZONE
    )
    assert (score.value, score.cost) == (0.5, 0.02)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        (["AURLAND is in NO7.", "OSLO is in NO7."], "One of two."),  # worse
        (["AURLAND is in NO5.", "OSLO is in NO5."], "Again."),  # equally good
    ],
)
async def test_second_answer_is_used_unless_it_is_worse(claims: list[str], reason: str) -> None:
    second = {**ALL_RIGHT, "true_positives": claims, "reason": "Again."}
    score = await AnswerCorrectness(ScriptedJudge([ALL_RIGHT, second])).ascore(**ZONE)
    assert score.value == 0.5
    assert str(score.reason).startswith(reason)


@pytest.mark.parametrize(
    ("changed", "corrected"),
    [
        ({"true_positives": [], "covered_claims": []}, {"false_negatives": ["BERGEN is in NO5."]}),
        ({"covered_claims": ["BERGEN is in NO5."], "false_negatives": []}, {"false_negatives": ["BERGEN is in NO5."]}),
        ({"false_negatives": ["OSLO is in NO5."]}, {"false_negatives": [ZONE["reference"]]}),
        ({"true_positives": ["AURLAND is in NO5.", "OSLO is in NO5."]}, {"true_positives": ["AURLAND is in NO5."]}),
        ({"covered_claims": ["A transformer belongs here."]}, {"covered_claims": []}),
        ({"true_positives": ["reason", "True_Positives", "none"]}, {"true_positives": []}),
    ],
)
async def test_each_list_is_corrected(changed: dict[str, Any], corrected: dict[str, Any]) -> None:
    score = await AnswerCorrectness(ScriptedJudge([{**RIGHT, **changed}] * 2)).ascore(**ZONE)
    assert corrected.items() <= score.details.items()


@pytest.mark.parametrize("answer", ["AURLAND is in NO5.", "AURLAND, BERGEN and OSLO are in NO5."])
async def test_no_full_marks_if_a_name_is_left_out_or_added(answer: str) -> None:
    claims = {**RIGHT, "false_positives": [], "false_negatives": []}
    score = await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**{**ZONE, "response": answer})
    assert score.value is not None
    assert 0 < score.value < 1


async def test_right_answer_with_an_empty_list_of_covered_claims_scores_1() -> None:
    claims = {**RIGHT, "true_positives": ["AURLAND and BERGEN are in NO5."], "false_positives": []}
    claims = {**claims, "covered_claims": [], "false_negatives": []}
    answer = {**ZONE, "response": "AURLAND and BERGEN are in NO5."}
    assert (await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**answer)).value == 1.0


async def test_claim_worded_like_the_reference_is_not_a_false_positive() -> None:
    """A small model replied like this to an answer identical to the reference."""
    claims = {**RIGHT, "true_positives": [], "false_positives": [ZONE["reference"]]}
    claims = {**claims, "covered_claims": [], "false_negatives": []}
    score = await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**{**ZONE, "response": ZONE["reference"]})
    assert score.value == 1.0
    # this answer does not contain the claim
    score = await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**ZONE)
    assert score.value == 0.0


async def test_covered_claim_on_both_lists_is_a_true_positive() -> None:
    claims = {**RIGHT, "false_positives": ["AURLAND is in NO5.", "OSLO is in NO5."]}
    score = await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**ZONE)
    assert (score.details["true_positives"], score.details["false_positives"]) == (
        ["AURLAND is in NO5."],
        ["OSLO is in NO5."],
    )


async def test_answer_without_a_claim_has_recall_0() -> None:
    nothing = {**RIGHT, "true_positives": [], "false_positives": [], "covered_claims": [], "false_negatives": []}
    for claims in ({**nothing, "false_negatives": ["AURLAND is in NO5."]}, nothing):
        score = await AnswerCorrectness(ScriptedJudge([claims] * 2)).ascore(**{**ZONE, "response": "I do not know."})
        assert (score.value, score.details["recall"], score.details["precision"]) == (0.0, 0.0, None)


async def test_blank_answer_scores_zero_without_a_request() -> None:
    judge = ScriptedJudge([])
    score = await AnswerCorrectness(judge).ascore(**{**SAMPLE, "response": " \n"})
    assert (score.value, score.cost, score.reason) == (0.0, 0.0, "The answer is blank.")
    assert score.details["false_negatives"] == [SAMPLE["reference"]]
    assert (score.details["recall"], score.details["precision"]) == (0.0, None)
    assert judge.asked == []


async def test_score_works_inside_a_running_loop() -> None:
    assert AnswerCorrectness(ScriptedJudge([lists(1, 0, 0)])).score(**TEXTS).value == 1.0


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


def test_custom_prompt_replaces_the_packages() -> None:
    judge = ScriptedJudge([lists(1, 0, 0)])
    template = "Compare!\n# Query\n{question}\n# Reference\n{reference_answer}\n# Candidate\n{actual_answer}\n{{}}"
    AnswerCorrectness(judge, prompt=template).score(**TEXTS)
    assert judge.asked[0].system == load_prompt("answer_correctness_own").system
    assert judge.asked[0].schema is ClaimLists
    plain = re.sub(r"</?(question|reference_answer|actual_answer)-\w{16}>\n?", "", judge.asked[0].user)
    assert [line for line in plain.splitlines() if line] == [
        "Compare!",
        "# Query",
        TEXTS["user_input"],
        "# Reference",
        TEXTS["reference"],
        "# Candidate",
        TEXTS["response"],
        "{}",
    ]


@pytest.mark.parametrize("template", ["{answer}", "{question} {reference_answer} {actual_answer} {context}"])
def test_custom_prompt_with_an_unknown_placeholder_is_a_config_error(template: str) -> None:
    with pytest.raises(ConfigError, match=r"key answer_correctness\.prompt: .*which is not a placeholder"):
        AnswerCorrectness(ScriptedJudge([]), prompt=template)


def test_custom_prompt_without_the_answers_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"lacks \{reference_answer\}, \{actual_answer\}"):
        AnswerCorrectness(ScriptedJudge([]), prompt="Is it right? {question}")


CLAIM: TypeAdapter[str] = TypeAdapter(Claim)


def test_schema_of_a_claim_is_a_plain_string_that_all_endpoints_accept() -> None:
    assert CLAIM.json_schema() == {"type": "string"}
