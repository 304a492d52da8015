"""Numbers of a text, in digits or words, with their units: which of them may be one quantity."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text that has nothing but words."""
    return frozenset(words.split())


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety"
_GERMAN_NUMBERS = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_NUMBER_WORDS = {word: value for words in (_SMALL, _GERMAN_NUMBERS) for value, word in enumerate(words.split())}
_NUMBER_WORDS |= {word: 10 * value for value, word in enumerate(_TENS.split(), 1)}
_MONTHS = "january february march april may june july august september october november december"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
# What a text may say in place of a number. In a claim these words mean too much else to be numbers.
_WEAK = {"one": 1.0, "both": 2.0, "couple": 2.0, "pair": 2.0, "half": 0.5, "no": 0.0, "none": 0.0}
WEAK_NUMBERS = _WEAK | {
    word: float(value)
    for words in (_MONTHS.split(), _ORDINALS.split(), [month[:3] for month in _MONTHS.split()])
    for value, word in enumerate(words, 1)
}
MONTHS_SHORT = frozenset(month[:3] for month in _MONTHS.split())
# What units measure and how much of it: names of up to two letters are compared with their case.
_SYMBOL_PREFIXES = {"": 1.0, "m": 1e-3, "c": 1e-2, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_WORD_PREFIXES = {"": 1.0, "milli": 1e-3, "centi": 1e-2, "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12}
_SI = {"V": "volt", "W": "watt", "A": "ampere", "Hz": "hertz", "m": "metre meter", "g": "gram", "l": "litre liter"}
_SI |= dict.fromkeys(("VA", "VAr", "Wh", "J", "N", "Pa", "bar", "B"), "")
UNITS = {prefix + unit: (unit, scale) for unit in _SI for prefix, scale in _SYMBOL_PREFIXES.items()} | {
    prefix + word + plural: (unit, scale)
    for unit, words in _SI.items()
    for word in words.split()
    for prefix, scale in _WORD_PREFIXES.items()
    for plural in ("", "s")
}
for _measured, _scale, _names in (
    ("s", 1.0, "s sec secs second seconds sekunde sekunden"),
    ("s", 60.0, "min mins minute minutes minuten"),
    ("s", 3600.0, "h hr hrs hour hours stunde stunden"),
    ("s", 86_400.0, "d day days tag tage"),
    ("s", 604_800.0, "week weeks woche wochen"),
    ("s", 2_629_746.0, "month months monat monate"),
    ("s", 31_556_952.0, "year years yr yrs jahr jahre"),
    ("m", 1609.344, "mi mile miles"),
    ("m", 0.3048, "ft foot feet"),
    ("m", 0.0254, "inch inches"),
    ("g", 1e6, "t tonne tonnes"),
    ("count", 1e3, "thousand tausend"),
    ("count", 1e6, "mn mio million millions millionen"),
    ("count", 1e9, "bn mrd billion billions milliarde milliarden"),
):
    UNITS |= dict.fromkeys(_names.split(), (_measured, _scale))


def _with_24_hours(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3] in "pP" else 0)
    return f"{hour}:{match[2] or '00'}"


_ANY_NUMBER_WORD = "|".join(_NUMBER_WORDS)
_NUMBER_WORD = re.compile(rf"\b({_ANY_NUMBER_WORD})(?:[- ]({'|'.join(_SMALL.split()[1:10])}))?\b", re.IGNORECASE)
_COUNTED = "|".join(name for name, unit in UNITS.items() if len(name) > 2 and unit[0] != "count" and name != "second")
_COUNTS = "|".join(
    ["hundred", "dozen", *(name for name, unit in UNITS.items() if unit[0] == "count" and len(name) > 2)]
)
# "twice a day" and "metres a second" are no quantities.
_ARTICLE = re.compile(
    rf"\b(?:one (?=(?:{_COUNTED}|{_COUNTS})\b)|an? (?=(?:{_COUNTS})\b|(?:{_COUNTED}) (?:of|long|old|ago)\b)|"
    rf"(?P<before>takes?|took|for|in|within|after|lasts?|lasted|about|than|(?P<half>half)) an? (?=(?:{_COUNTED})\b))",
    re.IGNORECASE,
)
_MULTIPLIED = re.compile(r"\b(\d+) (hundred|dozen)\b(?:(?: and)? (\d{1,2})\b)?", re.IGNORECASE)
_REWRITTEN = (
    # U.S., whose last point may end a sentence
    (re.compile(r"\b(?:[A-Z]\.)+[A-Z](?=\.\s+[A-Z]|\.\s*$)"), lambda match: match[0].replace(".", "")),
    (re.compile(r"\b(?:[A-Z]\.){2,}"), lambda match: match[0].replace(".", "")),
    (re.compile(r"\b(\d\d?)\.(\d\d?)\.(\d{4})\b"), r"\1 \2 \3"),  # 05.01.2024
    (re.compile(r"\b(\d\d?)(?::(\d\d))? ?([ap])\.?m\b\.?", re.IGNORECASE), _with_24_hours),
    (re.compile(r"\bthree quarters\b", re.IGNORECASE), "0.75"),
    (re.compile(r"\btwo thirds\b", re.IGNORECASE), "0.6667"),
    (re.compile(r"\b(?:a|one) quarter of\b", re.IGNORECASE), "0.25 of"),
    (re.compile(r"\b(?:a|one) third of\b", re.IGNORECASE), "0.3333 of"),
)
_AND_A_HALF = re.compile(r"\b(\d+)( \w+)? and a half\b")


def with_digits(text: str) -> str:
    """Return a text with its number words as digits, and dates, times and abbreviations in one form."""

    def number(match: re.Match[str]) -> str:
        word, ones = match[1].casefold(), (match[2] or "").casefold()
        value = _NUMBER_WORDS[word]
        if word == "one" and not ones:
            return match[0]  # "one of them" is no number
        if ones and value < 20:
            return f"{value} {_NUMBER_WORDS[ones]}"
        return str(value + (_NUMBER_WORDS[ones] if ones else 0))

    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    text = _ARTICLE.sub(lambda match: "0.5 " if match["half"] else f"{match['before'] or ''} 1 ".lstrip(), text)
    text = _AND_A_HALF.sub(r"\1.5\2", _NUMBER_WORD.sub(number, text))
    return _MULTIPLIED.sub(
        lambda match: str(int(match[1]) * (12 if match[2][0] in "dD" else 100) + int(match[3] or 0)), text
    )


@dataclass(frozen=True)
class Number:
    """What a number may mean, as 1,500 may be 1500 or 1.5.

    Attributes:
        readings: The values.
        measures: What its unit measures; empty if that is not known.
        scale: How much of that.
        noun: The beginning of the word that it counts.
        has_unit: Whether it has any unit, so that it may be thousands or millions of another one.
    """

    readings: frozenset[float]
    measures: str = ""
    scale: float = 1.0
    noun: str = ""
    has_unit: bool = False

    @property
    def is_none(self) -> bool:
        """Whether it says that there are none of something."""
        return bool(self.noun) and self.readings == {0.0}

    def is_same(self, other: "Number") -> bool:
        """Return whether both may be one quantity, in another unit or rounded too."""
        if self.measures and other.measures:
            factor = self.scale / other.scale
            return self.measures == other.measures and any(
                _is_rounded(one * factor, two) or _is_rounded(two / factor, one)
                for one in self.readings
                for two in other.readings
            )
        scales = _SCALES if self.has_unit or other.has_unit else ()
        return any(_may_be_same(one, two, scales) for one in self.readings for two in other.readings)


_SCALES = tuple(10.0**power for power in (-9, -6, -3, 3, 6, 9))
_PER_CENT = (0.01, 100.0)
_MOST_ROUNDED = 0.2


def _may_be_same(one: float, two: float, scales: tuple[float, ...]) -> bool:
    return any(
        _is_rounded(one, two * scale) or _is_rounded(two * scale, one) or _is_rounded(one * scale, two)
        for scale in (1.0, *scales, *(_PER_CENT if min(one, two) < 1 else ()))
    )


def _is_rounded(precise: float, rounded: float) -> bool:
    if abs(precise - rounded) > _MOST_ROUNDED * precise:
        return False
    decimals = len(f"{rounded:.6f}".rstrip("0").partition(".")[2])
    return isclose(precise, rounded) or (precise % 1 > 0 and round(precise, decimals) == rounded)


_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")


def readings_of(number: str) -> Iterator[float]:
    """Return the values that a number in digits may have."""
    plain = re.sub(r"[ '\u00a0\u202f]", "", number)
    readings = {plain.replace(",", "")}
    if not plain.endswith(",000"):  # thousands, as nobody writes three zeros as decimals
        readings.add(plain.replace(",", "."))
    if _GROUPED_BY_DOTS.fullmatch(plain):
        readings.add(plain.replace(".", "").replace(",", "."))
    parts = set(number.split()) if " " in number else set()  # or two numbers
    return (float(reading) for reading in readings | parts if re.fullmatch(r"\d+(?:\.\d+)?", reading))
