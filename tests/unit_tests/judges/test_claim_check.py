"""Checks of claims by code: a table of cases in claims.yaml, and laws for whole answers."""

from pathlib import Path

import pytest
import yaml

from graphrag_eval_lc.judges.claim_check import ClaimTexts, sentences_in

ROOT = Path(__file__).parents[3]

TABLES = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))
ZONES = ClaimTexts(
    "Which substations are in NO5?",
    "NO5 has 4 substations: Aurland, Bergen, Modalen, Sogndal.",
    "Aurland, Bergen, Modalen, Sogndal and Oslo are in NO5.",
)


def rows(table: str) -> list[list[str]]:
    return [line.replace(r"\n", "\n").split(" | ") for line in TABLES[table].splitlines()]


@pytest.mark.parametrize(("reference", "answer"), rows("same"))
def test_equivalent_answers_lack_nothing(reference: str, answer: str) -> None:
    texts = ClaimTexts("What is it?", reference, answer)
    assert (texts.not_in_reference(answer), texts.not_in_answer(reference)) == ("", "")
    assert (texts.left_out(), texts.added()) == ({}, {})


@pytest.mark.parametrize(("reference", "answer"), rows("different"))
def test_differences_are_found_on_both_sides(reference: str, answer: str) -> None:
    texts = ClaimTexts("What is it?", reference, answer)
    assert texts.not_in_reference(answer) or texts.left_out()
    assert texts.not_in_answer(reference)


@pytest.mark.parametrize(("question", "reference", "claim"), rows("said"))
def test_claims_the_reference_may_support_are_left_to_the_model(question: str, reference: str, claim: str) -> None:
    assert ClaimTexts(question, reference, "It is so.").not_in_reference(claim) == ""


@pytest.mark.parametrize(("reference", "answer"), rows("left_to_the_model"))
def test_paraphrased_negations_and_other_subjects_are_left_to_the_model(reference: str, answer: str) -> None:
    assert ClaimTexts("What is it?", reference, answer).not_in_reference(answer) == ""


@pytest.mark.parametrize(
    ("reference", "claim", "problem"),
    [
        ("Hasle is in NO1.", "Hasle is not in NO1.", "the reference answer says the opposite"),
        ("Hasle is not in NO1 and Arendal is in NO2.", "Arendal is in NO2.", ""),
        ("Hasle supplies Arendal. Arendal does not supply Hasle.", "Hasle supplies Arendal.", ""),
        ("It is not so that Hasle is old and Arendal is new.", "Arendal is not new.", ""),
        ("Arendal does not feed Hasle.", "Hasle feeds Arendal.", ""),
        ("Hasle is not internal.", "Hasle is international.", ""),
        ("Hasle has 300 kV; Arendal 420 kV.", "Hasle has 420 kV.", "the reference answer says it the other way round"),
        ("Hasle has 300 kV, 420 kV; Arendal 420 kV.", "Hasle has 420 kV.", ""),
    ],
)
def test_negation_or_another_names_number_is_not_support(reference: str, claim: str, problem: str) -> None:
    assert ClaimTexts("What is it?", reference, reference).not_in_reference(claim) == problem


@pytest.mark.parametrize(("text", "plain"), [("- 5 °C", "5 °C"), ("-- Bergen", "Bergen"), ("-5 °C", "-5 °C")])
def test_minus_before_a_digit_is_not_a_bullet(text: str, plain: str) -> None:
    assert sentences_in(text) == [plain]
    assert ClaimTexts("What is it?", text, text).reference_states(plain)


README = [piece for piece in (ROOT / "README.md").read_text(encoding="utf-8").split("\n\n") if piece.strip()]


@pytest.mark.parametrize("text", README)
def test_reordered_text_lacks_nothing(text: str) -> None:
    reversed_text = "\n".join(reversed(sentences_in(text)))
    for answer in (text, reversed_text):
        texts = ClaimTexts("What is it?", text, answer)
        assert (texts.left_out(), texts.added(), texts.not_in_reference(answer)) == ({}, {}, "")


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ("Bergen is in NO5.", ""),
        ("There are four substations in NO5.", ""),
        ("Oslo is in NO5.", "the reference answer does not have Oslo"),
        ("Bergen is in NO4.", "the reference answer does not have NO4"),
        ("NO5 has 5 substations.", "the reference answer does not have 5"),
        ("NO5 has 4 lines and 5 substations.", "the reference answer does not have 5"),
    ],
)
def test_problem_says_what_is_wrong_with_a_claim(claim: str, problem: str) -> None:
    assert ZONES.not_in_reference(claim) == problem


def test_choice_in_the_question_does_not_support_both_options() -> None:
    texts = ClaimTexts("Was it built in 1884 or 1902?", "It was built in 1884.", "It was built in 1902.")
    assert texts.not_in_reference("It was built in 1902.") == "the reference answer does not have 1902"


def test_most_words_of_a_claim_must_be_in_its_text() -> None:
    texts = ClaimTexts("Where is Hasle?", "Hasle belongs to bidding zone NO1.", "The zone is NO1.")
    assert texts.has_words_of_reference("Hasle is in the bidding zone NO1.")
    assert not texts.has_words_of_reference("Hasle is a transformer.")
    assert not texts.has_words_of_answer("There are three transformers.")


def test_names_added_to_the_reference_answer_are_found() -> None:
    (problem,) = ZONES.added().values()
    assert problem == "the reference answer does not have Oslo"


def test_remarks_on_the_method_add_nothing() -> None:
    assert ClaimTexts("Where is it?", "It is in NO1.", "I asked 3 tools of DBpedia. It is in NO1.").added() == {}
    assert ClaimTexts("What does it cost?", "It costs $5.", "I spent $2 on tools. It costs $5.").added() == {}
