"""Indexes the results of an agent's successful steps, so that the values of its answer can be looked up in them."""

import re
from bisect import bisect_left, bisect_right
from calendar import isleap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cached_property
from itertools import chain
from math import fsum, isfinite
from typing import Final, NamedTuple

from graphrag_eval_lc.answers.answer_text import AnswerValue, plain
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.claim_numbers import UNITS
from graphrag_eval_lc.matching.iri_discovery import place_of, readable_text
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.columns import bare_name
from graphrag_eval_lc.matching.rows.numbers_and_times import (
    NUMBER_KINDS,
    VALUE_READERS,
    XSD,
    duration_from,
    numbers_by_kind,
)
from graphrag_eval_lc.matching.rows.results import Shape, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.matching.rows.terms import is_simple_literal


class Place(NamedTuple):
    """A cell: the index of its step, its row from 0, and its column."""

    step: int
    row: int
    column: str


_TIMES: Final = {None, *(XSD + name for name in ("dateTime", "dateTimeStamp", "date"))}
_NUMBER: Final = re.compile(r"(?<![\w.-])-?\d{1,18}(?:\.\d{1,18})?(?![\w-]|\.\d)", re.ASCII)
_DIGITS: Final = re.compile(r"[-0-9.\n]*")
_CODE: Final = re.compile(r"\d+(?:-\d+){2,}(?:-x)?")  # such as an ISBN
_IDENTIFIER: Final = re.compile(r"(?![0-9a-f]{8})(?=[^\d]*\d{3})(?=\d*[^\W\d_])[\w.-]{4,30}|\d+(?:-\d+){2,}")
"""Letters and three or more digits, but not the hexadecimal ids that are known anyway; or several numbers."""
_MOST_PLACES: Final = 5_000
_UUID_LENGTH: Final = 36


