"""SPARQL JSON: what is read, what is allowed with a note, and what cannot be read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows_new.results import (
    DEEPEST_TRIPLE,
    Term,
    Triple,
    parse_sparql_results,
    results_from_bindings,
)

TABLE = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "results.jsonl").read_text(encoding="utf-8").splitlines()
]
OSLO = {"type": "literal", "value": "Oslo"}
URN = {"type": "uri", "value": "urn:a"}


def select(variables: Any, bindings: Any) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": bindings}}


@pytest.mark.parametrize("line", [line for line in TABLE if "cells" in line], ids=lambda line: line["why"])
def test_cells_of_the_table(line: dict[str, Any]) -> None:
    results = results_from_bindings(["m", "n"], [{"m": OSLO, "n": cell} for cell in line["cells"]])
    if "fault" in line:
        assert (results.variables, tuple(results.columns), results.notes) == (("m", "n"), ("m",), ())
        assert line["fault"] in results.faults["n"]
        assert results.fault_of("n").startswith("column `n` cannot be read: its cell in row 2 ")
        assert results.fault_of("n").encode()
        return
    column = results.columns["n"]
    shapes = [column.shape(row) for row in range(len(column.texts))]
    assert [[text, *shape] for text, shape in zip(column.texts, shapes, strict=True)] == line["read"]
    assert list(results.notes) == line["notes"]
    assert {row for row, shape in enumerate(shapes) if shape[0] == "triple"} == set(column.structures)


@pytest.mark.parametrize("line", [line for line in TABLE if "output" in line], ids=str)
def test_outputs_of_the_table(line: dict[str, Any]) -> None:
    if "unreadable" in line:
        with pytest.raises(UnreadableOutput) as caught:
            parse_sparql_results(line["output"])
        assert line["unreadable"] in str(caught.value)
        assert str(caught.value).encode()
        return
    for output in (line["output"], json.dumps(line["output"])):
        results = parse_sparql_results(output)
        assert list(results.variables) == line["variables"]
        assert (results.row_count, results.boolean) == (line["rows"], line["boolean"])
        assert any('no list "vars"' in note for note in results.notes) == line["has_note"]


def nested(depth: int) -> Any:
    cell: Any = OSLO
    for _ in range(depth):
        cell = {"type": "triple", "value": {"s": URN, "p": URN, "o": cell}}
    return cell


def test_triple_terms_have_parts_and_bounds() -> None:
    results = results_from_bindings(["n"], [{"n": nested(2)}])
    urn, oslo = Term("urn:a", ("uri", None, None)), Term("Oslo")
    assert results.columns["n"].structures == {0: Triple(urn, urn, Triple(urn, urn, oslo))}
    assert not results_from_bindings(["n"], [{"n": nested(DEEPEST_TRIPLE)}]).faults
    assert "deep" in results_from_bindings(["n"], [{"n": nested(DEEPEST_TRIPLE + 1)}]).faults["n"]
    shared: Any = OSLO
    for _ in range(DEEPEST_TRIPLE):
        shared = {"type": "triple", "value": {"s": shared, "p": URN, "o": shared}}
    assert "too many parts" in results_from_bindings(["n"], [{"n": shared}]).faults["n"]


@pytest.mark.parametrize(
    "output", ["[" * 100_000, "1" * 10_000, b"{}", float("nan"), {10**5_000: 1}, select(["n"], [{"n": 10**5_000}])]
)
def test_odd_outputs_are_unreadable_or_have_a_fault(output: Any) -> None:
    try:
        faults = parse_sparql_results(output).faults
    except UnreadableOutput as problem:
        faults = {"n": str(problem)}
    assert faults["n"].encode()


def test_notes_count_the_cells_of_all_columns() -> None:
    untyped = {"value": "Oslo"}
    results = results_from_bindings(None, [{"a": OSLO, "b": untyped}, {"a": untyped, "b": untyped}], notes=["so"])
    assert results.notes == ("so", '3 cells without a "type" (first: "a" in row 2)')
    assert results.columns["a"].readable(1) == "Oslo"


def test_cells_are_shown_to_people() -> None:
    column = results_from_bindings(["n"], [{"n": {"type": "bnode", "value": "b"}}, {}, {"n": URN}]).columns["n"]
    assert [column.readable(row) for row in range(3)] == ["_:b", None, "urn:a"]
    assert [column.kind(row) for row in range(3)] == ["bnode", "", "uri"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([OSLO, URN]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "head",
                    "vars",
                    "results",
                    "bindings",
                    "n",
                    "type",
                    "value",
                    "datatype",
                    "xml:lang",
                    "lang",
                    "its:dir",
                    "boolean",
                    "s",
                    "p",
                    "o",
                ]
            ),
            inner,
            max_size=4,
        )
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["", "uri", "literal", "bnode", "triple"]), "value": inner},
            optional={"datatype": inner, "xml:lang": inner},
        )
    ),
    max_leaves=12,
)


@given(JSON | st.builds(select, st.just(["n"]) | JSON, st.lists(st.fixed_dictionaries({"n": JSON})) | JSON))
def test_nothing_but_unreadable_output_is_raised_and_texts_are_read_alike(output: Any) -> None:
    try:
        results = parse_sparql_results(output)
    except UnreadableOutput:
        return
    for column in results.columns.values():
        assert len(column.texts) == results.row_count
        assert "".join(column.texts).encode() is not None
    try:
        text = json.dumps(output, allow_nan=False)
        text.encode()
    except ValueError:
        return
    assert parse_sparql_results(text) == results


@given(st.lists(st.sampled_from([line["cells"][-1] for line in TABLE if "read" in line]), min_size=1, max_size=5))
def test_a_column_is_read_quickly_as_cell_by_cell(cells: list[Any]) -> None:
    quick = results_from_bindings(["n"], [{"n": cell} for cell in cells]).columns["n"]
    slow = [results_from_bindings(["n"], [{"n": cell}, {"n": 5}]).columns["n"] for cell in cells]
    assert [(quick.texts[row], quick.shape(row)) for row in range(len(cells))] == [
        (each.texts[0], each.shape(0)) for each in slow
    ]
