"""Checks that an answer says what it must: entities, numbers, dates, yes or no, an order, or that there is none."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from math import isclose
from typing import Any, Final

from graphrag_eval_lc.answers.amounts_and_dates import CURRENCIES, date_of
from graphrag_eval_lc.answers.answer_text import AnswerValue, answer_text, plain, said_in
from graphrag_eval_lc.answers.evidence import Evidence, Place, StepRows, has_term, is_label, label_columns, term_place
from graphrag_eval_lc.answers.grounding import GroundedValue, Grounding
from graphrag_eval_lc.judges.claim_numbers import UNITS, numbers_in_words
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.registry.metric_spec import reason_key
from graphrag_eval_lc.registry.metrics import ANSWER_EXACT, CHECKED_KINDS

_MOST_INFERRED: Final = 100  # rows; an answer is not expected to list more


@dataclass(slots=True)
class ExpectedNumber:
    """A number that an answer must have.

    Attributes:
        value: The number.
        unit: Its unit; empty if any will do.
        tolerance: The share by which the answer's number may differ; rounding to the written digits is always allowed.
    """

    value: float
    unit: str = ""
    tolerance: float = 0.0

    def __str__(self) -> str:
        return f"{self.value:.15g} {self.unit}".rstrip()


@dataclass(slots=True)
class Expected:
    """What an answer must say.

    Attributes:
        entities: For each entity, the texts that name it.
        numbers: The numbers.
        dates: The dates as texts.
        boolean: The truth value; None if none is expected.
        order: The entities that must come in this order, each with the texts that name it.
        is_none: Whether it must say that there is none.
    """

    entities: list[list[str]] = field(default_factory=list)
    numbers: list[ExpectedNumber] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    boolean: bool | None = None
    order: list[list[str]] = field(default_factory=list)
    is_none: bool = False

    def __bool__(self) -> bool:
        return bool(self.entities or self.numbers or self.dates or self.order or self.is_none) or (
            self.boolean is not None
        )


def expected_of_question(question: Mapping[str, Any]) -> Expected:
    """Return what an answer must say according to a question's keys ``reference_entities``, ``reference_numbers`` etc.

    Example:
        >>> expected = expected_of_question({"reference_numbers": [{"value": 420, "unit": "kV"}, 3]})
        >>> list(map(str, expected.numbers))
        ['420 kV', '3']
    """
    numbers = [
        ExpectedNumber(float(each["value"]), str(each.get("unit") or ""), float(each.get("tolerance") or 0))
        if isinstance(each, Mapping)
        else ExpectedNumber(float(each))
        for each in question.get("reference_numbers") or ()
    ]
    return Expected(
        entities=list(map(_names, question.get("reference_entities") or ())),
        numbers=numbers,
        dates=list(map(str, question.get("reference_dates") or ())),
        boolean=question.get("reference_boolean"),
        order=list(map(_names, question.get("reference_order") or ())),
        is_none=bool(question.get("reference_none")),
    )


def _names(entity: Any) -> list[str]:
    return list(map(str, entity if isinstance(entity, list | tuple) else [entity]))


def expected_of_rows(reference: SparqlResults, required: Sequence[str] | None) -> Expected:
    """Return the values in the required columns of a reference result; nothing if it has more than 100 rows."""
    if reference.boolean is not None:
        return Expected(boolean=reference.boolean)
    if not reference.row_count:
        return Expected(is_none=True)
    expected = Expected()
    if reference.row_count > _MOST_INFERRED:
        return expected
    rows = StepRows(0, reference)
    for name in reference.columns if required is None else filter(reference.columns.__contains__, required):
        column = reference.columns[name]
        if name in rows.numbers and len(rows.numbers[name]) == reference.row_count:
            numbers = dict.fromkeys(number for number, _ in rows.numbers[name])
            expected.numbers += map(ExpectedNumber, numbers)
        elif name in rows.times and len(rows.times[name]) == reference.row_count:
            expected.dates += dict.fromkeys(column.texts)
        else:
            expected.entities += [[text] for text in dict.fromkeys(column.texts) if text]
    return expected


class AnswerChecks:
    """Checks an answer against what it must say.

    Args:
        answer: The answer.
        question: The question; entities in it are not required in the answer.
        evidence: What the agent's steps returned, also used to find the names of entities.
        expected: What the answer must say.
        reference: The rows of the reference, also used to find names.
        matched: The indices of the steps that match the reference; only values from these can be extra values.
    """

    def __init__(
        self,
        answer: Any,
        question: str,
        evidence: Evidence,
        expected: Expected,
        reference: Sequence[StepRows] = (),
        matched: Collection[int] = (),
    ) -> None:
        self._matched = matched
        self._shown = {plain(names[0]): names[0] for names in expected.entities}
        self._text = answer_text(answer)
        self._said = said_in(self._text)
        self._question = plain(question)
        self._evidence, self._expected = evidence, expected
        self._tables = [*evidence.tables, *reference]
        self._values = Grounding(answer, question, evidence).values
        self.missing: dict[str, list[str]] = {}
        self.extra: dict[str, list[str]] = {}

    def record(self) -> dict[str, Any]:
        """Return the keys of a result; nothing if there is nothing to check."""
        expected, record = self._expected, dict[str, Any]()
        entities = [names for names in map(self._all_names, expected.entities) if not self._is_asked(names)]
        if expected.entities and not (entities or expected.numbers or expected.dates or expected.order):
            return {}
        checks: tuple[tuple[str, list[Any], Any], ...] = (
            ("entities", entities, self._has_entity),
            ("numbers", expected.numbers, self._has_number),
            ("dates", expected.dates, self._has_date),
        )
        problems: list[str] = []
        for kind, wanted, is_said in checks:
            if not wanted:
                continue
            missing = [each for each in wanted if not is_said(each)]
            extra = self._extra(kind, wanted)
            found = len(wanted) - len(missing)
            precision, recall = found / (found + len(extra)) if found else 0.0, found / len(wanted)
            names = [self._shown[each[0]] if isinstance(each, list) else str(each) for each in missing]
            f1 = 2 * precision * recall / (precision + recall) if found else 0.0
            for measure, value in (("precision", precision), ("recall", recall), ("f1", f1)):
                record[f"answer_{kind}_{measure}"] = value
            record |= {f"answer_{kind}_missing": names, f"answer_{kind}_extra": extra}
            problems += [f"{each} is missing" for each in names] + [f"{each} is extra" for each in extra]
        problems += self._other_problems()
        if not record and not problems and not expected:
            return {}
        shown = [*problems[:_MOST_SHOWN], *([f"{len(problems)} in all"] if len(problems) > _MOST_SHOWN else [])]
        reason = "; ".join(shown) or "nothing is missing"
        return {**record, ANSWER_EXACT: float(not problems), reason_key(ANSWER_EXACT): reason}

    def _other_problems(self) -> Iterator[str]:
        expected = self._expected
        if expected.boolean is not None and (said := truth_value(self._text)) != expected.boolean:
            wanted, other = ("yes", "no") if expected.boolean else ("no", "yes")
            yield f"it does not clearly say {wanted}" if said is None else f"it says {other}, not {wanted}"
        if expected.is_none and not _NONE.search(self._said):
            yield "it does not say that there is none"
        if expected.order:
            places = [self._place_of(self._all_names(names)) for names in expected.order]
            if None in places:
                yield "some of the names that must be in order are missing"
            elif places != sorted(place for place in places if place is not None):
                yield "the names are in another order"

    def _all_names(self, names: Sequence[str], shortest: int = 3) -> list[str]:
        """Return the plain texts that name an entity: the given ones, and labels that only it has in the rows.

        Labels shorter than ``shortest``, such as T1, occur in too many answers.
        """
        names = list(map(plain, names))
        found = dict.fromkeys(names)
        for table in self._tables:
            places = [place for name in names for place in table.texts.get(name, ())]
            for column, row in {(place.column, place.row): None for place in places}:
                for label in label_columns(table.results, column):
                    written = table.results.columns[label].texts[row]
                    text = plain(written)
                    if is_label(written) and len(text) >= shortest and table.has_one(label, text, column):
                        found[text] = None
        short = [name.removeprefix("urn:uuid:") for name in found if name.startswith("urn:uuid:")]
        last = [re.split(r"[#/]", name)[-1] for name in found if "://" in name and " " not in name]
        return list(dict.fromkeys([*found, *short, *filter(None, last)]))

    def _is_asked(self, names: Sequence[str]) -> bool:
        """Return whether the question names an entity, in full or by the first part of its UUID."""
        short = [name[:8] for name in names if name[8:9] == "-" and len(name) == _UUID]
        return has_term(self._question, names) or has_term(self._question, short)

    def _has_entity(self, names: Sequence[str]) -> bool:
        return has_term(self._said, names) or self._has_value_of(names)

    def _has_value_of(self, names: Sequence[str]) -> bool:
        """Return whether the answer names an entity by its number in the rows, with a unit: a voltage as 300 kV.

        The column of the number must have a name like the entity's column.
        """
        places = {place for table in self._tables for name in names for place in table.texts.get(name, ())}
        stated = [each for each in self._values if each.value.unit and not each.value.is_doubtful]
        return any(
            (mine.step, mine.row) == (place.step, place.row) and _last_word(mine.column) == _last_word(place.column)
            for each in stated
            for mine in each.places
            for place in places
        )

    def _place_of(self, names: Sequence[str]) -> int | None:
        return min((place for name in names if (place := term_place(self._said, name)) is not None), default=None)

    def _has_number(self, expected: ExpectedNumber) -> bool:
        numbers = [each.value for each in self._values if each.value.kind == "number"]
        is_written = any(is_number(value, expected) for value in (*numbers, *_durations_in(numbers)))
        return is_written or (not expected.unit and expected.value in numbers_in_words(self._said))

    def _has_date(self, expected: str) -> bool:
        return any(_is_date(each.value, expected) for each in self._values if each.value.kind == "date")

    def _extra(self, kind: str, wanted: Sequence[Any]) -> list[str]:
        """Return the answer's values that come from the same columns as the wanted ones but are not wanted."""
        places = [place for each in wanted for place in self._places(kind, each)]
        columns = {(place.step, place.column) for place in places if not self._matched or place.step in self._matched}
        kinds = {"entities": ("iri", "name"), "numbers": ("number",), "dates": ("date",)}[kind]
        if kind == "entities":
            wanted = [self._all_names(names, shortest=1) for names in wanted]
        extra: dict[str, None] = {}
        for each in self._values:
            is_there = each.value.kind in kinds and each.value.has_weight and not each.value.is_doubtful
            if not is_there or each.verdict not in ("row", "rounded"):
                continue
            inside = [place for place in each.places if (place.step, place.column) in columns]
            if inside and len(inside) == len(each.places) and not any(self._is(kind, each, one) for one in wanted):
                extra[each.value.text] = None
        return list(extra)

    def _places(self, kind: str, wanted: Any) -> list[Place]:
        if kind == "entities":  # in the columns of what is given, and of its labels
            places = [place for table in self._evidence.tables for place in table.texts.get(wanted[0], ())]
            results = {table.step: table.results for table in self._evidence.tables}
            labels = [
                place._replace(column=label)
                for place in places
                for label in label_columns(results[place.step], place.column)
            ]
            return places + labels
        return [
            place
            for each in self._values
            if each.value.kind == {"numbers": "number", "dates": "date"}[kind] and self._is(kind, each, wanted)
            for place in each.places
        ]

    def _is(self, kind: str, each: GroundedValue, wanted: Any) -> bool:
        if kind == "entities":
            short = any(len(key) == _SHORT and name.startswith(key) for key in each.value.keys for name in wanted)
            return short or not set(each.value.keys).isdisjoint(wanted)
        return is_number(each.value, wanted) if kind == "numbers" else _is_date(each.value, wanted)


