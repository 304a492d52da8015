"""Checks whether an answer follows from what the agent found: finds the row that each of its values comes from."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, Literal

from graphrag_eval_lc.answers.answer_text import AnswerValue, answer_text, plain, quoted_texts, said_in, values_in
from graphrag_eval_lc.answers.evidence import Evidence, Place, StepRows, has_term
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_COVERAGE,
    ANSWER_GROUNDED,
    ANSWER_LINES,
    ANSWER_UNGROUNDED,
    ANSWER_VALUES,
)
from graphrag_eval_lc.texts import listed, plural

Verdict = Literal["row", "rounded", "count", "aggregate", "question", "undecided", "none"]
_FOUND: Final = frozenset({"row", "rounded", "count", "aggregate"})
_MOST_PLACES: Final = 2_000


@dataclass(slots=True)
class GroundedValue:
    """A value of an answer and where it comes from.

    Attributes:
        value: The value.
        verdict: In what kind of source it was found, if any.
        at: The address of its source; empty if it has none.
        places: All cells that have it.
    """

    value: AnswerValue
    verdict: Verdict
    at: str = ""
    places: list[Place] = field(default_factory=list)

    def record(self) -> dict[str, str]:
        """Return the value in the format of results."""
        found = {"text": self.value.text, "kind": self.value.kind, "verdict": self.verdict}
        return {**found, "at": self.at} if self.at else found

    @property
    def counts(self) -> bool:
        """Whether it counts for or against the answer."""
        return self.value.has_weight and (self.verdict in _FOUND or self.verdict == "none")


class Grounding:
    """The values of an answer, looked up in the steps of its run.

    Args:
        answer: The answer: a text, content blocks, or any other value as its JSON.
        question: The question; finding its values proves nothing.
        evidence: What the steps returned.
    """

    def __init__(self, answer: Any, question: str, evidence: Evidence) -> None:
        self.text = answer_text(answer)
        self.evidence = evidence
        self._question = plain(question)
        flat = plain(self.text)
        labels = {label for label in evidence.labels if label in flat}
        labels |= {name for name in quoted_texts(self.text) if _NAME.match(name) and has_term(self._question, (name,))}
        found, self._lines = values_in(self.text, labels, evidence.id_pattern)
        of_question = [value for value in values_in(question)[0] if value.kind in ("number", "date")]
        self._asked = {reading for value in of_question for reading in value.readings}
        self._asked_days = {when for value in of_question for when in (value.when, value.or_when)} - {None}
        self.values = [each for value in found if (each := self._grounded(value)) is not None]
        self._records = self._by_record()
        for each in (each for of_record in self._records for each in _in_common_rows(of_record)):
            each.at = evidence.address(each.places[0]) if each.verdict in ("row", "rounded") else each.at

    def _grounded(self, value: AnswerValue) -> GroundedValue | None:
        """Return a value with its verdict; None for emphasised words that are not names."""
        of_kind = {"iri": self._text_value, "name": self._text_value, "date": self._date, "number": self._number}
        grounded = of_kind[value.kind](value)
        if grounded is None or grounded.verdict != "none":
            return grounded
        is_id = value.kind == "iri" and _ID.search(value.text) is not None  # counts even if the sentence denies it
        is_doubtful = (value.is_doubtful and not is_id) or not value.has_weight or self.evidence.is_cut
        if is_doubtful or has_term(self.evidence.arguments, value.keys or (plain(value.text),)):
            grounded.verdict = "undecided"
        return grounded

    def _text_value(self, value: AnswerValue) -> GroundedValue | None:
        places = self.evidence.texts_at(value.keys)
        if has_term(self._question, value.keys) or any(
            len(key) == _SHORT_ID and f"{key}-" in self._question for key in value.keys
        ):
            return GroundedValue(value, "question", places=places)
        if not places and "://" in value.text:  # another page of the same site
            last = value.keys[0].rstrip("/").rpartition("/")[2]
            same = self.evidence.texts_at((last,)) if any(map(str.isdigit, last)) else []
            places = [
                place for place in same if _SITE.findall(value.keys[0]) == _SITE.findall(self.evidence.text(place))
            ]
        if places:
            return self._at(value, "row", places)
        is_word = value.kind == "name" and not _NAME.match(value.text)
        step = None if is_word else self.evidence.text_of(value.keys)
        if step is not None:
            return GroundedValue(value, "row", self.evidence.address_in(step, "text"))
        if is_word or (value.kind == "name" and not value.is_quoted):
            return None
        return GroundedValue(value, "none")

    def _date(self, value: AnswerValue) -> GroundedValue | None:
        places = [place for table in self.evidence.tables for place in table.times_at(value)]
        if plain(value.text) in self._question or value.when in self._asked_days:
            return GroundedValue(value, "question", places=places)
        if places:
            return self._at(value, "row", places)
        step = self.evidence.text_of((plain(value.text),))
        if step is not None:
            return GroundedValue(value, "row", self.evidence.address_in(step, "text"))
        return GroundedValue(value, "none")

    def _number(self, value: AnswerValue) -> GroundedValue | None:
        exact: list[Place] = []
        rounded: list[Place] = []
        # Each reading with its greatest error; unscaled too, as a column may count in millions.
        factors = {1.0, value.scale}
        readings = [(given * by, value.error_of(given) * by) for by in factors for given in value.readings]
        for reading, most in readings:
            width = most + abs(reading) * _FLOAT
            for table in self.evidence.tables:
                for place, number in table.numbers_near(reading - width, reading + width):
                    (exact if abs(number - reading) <= _FLOAT * abs(reading) else rounded).append(place)
        if value.readings & self._asked:
            return GroundedValue(value, "question", places=exact + rounded)
        if not exact and _YEAR.fullmatch(value.text):
            exact = [place for table in self.evidence.tables for place in table.times_in_year(int(value.text))]
        if exact:
            return self._at(value, "row", exact + rounded)
        if rounded and value.has_weight:
            return self._at(value, "rounded", rounded)
        for table in self.evidence.tables:
            for reading, _ in readings:
                is_count = reading >= 0 and reading == int(reading) and value.unit != "%"
                what = table.counts.get(int(reading)) if is_count else None
                if what is not None:
                    return GroundedValue(value, "count", self.evidence.address_in(table.step, what))
        if value.has_weight:
            digits = re.sub(r"\D", "", value.text)
            if len(digits) >= _SHORTEST_CODE and (codes := self.evidence.texts_at((digits,))):
                return self._at(value, "row", codes)
            for table in self.evidence.tables if value.unit else ():
                spans = ((reading - most, reading + most) for reading, most in readings)
                if converted := [place for span in spans for place in table.numbers_in_units(value.unit, *span)]:
                    return self._at(value, "rounded", converted)
            step = self._text_with(value)
            step = self.evidence.number_in_text(readings) if step is None else step
            if step is not None:
                return GroundedValue(value, "row", self.evidence.address_in(step, "text"))
            for table in self.evidence.tables:
                for number, what in table.aggregates:
                    if any(abs(number - reading) <= most + 1e-9 * abs(number) for reading, most in readings):
                        return GroundedValue(value, "aggregate", self.evidence.address_in(table.step, what))
        return GroundedValue(value, "none")

    def _text_with(self, value: AnswerValue) -> int | None:
        """Return the index of a step whose output has a number as it is written, alone or inside a name."""
        text, line = plain(value.text), self._lines[value.line].text
        step = self.evidence.text_of((text, text.removesuffix(value.unit.casefold()).rstrip()))
        names = (pattern.search(line[: value.start]) for pattern in _BEFORE_IN_NAME)
        for name in names if step is None else ():
            step = self.evidence.text_that_begins(plain(f"{name[0]}{value.text}")) if name and step is None else step
        return step

    def _at(self, value: AnswerValue, verdict: Verdict, places: Sequence[Place]) -> GroundedValue:
        return GroundedValue(value, verdict, self.evidence.address(places[0]), list(places))

    @property
    def ungrounded(self) -> list[GroundedValue]:
        """The values that count and were not found."""
        return [each for each in self.values if each.counts and each.verdict == "none"]

    def share(self) -> float | None:
        """Return the share of found values among those that count; None if no value counts."""
        counted = [each for each in self.values if each.counts]
        return sum(each.verdict != "none" for each in counted) / len(counted) if counted else None

    def _by_record(self) -> list[list[GroundedValue]]:
        """Return the values with places, grouped by list item, table row or part of an enumeration."""
        found: dict[tuple[int, int], list[GroundedValue]] = {}
        of_line: dict[int, list[GroundedValue]] = {}
        for each in self.values:
            line = self._lines[each.value.line]
            if line.is_row or line.is_item:
                found.setdefault((line.record, -1), []).append(each)
            else:
                of_line.setdefault(each.value.line, []).append(each)
        for at, values in of_line.items():
            for part, of_part in enumerate(_enumerated(self._lines[at].text, values)):
                found[self._lines[at].record, part] = of_part
        located = ([each for each in values if 0 < len(each.places) <= _MOST_PLACES] for values in found.values())
        return [values for values in located if values]

    def lines_in_one_row(self) -> float | None:
        """Return the share of the answer's records whose values are in one row; None if no record has several."""
        outcomes = [outcome for of_record in self._records if (outcome := self._is_one_row(of_record)) is not None]
        return sum(outcomes) / len(outcomes) if outcomes else None

    def _is_one_row(self, values: Sequence[GroundedValue]) -> bool | None:
        """Return whether the values of a record are in one row; None if that is unknown."""
        outcome: bool | None = None
        for one, other in combinations(values, 2):
            line = self._lines[one.value.line]
            if not (line.is_row or (one.value.has_weight and other.value.has_weight)):
                continue
            columns, others = {(p.step, p.column) for p in one.places}, {(p.step, p.column) for p in other.places}
            if columns & others or not {step for step, _ in columns} & {step for step, _ in others}:
                continue
            rows = {(p.step, p.row) for p in one.places} & {(p.step, p.row) for p in other.places}
            if not rows:
                return False
            outcome = True
        return outcome

    def row_coverage(self, rows: StepRows) -> float | None:
        """Return the share of a step's rows that the answer mentions; 1 if it says that there are more.

        Rows are identified by the column with the most different values: rows with the same value there count once. A
        value mentions a row if it is in this column, or in a column with at least half as many different values. None
        without rows, or if only short numbers could mention a row, as they match by chance.
        """
        texts = {name: column.texts for name, column in rows.results.columns.items()}
        different = {name: len(set(of_column)) for name, of_column in texts.items()}
        if not rows.results.row_count:
            return None
        most = max(different, key=lambda name: different[name])
        identifying = {name for name, number in different.items() if 2 * number >= different[most]}
        said = said_in(self.text)
        stated = {reading for each in self.values for reading in each.value.readings}
        if different[most] > 1 and (_MORE.search(said) or stated & {different[most], rows.results.row_count}):
            return 1.0
        mentioned, by_chance = (
            {
                texts[most][place.row]
                for each in self.values
                if each.value.has_weight is has_weight
                for place in each.places
                if place.step == rows.step and place.column in identifying
            }
            for has_weight in (True, False)
        )
        return None if by_chance and not mentioned else len(mentioned) / different[most]


