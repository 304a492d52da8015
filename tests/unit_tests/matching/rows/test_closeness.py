import pytest

from graphrag_eval_lc.matching.rows.closeness import share_of_near_numbers
from graphrag_eval_lc.matching.rows.results import TermColumn

XSD = "http://www.w3.org/2001/XMLSchema#"


def column(datatype: str | None, *texts: str) -> TermColumn:
    return TermColumn(list(texts), ("literal", datatype and XSD + datatype, None))


@pytest.mark.parametrize(
    ("mine", "other", "share"),
    [
        (column("decimal", "1.5", "200.5"), column("decimal", "200.6", "7.5", "1.5"), 1.0),
        (column("decimal", "1.5", "200.5"), column("float", "200.6"), 0.5),
        (column(None, "1.5"), column(None, "1.5001"), 1.0),
        (column("integer", "1000001"), column("integer", "1000002"), 0.0),
        (column("double", "INF"), column("double", "INF"), 0.0),
        (column("decimal", "1" * 400 + ".5"), column("decimal", "1" * 400 + ".6"), 0.0),
        (column("decimal", "abc"), column("decimal", "1.5"), 0.0),
        (column("string", "1.5"), column("string", "1.5"), 0.0),
    ],
)
def test_the_share_of_numbers_that_are_nearly_the_same(mine: TermColumn, other: TermColumn, share: float) -> None:
    assert share_of_near_numbers(mine, other) == share
