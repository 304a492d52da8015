"""Reads an answer into lines and records, and finds the values in them that can be looked up."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Any, Final, Literal

from graphrag_eval_lc.answers.amounts_and_dates import (
    CLOCK,
    CURRENCIES,
    GREATEST_POWER,
    LONGEST_CURRENCY,
    LOSS,
    MONEY_AFTER,
    MONEY_BEFORE,
    MONEY_SCALES,
    MONTH,
    MONTH_AFTER_DAY,
    MORE_UNITS,
    POWER,
    SHORT_SCALES,
    SUPERSCRIPTS,
    TIMES_TEN,
    ZONE,
    date_of,
    unit_of,
)
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.judges.answer_forms import content_text
from graphrag_eval_lc.judges.claim_numbers import UNITS, readings_of

ValueKind = Literal["iri", "number", "date", "name"]


def answer_text(answer: Any) -> str:
    """Return the text of an answer: the texts of content blocks, or the JSON of other values.

    Example:
        >>> answer_text([{"type": "text", "text": "Oslo, "}, {"type": "text", "text": "Bergen"}]), answer_text(5)
        ('Oslo, Bergen', '5')
    """
    if answer is None or isinstance(answer, str):
        return answer or ""
    return (content_text(answer) if isinstance(answer, list) else "") or json_text(answer)


def plain(text: str) -> str:
    """Return a text in lower case with single spaces, the form in which names and IRIs are looked up.

    Example:
        >>> plain("HALDEN   420 LSC1")
        'halden 420 lsc1'
    """
    return " ".join(text.casefold().split())


@dataclass(slots=True)
class AnswerValue:
    """A value in an answer.

    Attributes:
        text: The value as it is written.
        kind: The kind of value.
        line: The index of its line.
        start: The index of its first character in the line.
        end: The index after its last character.
        keys: The plain texts by which an IRI or name is looked up, the most specific first.
        readings: The possible values of a number: 1,500 is 1500 or 1.5.
        decimals: How many decimals a number has; negative if it is given in powers of ten, as 6.02e23 is.
        unit: The known unit or per cent sign after a number.
        text_after: The text after a number, with the unit.
        currency: The currency of a number, as a code; "$" for all dollars.
        when: The point in time of a date, without a zone in UTC; None for other kinds.
        or_when: The other point in time that 10/08/2023 may be; None if there is only one.
        has_time: Whether a date has a time of day.
        has_zone: Whether that time has a zone.
        is_quoted: Whether a name is in quotation marks or marked as code.
        is_doubtful: Whether it is in a sentence that denies, offers or estimates something.
        has_weight: Whether finding it means something. A number of one or two digits is in most results by chance, and
            a class is in the results of most questions.
    """

    text: str
    kind: ValueKind
    line: int
    start: int
    end: int
    keys: tuple[str, ...] = ()
    readings: frozenset[float] = frozenset()
    decimals: int = 0
    unit: str = ""
    text_after: str = ""
    currency: str = ""
    when: datetime | None = None
    or_when: datetime | None = None
    has_time: bool = False
    has_zone: bool = False
    is_quoted: bool = False
    is_doubtful: bool = False
    has_weight: bool = True

    @property
    def scale(self) -> float:
        """The factor of the word, letter or sign after a number: 1e6 for 1.5 million and 1.5M, 0.01 for per cent."""
        quantity, scale = UNITS.get(self.unit, ("", 1.0))
        return scale if quantity == "count" else SHORT_SCALES.get(self.unit, 1.0)

    def error_of(self, reading: float) -> float:
        """Return the greatest error of a reading if it is rounded as it is written; 1,500 has decimals only as 1.5."""
        is_grouped = reading.is_integer() and any(abs(other) < abs(reading) for other in self.readings)
        return 0.5 * 10.0 ** -(0 if is_grouped else self.decimals)


@dataclass(slots=True)
class AnswerLine:
    """A line of an answer.

    Attributes:
        text: The line, without its line break.
        record: The number of its record: a table row, or a list item with the lines indented under it.
        is_row: Whether it is a row of a table or of CSV.
        is_item: Whether it is a list item, or indented under one.
        is_denied: Whether the sentence that introduces its list denies something.
        is_offer: Whether it offers what the agent could do next, or asks the user something.
        taken: The parts of the line in which values were already found.
    """

    text: str
    record: int
    is_row: bool = False
    is_item: bool = False
    is_denied: bool = False
    is_offer: bool = False
    taken: list[tuple[int, int]] = field(default_factory=list)

    def is_free(self, start: int, end: int) -> bool:
        """Return whether no value overlaps these characters."""
        return all(end <= before or start >= after for before, after in self.taken)


_ITEM: Final = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_RULE: Final = re.compile(r"[\s|:+=-]+")
_ROW: Final = re.compile(r"\s*\{.*\}\s*,?\s*|(?:[^,;\t]+[,;\t]){1,30}[^,;\t]*|\S+(?: \S+)*(?: {2,}\S+(?: \S+)*)+")
_DENIAL: Final = re.compile(
    r"\b(?:[Nn]o|[Nn]ot|NOT|[Nn]one|[Nn]ever|[Nn]othing|[Nn]either|[Nn]or|[Ww]ithout|[Mm]issing|[Cc]annot|[Uu]nable|[Aa]bsent"
    r"|[Ll]acks?|[Ll]acking|[Ii]nvalid)\b|n['’]t\b"
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])[\s*_]+(?=\S)")
_OFFER: Final = re.compile(
    r"\A[\s>*_#]*(?:if (?:you (?!mean)|that|this|\*\*)|would you|do you|let me know|please|next,)\b"
    r"|\bI (?:can|could|will|'ll|’ll) (?:also|next|help|then|instead|tell|show|list|do|try|check|look|provide|return"
    r"|run|find)\b",
    re.IGNORECASE,
)
_ESTIMATE: Final = re.compile(
    r"(?:[~≈<>≤≥]|\b(?:about|around|approx\w*\.?|roughly|nearly|almost|over|than|least|most|circa|ca\.|up to|under"
    r"|above|below|some))[\s*`]*$",
    re.IGNORECASE,
)


def is_offered(sentence: str) -> bool:
    """Return whether a sentence offers what the agent could do next, or asks the user something."""
    return _OFFER.search(sentence) is not None


def said_in(text: str) -> str:
    """Return an answer as a plain text, without sentences that offer something.

    Example:
        >>> said_in("It is T3.  If you want, I can also show T4.")
        'it is t3.'
    """
    lines = (line for line in lines_of(text) if not line.is_offer)
    return plain(" ".join(part for line in lines for part in _SENTENCE_END.split(line.text) if not is_offered(part)))


def lines_of(text: str) -> list[AnswerLine]:
    """Return the lines of an answer with their records.

    Rows of Markdown tables, rows in a code fence, and list items with the lines indented under them are records.
    """
    lines: list[AnswerLine] = []
    in_fence = denied_list = is_offer = False
    record, indent = 0, -1
    for raw in text.split("\n"):
        item = _ITEM.match(raw)
        depth = len(raw) - len(raw.lstrip())
        is_blank = not raw.strip()
        if _FENCE.match(raw):
            in_fence = not in_fence
        is_table = raw.lstrip().startswith("|") and not _RULE.fullmatch(raw)
        is_row = is_table or (in_fence and not is_blank and _ROW.fullmatch(raw) is not None)
        is_beneath = indent >= 0 and depth > indent and not is_row
        if not is_blank and not is_beneath:
            record += 1
            indent = len(item[1]) if item else -1
        if not is_blank and item is None and not is_row and not is_beneath:
            sentences = _SENTENCE_END.split(raw)
            own = sentences[-1] if raw.rstrip(" *_").endswith(":") else sentences[0]
            is_offer, denied_list = is_offered(own), False
        lines.append(AnswerLine(raw, record, is_row, item is not None or is_beneath, denied_list, is_offer))
        if not is_blank and not is_row and raw.rstrip(" *_").endswith(":"):
            denies = _DENIAL.search(_SENTENCE_END.split(raw)[-1]) is not None
            denied_list = denies or (denied_list and item is not None)
    return lines


_UUID: Final = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
_PATTERN: Final = rf"""(?P<iri>(?:https?://|urn:)[^\s<>"'`{{}}|\\^,;()\[\]*]+)
    |(?<![\w-])(?P<id>(?:[\w.]+-)??{_UUID}[\w.-]*|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{{8}})(?![\w-])
    |(?<![\w:/.-])(?P<date>\d{{4}}[-/.]\d\d?[-/.]\d\d?(?:(?:[T\s]|,\s|\sat\s){CLOCK}{ZONE})?
        |\d{{1,2}}{MONTH_AFTER_DAY}\d{{4}}(?:(?:,?\s|\sat\s){CLOCK}{ZONE})?
        |{MONTH}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}(?:(?:,?\s|\sat\s){CLOCK}{ZONE})?
        |\d{{1,2}}[./-]\d{{1,2}}[./-]\d{{4}}(?:(?:,?\s){CLOCK}{ZONE})?|{CLOCK}{ZONE})(?![\w:])
    |(?<![\w:/.-])(?P<code>(?=(?:-?\d){{7}})\d+(?:-\d+){{2,}}(?:-X)?)(?![\w:-])
    |(?<![\w:/.-])(?P<curie>[A-Za-z][\w-]{{0,30}}:[A-Za-z][\w-]*(?:\.[\w-]+)*)(?![\w:/])
    |(?<![\w/.])(?<!\d:)(?P<number>[-−+]?NUMBER(?:[eE][+-]?\d{{1,3}}|{TIMES_TEN})?)
        (?P<unit>\s?(?:%|°[CF]?|[kcdm]?m[23](?!\w)|(?:per|pour|por)\s(?:cent[oi]?|ciento)\b|[^\W\d_]+[²³]?))?
    """
_GROUPED: Final = (
    r"(?:\d{1,3}(?:[,'’\u00a0\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}(?!\d)"
    r"|\d{1,3}(?:[\ \u00a0\u202f]\d{3})+(?!\d)(?:,\d+)?|\d+(?:[.,]\d+)?)"
)
_VALUE: Final = re.compile(_PATTERN.replace("NUMBER", _GROUPED), re.VERBOSE | re.IGNORECASE)
# In CSV, commas separate cells, so a number has none.
_VALUE_OF_CSV: Final = re.compile(_PATTERN.replace("NUMBER", r"\d+(?:\.\d+)?"), re.VERBOSE | re.IGNORECASE)
_QUOTED: Final = re.compile(
    r"`([^`\n]{2,120})`|\"([^\"\n]{2,120})\"|“([^”\n]{2,120})”|«([^»\n]{2,120})»|\*\*([^*\n]{2,120})\*\*"
)
_PLAIN_UNITS: Final = frozenset(map(plain, {*UNITS, *MORE_UNITS}))
_AMOUNT: Final = re.compile(r"[-−+]?\d[\d.,]*(?:\s*[%°]|\s+[a-zµΩ]|\s?[kMGT]?(?:V|W|A|Hz|VAr|VA|Wh)\b|\Z)")
_END: Final = ".:!?*_"
_LONGEST_UNIT: Final = 30


def values_in(
    text: str, labels: Iterable[str] = (), ids: re.Pattern[str] | None = None
) -> tuple[list[AnswerValue], list[AnswerLine]]:
    """Return the values of an answer in reading order, and its lines.

    Args:
        text: The answer.
        labels: Known names as plain texts; these are also found without quotation marks.
        ids: What else is an identifier.

    Example:
        >>> [(value.text, value.kind) for value in values_in("`Fu16` is rated 1,250.5 kV since 2 May 2024.")[0]]
        [('Fu16', 'name'), ('1,250.5 kV', 'number'), ('2 May 2024', 'date')]
    """
    lines = lines_of(text)
    known = sorted(labels, key=len, reverse=True)
    found: list[AnswerValue] = []
    for at, line in enumerate(lines):
        if line.text.strip() and not _RULE.fullmatch(line.text):
            values = [*_names_in(line, at, known), *(_ids_in(line, at, ids) if ids else ())]
            values += [*_quoted_names(line, at), *_plain_values(line, at)]
            found += sorted(values, key=lambda value: value.start)
    return found, lines


def quoted_texts(text: str) -> set[str]:
    """Return the quoted, code-marked and bold parts of a text, as plain texts."""
    return {plain(match[match.lastindex or 0]) for match in _QUOTED.finditer(text)}


def _names_in(line: AnswerLine, at: int, labels: Iterable[str]) -> Iterator[AnswerValue]:
    """Yield the known names of a line, the longest first."""
    lower = line.text.casefold()
    if len(lower) != len(line.text):
        lower = line.text.lower()
    flat, places = lower, list(range(len(lower)))
    if "  " in lower or "\t" in lower:  # names are looked up with single spaces
        places = [at for at in places if not (lower[at].isspace() and lower[at - 1 : at].isspace())]
        flat = "".join(" " if lower[at].isspace() else lower[at] for at in places)
    for label in labels:
        place = flat.find(label)
        while place >= 0:
            end = place + len(label)
            is_whole = not (flat[place - 1 : place].isalnum() or flat[end : end + 1].isalnum())
            is_whole = is_whole and flat[place - 1 : place] not in ("_", "-") and flat[end : end + 1] not in ("_", "-")
            start, stop = places[place], places[end - 1] + 1
            is_unit = label in _PLAIN_UNITS and line.text[:start].rstrip()[-1:].isdigit()  # a column may have units
            if is_whole and not is_unit and line.is_free(start, stop):
                line.taken.append((start, stop))
                yield _value(line, at, start, stop, "name", keys=(label,))
            place = flat.find(label, place + 1)


def _ids_in(line: AnswerLine, at: int, ids: re.Pattern[str]) -> Iterator[AnswerValue]:
    for match in ids.finditer(line.text):
        if line.is_free(*match.span()):
            line.taken.append(match.span())
            yield _value(line, at, *match.span(), "iri", keys=_code_keys(match[0]))


def _plain_values(line: AnswerLine, at: int) -> Iterator[AnswerValue]:
    """Yield the IRIs, dates and numbers of a line."""
    item = _ITEM.match(line.text)
    place = item.end() if item else 0
    pattern = _VALUE_OF_CSV if line.is_row and "|" not in line.text else _VALUE
    while match := pattern.search(line.text, place):
        place = match.end()
        start, kind = match.start(), match.lastgroup or ""
        value = None
        if not line.is_free(start, match.end()):
            place = next((after for before, after in line.taken if before <= start < after), match.end())
            if place <= start:
                place = start + 1
            continue
        if kind == "iri":
            text = match[0].rstrip(_END)
            value = _value(line, at, start, start + len(text), "iri", keys=_iri_keys(text))
        elif kind == "id":
            text = match[0].rstrip(_END + "-")
            value = _value(line, at, start, start + len(text), "iri", keys=_iri_keys(text))
        elif kind == "code":  # such as an ISBN, with or without its hyphens
            value = _value(line, at, start, match.end(), "iri", keys=_code_keys(match[0]))
        elif kind == "curie":
            keys = (plain(match[0]), plain(match[0].split(":")[1]))  # without a digit it is a class or a property
            has_weight = any(map(str.isdigit, keys[1]))
            value = _value(line, at, start, match.end(), "iri", keys=keys, has_weight=has_weight)
        elif kind == "date":
            value = _date(line, at, match)
        else:
            value = _number(line, at, match)
        if value is not None:
            line.taken.append((value.start, value.end))
            yield value


def _quoted_names(line: AnswerLine, at: int) -> Iterator[AnswerValue]:
    """Yield the quoted, code-marked and bold parts of a line that contain no values other than numbers."""
    for match in _QUOTED.finditer(line.text):
        start, end = match.span(match.lastindex or 0)
        text = line.text[start:end]
        inner = list(_VALUE.finditer(text))
        is_name = not any(found["number"] is None or (found["unit"] or "").strip() in UNITS for found in inner)
        is_name = is_name and not _AMOUNT.match(text) and any(map(str.isalpha, text))
        is_name = is_name and not (match[2] is not None and line.text[match.end() :].lstrip()[:1] == ":")  # JSON's keys
        if is_name and line.is_free(start, end):
            line.taken.append((start, end))
            keys = dict.fromkeys(map(plain, (text, re.split(r"\s*[=:]\s", text)[0])))
            yield _value(line, at, start, end, "name", keys=tuple(keys), is_quoted=match[5] is None)


def _value(line: AnswerLine, at: int, start: int, end: int, kind: ValueKind, **more: Any) -> AnswerValue:
    before, after = _SENTENCE_END.split(line.text[:start])[-1], _SENTENCE_END.split(line.text[end:])[0]
    is_doubtful = (
        line.is_denied or line.is_offer or is_offered(before) or _DENIAL.search(f"{before} {after}") is not None
    )
    is_doubtful = is_doubtful or _ESTIMATE.search(before[-20:]) is not None
    return AnswerValue(line.text[start:end], kind, at, start, end, is_doubtful=is_doubtful, **more)


def _iri_keys(text: str) -> tuple[str, ...]:
    """Return the keys of an IRI or id: the whole text and, for ``urn:uuid:``, only the id."""
    whole = plain(text)
    return (whole, whole.removeprefix("urn:uuid:")) if whole.startswith("urn:uuid:") else (whole,)


def _code_keys(text: str) -> tuple[str, str]:
    return plain(text), plain(text.replace("-", ""))


def _number(line: AnswerLine, at: int, match: re.Match[str]) -> AnswerValue | None:
    digits, behind = match["number"], match["unit"] or ""
    unit = unit_of(behind.strip())
    before, after = line.text[: match.start()], line.text[match.end() :]
    is_attached = bool(unit) and not behind[0].isspace()
    money = MONEY_BEFORE.search(before[-LONGEST_CURRENCY:])
    unit = MONEY_SCALES.get(unit, unit) if money else unit
    is_unit = unit in UNITS or unit in MORE_UNITS
    is_unit = is_unit or (unit in SHORT_SCALES and (is_attached or MONEY_AFTER.match(after) is not None))  # 12 k€
    is_power = unit.endswith(("²", "³", "2", "3")) and unit[:-1] in UNITS  # an area, which is not converted
    if is_attached and not is_unit and not is_power:  # as in 420HALDEN
        return None
    if (after[:1].isalnum() and (is_unit or not unit)) or (not unit and after[:1] in ("_", "/", "-")):
        return None
    if unit == "s" and is_attached and re.fullmatch(r"[12]\d\d0", digits):  # the 1990s
        return None
    mantissa, *power = POWER.split(digits.lstrip("-−+").translate(SUPERSCRIPTS), maxsplit=1)
    exponent = int(power[0].rstrip("}")) if power else 0
    if abs(exponent) > GREATEST_POWER:
        return None
    readings = {each * 10.0**exponent for each in readings_of(mantissa)}
    if " " in mantissa:  # the groups of one number, or several numbers
        readings = {each for each in readings if each >= 100}
    is_negative = digits[0] in "-−" or (money is not None and money["sign"] is not None and money["sign"] != "(")
    if is_negative:
        readings = {-each for each in readings}
    elif LOSS.search(f"{_SENTENCE_END.split(before[-40:])[-1]} {_SENTENCE_END.split(after[:30])[0]}") or (
        money and money["sign"] and after[:1] == ")"
    ):
        readings |= {-each for each in readings}
    tail = re.search(r"[.,](\d+)$", mantissa)
    whole = re.sub(r"\D", "", mantissa[: tail.start()] if tail else mantissa).lstrip("0")
    decimals = tail[1] if tail else ""
    weight = len((whole + decimals.rstrip("0")).lstrip("0")) if decimals else len(whole)
    end = match.end() if is_unit else match.end("number")
    money = money or MONEY_AFTER.match(line.text, end if is_unit else match.end("number"))
    currency = CURRENCIES.get(unit) or (CURRENCIES[money["currency"]] if money else "")
    return _value(
        line,
        at,
        match.start(),
        end,
        "number",
        readings=frozenset(filter(isfinite, readings)),
        decimals=len(decimals) - exponent,
        unit=unit if is_unit else "",
        text_after=line.text[match.end("number") :][:_LONGEST_UNIT].strip(),
        currency=currency,
        has_weight=weight > 2,
    )


def _date(line: AnswerLine, at: int, match: re.Match[str]) -> AnswerValue | None:
    text = match["date"]
    when = date_of(text)
    if when is None and re.fullmatch(CLOCK + ZONE, text) is None:
        return None
    other = None
    if (slashes := re.match(r"(\d{1,2})/(\d{1,2})/", text)) is not None:  # the month may come first
        other = date_of(f"{slashes[2]}/{slashes[1]}/{text[slashes.end() :]}")
    return _value(
        line,
        at,
        *match.span(),
        "date",
        when=when,
        or_when=None if other == when else other,
        has_time=":" in text,
        has_zone=re.search(r":\d.*(?:Z|[A-Z]{3}|[+-]\d\d:?\d\d\)?)\Z", text) is not None,
        has_weight=when is not None,  # a time of day alone is in most results
    )
