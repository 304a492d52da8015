"""How amounts and dates are written: units, currencies, powers of ten, and dates in several languages."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from graphrag_eval_lc.judges.claim_numbers import MONTHS, UNITS

SHORT_SCALES: Final = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "%": 0.01}
"""The factors of letters that directly follow a number (709k, 1.5M), and of per cent, as rows may have shares."""

MONEY_SCALES: Final = {"m": "million", "M": "million", "b": "billion", "B": "billion", "T": "trillion"}
"""The meaning of letters after an amount of money: $3.4m."""

CURRENCIES: Final = {
    **{code: code for code in ("EUR", "GBP", "CHF", "NOK", "SEK", "DKK", "JPY", "CNY", "INR", "PLN")},
    **dict.fromkeys(("$", "US$", "USD", "CAD", "AUD", "NZD", "SGD", "HKD", "dollars"), "$"),
    **dict.fromkeys(("€", "euros"), "EUR"),
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
}
"""The signs, codes and names of currencies; all dollars are one."""

_CURRENCY: Final = f"(?:{'|'.join(map(re.escape, sorted(CURRENCIES, key=len, reverse=True)))})"
MONEY_BEFORE: Final = re.compile(rf"(?P<sign>(?<!\w)[-−]|\()?(?<![A-Za-z])(?P<currency>{_CURRENCY})\s?\Z")
LONGEST_CURRENCY: Final = 10
MONEY_AFTER: Final = re.compile(rf"\s?(?P<currency>{_CURRENCY})(?![A-Za-z])")
LOSS: Final = re.compile(
    r"\b(?:loss(?:es)?|lost|losing|deficit|negative|minus|declin\w+|decreas\w+|drop\w*|fell|fall\w*|shrank|down|below"
    r"|verlust\w*|rückgang|perte\w*|pérdidas?|perdita|verlies)\b",
    re.IGNORECASE,
)
"""Words after which a negative number is written without its sign: a loss of 125."""

_PER_CENT: Final = frozenset({"percent", "prozent", "pct", "procent", "prosent"})
MORE_UNITS: Final = frozenset({"%", "°C", "°F", "°", "Ω", "MVAr", *filter(str.isalpha, CURRENCIES)})

TIMES_TEN: Final = r"\s?(?:[×x·⋅*]|\\times|\\cdot)\s?10(?:\^\{?[-−+]?\d{1,3}\}?|[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})"
GREATEST_POWER: Final = 300  # of a float
POWER: Final = re.compile(r"[eE]|\s?(?:[×x·⋅*]|\\[a-z]+)\s?10\^?\{?")
SUPERSCRIPTS: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻−", "0123456789+--")


def unit_of(text: str) -> str:
    """Return a unit as the tables of units have it: words in lower case, and % for per cent."""
    folded = text.casefold()
    if folded in _PER_CENT or " " in folded or "\u00a0" in folded:
        return "%"
    return folded if text not in UNITS and len(text) > 2 and folded in UNITS else text


_MONTH_NAMES: Final = """januar jänner janvier janv enero ene gennaio gen janeiro januari
    februar février févr fev febrero febbraio fevereiro februari feb
    märz mär mars marzo março maart mar marts
    april avril avr abril abr aprile apr
    mai mayo maggio mag maio mei maj
    juni juin junio giugno giu junho jun
    juli juillet juil julio luglio lug julho jul
    august août agosto ago augustus augusti aug
    september septembre sept septiembre settembre set setembro sep
    oktober octobre octubre ottobre ott outubro okt oct
    november novembre noviembre novembro nov
    dezember décembre déc diciembre dic dicembre dezembro desember dez"""
_MONTHS: Final = {name: month for month, names in enumerate(_MONTH_NAMES.split("\n"), 1) for name in names.split()} | {
    name: int(month) for name, month in MONTHS.items()
}
"""The months in the languages of Western Europe."""

MONTH: Final = rf"(?:{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
# The month after a day, as in 2nd of May, 2. Mai and 2 de mayo de.
MONTH_AFTER_DAY: Final = (
    r"(?:st|nd|rd|th|er|º|\.)?(?:\s+(?:of\s+|de\s+|d['’])?|-)"
    rf"(?:{'|'.join(sorted(_MONTHS, key=len, reverse=True))})(?:\.?,?\s+(?:del?\s+)?|-)"
)
CLOCK: Final = r"\d{1,2}:\d\d(?::\d\d(?:\.\d{1,9})?)?"
ZONE: Final = r"(?:\s?(?:Z|UTC|GMT|\(?[+-]\d\d:?\d\d\)?))?"
_DATE_PARTS: Final = re.compile(
    rf"(?P<y>\d{{4}})[-/.](?P<m>\d\d?)[-/.](?P<d>\d\d?)|(?P<d2>\d{{1,2}})(?P<n>{MONTH_AFTER_DAY})(?P<y2>\d{{4}})"
    rf"|(?P<n3>{MONTH})\.?\s+(?P<d3>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y3>\d{{4}})"
    r"|(?P<d4>\d{1,2})[./-](?P<m4>\d{1,2})[./-](?P<y4>\d{4})",
    re.IGNORECASE,
)


def date_of(text: str) -> datetime | None:
    """Return the point in time in a text, in UTC without a zone; None for an impossible date.

    Example:
        >>> date_of("2 May 2024, 14:30").isoformat(), date_of("2024-05-02T14:30:00+02:00").isoformat()
        ('2024-05-02T14:30:00', '2024-05-02T12:30:00')
    """
    found = _DATE_PARTS.match(text)
    if found is None:
        return None
    part: Mapping[str, str] = {name[:1]: each for name, each in found.groupdict().items() if each is not None}
    month = (
        int(part["m"])
        if "m" in part
        else next(month for word in re.findall(r"[^\W\d_]+", part["n"]) if (month := _MONTHS.get(word.casefold())))
    )
    day = int(part["d"])
    if month > 12 and found["m4"]:
        month, day = day, month
    clock = re.search(
        r"(\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?)\d*\s?\(?(Z|UTC|GMT|[+-]\d\d:?\d\d)?\)?$", text[found.end() :]
    )
    time, zone = (clock[1], clock[2] or "") if clock else ("00:00", "")
    time, zone = time if time.index(":") > 1 else f"0{time}", zone if zone[:1] in "+-" else ""
    try:
        when = datetime.fromisoformat(f"{part['y']}-{month:02d}-{day:02d}T{time}{zone}")
        return when if when.tzinfo is None else when.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
