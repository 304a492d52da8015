"""Reads the numbers of a text, in digits or words and with units, and decides which may mean the same quantity."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(words.split())


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_MONTHS = "january february march april may june july august september october november december"
_CARDINALS = {word: value for value, word in enumerate(_SMALL.split())}
_CARDINALS |= {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_CARDINAL = re.compile(rf"\b({'|'.join(_CARDINALS)})(?:[- ]({'|'.join(_SMALL.split()[1:10])}))?\b", re.IGNORECASE)
# Not in two-winding, no one and one of.
_COUNTED = re.compile(rf"(?<!\bno )(?<!-){_CARDINAL.pattern}(?!-\w)(?!(?<=\bone) of\b)", re.IGNORECASE)
MONTHS = {name: float(value) for value, month in enumerate(_MONTHS.split(), 1) for name in (month, month[:3])}
# A text may have these words for a number. In a claim they are not numbers: they have too many other meanings.
WEAK_NUMBERS = MONTHS | {word: float(value) for value, word in enumerate(_ORDINALS.split(), 1)}
WEAK_NUMBERS |= {"one": 1.0, "a": 1.0, "an": 1.0, "both": 2.0, "no": 0.0, "none": 0.0}

# The quantity and the scale of units. Symbols are case-sensitive, words are not.
_PREFIXES = {"": 1.0, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_PREFIXES |= {"n": 1e-9, "\u00b5": 1e-6, "\u03bc": 1e-6}  # the micro sign, and the Greek letter
_LONG_PREFIXES = {"": 1.0, "milli": 1e-3, "centi": 1e-2, "kilo": 1e3, "mega": 1e6, "giga": 1e9, "tera": 1e12}
_LONG_PREFIXES |= {"nano": 1e-9, "micro": 1e-6}
_SI = {"V": "volt", "W": "watt", "A": "ampere", "Hz": "hertz", "m": "metre meter", "g": "gram", "VAr": "", "VA": ""}
_SI |= {"Wh": "", "J": "joule", "Pa": "pascal", "B": "byte", "L": "litre liter", "mol": "mole"}
UNITS = {prefix + symbol: (symbol, scale) for symbol in _SI for prefix, scale in _PREFIXES.items()}
UNITS |= {f"{prefix}l": ("L", scale) for prefix, scale in _PREFIXES.items()}
UNITS |= {f"{prefix}t": ("g", 1e6 * _PREFIXES[prefix]) for prefix in ("", "k", "M", "G")}
UNITS |= {
    prefix + word + plural: (symbol, scale)
    for symbol, words in _SI.items()
    for word in words.split()
    for prefix, scale in _LONG_PREFIXES.items()
    for plural in ("", "s")
}
for _quantity, _scale, _names in (
    ("s", 1.0, "s sec second seconds"),
    ("s", 60.0, "min minute minutes"),
    ("s", 3600.0, "h hour hours"),
    ("s", 86_400.0, "day days"),
    ("s", 604_800.0, "week weeks"),
    ("s", 2_629_746.0, "month months"),
    ("s", 31_556_952.0, "year years"),
    ("g", 1e6, "tonne tonnes"),
    ("m", 1609.344, "mi mile miles mph"),
    ("m", 0.3048, "ft foot feet"),
    ("count", 1e3, "thousand tausend tsd mil mila duizend tusen tusind"),
    ("count", 1e5, "lakh"),
    ("count", 1e6, "million millions mn mio mln mill millionen millones milioni milhões miljoen miljoner millioner"),
    ("count", 1e7, "crore"),
    (
        "count",
        1e9,
        "billion billions bn mrd mld mia milliarden milliard milliards miliardi miljard miljarder milliarder",
    ),
    ("count", 1e12, "trillion trillions tn"),
):
    UNITS |= dict.fromkeys(_names.split(), (_quantity, _scale))


def with_digits(text: str) -> str:
    """Return a text with number words as digits; "one" is kept because of phrases such as "one of them".

    Example:
        >>> with_digits("Twenty-five lines, three of them new")
        '25 lines, 3 of them new'
    """

    def digits(match: re.Match[str]) -> str:
        value, ones = _parts_of(match)
        if value == 1:
            return match[0]
        return str(value + ones) if value >= 20 or not ones else f"{value} {ones}"

    return _CARDINAL.sub(digits, text)


def _parts_of(match: re.Match[str]) -> tuple[int, int]:
    return _CARDINALS[match[1].casefold()], _CARDINALS.get((match[2] or "").casefold(), 0)


def numbers_in_words(text: str) -> set[int]:
    """Return the numbers below 100 with which a text counts in words: not those of two-winding, no one and one of.

    Example:
        >>> sorted(numbers_in_words("Twenty-five lines, three of them new"))
        [3, 25]
    """
    return {sum(_parts_of(match)) for match in _COUNTED.finditer(text)}


@dataclass(frozen=True)
class Number:
    """What a number may mean: 1,500 may be 1500 or 1.5.

    Attributes:
        readings: The possible values.
        quantity: The base unit of what it measures, such as ``V``; empty for an unknown unit.
        scale: The factor of the unit, such as 1000 for kV.
        noun: The beginning of the counted word.
    """

    readings: frozenset[float]
    quantity: str = ""
    scale: float = 1.0
    noun: str = ""

    def is_same(self, other: "Number") -> bool:
        """Return whether both may mean the same quantity: in other units, as a share and in per cent, or rounded."""
        if self.quantity and other.quantity:
            if self.quantity != other.quantity:
                return False
            factors: tuple[float, ...] = (self.scale / other.scale,)
        elif self.quantity or other.quantity:
            factors = _UNKNOWN_SCALES
        else:
            factors = (1.0, *(_PER_CENT if min(*self.readings, *other.readings) < 1 else ()))
        is_converted = self.quantity == other.quantity == "m" and len({self.scale, other.scale} & _FOREIGN) == 1
        return any(
            (is_converted and isclose(one * factor, two, rel_tol=_MOST_CONVERTED))
            or _is_rounded(one * factor, two)
            or _is_rounded(two / factor, one)
            for one in self.readings
            for two in other.readings
            for factor in factors
        )


_UNKNOWN_SCALES = tuple(10.0**power for power in (0, 3, 6, 9, -3, -6, -9))
_PER_CENT = (0.01, 100.0)
_MOST_ROUNDED = 0.2  # of the value
_FOREIGN = {1609.344, 0.3048}  # miles and feet
_MOST_CONVERTED = 0.02  # of the value, if one text has miles or feet and the other metres


def _is_rounded(precise: float, rounded: float) -> bool:
    if isclose(precise, rounded):
        return True
    decimals = len(f"{rounded:.6f}".rstrip("0").partition(".")[2])
    is_near = abs(precise - rounded) <= _MOST_ROUNDED * precise
    return is_near and precise % 1 > 0 and round(precise, decimals) == rounded


_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")


def readings_of(digits: str) -> Iterator[float]:
    """Yield the values that digits with points, commas or spaces may have.

    Example:
        >>> sorted(readings_of("1,500")), sorted(readings_of("1 234 567"))
        ([1.5, 1500.0], [1.0, 234.0, 567.0, 1234567.0])
    """
    plain = re.sub(r"[ '’\u00a0\u2009\u202f]", "", digits)
    readings = {plain.replace(",", "")}
    if not plain.endswith(",000"):  # thousands, as nobody writes three zeros as decimals
        readings.add(plain.replace(",", "."))
    if _GROUPED_BY_DOTS.fullmatch(plain):
        readings.add(plain.replace(".", "").replace(",", "."))
    parts = set(digits.split()) if " " in digits else set()  # or separate numbers
    return (float(reading) for reading in readings | parts if re.fullmatch(r"\d+(?:\.\d+)?", reading))