class StepRows:
    """The rows of one step, with indexes of their values that are built on demand.

    Attributes:
        step: The index of the step.
        results: Its rows.
    """

    def __init__(self, step: int, results: SparqlResults) -> None:
        self.step, self.results = step, results

    @cached_property
    def numbers(self) -> dict[str, list[tuple[float, int]]]:
        """By column: its numbers, sorted, each with its row; columns without numbers are absent."""
        found = {name: _numbers_of(column) for name, column in self.results.columns.items()}
        return {name: numbers for name, numbers in found.items() if numbers}

    @cached_property
    def textual(self) -> list[str]:
        """The columns with cells that are neither numbers nor points in time."""
        found: list[str] = []
        for name, column in self.results.columns.items():
            are_times = all(map(_may_be_time, column.texts[:1] + column.texts[-1:]))
            if not are_times and len(self.numbers.get(name, ())) < len(column.texts):
                found.append(name)
        return found

    @cached_property
    def texts(self) -> dict[str, list[Place]]:
        """The places of texts by lookup key; IRIs are also found by their last part, UUIDs by their first.

        A cell that equals the key comes before a cell that contains it.
        """
        found: dict[str, list[Place]] = {}
        with_part: dict[str, list[Place]] = {}
        for name in self.textual:
            keys: dict[str, tuple[str, ...]] = {}
            for row, text in enumerate(self.results.columns[name].texts):
                if text not in keys:
                    keys[text] = tuple(_keys_of(text)) if text else ()
                for number, key in enumerate(keys[text]):
                    (with_part if number else found).setdefault(key, []).append(Place(self.step, row, name))
        for key, places in with_part.items():
            found.setdefault(key, []).extend(places)
        return found

    @cached_property
    def labels(self) -> set[str]:
        """The plain texts of literals that look like names, with a capital letter or a digit."""
        columns = [self.results.columns[name] for name in self.textual]
        return {plain(text) for column in columns for text in set(column.texts) if is_label(text)}

    @cached_property
    def _all_times(self) -> dict[str, "_Times"]:
        return {name: _times_of(column) for name, column in self.results.columns.items()}

    @cached_property
    def times(self) -> dict[str, list[tuple[datetime, int]]]:
        """By column: its points in time in UTC without a zone, sorted, each with its row."""
        return {name: sorted(times.utc) for name, times in self._all_times.items() if times.utc}

    @cached_property
    def _local_times(self) -> dict[str, list[tuple[datetime, int]]]:
        """By column: its points in time as their clocks show them, if that is not UTC."""
        return {name: sorted(times.local) for name, times in self._all_times.items() if times.local}

    def times_at(self, value: AnswerValue) -> Iterator[Place]:
        """Yield the cells with a point in time; without seconds, any in the minute; without a time, any on the day."""
        length = timedelta(0)
        if value.text.count(":") < 2:
            length = timedelta(minutes=1) if value.has_time else timedelta(days=1)
        for when in (value.when, value.or_when):
            if when is not None:
                yield from self._times_from(self.times, when, length)
                yield from self._times_from({} if value.has_zone else self._local_times, when, length)

    def times_in_year(self, year: int) -> Iterator[Place]:
        """Yield the cells with a point in time in a year."""
        yield from self._times_from(self.times, datetime(year, 1, 1), timedelta(366 if isleap(year) else 365))

    def _times_from(
        self, times_of: Mapping[str, list[tuple[datetime, int]]], start: datetime, length: timedelta
    ) -> Iterator[Place]:
        for name, times in times_of.items():
            first = bisect_left(times, (start, -1))
            for when, row in times[first : first + _MOST_PLACES]:
                if when - start >= length and when != start:
                    break
                yield Place(self.step, row, name)

    def numbers_near(self, least: float, greatest: float) -> Iterator[tuple[Place, float]]:
        """Yield the cells with numbers from the least to the greatest."""
        for name, numbers in self.numbers.items():
            start = bisect_left(numbers, (least, -1))
            stop = bisect_right(numbers, (greatest, self.results.row_count))
            for number, row in numbers[start : min(stop, start + _MOST_PLACES)]:
                yield Place(self.step, row, name), number

    def numbers_in_units(self, unit: str, least: float, greatest: float) -> Iterator[Place]:
        """Yield the cells with numbers from the least to the greatest in a unit other than that of their column."""
        quantity, scale = UNITS.get(unit, ("", 1.0))
        for name, (of_column, own, numbers) in self._measures.items():
            if of_column == quantity:
                start = bisect_left(numbers, (least * scale / own, -1))
                stop = bisect_right(numbers, (greatest * scale / own, self.results.row_count))
                for _, row in numbers[start : min(stop, start + _MOST_PLACES)]:
                    yield Place(self.step, row, name)

    @cached_property
    def _measures(self) -> dict[str, tuple[str, float, list[tuple[float, int]]]]:
        """By column whose unit is known: its quantity, the scale of its unit, and its numbers, sorted.

        The unit is in the column's name, as in distance_km and runtimeMinutes; durations are in seconds.
        """
        found = {}
        for name, column in self.results.columns.items():
            numbers, words = self.numbers.get(name, []), re.findall(r"[A-Z]?[a-zµμ]+|[A-Z]+[a-z]*", name)
            unit = UNITS.get(re.split(r"[\W_]+", name.rstrip(")]"))[-1]) or UNITS.get(
                words[-1].lower() if words else ""
            )
            if not numbers and any(text[:1] == "P" for text in column.texts[:1] + column.texts[-1:]):
                read = ((duration_from(text), row) for row, text in enumerate(column.texts))
                numbers, unit = sorted((float(each[2]), row) for each, row in read if each and not each[1]), ("s", 1.0)
            if numbers and unit is not None:
                found[name] = *unit, numbers
        return found

    def has_one(self, label: str, text: str, column: str) -> bool:
        """Return whether all rows with ``text`` in ``column`` have the same value in the column ``label``."""
        labels, entities = self.results.columns[label].texts, self.results.columns[column].texts
        return len({entity for each, entity in zip(labels, entities, strict=True) if plain(each) == text}) == 1

    @cached_property
    def counts(self) -> dict[int, str]:
        """What a number may count: the rows, and the different values in each column."""
        found = {len(set(column.texts) - {""}): f"different {name}" for name, column in self.results.columns.items()}
        return {**found, self.results.row_count: "rows"}

    @cached_property
    def aggregates(self) -> list[tuple[float, str]]:
        """The sum, mean, median, minimum and maximum of each column of numbers."""
        found: list[tuple[float, str]] = []
        for name, numbers in self.numbers.items():
            values = [number for number, _ in numbers if isfinite(number)]
            if len(values) > 1:
                total = fsum(values)
                middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
                found += [(total, f"sum of {name}"), (total / len(values), f"mean of {name}")]
                found += [(middle, f"median of {name}"), (values[-1] - values[0], f"range of {name}")]
        return found


