"""Agreement with a slow and plain comparison where times, durations, geometries, texts and IRIs have values."""

import random
import re
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any
from unicodedata import normalize

import pytest
from sparql_brute_force import Cell, Rows, brute_force_score

from graphrag_eval_lc.matching.rows import compare_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
NAMES = ("times", "durations", "wkt", "nfc", "iri_case")
Term = tuple[str, str, str]
Reading = tuple[str, Any]


def literals(datatype: str, *texts: str) -> list[Cell]:
    return [("literal", text, datatype) for text in texts]


def as_everything(*texts: str) -> list[Cell]:
    """Return terms that may equal values by their texts."""
    return [
        cell for text in texts for cell in (("literal", text, "string"), ("literal", text, "@en"), ("uri", text, ""))
    ]


TIMES = [
    *literals("dateTime", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00.0+01:00", "2019-12-31T24:00:00Z"),
    *literals("dateTime", "2020-01-01T00:00:00", "2019-12-31T24:00:00.00", " 2020-01-01T00:00:00.000 "),
    *literals("dateTime", "2020-01-01T00:00:00.5Z", "2020-01-01T00:00:00.50+00:00", "2020-01-01 00:00:00Z"),
    *literals("dateTime", "2020-13-01T00:00:00Z", "2019-02-29T00:00:00Z", "2020-01-01T24:00:01Z"),
    *literals("dateTimeStamp", "2020-01-01T00:00:00Z", "2019-12-31T14:00:00-10:00", "2020-01-01T00:00:00"),
    *literals("", "2020-01-01T00:00:00Z", "2020-01-01 01:00:00+01", "2020-01-01T01:00+0100", "2020-01-01T00:00:00"),
    *literals("", "2020-01-01T01:00:00+01:00[Europe/Oslo]", "2020-01-01 00:00:00", "2020-01-01T00:00:00.5Z"),
    *as_everything("2020-01-01T00:00:00Z", "2020-01-01 01:00:00+01"),
]
CALENDAR = [
    *literals("date", "2020-01-01Z", "2020-01-01+00:00", "2020-01-01", "2020-01-02+14:00", "2020-01-01-10:00"),
    *literals("date", "2020-1-1", "-0001-02-28Z", "12020-02-29"),
    *literals("time", "08:00:00+09:00", "17:00:00-06:00", "21:30:00+10:30", "06:00:00-05:00", "24:00:00Z", "00:00:00Z"),
    *literals("time", "00:00:00", "24:00:00.000", "11:00:00.00Z", "11:00:00", "24:00:01Z"),
    *literals(
        "", "2020-01-01Z", "2020-01-01+00:00", "11:00:00Z", "12:00:00+01", "12:00+01:00", "10:15-12", "10:15-1200"
    ),
    *literals("dateTime", "-0001-02-28T00:00:00Z", "12020-02-29T00:00:00", "12020-02-28T24:00:00"),
    *literals("dateTime", "123456789012020-02-28T24:00:00Z", "123456789012020-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
    *as_everything("11:00:00Z", "2020-01-01Z"),
]
# Times that mostly have one form, so that their texts do.
REGULAR = [
    *literals("dateTime", *(f"2020-01-01T00:00:0{second}Z" for second in range(5)), "12020-01-01T00:00:00Z"),
    *literals("dateTimeStamp", "2020-01-01T00:00:00Z", "-2020-01-01T00:00:00Z"),
    *literals("dateTime", *(f"2020-01-0{day}T00:00:00" for day in (1, 2)), "2020-01-01T24:00:00"),
    *literals("date", "2020-01-01", "2020-01-02", "2020-01-01Z"),
    *literals("", *(f"2020-01-01{letter}00:00:00Z" for letter in "T "), "2020-01-01T00:00:01Z", "2020-01-01 00:00:00"),
    *literals("", *(f"2020-01-01T01:00:00+01:00[Europe/{city}]" for city in ("Oslo", "Rome"))),
    *literals("dateTime", "2020-01-01T01:00:00.000000000000+01:00"),
    *as_everything("2020-01-01T00:00:00Z", "2020-01-01T00:00:00"),
]
DURATIONS = [
    *literals("duration", "P1D", "PT24H", "PT1440M", "P1M", "P30D", "P1Y", "-P1D", "PT0S", "-P0M", "P1DT0.50S", "P"),
    *literals("dayTimeDuration", "P1D", "PT86400.00S", "PT0.0S", "P1M", "P1DT0.5S", "-PT24H"),
    *literals("yearMonthDuration", "P12M", "P1Y", "P0Y", "P1D", " P1Y "),
    *literals("", "P1D", "PT24H", "P12M"),
    *as_everything("P1D", "P12M"),
]
GEOMETRIES = [
    *literals("wkt", "POINT(1 2)", "Point ( 1.0  2e0 )", f"<{CRS84}> POINT(1 2)", "<http://e/CRS> POINT(1 2)"),
    *literals(
        "wkt", "<http://e/crs>point(1 2)", "POINT(1.000000008 2)", "POINT(1.000000016 2)", "POINT(1 2.000000008)"
    ),
    *literals("wkt", "POINT(2 1)", "POINT Z(1 2 0)", "PointZ (1 2 -0)", "POINT EMPTY", "point empty", "POINT(1;2)"),
    *literals("wkt", "LINESTRING(1 2, 3 4)", "LineString(1 2,3 4.000000005)", "POLYGON((1 2,3 4))", "point(1;2)", ""),
    *literals("", "POINT(1 2)", "point(1 2)"),
    *as_everything("POINT(1 2)", "POINT(1.000000008 2)"),
]
WIDE = [
    *literals("wkt", *(f"POINT({x} {y})" for x in ("1000", "1000.008", "1000.016") for y in ("1000", "1000.008"))),
    *literals("wkt", "POINT(1E3 1000.0)"),
    *literals("double", "1000", "1000.008", "1000.016"),
    *literals("", "POINT(1000 1000)"),
]
CLOSE = [
    *literals("wkt", "POINT(1 2)", "POINT(1.0 2)", "POINT(1.000000008 2)", "POINT(7 7)"),
    *as_everything("POINT(1.0 2)"),
]
NFC, NFD = "caf\u00e9", "cafe\u0301"
TEXTS = [
    *(
        ("literal", text, datatype)
        for text in (NFC, NFD, "caf%c3%a9", "caf%C3%A9")
        for datatype in ("", "string", "@fr")
    ),
    *(("uri", text, "") for text in (NFC, NFD, "caf%c3%a9", "caf%C3%A9", "caf%c3%A9", "cafe%", "caf")),
    ("literal", "\u212b", ""),
    ("literal", "\u00c5", "other"),
    ("uri", "\u212b", ""),
]
REST = [
    None,
    *(("bnode", f"b{at}", "") for at in range(3)),
    *literals("integer", "5", "+5", "1"),
    *literals("double", "5.0", "5.000000008"),
    *literals("boolean", "true", "1"),
    *literals("", "5", "true", "a"),
    ("uri", "5", ""),
]
POOLS = [TIMES, CALENDAR, REGULAR, DURATIONS, GEOMETRIES, WIDE, CLOSE, TEXTS]
MIXED = [*REST, *(cell for pool in POOLS for cell in pool)]


def days_until(year: int, month: int, day: int) -> int | None:
    """Count days, in a calendar that repeats after 400 years."""
    cycles, rest = divmod(year, 400)
    try:
        return date(rest + 400, month, day).toordinal() + cycles * 146_097
    except ValueError:
        return None


def zone_minutes(text: str) -> int | None:
    if text == "Z":
        return 0
    sign, hours, minutes = re.fullmatch(r"([+-])(\d\d):(\d\d)", text).groups()  # type: ignore[union-attr]
    total = int(hours) * 60 + int(minutes)
    return None if total > 840 or int(minutes) > 59 else total * (1 if sign == "+" else -1)


def clock_seconds(text: str) -> Fraction | None:
    hours, minutes, seconds = text.split(":")
    if int(minutes) > 59 or Fraction(seconds) >= 60:
        return None
    total = int(hours) * 3_600 + int(minutes) * 60 + Fraction(seconds)
    return total if total <= 86_400 else None


def slow_time(text: str, kind: str) -> Any:
    """Read a dateTime, date or time; None where it is none."""
    found = re.fullmatch(
        r"(?:(-?\d{4,})-(\d\d)-(\d\d))?(?:(T)?(\d\d:\d\d:\d\d(?:\.\d+)?))?(Z|[+-]\d\d:\d\d)?", text.strip(" \t\n\r")
    )
    if found is None:
        return None
    year, month, day, letter, clock, zone = found.groups()
    has = (year is not None, letter is not None, clock is not None)
    if has != {"dateTime": (True, True, True), "date": (True, False, False), "time": (False, False, True)}[kind]:
        return None
    seconds, minutes = Fraction(0), 0
    if zone is not None:
        offset = zone_minutes(zone)
        if offset is None:
            return None
        minutes = offset
    if clock is not None:
        of_day = clock_seconds(clock)
        if of_day is None:
            return None
        seconds = of_day % 86_400 if kind == "time" else of_day
    if year is not None:
        if len(year.lstrip("-")) > 4 and year.lstrip("-")[0] == "0":
            return None
        days = days_until(int(year), int(month), int(day))
        if days is None:
            return None
        seconds += days * 86_400
    return zone is not None, seconds - minutes * 60


def slow_untyped_time(text: str) -> Reading | None:
    found = re.fullmatch(
        r"(?:(\d{4}-\d\d-\d\d)[T ])?(\d\d:\d\d)(:\d\d(?:\.\d+)?)?(Z|[+-]\d\d)(?::?(\d\d))?(\[.*\])?", text, re.DOTALL
    )
    if found is None:
        local = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)", text)
        value = None if local is None else slow_time("T".join(local.groups()), "dateTime")
        return None if value is None else ("dateTime", value)
    if found[4] == "Z" and found[5]:
        return None
    day, clock, seconds, zone, minutes, _ = found.groups()
    colon = ":" in text[found.start(4) : found.end(4) + 1]
    if day is None and seconds is None and zone != "Z" and not colon:
        return None
    zone = zone if zone == "Z" else f"{zone}:{minutes or '00'}"
    kind = "time" if day is None else "dateTime"
    value = slow_time(f"{'' if day is None else day + 'T'}{clock}{seconds or ':00'}{zone}", kind)
    return None if value is None else (kind, value)


def slow_duration(text: str, datatype: str) -> Any:
    text = text.strip(" \t\n\r")
    sign = -1 if text.startswith("-") else 1
    days, t, clock = text.removeprefix("-").partition("T")
    parts = {}
    for part, units in ((days.removeprefix("P"), "YMD"), (clock, "HMS")):
        if not re.fullmatch("".join(rf"(\d+{'(.[0-9]+)?' if unit == 'S' else ''}{unit})?" for unit in units), part):
            return None
        for number, unit in re.findall(r"([\d.]+)([A-Z])", part):
            parts[unit if units == "YMD" else unit.lower()] = Fraction(number)
    if not days.startswith("P") or not parts or (t and not clock):
        return None
    if datatype == "dayTimeDuration" and parts.keys() & {"Y", "M"}:
        return None
    if datatype == "yearMonthDuration" and not parts.keys() <= {"Y", "M"}:
        return None
    get = {**dict.fromkeys("YMDhms", Fraction(0)), **parts}.__getitem__
    return sign * (12 * get("Y") + get("M")), sign * (86_400 * get("D") + 3_600 * get("h") + 60 * get("m") + get("s"))


def slow_geometry(text: str) -> Any:
    """Read words and brackets, joined where they touch or not, and numbers."""
    crs, body = found.groups() if (found := re.fullmatch(r"\s*<([^<>]*)>(.*)", text, re.DOTALL)) else ("", text)
    parts: list[Any] = ["" if crs == CRS84 else crs]
    for token in re.findall(r"[(),]|[^\s(),]+", body):
        if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", token):
            parts.append(Fraction(token))
        elif not re.fullmatch(r"[(),]|[A-Za-z]+", token):
            return None
        elif len(parts) > 1 and isinstance(parts[-1], str):
            parts[-1] += token.upper()
        else:
            parts.append(token.upper())
    return tuple(parts) if len(parts) > 1 and isinstance(parts[1], str) and parts[1][0].isalpha() else None


@cache
def reading(cell: Term, on: frozenset[str]) -> Reading | None:
    """Return the family and value of a term; None for a text."""
    kind, text, datatype = cell
    if kind == "uri":
        return "iri", re.sub("%[0-9a-fA-F]{2}", lambda found: found[0].upper(), text) if "iri_case" in on else text
    text = text_of(cell, on)
    found: Any = None
    if datatype in ("integer", "double") or (not datatype and re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text)):
        return "number", (datatype or ("double" if "." in text else "integer"), Fraction(text))
    if datatype == "boolean":
        return "boolean", text in ("true", "1")
    if not datatype and "times" in on:
        return slow_untyped_time(text)
    if datatype in ("dateTime", "date", "time") and "times" in on:
        found = slow_time(text, datatype)
    elif datatype == "dateTimeStamp" and "times" in on:
        datatype, found = "dateTime", slow_time(text, "dateTime")
        found = found if found and found[0] else None
    elif datatype.lower().endswith("duration") and "durations" in on:
        datatype, found = "duration", slow_duration(text, datatype)
    elif datatype == "wkt" and "wkt" in on:
        found = slow_geometry(text)
    return None if found is None else (datatype, found)


