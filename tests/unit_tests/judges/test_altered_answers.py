"""Answers that are made of reference answers: row by row of altered.yaml, and what holds for all of them."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_eval_lc.dataset.loading import load_dataset
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.evaluation.judge_certificate import references_of
from graphrag_eval_lc.judges.altered_answers import KINDS, Reference, altered_answers, pairs_of
from graphrag_eval_lc.judges.claim_check import ClaimTexts

ROWS = yaml.safe_load(Path(__file__).with_name("altered.yaml").read_text(encoding="utf-8"))
DEMO = references_of(load_dataset(DATASET_PATH))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"][:30])
@pytest.mark.parametrize("seed", range(5))
def test_each_kind_is_made_as_the_table_says(row: dict[str, Any], seed: int) -> None:
    others = [Reference(f"other{place}", "t", "Another?", text) for place, text in enumerate(row.get("others", ()))]
    references = [Reference("q", "t", row["question"], row["reference"]), *others]
    made = {
        each.kind: each.text for each in altered_answers(references, per_kind=9, seed=seed) if each.question_id == "q"
    }
    for kind, expected in row["made"].items():
        if expected == "none":
            assert kind not in made
        else:
            assert made[kind] in expected


def test_a_changed_digit_is_one_digit_of_a_value_that_the_question_does_not_have() -> None:
    answers = [each for each in altered_answers(DEMO, per_kind=100) if each.kind == "digit_changed"]
    texts = {each.question_id: each for each in DEMO}
    assert len(answers) > 30
    for answer in answers:
        reference = texts[answer.question_id]
        changed = [place for place, sign in enumerate(answer.text) if sign != reference.answer[place]]
        assert len(answer.text) == len(reference.answer)
        assert len(changed) == 1
        assert answer.text[changed[0]].isdecimal()


def test_the_demo_has_answers_of_all_kinds_and_of_all_templates() -> None:
    answers = altered_answers(DEMO, per_kind=11)
    templates = {each.question_id: each.template_id for each in DEMO}
    kinds = {kind: [each for each in answers if each.kind == kind] for kind in KINDS}
    assert {kind for kind, made in kinds.items() if not made} == set()
    assert len({templates[each.question_id] for each in kinds["as_reference"]}) == len(set(templates.values()))
    assert all(len({each.question_id for each in made}) == len(made) for made in kinds.values())
    assert answers == altered_answers(DEMO, per_kind=11)
    assert answers != altered_answers(DEMO, per_kind=11, seed=1)


def test_right_answers_have_all_values_of_the_reference_and_wrong_ones_are_not_the_reference() -> None:
    texts = {each.question_id: each for each in DEMO}
    for answer in altered_answers(DEMO, per_kind=100):
        reference = texts[answer.question_id]
        if not KINDS[answer.kind].is_right:
            assert answer.text != reference.answer
        elif answer.kind != "short":  # which leaves out a count that follows from the items
            assert ClaimTexts(reference.question, reference.answer, answer.text).left_out() == {}
            assert not set(re.findall(r"\d+", reference.answer)) - set(re.findall(r"\d+", answer.text))


def test_an_answer_is_paired_with_its_plain_form_to_the_same_question() -> None:
    answers = altered_answers(DEMO, per_kind=7)
    pairs = list(pairs_of(answers, "other_padded"))
    assert len(pairs) == 7
    assert all(plain.text in padded.text and plain.kind == "other_answer" for padded, plain in pairs)


WORDS = st.sampled_from(["3", "OSLO", "300 kV", "is", "not", "-", "- T1\n- T2", "\n", ".", "?", "T3, T4 and T5", "é"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=4))
@example(["Alien; Blade Runner", "3"])
def test_whatever_the_references_say_answers_are_made_or_left_out(texts: list[str]) -> None:
    references = [Reference(f"q{place}", "t", "How many?", text) for place, text in enumerate(texts)]
    for answer in altered_answers(references, per_kind=2):
        assert answer.text


def test_references_that_refuse_make_no_answers() -> None:
    references = [Reference("q", "t", "Where is T9?", "There is no such transformer.")]
    assert altered_answers(references, per_kind=3) == []
