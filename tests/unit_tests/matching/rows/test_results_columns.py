"""Columns are read and told in quick ways that agree with reading them cell by cell."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.closeness import share_of_near_numbers
from graphrag_eval_lc.matching.rows.results import TermColumn, parse_sparql_results, results_from_bindings
from graphrag_eval_lc.matching.rows.terms import Allowances, Shape, read_cells
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD, NumberKind

DATATYPES = [None, *(XSD + name for name in ("decimal", "double", "float", "integer", "string", "boolean"))]
KINDS = ["uri", "literal", "bnode", "typed-literal"]
TEXTS = [
    "",
    "5",
    "-0",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "+5",
    " 7 ",
    "INF",
    "NaN",
    "0.12345678",
    "1" * 16,
    "007",
    "Oslo",
    "urn:a",
]
SHAPES: st.SearchStrategy[Shape] = st.tuples(
    st.sampled_from(["", *KINDS]), st.sampled_from(DATATYPES), st.sampled_from([None, "en"])
)


@st.composite
def cells(draw: st.DrawFn) -> dict[str, Any]:
    """Give a cell with some of the keys that terms have."""
    keys = {
        "datatype": st.sampled_from(DATATYPES),
        "xml:lang": st.sampled_from([None, "en", "de"]),
        "note": st.just("further"),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(keys))))
    cell: dict[str, Any] = {"type": draw(st.sampled_from(KINDS)), "value": draw(st.sampled_from(TEXTS))}
    return cell | {key: draw(keys[key]) for key in sorted(chosen)}


@given(st.lists(cells(), min_size=1, max_size=4), st.integers(1, 3))
def test_a_column_has_the_texts_and_shapes_of_its_cells(some: list[dict[str, Any]], times: int) -> None:
    bindings = [{"n": cell} for cell in some * times]
    column = results_from_bindings(["n"], bindings).columns["n"]
    shapes = column.shapes if isinstance(column.shapes, list) else [column.shapes] * len(bindings)

    assert (column.texts, shapes) == tuple(read_cells("n", bindings, Allowances())[""])


@given(st.lists(st.tuples(st.sampled_from(TEXTS), SHAPES), min_size=1, max_size=4), st.booleans())
def test_floats_are_the_numbers_of_all_cells(some: list[tuple[str, Shape]], has_one_shape: bool) -> None:
    texts = [text for text, _ in some]
    column = TermColumn(texts, some[0][1] if has_one_shape else [shape for _, shape in some])
    numbers = [column.number(row) for row in range(len(texts))]

    if column.floats is not None:
        assert [None if each is None else float(each[0]) for each in numbers] == column.floats
        assert all(each is not None and each[1] != NumberKind.INTEGER for each in numbers)
    if not column.may_have_numbers:
        assert numbers == [None] * len(texts)


def test_numbers_in_all_cells_count_as_those_among_texts_do() -> None:
    numbers = ["1.5", "200.5", "3.25"]
    decimal, text = ("literal", XSD + "decimal", None), ("literal", XSD + "string", None)
    alone = TermColumn(numbers, decimal)
    among_texts = TermColumn([*numbers, "Oslo"], [decimal, decimal, decimal, text])
    other = TermColumn(["200.6", "7.5", "1.5"], decimal)

    assert alone.floats == [1.5, 200.5, 3.25]
    assert among_texts.floats is None
    assert share_of_near_numbers(alone, other) == share_of_near_numbers(among_texts, other) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("text", "is_plain"), [(".1234567", True), (".12345678", False), ("0.12345678", False)])
def test_numbers_with_eight_decimals_are_not_told_by_their_floats(text: str, is_plain: bool) -> None:
    assert (TermColumn([text], ("literal", XSD + "decimal", None)).plain is not None) == is_plain


def test_a_row_that_is_no_object_is_named() -> None:
    with pytest.raises(ValueError, match="row 2 is no object"):
        parse_sparql_results({"head": {"vars": ["n"]}, "results": {"bindings": [{}, 5]}})
