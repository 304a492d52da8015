"""Numbers, times, durations and geometries: a table of texts, and what they must agree with."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.rows.numbers_and_times import (
    MAX_NUMBER_LENGTH,
    VALUE_READERS,
    XSD,
    duration_from,
    geometry_from,
    number_from,
    numbers_are_equal,
    numbers_by_kind,
    time_from,
    untyped_time_from,
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
def test_texts_of_the_table(line: dict[str, Any]) -> None:
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


def test_long_numbers_are_texts() -> None:
    assert number_from("1" * MAX_NUMBER_LENGTH, XSD + "integer") == int("1" * MAX_NUMBER_LENGTH)
    assert number_from("1" * (MAX_NUMBER_LENGTH + 1), XSD + "integer") is None
    assert duration_from(f"P{'1' * 5_000}D") is time_from("9" * 5_000 + "-01-01T00:00:00Z", "dateTime") is None


def test_untyped_numbers_are_integers_or_doubles() -> None:
    assert numbers_by_kind(["5", "-5", "5.0", "5e0", "x"], None) == {0: {"5": 5, "-5": -5}, 2: {"5.0": 5, "5e0": 5}}


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
def test_numbers_are_equal_within_the_tolerance_exactly(one: str, other: str, equal: bool) -> None:
    mine, theirs = number_from(one, XSD + "decimal"), number_from(other, XSD + "decimal")
    assert mine is not None
    assert theirs is not None
    assert numbers_are_equal(mine, theirs) is numbers_are_equal(theirs, mine) is equal


def test_special_numbers_equal_only_themselves() -> None:
    special = [float("inf"), float("-inf"), "NaN", 0.0, 10**400, Decimal("1e300")]
    assert [[one == other for other in special] for one in special] == [
        [numbers_are_equal(one, other, 0.5) for other in special] for one in special
    ]


@given(
    st.integers(-(10**13), 10**13),
    st.integers(0, 10**6),
    st.sampled_from(["integer", "decimal", "double", "float", None]),
)
def test_many_numbers_are_read_as_one_by_one(whole: int, decimals: int, name: str | None) -> None:
    texts = [str(whole), f"{whole}.{decimals}", f"{decimals}", f"0.{decimals:06}", f"{whole}.{decimals:020}"]
    datatype = name and XSD + name
    for some in (texts, texts[:1], texts[:2]):
        expected = {text: number_from(text, datatype) for text in some}
        assert numbers_in(some, datatype) == {text: number for text, number in expected.items() if number is not None}
    exact = number_from(texts[4], f"{XSD}decimal")
    assert exact is not None
    assert abs(Decimal(str(exact)) - Decimal(texts[4])) == 0


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)), st.integers(-839, 839))
def test_the_zone_in_which_an_instant_is_written_does_not_matter(moment: datetime, minutes: int) -> None:
    at = moment.replace(tzinfo=UTC)
    here = at.astimezone(timezone(timedelta(minutes=minutes)))
    assert time_from(at.isoformat(), "dateTime") == time_from(here.isoformat(), "dateTime") != None  # noqa: E711
    assert untyped_time_from(here.isoformat(sep=" ")) == time_from(at.isoformat(), "dateTime")
    assert time_from(moment.isoformat(timespec="microseconds"), "dateTime") == untyped_time_from(
        moment.isoformat(sep=" ", timespec="milliseconds" if moment.microsecond % 1000 == 0 else "microseconds")
    )


@pytest.mark.full
@pytest.mark.parametrize("kind", ["dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"])
def test_a_sparql_store_agrees_on_which_values_are_equal(kind: str) -> None:
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
