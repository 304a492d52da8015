"""Numbers, times, durations and geometries: a table of texts, and cross-checks."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.matching.rows.numbers_and_times import (
    VALUE_READERS,
    XSD,
    geometry_from,
    number_from,
    numbers_are_equal,
    numbers_by_kind,
)

LINES = (Path(__file__).parent / "data" / "numbers_and_times.jsonl").read_text(encoding="utf-8").splitlines()
READERS: dict[str, Callable[[str], Any]] = {
    (datatype or "untyped").removeprefix(XSD): read for datatype, (_, read) in VALUE_READERS.items()
} | {"geometry": geometry_from}


def numbers_in(texts: list[str], datatype: str | None) -> dict[str, Any]:
    return {text: number for some in numbers_by_kind(texts, datatype).values() for text, number in some.items()}


@pytest.mark.parametrize(
    "line", [json.loads(line) for line in LINES], ids=lambda line: f"{line['read']} {line.get('as', '')}"
)
def test_table_of_texts(line: dict[str, Any]) -> None:
    if line["read"] == "number":
        datatype = line["as"] and XSD + line["as"]
        assert {text: number_from(text, datatype) for text in line["values"]} == line["values"]
        texts = [*line["values"], *line["texts"]]
        assert numbers_in(texts, datatype) == numbers_in([*line["values"]], datatype) == line["values"]
        read: Callable[[str], Any] = lambda text: number_from(text, datatype)  # noqa: E731
    else:
        read = READERS[line["read"]]
        [value] = {read(text) for text in line["same"]}
        assert value is not None
    assert {text for text in line["texts"] if read(text) is not None} == set()


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("5", "5.00000001", True),
        ("5", "5.0000000100000000001", False),
        ("12345678901234567890.1", "12345678901234567891.1", False),
        ("12345678901234567890.1", "12345678901234567890.10000001", True),
        ("-0.000000005", "0.000000005", True),
    ],
)
def test_tolerance_is_exact(one: str, other: str, equal: bool) -> None:
    mine, theirs = number_from(one, XSD + "decimal"), number_from(other, XSD + "decimal")
    assert mine is not None
    assert theirs is not None
    assert numbers_are_equal(mine, theirs) is numbers_are_equal(theirs, mine) is equal


@pytest.mark.full
@pytest.mark.parametrize("kind", ["dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"])
def test_sparql_store_agrees_on_equal_values(kind: str) -> None:
    pyoxigraph = pytest.importorskip("pyoxigraph")
    zones, clocks = ["", "Z", "+01:00", "-10:30", "+12:00"], ["00:00:00", "00:00:00.0", "14:00:00", "23:00:00.5"]
    days = ["1999-02-28", "2000-02-29", "2000-03-01"]
    amounts = {
        "duration": ["P1Y", "P12M", "P1D", "PT24H", "-P1D", "P1Y1D"],
        "dayTimeDuration": ["P1D", "PT24H", "PT1440M"],
    }
    texts = {
        "dateTime": [f"{day}T{clock}{zone}" for day in days for clock in clocks for zone in zones],
        "date": [day + zone for day in days for zone in zones],
        "time": [clock + zone for clock in clocks for zone in zones],
        "yearMonthDuration": ["P1Y", "P12M", "P0Y12M", "-P1Y"],
        **amounts,
    }[kind]
    read = READERS[kind]
    rows = " ".join(f'"{text}"' for text in texts)
    query = f"""SELECT ?a ?b {{ VALUES ?a {{ {rows} }} VALUES ?b {{ {rows} }}
        FILTER(STRDT(?a, <{XSD}{kind}>) = STRDT(?b, <{XSD}{kind}>)) }}"""
    equal = {(row["a"].value, row["b"].value) for row in pyoxigraph.Store().query(query)}
    assert {(one, other) for one in texts for other in texts if read(one) == read(other)} == equal
