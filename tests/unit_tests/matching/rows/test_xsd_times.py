import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Store

from graphrag_eval_lc.matching.rows.values import ValueRules, typed_reader
from graphrag_eval_lc.matching.rows.xsd_numbers import MAX_NUMBER_LENGTH, XSD
from graphrag_eval_lc.matching.rows.xsd_times import (
    Duration,
    Moment,
    date_from,
    date_time_from,
    duration_from,
    form_of_times,
    has_untyped_time,
    time_from,
    untyped_time_from,
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", Moment(True, 0)),
        ("1970-01-01T00:00:00", Moment(False, 0)),
        (" 1970-01-01T14:00:00+14:00\n", Moment(True, 0)),
        ("1970-01-01T00:00:00.0100-00:00", Moment(True, 0, "01")),
        ("1969-12-31T24:00:00.000Z", Moment(True, 0)),
        ("0000-02-29T00:00:00Z", Moment(True, -62_162_121_600)),
        ("-0001-12-31T24:00:00Z", Moment(True, -62_167_219_200)),
        ("12020-02-29T00:00:00Z", Moment(True, 317_152_454_400)),
        ("1969-12-31T23:59:59." + "9" * 40 + "Z", Moment(True, -1, "9" * 40)),
    ],
)
def test_date_times_are_read_exactly_in_any_year(text: str, moment: Moment) -> None:
    assert date_time_from(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "T",
        "1970-01-01",
        "1970-01-01 00:00:00",
        "1970-01-01T00:00Z",
        "1970-1-01T00:00:00Z",
        "01970-01-01T00:00:00Z",
        "1970-00-01T00:00:00Z",
        "1970-04-31T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "1970-01-00T00:00:00Z",
        "1970-01-01T24:00:00.1Z",
        "1970-01-01T24:01:00Z",
        "1970-01-01T25:00:00Z",
        "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:60Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00+14:01",
        "1970-01-01T00:00:00+01",
        "1970-01-01T00:00:00z",
        "\u0661970-01-01T00:00:00Z",
        "9" * MAX_NUMBER_LENGTH + "-01-01T00:00:00Z",
    ],
)
def test_what_is_no_date_time_is_a_text(text: str) -> None:
    assert date_time_from(text) is None


def test_dates_are_the_moment_at_which_the_day_starts() -> None:
    assert date_from("1970-01-01Z") == Moment(True, 0)
    assert date_from("1970-01-01-12:00") == date_from("1970-01-02+12:00") == Moment(True, 43_200)
    assert date_from("1970-01-01") == Moment(False, 0)
    assert date_from("1970-02-30") is date_from("1970-01-01T00:00:00") is None


def test_times_lie_in_one_day_and_do_not_wrap_at_midnight() -> None:
    assert time_from("21:30:00+10:30") == time_from("06:00:00-05:00") == Moment(True, 39_600)
    assert time_from("08:00:00+09:00") == Moment(True, -3_600)
    assert time_from("17:00:00-06:00") == Moment(True, 82_800)
    assert time_from("24:00:00") == time_from("00:00:00.0") == Moment(False, 0)
    assert time_from("24:00:00.5") is time_from("1:00:00") is time_from("") is None


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("P1Y2M", Duration(14, 0)),
        ("P1DT1H1M1.50S", Duration(0, 90_061, "5")),
        ("-P1MT0.5S", Duration(-1, 0, "-5")),
        ("-P0D", Duration(0, 0)),
        ("-PT0.0S", Duration(0, 0)),
        ("P0001D", Duration(0, 86_400)),
        *(
            (text, None)
            for text in ("", "P", "-P", "PT", "P1DT", "P1S", "PT1D", "P1M1Y", "P1.5D", "PT.5S", "PT1.S", "+P1D")
        ),
    ],
)
def test_durations_are_months_and_seconds(text: str, duration: Duration | None) -> None:
    assert duration_from(text) == duration


@pytest.mark.parametrize(
    ("datatype", "text"),
    [
        ("dayTimeDuration", "P1M"),
        ("dayTimeDuration", "P1YT1M"),
        ("yearMonthDuration", "P1D"),
        ("yearMonthDuration", "P1YT1M"),
        ("dateTimeStamp", "1970-01-01T00:00:00"),
    ],
)
def test_narrower_datatypes_do_not_have_all_values(datatype: str, text: str) -> None:
    read = typed_reader(XSD + datatype, ValueRules())
    assert read is not None
    assert read(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "1970-01-01T01:00:00+01:00",
        "1970-01-01 01:00:00+01",
        "1970-01-01 01:00:00.000+0100",
        "1970-01-01T00:00Z",
        "1970-01-01T01:00+01:00[Europe/Oslo]",
        "1969-12-31T24:00:00Z",
    ],
)
def test_texts_are_instants_as_cypher_sql_and_json_write_them(text: str) -> None:
    found = untyped_time_from(text)
    assert found is not None
    assert (found.has_date, found.moment) == (True, Moment(True, 0))
    assert has_untyped_time(["a", text])


