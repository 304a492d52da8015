"""Telling what was made at random from words, numbers, identifiers and digests."""

import math
import re
from collections import Counter
from urllib.parse import unquote

_UUID = re.compile(r"[_{]?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\}?")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_DIGESTS = frozenset({32, 40, 56, 64, 96, 128})  # characters of MD5, SHA-1 (and git's), SHA-2
_WORD = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}(?![a-z])")
_VOWELS = re.compile("[aeiouyAEIOUY]")
_TOKEN = re.compile(r"[A-Za-z0-9+/_.~-]+={0,3}", re.ASCII)
_CLASSES = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_CHANGES = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[A-Z][A-Z])(?=[a-z])|(?<=[0-9])(?=[A-Za-z])")
_LONGEST_MEASURED = 600
_SHORTEST = 16
_MOST_ENCODINGS = 3  # a URL in a URL in a URL
_SHORTEST_OF_TWO = 20  # of two classes of characters, such as lower case and digits
_LEAST_BITS = 3.0  # a character
_LEAST_HEX_BITS = 2.8
_MOST_IN_WORDS = 0.6  # of the characters
_CHARACTERS_A_CHANGE = 4.5  # at most; words and numbers change seldom


def looks_random(value: str, *, digests_are: bool = True) -> bool:
    """Return whether a value was made at random, as keys and signatures are.

    Words, numbers, dates, IRIs, paths, UUIDs, and identifiers that are made of words and numbers are not.

    Args:
        value: The value; it may be percent-encoded.
        digests_are: What of hexadecimal digits in the length of a digest is taken for random.

    Example:
        >>> looks_random("k3jd9fLz0qWm81aXpR7t"), looks_random("substation-graz-220kV-17")
        (True, False)
    """
    text = value[:_LONGEST_MEASURED]
    for _ in range(_MOST_ENCODINGS):
        if "%" in text:
            text = unquote(text)
    if len(text) < _SHORTEST or _TOKEN.fullmatch(text) is None or _UUID.fullmatch(text):
        return False
    if _HEX.fullmatch(text):
        return _is_random_hex(text) and (digests_are or len(text) not in _DIGESTS)
    has_lower, has_upper, has_digit = (pattern.search(text) is not None for pattern in _CLASSES)
    if len(text) < _SHORTEST_OF_TWO and not (has_lower and has_upper and has_digit):
        return False
    if sum(1 for _ in _CHANGES.finditer(text)) * _CHARACTERS_A_CHANGE < len(text):
        return False
    if has_lower and has_upper and _share_in_words(text) >= (_MOST_IN_WORDS if has_digit else _MOST_IN_WORDS / 2):
        return False
    return bits_a_character(text) >= _LEAST_BITS


def _share_in_words(text: str) -> float:
    return sum(len(word) for word in _WORD.findall(text) if _is_word(word)) / len(text)


def _is_word(letters: str) -> bool:
    return 0.2 <= len(_VOWELS.findall(letters)) / len(letters) <= 0.7


def _is_random_hex(text: str) -> bool:
    has_letters = not text.isdigit()
    return has_letters and len(text) >= 32 and bits_a_character(text) >= _LEAST_HEX_BITS


def bits_a_character(text: str) -> float:
    """Return the Shannon entropy of a text's characters, in bits a character; 0 for an empty text.

    Example:
        >>> bits_a_character("aabb"), bits_a_character("abcd")
        (1.0, 2.0)
    """
    counts = Counter(text).values()
    return -math.fsum(count / len(text) * math.log2(count / len(text)) for count in counts) + 0.0
