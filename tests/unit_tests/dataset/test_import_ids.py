"""Ids of questions that no other has."""

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.dataset.import_questions import SourceQuestion, unique_ids


@given(st.lists(st.sampled_from(["7", "7-2", "7-3", "7-2-2", "8"]), max_size=12))
def test_ids_are_unique_and_the_first_of_each_keeps_its_own(ids: list[str]) -> None:
    found = list(unique_ids([SourceQuestion(each, f"{place}?") for place, each in enumerate(ids)]))
    assert [question.text for _, question in found] == [f"{place}?" for place in range(len(ids))]
    new = [identifier for identifier, _ in found]
    assert len(set(new)) == len(new)
    assert [new[ids.index(each)] for each in ids] == ids