class Evidence:
    """What the agent's successful steps returned.

    Args:
        steps: The steps, as the config says to read them.

    Attributes:
        is_cut: Whether an output is cut, so that it may have contained more; set when ``tables`` is read.
    """

    def __init__(self, steps: Sequence[StepView]) -> None:
        self.is_cut = False
        self._steps = [(at, step) for at, step in enumerate(steps) if step.get("status") == "success"]
        self._ids = [str(step["id"]) if step.get("id") is not None else str(at) for at, step in enumerate(steps)]

    @cached_property
    def tables(self) -> list[StepRows]:
        """The steps with rows, the last one first."""
        found: list[StepRows] = []
        for at, step in reversed(self._steps):
            try:
                results = step_results(step)
            except CutOutput:
                self.is_cut = True
                continue
            except UnreadableOutput:
                self.is_cut |= step.cut_by_capture is not None
                continue
            if results.columns:
                found.append(StepRows(at, results))
        return found

    @cached_property
    def labels(self) -> set[str]:
        """The names in all rows."""
        return set().union(*(table.labels for table in self.tables))

    @cached_property
    def id_pattern(self) -> re.Pattern[str] | None:
        """Matches what is written like the identifiers in the rows, as Q42 if they are Q1337; None without any."""
        forms: set[str] = set()
        for table in self.tables:
            for name in table.textual:
                texts = table.results.columns[name].texts
                some = {texts[at] for at in (0, len(texts) // 2, -1) if texts[at]}
                some = {text if _CODE.fullmatch(text) else list(_keys_of(text))[-1] for text in some}
                of_column = {re.sub(r"\d+", "#", text) for text in some if _IDENTIFIER.fullmatch(text)}
                forms |= of_column if len(of_column) == 1 and all(map(_IDENTIFIER.fullmatch, some)) else set()
        patterns = (re.escape(form).replace(r"\#", r"\d+") for form in sorted(forms))
        return (
            re.compile(rf"(?<![\w:/.-])(?!\d{{4}}-\d\d-\d\d(?!\d))(?:{'|'.join(patterns)})(?![\w-])", re.IGNORECASE)
            if forms
            else None
        )

    @cached_property
    def _outputs(self) -> list[tuple[int, str]]:
        return [(at, plain(readable_text(step.get("output")))) for at, step in reversed(self._steps)]

    @cached_property
    def _numbers_in_texts(self) -> list[tuple[float, int]]:
        """The numbers in outputs without rows, sorted, each with the index of its step."""
        with_rows = {table.step for table in self.tables}
        texts = ((at, text) for at, text in self._outputs if at not in with_rows)
        return sorted((float(each), at) for at, text in texts for each in _NUMBER.findall(text))

    def number_in_text(self, readings: Iterable[tuple[float, float]]) -> int | None:
        """Return the index of a step without rows whose text has a number; each reading is with its greatest error."""
        for reading, most in readings:
            at = bisect_left(self._numbers_in_texts, (reading - most, -1))
            if at < len(self._numbers_in_texts) and self._numbers_in_texts[at][0] <= reading + most:
                return self._numbers_in_texts[at][1]
        return None

    @cached_property
    def arguments(self) -> str:
        """What the agent passed to its tools, as a plain text."""
        return plain(readable_text("\n".join(json_text(step.get("args")) for _, step in self._steps)))

    def address(self, place: Place) -> str:
        """Return the address of a cell for messages: the step's id, the row from 1, and the column."""
        return f"{self._ids[place.step]}/row {place.row + 1}/{place.column}"

    def address_in(self, step: int, what: str) -> str:
        """Return the address of the whole output of a step."""
        return f"{self._ids[step]}/{what}"

    def texts_at(self, keys: Sequence[str]) -> list[Place]:
        """Return the cells for the first of the keys that is found."""
        for key in keys:
            found = list(chain.from_iterable(table.texts.get(key, ()) for table in self.tables))
            if found:
                return found
        return []

    def text(self, place: Place) -> str:
        """Return the text of a cell."""
        [table] = [table for table in self.tables if table.step == place.step]
        return table.results.columns[place.column].texts[place.row]

    def text_of(self, keys: Sequence[str]) -> int | None:
        """Return the index of the last step whose output has a key as a whole term; None if none has it."""
        return next((at for at, text in self._outputs for key in keys if term_place(text, key) is not None), None)

    def text_that_begins(self, key: str) -> int | None:
        """Return the index of the last step whose output has a term that begins with a key that ends in a digit."""
        pattern = re.compile(rf"(?<!\w){re.escape(key)}(?!\d)")
        return next((at for at, text in self._outputs if key in text and pattern.search(text)), None)


def label_columns(results: SparqlResults, column: str) -> list[str]:
    """Return the columns with the labels of another column: literals in columns whose names begin with its name.

    Columns called name or label belong to the first column of IRIs.

    Example:
        >>> names = ["line", "lineName", "bay", "name"]
        >>> results = SparqlResults({name: TermColumn(["a"], ("literal", None, None)) for name in names}, 1)
        >>> label_columns(results, "line"), label_columns(results, "bay")
        (['lineName', 'name'], [])
    """
    names = [name for name in results.columns if name != column]
    iris = [name for name, each in results.columns.items() if _are_iris(each)]
    own = [name for name in names if name not in iris and bare_name(name).startswith(bare_name(column))]
    is_first = (iris or list(results.columns))[0] == column
    general = [name for name in names if is_first and name not in iris and _LABEL.fullmatch(bare_name(name))]
    return list(dict.fromkeys([*own, *general]))


_LABEL: Final = re.compile(r"(?:pref|alt|the)?_?(?:name|label|title)s?", re.IGNORECASE)


def _are_iris(column: TermColumn) -> bool:
    return column.kind(0) == "uri" if column.texts else False


def has_term(text: str, keys: Sequence[str]) -> bool:
    """Return whether a plain text has one of the keys as a whole term."""
    return any(term_place(text, key) is not None for key in keys)


def term_place(text: str, key: str) -> int | None:
    """Return the index at which a plain text has a key as a whole term; None if it does not.

    Example:
        >>> term_place("t10, then t1", "t1"), term_place("t10", "t1")
        (10, None)
    """
    if key not in text:
        return None
    if ":" in key and (place := place_of(text, key)) is not None:
        return place
    place = text.find(key)
    while place >= 0:
        before, after = text[place - 1 : place], text[place + len(key) : place + len(key) + 1]
        if not (before.isalnum() or after.isalnum() or (before == "-" and key[:1].isalnum()) or after == "-"):
            return place
        place = text.find(key, place + 1)
    return None


def _shapes_of(column: TermColumn) -> set[Shape]:
    return set(column.shapes) if isinstance(column.shapes, list) else {column.shapes}


def _numbers_of(column: TermColumn) -> list[tuple[float, int]]:
    """Return the numbers of a column with their rows, sorted."""
    shapes = [shape for shape in _shapes_of(column) if shape[1] in NUMBER_KINDS or is_simple_literal(shape)]
    if shapes and not isinstance(column.shapes, list) and _DIGITS.fullmatch("\n".join(column.texts)):  # nearly always
        with suppress(ValueError):
            return sorted(zip(map(float, column.texts), range(len(column.texts)), strict=True))
    by_text: dict[str, float] = {}
    for _, datatype, _ in shapes:
        for numbers in numbers_by_kind(column.texts, datatype).values():
            for text, number in numbers.items():
                with suppress(OverflowError):
                    by_text[text] = float(number)
    found = [(by_text[text], row) for row, text in enumerate(column.texts) if text in by_text]
    return sorted(each for each in found if isfinite(each[0]))


class _Times(NamedTuple):
    utc: list[tuple[datetime, int]]
    local: list[tuple[datetime, int]]


def _times_of(column: TermColumn) -> _Times:
    """Return the points in time of a column with their rows in UTC, and as their clocks show them if that differs."""
    readers = [VALUE_READERS[datatype][1] for _, datatype, _ in _shapes_of(column) if datatype in _TIMES]
    utc: list[tuple[datetime, int]] = []
    local: list[tuple[datetime, int]] = []
    known: dict[str, tuple[datetime, timedelta | None] | None] = {}
    for row, text in enumerate(column.texts) if readers else ():
        if not _may_be_time(text):
            continue
        if text not in known:
            try:
                when = datetime.fromisoformat(text)
            except ValueError:  # more digits of a second than Python reads, or the name of a zone
                value = next((value for read in readers if (value := read(text))), ("", None))
                when = value[1]
            offset = when.utcoffset() if isinstance(when, datetime) else None
            known[text] = None
            if isinstance(when, datetime):
                with suppress(OverflowError):  # in the first or the last year that there is
                    known[text] = when if offset is None else when.replace(tzinfo=None) - offset, offset
        if (time := known[text]) is not None:
            utc.append((time[0], row))
            if time[1]:
                local.append((time[0] + time[1], row))
    return _Times(utc, local)


def _may_be_time(text: str) -> bool:
    return text[4:5] == "-" and text[7:8] == "-" and text[:4].isdigit()


def _keys_of(text: str) -> Iterator[str]:
    """Yield what a cell is looked up by."""
    whole = plain(text)
    yield whole
    if whole[:1].isdigit() and _CODE.fullmatch(whole):
        yield whole.replace("-", "")
    if ":" in text and " " not in whole:
        last = max(whole.rfind(sign) for sign in "#/:") + 1
        if 0 < last < len(whole):
            yield whole[last:]
            whole = whole[last:]
    if len(whole) >= _UUID_LENGTH and whole[8:9] == whole[13:14] == whole[18:19] == "-":
        yield whole[:8]


def is_label(text: str) -> bool:
    """Return whether a text looks like a name: short, with a capital letter or a digit, and not an IRI or id."""
    if not 1 < len(text) <= 120 or "\n" in text or "://" in text or text.startswith("urn:"):
        return False
    if not any(sign.isupper() or sign.isdigit() for sign in text) or not any(map(str.isalpha, text)):
        return False
    return not (len(text) >= _UUID_LENGTH and text.count("-") >= 4 and " " not in text)