def grounding_record(answer: Any, question: str, evidence: Evidence, matched: Sequence[int] = ()) -> dict[str, Any]:
    """Return the keys of a result that say whether its answer follows from what the agent found.

    Args:
        answer: The answer.
        question: The question.
        evidence: What the agent's steps returned.
        matched: The indices of the steps that fulfil a reference step, the last one last.

    Returns:
        ``answer_values``: for each value its text, its kind (iri, number, date or name), the verdict, and at what
        address it was found. ``answer_grounded`` and its reason, ``answer_ungrounded``, ``answer_lines_in_one_row`` and
        ``answer_row_coverage``, those that can be measured.

    Example:
        >>> from graphrag_eval_lc.matching import StepView
        >>> output = '[{"zone": "NO1", "price": "107.41"}]'
        >>> step = StepView({"id": "call_1", "name": "sql", "status": "success", "output": output})
        >>> record = grounding_record("NO1 costs 107.14.", "What does power cost?", Evidence([step]))
        >>> record["answer_grounded"], [value["verdict"] for value in record["answer_values"]]
        (0.5, ['row', 'none'])
    """
    grounding = Grounding(answer, question, evidence)
    record: dict[str, Any] = {ANSWER_VALUES: [each.record() for each in grounding.values]}
    share, lines = grounding.share(), grounding.lines_in_one_row()
    if share is not None:
        record |= {ANSWER_GROUNDED: share, ANSWER_UNGROUNDED: len(grounding.ungrounded)}
    if missing := list(dict.fromkeys(each.value.text for each in grounding.ungrounded)):
        are = plural(len(missing), "is", "are")
        record[reason_key(ANSWER_GROUNDED)] = f"{listed(missing)} {are} in nothing that the agent found"
    if lines is not None:
        record[ANSWER_LINES] = lines
    tables = {table.step: table for table in grounding.evidence.tables}
    last = next((tables[at] for at in reversed(matched) if at in tables), None)
    if last is not None and (coverage := grounding.row_coverage(last)) is not None:
        record[ANSWER_COVERAGE] = coverage
    return record