def _last_word(column: str) -> str:
    """Return the last word of a column's name, as in nominalVoltage and base_voltage."""
    words: list[str] = re.findall(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+", column)
    return words[-1].casefold() if words else column


_UUID: Final = 36
_SHORT: Final = 8
_MOST_SHOWN: Final = 10


def _durations_in(numbers: Iterable[AnswerValue]) -> Iterator[AnswerValue]:
    """Yield the durations that have several parts, such as 2 h 15 min, in seconds."""
    before: AnswerValue | None = None
    for value in numbers:
        follows = before is not None and before.line == value.line and 0 <= value.start - before.end <= _MOST_BETWEEN
        quantity, scale = UNITS["min"] if follows and value.unit == "m" else UNITS.get(value.unit, ("", 1.0))
        seconds = {reading * scale for reading in value.readings} if quantity == "s" else set()
        if before is not None and follows and seconds:
            seconds = {one + other for one in before.readings for other in seconds}
            yield replace(value, readings=frozenset(seconds), unit="s")
        before = replace(value, readings=frozenset(seconds), unit="s") if seconds else None


_MOST_BETWEEN: Final = 5  # characters: ", and"


def is_number(value: AnswerValue, expected: ExpectedNumber) -> bool:
    """Return whether a number in an answer is the expected one, in the same or another unit, possibly rounded."""
    factors = {1.0, value.scale}  # the expected number may be given in millions too
    if value.currency and value.currency != CURRENCIES.get(expected.unit, value.currency):
        return False
    given = re.escape(expected.unit)
    is_as_given = bool(given) and re.match(rf"{given}(?![\w/])", value.text_after) is not None
    if expected.unit and value.unit and value.unit != expected.unit and not is_as_given:
        converted = unit_factor(value.unit, expected.unit)
        factors = {value.scale} - {1.0} if converted is None else {converted}
    for factor in factors:
        is_rounded = value.decimals or factor != 1.0 or value.has_weight
        for reading in value.readings:
            found = reading * factor
            reach = max(
                expected.tolerance * abs(expected.value), value.error_of(reading) * factor if is_rounded else 0.0
            )
            if abs(found - expected.value) <= reach or isclose(found, expected.value, rel_tol=1e-12):
                return True
    return False


@cache
def unit_factor(unit: str, other: str) -> float | None:
    """Return the factor that converts a number from one unit to another; None if that is impossible.

    SI units and units of time are known; others need pint (the extra ``units``).

    Example:
        >>> unit_factor("MW", "kW"), unit_factor("V", "A")
        (1000.0, None)
    """
    if unit in UNITS and other in UNITS:
        return UNITS[unit][1] / UNITS[other][1] if UNITS[unit][0] == UNITS[other][0] else None
    try:
        import pint  # the extra `units`
    except ImportError:
        return None
    registry: Any = pint.application_registry
    try:
        return float(registry.Quantity(1.0, unit).to(other).magnitude)
    except Exception:  # an unknown unit, another quantity, or one with an offset, such as °C
        return None


def _is_date(value: AnswerValue, expected: str) -> bool:
    when: datetime | None = date_of(expected.strip())
    if when is None or value.when is None:
        return plain(value.text) == plain(expected)
    return value.when == when if ":" in expected and value.has_time else value.when.date() == when.date()


_YES: Final = re.compile(r"[\W_]*(?:yes|yep|true|correct|indeed|right)\b", re.IGNORECASE)
_NO: Final = re.compile(r"[\W_]*(?:no|nope|false|incorrect|wrong)\b", re.IGNORECASE)
_NONE: Final = re.compile(
    r"\b(?:no|none|not|nothing|neither|never|zero|without|empty|cannot|0)\b|n['’]t\b", re.IGNORECASE
)

_VERB: Final = re.compile(r"\b(?:is|are|was|were|has|have|does|do|can)\b")
_DENIAL: Final = re.compile(r"\b(?:not|no|never)\b|n['’]t\b")


def truth_value(text: str) -> bool | None:
    """Return whether an answer says yes or no; None if neither is at its beginning or end.

    Example:
        >>> truth_value("**Yes**, it is."), truth_value("It is not, so the answer is: no."), truth_value("Perhaps.")
        (True, False, None)
    """
    sentences = [part for part in re.split(r"(?<=[.!?:])\s+|\n+", text) if part.strip(" *_#")]
    if not sentences:
        return None
    for sentence in (sentences[0], sentences[-1]):
        if _YES.match(sentence):
            return True
        if _NO.match(sentence):
            return False
    return False if _VERB.search(sentences[0]) and _DENIAL.search(sentences[0]) else None


def checks_record(
    answer: Any,
    question: Mapping[str, Any],
    evidence: Evidence,
    references: Sequence[tuple[SparqlResults, Sequence[str] | None]] = (),
    matched: Collection[int] = (),
) -> dict[str, Any]:
    """Return the keys of a result that say whether its answer contains what it must.

    Args:
        answer: The answer.
        question: The question with its keys ``reference_…``.
        evidence: What the agent's steps returned.
        references: The results of reference steps with their required columns, if the answer must contain these
            values; keys of the question take precedence.
        matched: The indices of the actual steps that fulfil these reference steps.

    Returns:
        ``answer_exact`` and its reason; for entities, numbers and dates ``…_precision``, ``…_recall``, ``…_f1``,
        ``…_missing`` and ``…_extra``. Nothing if there is nothing to check.

    Example:
        >>> question = {"reference_numbers": [{"value": 420, "unit": "kV"}]}
        >>> record = checks_record("It is 0.42 MV.", question, Evidence([]))
        >>> record["answer_exact"], record["answer_numbers_missing"]
        (1.0, [])
    """
    expected = expected_of_question(question)
    if not expected:
        for results, required in references:
            inferred = expected_of_rows(results, required)
            expected.entities += inferred.entities
            expected.numbers += inferred.numbers
            expected.dates += inferred.dates
            expected.boolean = inferred.boolean if expected.boolean is None else expected.boolean
            expected.is_none |= inferred.is_none
    if not expected:
        return {}
    reference = [StepRows(at, results) for at, (results, _) in enumerate(references)]
    text = str(question.get("question_text") or "")
    return AnswerChecks(answer, text, evidence, expected, reference, matched).record()


CHECKED_KEYS: Final = tuple(f"answer_{kind}_{what}" for kind in CHECKED_KINDS for what in ("missing", "extra"))
