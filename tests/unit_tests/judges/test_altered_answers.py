"""Answers derived from reference answers: a table of cases in altered.yaml, and laws for all of them."""

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
def test_each_kind_is_derived_as_in_the_table(row: dict[str, Any], seed: int) -> None:
    others = [Reference(f"other{index}", "t", "Another?", text) for index, text in enumerate(row.get("others", ()))]
    references = [Reference("q", "t", row["question"], row["reference"]), *others]
    altered = {
        each.kind: each.text for each in altered_answers(references, per_kind=9, seed=seed) if each.question_id == "q"
    }
    for kind, expected in row["made"].items():
        if expected == "none":
            assert kind not in altered
        else:
            assert altered[kind] in expected


def test_digit_changed_changes_exactly_one_digit() -> None:
    answers = [each for each in altered_answers(DEMO, per_kind=100) if each.kind == "digit_changed"]
    texts = {each.question_id: each for each in DEMO}
    assert len(answers) > 30
    for answer in answers:
        reference = texts[answer.question_id]
        changed = [index for index, sign in enumerate(answer.text) if sign != reference.answer[index]]
        assert len(answer.text) == len(reference.answer)
        assert len(changed) == 1
        assert answer.text[changed[0]].isdecimal()


def test_demo_yields_all_kinds_and_all_templates() -> None:
    answers = altered_answers(DEMO, per_kind=11)
    templates = {each.question_id: each.template_id for each in DEMO}
    kinds = {kind: [each for each in answers if each.kind == kind] for kind in KINDS}
    assert {kind for kind, altered in kinds.items() if not altered} == set()
    assert len({templates[each.question_id] for each in kinds["as_reference"]}) == len(set(templates.values()))
    assert all(len({each.question_id for each in altered}) == len(altered) for altered in kinds.values())
    assert answers == altered_answers(DEMO, per_kind=11)
    assert answers != altered_answers(DEMO, per_kind=11, seed=1)


def test_right_answers_keep_all_values_and_wrong_ones_differ_from_the_reference() -> None:
    texts = {each.question_id: each for each in DEMO}
    for answer in altered_answers(DEMO, per_kind=100):
        reference = texts[answer.question_id]
        if not KINDS[answer.kind].is_right:
            assert answer.text != reference.answer
        elif answer.kind != "short":  # it leaves out a count that follows from the items
            assert ClaimTexts(reference.question, reference.answer, answer.text).left_out() == {}
            assert not set(re.findall(r"\d+", reference.answer)) - set(re.findall(r"\d+", answer.text))


def test_padded_answer_is_paired_with_its_plain_form() -> None:
    answers = altered_answers(DEMO, per_kind=7)
    pairs = list(pairs_of(answers, "other_padded"))
    assert len(pairs) == 7
    assert all(plain.text in padded.text and plain.kind == "other_answer" for padded, plain in pairs)


WORDS = st.sampled_from(["3", "OSLO", "300 kV", "is", "not", "-", "- T1\n- T2", "\n", ".", "?", "T3, T4 and T5", "é"])


@given(st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=4))
@example(["Alien; Blade Runner", "3"])
def test_any_references_yield_valid_answers_or_none(texts: list[str]) -> None:
    references = [Reference(f"q{index}", "t", "How many?", text) for index, text in enumerate(texts)]
    for answer in altered_answers(references, per_kind=2):
        assert answer.text


def test_references_that_refuse_yield_no_answers() -> None:
    references = [Reference("q", "t", "Where is T9?", "There is no such transformer.")]
    assert altered_answers(references, per_kind=3) == []