def text_of(cell: Term, on: frozenset[str]) -> str:
    return normalize("NFC", cell[1]) if "nfc" in on else cell[1]


def numbers_equal(one: Fraction, other: Fraction, share: Fraction, exactly: bool) -> bool:
    if exactly:
        return one == other
    return abs(one - other) <= max(Fraction(1, 10**8), share * max(abs(one), abs(other)))


@cache
def cells_equal(one: Cell, other: Cell, on: frozenset[str], exactly: bool, of_doubles: Fraction) -> bool:
    if one is None or other is None:
        return one is other
    if "bnode" in (one[0], other[0]):
        return one == other
    mine, theirs = reading(one, on), reading(other, on)
    if mine is None or theirs is None or mine[0] != theirs[0]:
        return text_of(one, on) == text_of(other, on)
    value, other_value = mine[1], theirs[1]
    if mine[0] == "number":
        share = of_doubles if value[0] == other_value[0] == "double" else Fraction(0)
        return numbers_equal(value[1], other_value[1], share, exactly)
    if mine[0] == "wkt":
        return len(value) == len(other_value) and all(
            numbers_equal(part, other_part, of_doubles, exactly)
            if isinstance(part, Fraction) and isinstance(other_part, Fraction)
            else part == other_part
            for part, other_part in zip(value, other_value, strict=True)
        )
    return bool(value == other_value)