_MORE: Final = re.compile(
    r"\b(?:and|plus|with)\s+(?:about |over |some )?[\d,]+\s+(?:more|others?|further)\b"
    r"|\b(?:first|last|top)\s+(?:few|\d+)\b"
    r"|\b(?:many|more|other|further) (?:rows|results|entries|items|values|datapoints|data points|matches|others)\b"
    r"|\btoo (?:many|large|long)\b|\bvery large\b|\b(?:full|complete|whole|entire) (?:list|table|result|set|series)\b"
    r"|\b(?:for example|e\.g\.|such as|including|a sample|truncated|abbreviated)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?!\d+\s?\w{1,3}\Z)(?:.*\d|.*[A-Z].*[A-Z])")


_SITE: Final = re.compile(r"://([^/]+)")
_SHORTEST_CODE: Final = 7
_BEFORE_IN_NAME: Final = (re.compile(r"[\w-]*\w-\Z"), re.compile(r"[^\W\d_][\w-]* \Z"))
"""What a number may follow in a name, as in A380-800 and Boeing 747."""
_BETWEEN: Final = re.compile(r"[,;]|[.!?]\s|\band\b")
_SHORT_ID: Final = 8
_YEAR: Final = re.compile(r"[12]\d{3}")
_ID: Final = re.compile(r"://|urn:|[0-9a-f]{8}", re.IGNORECASE)
_FLOAT: Final = 2.3e-16  # what a float has of its size


