"""Any rows, written in each form of SQL tools, equal the SPARQL JSON of the same rows; with one cell changed, not."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
NAMES = ("name", "n", "share", "since")
WORDS = st.text(st.characters(codec="utf-8", categories=("L", "Nd")), min_size=1, max_size=8).map(
    lambda word: f"x{word}"
)
SIZES = st.integers(-(10**6), 10**6)
SHARES = st.decimals(-1000, 1000, places=2)
DAYS = st.dates()
Row = tuple[str | None, int | None, Decimal | None, Any]
ROWS = st.lists(
    st.tuples(WORDS | st.none(), SIZES | st.none(), SHARES | st.none(), DAYS | st.none()).filter(lambda row: any(row)),
    min_size=2,
    max_size=5,
    unique=True,
)


def sparql_json(rows: Sequence[Row]) -> dict[str, Any]:
    types = ("string", "integer", "decimal", "date")
    bindings = [
        {
            name: {"type": "literal", "value": str(cell), "datatype": XSD + datatype}
            for name, datatype, cell in zip(NAMES, types, row, strict=True)
            if cell is not None
        }
        for row in rows
    ]
    return {"head": {"vars": list(NAMES)}, "results": {"bindings": bindings}}


def plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str | int) else str(cell)


def texts(rows: Sequence[Row]) -> list[list[str]]:
    return [["" if cell is None else str(cell) for cell in row] for row in rows]


def drawn(rows: Sequence[Row]) -> tuple[list[list[str]], list[int]]:
    cells = [list(NAMES), *texts(rows)]
    return cells, [max(len(row[at]) for row in cells) for at in range(len(NAMES))]


def mysql(rows: Sequence[Row]) -> str:
    cells, widths = drawn(rows)
    rule = "+" + "".join("-" * (width + 2) + "+" for width in widths)
    lines = ["|" + "".join(f" {cell:<{width}} |" for cell, width in zip(row, widths, strict=True)) for row in cells]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def psql(rows: Sequence[Row]) -> str:
    cells, widths = drawn(rows)
    lines = ["|".join(f" {cell:<{width}} " for cell, width in zip(row, widths, strict=True)) for row in cells]
    rule = "+".join("-" * (width + 2) for width in widths)
    return "\n".join([lines[0], rule, *lines[1:], f"({len(rows)} rows)"])


def box(rows: Sequence[Row]) -> str:
    cells, widths = drawn(rows)
    lines = ["│" + "".join(f" {cell:<{width}} │" for cell, width in zip(row, widths, strict=True)) for row in cells]
    parts = ["─" * (width + 2) for width in widths]
    top, middle, end = (a + b.join(parts) + c for a, b, c in ("┌┬┐", "├┼┤", "└┴┘"))
    return "\n".join([top, lines[0], middle, *lines[1:], end])


def named(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, map(plain, row), strict=True)) for row in rows]


FORMS: dict[str, Callable[[Sequence[Row]], str]] = {
    "tuples": lambda rows: str(list(rows)),
    "dicts": lambda rows: str([dict(zip(NAMES, row, strict=True)) for row in rows]),
    "columns and rows": lambda rows: json.dumps({"columns": NAMES, "rows": [list(map(plain, row)) for row in rows]}),
    "columns": lambda rows: json.dumps({name: [row[name] for row in named(rows)] for name in NAMES}),
    "pandas columns": lambda rows: json.dumps(
        {name: {str(at): row[name] for at, row in enumerate(named(rows))} for name in NAMES}
    ),
    "lines": lambda rows: "\n".join(map(json.dumps, named(rows))),
    "mysql": mysql,
    "psql": psql,
    "box": box,
    "indexed CSV": lambda rows: "\n".join(
        ["," + ",".join(NAMES), *(f"{at}," + ",".join(row) for at, row in enumerate(texts(rows)))]
    ),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=30)
@given(rows=ROWS, data=st.data())
def test_each_form_holds_its_rows_and_no_others(form: str, rows: list[Row], data: st.DataObject) -> None:
    expected = sparql_json(rows)
    output = FORMS[form](rows)
    assert compare_sparql_results(expected, output).score == 1.0
    assert compare_sparql_results(output, expected).score == 1.0
    at = data.draw(st.integers(0, len(rows) - 1))
    changed = list(rows)
    changed[at] = ("another", 10**7, *rows[at][2:])
    assert compare_sparql_results(expected, FORMS[form](changed)).score == 0.0