@pytest.mark.parametrize("text", ["1970-01-01T01:00:00", "1970-01-01 01:00:00", "1970-01-01 01:00:00.000000"])
def test_texts_without_a_zone_are_points_in_time_as_sql_writes_them(text: str) -> None:
    found = untyped_time_from(text)
    assert found is not None
    assert (found.has_date, found.moment) == (True, Moment(False, 3_600))
    assert has_untyped_time(["a", text])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("01:00:00", id="a time of day without a zone"),
        pytest.param("1970-01-01 01:00", id="no zone and no seconds"),
        pytest.param("1970-01-01", id="a date"),
        pytest.param("1970-01-01Z", id="a date with a zone"),
        pytest.param("1970-01-01-05", id="a number after a date"),
        pytest.param("10:15-12", id="chapter and verses"),
        pytest.param("10:15-1200", id="chapter and verses of a long chapter"),
        pytest.param(" 1970-01-01T01:00:00Z", id="space before"),
        pytest.param("1970-02-30T01:00:00Z", id="no such day"),
        pytest.param("1970-01-01T01:00:00+15", id="no such zone"),
        pytest.param("at 10:15:00Z", id="words"),
    ],
)
def test_texts_that_may_be_anything_else_are_no_times(text: str) -> None:
    assert untyped_time_from(text) is None
    assert not has_untyped_time([text])


def test_texts_are_times_of_day_where_nothing_else_looks_like_it() -> None:
    texts = ("10:15:00Z", "11:15:00+01", "11:15:00+0100", "10:15Z", "11:15+01:00")
    assert {untyped_time_from(text) for text in texts} == {(False, Moment(True, 36_900))}


def test_different_times_of_one_form_have_different_texts() -> None:
    assert form_of_times(["1970-01-01T00:00:00", "1970-01-02T00:00:00"]) == (19, "", "T")
    assert form_of_times(["1970-01-01+01:00"]) == (16, "+01:00", "")
    assert form_of_times(["1970-01-01", "1970-01-02"]) == (10, "", "")
    assert form_of_times(["00:00:00", "24:00:00"]) is None
    assert form_of_times([" 1970-01-01T00:00:00", "12020-01-01T00:00:00"]) is None
    assert form_of_times(["-0000-01-01T00:00:00"]) is None


SECONDS = st.integers(-(10**14), 10**14)


@given(seconds=SECONDS, minutes=st.integers(-840, 840), digits=st.text("0123456789", max_size=20))
def test_the_zone_in_which_an_instant_is_written_does_not_matter(seconds: int, minutes: int, digits: str) -> None:
    def written(offset: int) -> str:
        days, of_day = divmod(seconds + offset * 60, 86_400)
        years, left = divmod(days + 719_468, 146_097)  # years of 400 years, from 0000-03-01 on
        year, day = years * 400, left
        while day >= 365 + _has_leap_day(year + 1):
            day -= 365 + _has_leap_day(year + 1)
            year += 1
        month = 3
        while day >= _length(month):
            day -= _length(month)
            month = month % 12 + 1
        year += month < 3
        sign, hours = "-" if offset < 0 else "+", abs(offset)
        number = f"{'-' if year < 0 else ''}{abs(year):04}"
        clock = f"{of_day // 3_600:02}:{of_day // 60 % 60:02}:{of_day % 60:02}{'.' if digits else ''}{digits}"
        return f"{number}-{month:02}-{day + 1:02}T{clock}{sign}{hours // 60:02}:{hours % 60:02}"

    found = date_time_from(written(minutes))
    assert found == date_time_from(written(0))
    assert found is not None
    assert found.seconds + Fraction(f"0.{found.fraction or '0'}") == seconds + Fraction(f"0.{digits or '0'}")


def _has_leap_day(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _length(month: int) -> int:
    return 30 if month in (4, 6, 9, 11) else 29 if month == 2 else 31


def random_lexical(kind: str, rng: random.Random) -> str:
    """Return a lexical form; few values, so that many are equal."""
    zone = rng.choice(["", "Z", "+01:00", "-10:30", "+12:00", "-12:00", "+14:00"])
    year, month = rng.choice(["1999", "2000", "0004", "-0004"]), rng.choice(["02", "03", "12"])
    day = f"{year}-{month}-{rng.choice(['01', '28', '29'])}"
    clock = rng.choice(["24:00:00", "00:00:00", "00:00:00.0", "01:00:00", "14:00:00", "23:00:00.5", "23:00:00.50"])
    if kind.endswith("uration"):
        months = rng.choice(["", "1Y", "12M", "0Y12M"]) if kind != "dayTimeDuration" else ""
        seconds = rng.choice(["", "1D", "T24H", "T1440M", "T0S", "T86400.00S"]) if kind != "yearMonthDuration" else ""
        return rng.choice(["", "-"]) + "P" + months + seconds
    return {"dateTime": f"{day}T{clock}{zone}", "date": f"{day}{zone}", "time": f"{clock}{zone}"}[kind]


@pytest.mark.full
@pytest.mark.parametrize("kind", ["dateTime", "date", "time", "duration", "dayTimeDuration", "yearMonthDuration"])
def test_a_sparql_store_agrees_on_which_values_are_equal(kind: str) -> None:
    rng = random.Random(kind)
    texts = sorted({random_lexical(kind, rng) for _ in range(250)})
    read = typed_reader(XSD + kind, ValueRules())
    assert read is not None
    store = Store()
    datatype = NamedNode(XSD + kind)
    rows = " ".join(f'"{text}"' for text in texts)
    query = f"""SELECT ?a ?b {{ VALUES ?a {{ {rows} }} VALUES ?b {{ {rows} }}
        FILTER(STRDT(?a, {datatype}) = STRDT(?b, {datatype})) }}"""
    equal = {(row["a"].value, row["b"].value) for row in store.query(query)}  # type: ignore[union-attr]
    values = {text: read(text) for text in texts}
    ours = {
        (one, other)
        for one in texts
        for other in texts
        if (one == other if values[one] is None else values[one] == values[other])
    }
    assert len(ours) > len(texts)
    assert {pair for pair in ours ^ equal if None not in (values[pair[0]], values[pair[1]])} == set()