def _enumerated(text: str, values: Sequence[GroundedValue]) -> list[list[GroundedValue]]:
    """Return the values of each part of an enumeration in a sentence, such as "HASLE (420 kV), NEA (300 kV)".

    Two or more successive parts are an enumeration if they have values of the same kinds, at least two each. The first
    part may have other values before these.
    """
    parts: list[list[GroundedValue]] = [[]]
    end = depth = 0
    for each in values:
        between = text[end : each.value.start]
        depth += between.count("(") - between.count(")")
        if end and depth <= 0 and _BETWEEN.search(between):
            parts.append([])
        parts[-1].append(each)
        end = each.value.end
    kinds = [tuple(each.value.kind for each in part) for part in parts]
    found: list[list[GroundedValue]] = []
    for at in range(1, len(parts)):
        size = len(kinds[at])
        if size > 1 and kinds[at - 1][-size:] == kinds[at]:
            found += [] if found and found[-1] is parts[at - 1] else [parts[at - 1][-size:]]
            found.append(parts[at])
    return found


def _in_common_rows(values: Sequence[GroundedValue]) -> Sequence[GroundedValue]:
    """Return the values of a record, with the places of each sorted by how many of these values their row has."""
    if len(values) > 1:
        number = Counter(row for each in values for row in {(place.step, place.row) for place in each.places})
        for each in values:
            each.places.sort(
                key=lambda place: -number[place.step, place.row]
            )  # a stable sort: for equal counts, the first row of the last step stays first
    return values