def as_results(rows: Rows) -> dict[str, Any]:
    names = [f"c{at}" for at in range(len(rows[0]))]
    bindings = []
    for row in rows:
        binding = {}
        for name, cell in zip(names, row, strict=True):
            if cell is None:
                continue
            kind, text, datatype = cell
            binding[name] = {"type": kind, "value": text}
            if datatype.startswith("@"):
                binding[name]["xml:lang"] = datatype[1:]
            elif datatype:
                binding[name]["datatype"] = WKT if datatype == "wkt" else XSD + datatype
        bindings.append(binding)
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def pair_of_tables(rng: random.Random, on: frozenset[str], of_doubles: Fraction) -> tuple[Rows, Rows]:
    """Make a table and one from it: columns and rows in another order, cells changed, columns and rows added."""
    pool = rng.choice([*POOLS, *POOLS, MIXED])
    kept = rng.sample(pool, min(len(pool), rng.randint(1, 5)))
    kept += rng.sample(REST, rng.choice([0, 0, 1, 2]))
    near = {
        cell: [
            other
            for other in (*pool, *kept)
            if cells_equal(cell, other, on, False, of_doubles) or (cell and other and cell[1] == other[1])
        ]
        if cell is None or cell[0] != "bnode"
        else [cell]
        for cell in kept
    }
    columns_of = [kept if rng.random() < 0.4 else rng.sample(kept, rng.randint(1, len(kept))) for _ in range(3)]
    width = rng.choice([1, 1, 2, 2, 3])
    mine: Rows = [tuple(rng.choice(columns_of[at]) for at in range(width)) for _ in range(rng.randint(1, 4))]
    full = width + rng.choice([0, 0, 1])
    order = rng.sample(range(full), full)
    changes = rng.choice([0.0, 0.3, 0.8])
    others: Rows = []
    for row in mine:
        longer = [rng.choice(near[cell]) if rng.random() < changes else cell for cell in row]
        longer += [rng.choice(kept) for _ in range(full - width)]
        others.append(tuple(longer[at] for at in order))
    if rng.random() < 0.2:
        others.append(rng.choice(others))
    if rng.random() < 0.2:
        at = rng.randrange(len(others))
        others[at] = tuple(rng.choice(kept) if rng.random() < 0.5 else cell for cell in others[at])
    if rng.random() < 0.6:
        rng.shuffle(others)
    return mine, others


