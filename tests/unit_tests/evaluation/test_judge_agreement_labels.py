from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.judges.answer_tables import labels_in, read_table


def labels_of(write_table: Callable[..., Path], *labels: str) -> list[bool | None]:
    return labels_in(read_table(write_table([[label, "x"] for label in labels], header=["Label", "y"])), "Label")


def test_labels_are_words_or_digits_in_any_case(write_table: Callable[..., Path]) -> None:
    assert labels_of(write_table, "1", "Yes", "TRUE", " correct ") == [True] * 4
    assert labels_of(write_table, "0", "no", "False", "InCorrect") == [False] * 4


def test_blank_label_is_none(write_table: Callable[..., Path]) -> None:
    assert labels_of(write_table, "1", " ", "0") == [True, None, False]


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (["1", "maybe"], "line 3, key Label: 'maybe' is no label. Write 1, yes, true or correct"),
        (["incorect"], "line 2, key Label: 'incorect' is no label. Did you mean incorrect?"),
        (["0.5"], "'0.5' is no label"),
        (["", ""], "key Label: no row has a label"),
        ([], "no row has a label"),
    ],
)
def test_invalid_labels_are_rejected(write_table: Callable[..., Path], labels: list[str], complaint: str) -> None:
    with pytest.raises(ResponsesError) as caught:
        labels_of(write_table, *labels)
    assert complaint in str(caught.value)


def test_missing_column_is_an_error_with_the_nearest_name(write_table: Callable[..., Path]) -> None:
    table = read_table(write_table([], header=["label", "y"]))
    with pytest.raises(ResponsesError, match=r"no column Label\. Rename label, if that is it, to Label"):
        labels_in(table, "Label")
