import pytest

from graphrag_eval_lc.judges.claim_check import ClaimTexts

ZONES = ClaimTexts(
    "Which substations are in NO5?",
    "NO5 has 4 substations: Aurland, Bergen, Modalen, Sogndal.",
    "Aurland, Bergen, Modalen, Sogndal and Oslo are in NO5.",
)
CAPITAL = ClaimTexts("What is the capital of Italy?", "The capital of Italy is Rome.", "Paris is the capital of Italy.")


@pytest.mark.parametrize(
    ("texts", "claim", "missing"),
    [
        (ZONES, "Bergen is in NO5.", []),
        (ZONES, "Oslo is in NO5.", ["Oslo"]),
        (ZONES, "Bergen is in NO4.", ["NO4"]),
        (ZONES, "NO5 has 5 substations.", ["5"]),
        (ZONES, "There are four substations in NO5.", []),
        (CAPITAL, "Paris is the capital of Italy.", ["Paris"]),
        (CAPITAL, "Rome is the capital.", []),
    ],
)
def test_numbers_codes_and_names_must_be_in_the_reference(texts: ClaimTexts, claim: str, missing: list[str]) -> None:
    assert texts.not_of_reference(claim) == missing


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("The line is 1,500 m long.", "It is 1.5 km long."),
        ("It costs 1 234 567 €.", "It costs 1.2 million €."),
        ("It was built on 1 May 2023.", "2023-05-01"),
        ("The share is 42 %.", "The share is 0.42."),
        ("Hasle has three transformers.", "Hasle has 3 transformers."),
        ("420 kV", "420kV"),
        ("Hasle (urn:uuid:f1769670-9aeb-11e5-91da-b8763fd99c5f) is in NO1.", "Hasle is in NO1."),
        ("Aurland, Bergen, Modalen, Sogndal", "1. Aurland\n2. Bergen\n3. Modalen\n4. Sogndal"),
        ("The capital of Italy is Rome.", "Die Hauptstadt von Italien ist Rome."),
        ("It can carry 420 kV.", "Voltage: 420 kV"),
        ("It can carry 0.42 MW.", "It can carry 420 kW."),
        ("The station Hasle is in Norway.", "It is in Norway."),
        ("It was built on 2024-01-05.", "Jan 5th, 2024"),
        ("It has 5,402,171 inhabitants.", "It has about 5.4 million inhabitants."),
    ],
)
def test_what_means_the_same_lacks_nothing(reference: str, answer: str) -> None:
    texts = ClaimTexts("What is it?", reference, answer)
    assert (texts.not_of_reference(answer), texts.not_of_answer(reference)) == ([], [])
    assert (texts.left_out(), texts.added()) == ({}, {})


@pytest.mark.parametrize(
    ("one", "other"), [("420", "300"), ("3", "30"), ("1.5", "15"), ("NO1", "NO11"), ("420", "421")]
)
def test_other_numbers_and_codes_are_missing(one: str, other: str) -> None:
    texts = ClaimTexts("What is it?", f"It is {one}.", f"It is {other}.")
    assert texts.not_of_reference(f"It is {other}.") == [other]
    assert texts.not_of_answer(f"It is {one}.") == [one]
    assert list(texts.left_out()) == [f"It is {one}."]


@pytest.mark.parametrize(
    ("reference", "answer", "missing"),
    [
        ("It has 300 MW.", "It has 300 kW.", "300"),
        ("It has 420 kV.", "It has 420 V.", "420"),
        ("It was on 5 Jan 2024.", "It was on 5 Feb 2024.", "Jan"),
        ("It is Hasle 1 NO2.", "It is Hasle 1 NO5.", "NO2"),
        ("Hasle, Kvilldal and Arendal are in NO1.", "Hasle and Kvilldal are in NO1.", "Arendal"),
    ],
)
def test_other_units_months_and_items_of_a_list_are_missing(reference: str, answer: str, missing: str) -> None:
    assert ClaimTexts("What is it?", reference, answer).left_out() == {reference: [missing]}


def test_a_choice_in_the_question_does_not_make_both_right() -> None:
    texts = ClaimTexts("Was it built in 1884 or 1902?", "It was built in 1884.", "It was built in 1902.")
    assert texts.not_of_reference("It was built in 1902.") == ["1902"]


def test_most_words_of_a_claim_must_be_in_its_text() -> None:
    texts = ClaimTexts("Where is Hasle?", "Hasle belongs to bidding zone NO1.", "The zone is NO1.")
    assert texts.has_words_of_reference("Hasle is in the bidding zone NO1.")
    assert not texts.has_words_of_reference("Hasle is a transformer.")
    assert not texts.has_words_of_answer("There are three transformers.")


def test_names_that_are_added_to_an_answer_of_the_reference_are_found() -> None:
    assert ZONES.added() == {"Aurland, Bergen, Modalen, Sogndal and Oslo are in NO5.": ["Oslo"]}


def test_remarks_on_how_an_answer_was_found_add_nothing() -> None:
    assert ClaimTexts("Where is it?", "It is in NO1.", "I asked 3 tools of DBpedia. It is in NO1.").added() == {}
