from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import DatasetError, OptionError


def template(template_id: str, *ids: str) -> Any:
    return {"template_id": template_id, "questions": [{"id": identifier, "question_text": "?"} for identifier in ids]}


TEMPLATES = [template("lines", "l1", "l2", "l3"), template("empty"), template("nodes", "n1", "n2")]


def ids_of(selection: Selection, templates: Any = TEMPLATES) -> list[str]:
    return [question["id"] for _, question in selection.apply(templates)]


def test_everything_is_selected_by_default() -> None:
    assert ids_of(Selection()) == ["l1", "l2", "l3", "n1", "n2"]
    assert Selection().as_dict() == {}
    assert ids_of(Selection(), []) == []


def test_selected_questions_keep_their_templates() -> None:
    assert [found["template_id"] for found, _ in Selection(limit=4).apply(TEMPLATES)] == ["lines"] * 3 + ["nodes"]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({"limit": 2}, ["l1", "l2"]),
        ({"limit": 9}, ["l1", "l2", "l3", "n1", "n2"]),
        ({"template_ids": ("nodes",)}, ["n1", "n2"]),
        ({"template_ids": "nodes"}, ["n1", "n2"]),
        ({"question_ids": ["n1", "l2"]}, ["l2", "n1"]),
        ({"template_ids": ("lines",), "question_ids": ("n1", "l2")}, ["l2"]),
        ({"template_ids": ("lines", "nodes"), "limit": 1}, ["l1"]),
        ({"sample": 9, "seed": 1, "limit": 3}, ["l1", "l2", "l3"]),
    ],
)
def test_filters_combine_and_keep_the_datasets_order(filters: dict[str, Any], ids: list[str]) -> None:
    assert ids_of(Selection(**filters)) == ids


def test_numeric_id_is_matched_as_a_string() -> None:
    ids: Any = (1, 2)
    found: list[Any] = [*ids_of(Selection(question_ids=ids[1:]), [template("t", *ids)])]
    assert found == [2]


def test_seeded_sample_is_reproducible() -> None:
    many = [template("t", *(f"q{n:03}" for n in range(100)))]
    assert ids_of(Selection(sample=5, seed=7), many) == ["q006", "q019", "q041", "q050", "q083"]
    assert ids_of(Selection(sample=5, seed=8), many) != ids_of(Selection(sample=5, seed=7), many)


def test_sample_does_not_depend_on_the_datasets_order() -> None:
    selection = Selection(sample=3, seed=3)
    assert set(ids_of(selection)) == set(ids_of(selection, TEMPLATES[::-1]))


def test_missing_seed_is_drawn_and_reported() -> None:
    selection = Selection(sample=2)
    assert selection.as_dict() == {"sample": 2, "seed": selection.seed}
    assert ids_of(Selection(**selection.as_dict())) == ids_of(selection)


@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 2**32))
def test_sample_and_limit_may_exceed_the_number_of_questions(sample: int, limit: int, seed: int) -> None:
    ids = ids_of(Selection(sample=sample, limit=limit, seed=seed))
    assert len(ids) == min(sample, limit, 5)
    assert ids == [identifier for identifier in ("l1", "l2", "l3", "n1", "n2") if identifier in ids]


def test_recorded_selection_reproduces_the_same_questions() -> None:
    selection = Selection(limit=3, template_ids=("nodes", "nodes"), sample=2, seed=0)
    assert selection.as_dict() == {"limit": 3, "template_ids": ["nodes"], "sample": 2, "seed": 0}
    assert Selection(**selection.as_dict()) == selection


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"question_ids": ("l4",)}, "unknown question l4. Did you mean l3 or l2 or l1?"),
        ({"question_ids": ("zz", "l1", "yy")}, r"unknown question zz \(and 1 more.*\). The dataset has: l1, l2"),
        ({"template_ids": ("node",)}, "unknown template node. Did you mean nodes?"),
        ({"template_ids": ("empty",)}, "no question is left"),
        ({"template_ids": ("nodes",), "question_ids": ("l1",)}, "no question is left"),
    ],
)
def test_unknown_ids_are_rejected(filters: dict[str, Any], message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        Selection(**filters).apply(TEMPLATES)


def test_duplicate_question_id_is_rejected() -> None:
    with pytest.raises(DatasetError, match="question a: two questions have this id"):
        Selection(question_ids=("b",)).apply([template("s", "a", "b"), template("t", "a")])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"limit": 0}, "limit is at least 1, not 0"),
        ({"sample": -1}, "sample is at least 1, not -1"),
        ({"seed": 1}, "Give the size of the sample too"),
    ],
)
def test_numbers_that_select_nothing_are_rejected(values: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Selection(**values)


@pytest.mark.parametrize(("answered", "ids"), [({"n1", "l3", "other"}, ["l3", "n1"]), ({"l1"}, ["l1"])])
def test_selection_can_be_limited_to_answered_questions(answered: set[str], ids: list[str]) -> None:
    questions = Selection().apply(TEMPLATES)
    found = Selection(answered_only=True).answered(questions, answered)
    assert [question["id"] for _, question in found] == ids
    assert Selection().answered(questions, answered) == questions


def test_selection_of_answered_questions_is_recorded() -> None:
    assert Selection(answered_only=True).as_dict() == {"answered_only": True}
    assert (Selection(answered_only=True).is_all, Selection().is_all) == (False, True)


def test_selecting_answered_questions_needs_at_least_one_response() -> None:
    with pytest.raises(DatasetError, match=r"none of 5 questions has a response. Check that the question ids"):
        Selection(answered_only=True).answered(Selection().apply(TEMPLATES), {"x"})
    assert Selection(answered_only=True).answered([], {"x"}) == []  # as for a dataset without questions


@pytest.mark.parametrize("ids", [3, 1.5, object()])
def test_ids_must_be_a_list(ids: Any) -> None:
    with pytest.raises(OptionError, match=r"question_ids cannot be .*. Give a list of ids."):
        Selection(question_ids=ids)