MODES: list[dict[str, Any]] = [{"ordered": True}, {"ignore_duplicates": True}, {"ignore_duplicates": False}]


def agree(rng: random.Random) -> float:
    """Compare a pair of tables both ways, and return the score."""
    on = frozenset(NAMES) if rng.random() < 0.6 else frozenset(name for name in NAMES if rng.random() < 0.6)
    tolerance = rng.choice([1e-12, 1e-12, 1e-5])
    of_doubles = Fraction(str(tolerance))
    mine, others = pair_of_tables(rng, on, of_doubles)
    mode = rng.choice(MODES)
    found = compare_sparql_results(
        as_results(mine),
        as_results(others),
        tolerance={"double": tolerance},
        values={name: name in on for name in NAMES},
        **mode,
    )
    expected = brute_force_score(
        mine, others, lambda one, other, exactly: cells_equal(one, other, on, exactly, of_doubles), **mode
    )
    assert found.score == expected, (mine, others, mode, sorted(on), tolerance)
    assert found.reason.endswith(".")
    assert (found.closeness == 1.0) == (found.score == 1.0)
    if found.score:
        assert (found.row_f1, found.missing_row_count, found.extra_row_count) == (1.0, 0, 0)
    return found.score


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_the_score_is_that_of_trying_everything(seed: int) -> None:
    rng = random.Random(seed)
    scores = [agree(rng) for _ in range(500)]
    assert 100 < sum(scores) < 420


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_the_score_is_that_of_trying_everything_at_length(seed: int) -> None:
    rng = random.Random(1_000 + seed)
    scores = [agree(rng) for _ in range(5_000)]
    assert 1_000 < sum(scores) < 4_000


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
def test_strict_comparisons_ignore_the_rules_of_values(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        mine, others = map(as_results, pair_of_tables(rng, frozenset(NAMES), Fraction(0)))
        on, off = (
            compare_sparql_results(mine, others, strict=True, values=dict.fromkeys(NAMES, switch))
            for switch in (True, False)
        )
        assert (on.score, on.reason, on.closeness) == (off.score, off.reason, off.closeness)
