"""Whether claims are made of the words of the texts that they come from: what code can check, no model is asked.

Numbers, codes such as ``NO5`` and names must be in the texts verbatim; other words need not, as meaning counts.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from math import isclose

_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)|(?P<word>[^\W_]+)"
)
_IDENTIFIER = re.compile(
    r"<?(?:https?://|urn:)[^\s<>()\[\],;]+>?|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_BULLET = re.compile(r"^\s*(?:[-*•>#|]+\s*|\d{1,3}[.)]\s+)+", re.MULTILINE)
_ITEM_END = re.compile(r"[,;|&]|\b(?:and|und|og|et|y)\b")
_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_WORD = re.compile(r"\w+")
_NUMBER_WORDS = _WORD.findall("two three four five six seven eight nine ten eleven twelve")
_MONTHS = _WORD.findall("january february march april may june july august september october november december")
_VALUES = {word: float(value) for words in (("one", *_NUMBER_WORDS), _MONTHS) for value, word in enumerate(words, 1)}
_UNIT_SCALES = tuple(10.0**power for power in (-9, -6, -3, 3, 6, 9))
_PREFIXES = {"": 1.0, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_WITH_PREFIX = re.compile(r"[ \u00a0]?([mkKMGT]?)(VA|Wh|[VWA]|Hz|m|g)(?![^\W_])")
_PER_CENT = (0.01, 100.0)
_ABOUT = 0.05  # within which quantities of one unit may be roundings of each other
_UNIT = 3  # letters at most, right after a number
_LEAST_WORD = 5  # letters; shorter words carry little meaning, and so do these
_COMMON = {*_WORD.findall("there their these those which where about between located called")}
_STEM = 5
_LAST_SCRIPT_WITH_SPACES = "\u058f"
# Words that begin a sentence with a capital and name nothing; "yes" and "no" are answers.
_OPENERS = {
    *_WORD.findall(
        "the a an it its this that these those there they he she we not both all each some any none in on at of for "
        "from with by as to according based here also only and or but if when while"
    )
}
_MONTH_STARTS = {month[:3]: float(value) for value, month in enumerate(_MONTHS, 1)}
_VALUES |= _MONTH_STARTS
# German capitalises all nouns, so that capitals are no sign of names there.
_GERMAN = {*_WORD.findall("der die das den ist sind und von mit ein eine einer hat haben wird nicht auf für bei")}


@dataclass(frozen=True)
class _Words:
    """The words of one text."""

    text: str
    numbers: dict[str, set[float]] = field(default_factory=dict)
    units: dict[str, dict[str, set[float]]] = field(default_factory=dict)  # what numbers are in units, by unit
    codes: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    first: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    all: set[str] = field(default_factory=set)

    @cached_property
    def values(self) -> set[float]:
        """All numbers, and how many items its lists have, as a count may follow from a list."""
        found = {value for values in self.numbers.values() for value in values}
        found |= {_VALUES[word] for word in self.all & _VALUES.keys()}
        lines = [line for line in self.text.splitlines() if line.strip()]
        items = [len(_ITEM_END.split(part)) for part in _SENTENCE_END.split(self.text)]
        counts = (*items, len(lines), len(lines) - 1, len(self.names | self.codes))
        return found | {float(count) for count in counts if count > 1}

    @property
    def is_german(self) -> bool:
        return len(self.all & _GERMAN) > 1


def _words_of(text: str) -> _Words:
    found = _Words(text)
    end_of_number = -1
    plain = _BULLET.sub(lambda bullet: " " * len(bullet[0]), text)
    for token in _TOKEN.finditer(plain):
        if token["number"]:
            found.numbers[token[0]] = _values_of(token[0])
            end_of_number = token.end()
            if unit := _WITH_PREFIX.match(plain, end_of_number):
                scaled = {value * _PREFIXES[unit[1]] for value in found.numbers[token[0]]}
                found.units.setdefault(token[0], {}).setdefault(unit[2], set()).update(scaled)
            continue
        word, folded = token[0], token[0].casefold()
        found.all.add(folded)
        is_unit = end_of_number >= 0 and plain[end_of_number : token.start()].strip(" \u00a0") == ""
        is_code = token.start() > end_of_number and any(map(str.isdigit, word))
        end_of_number = -1
        if folded in _NUMBER_WORDS:
            found.numbers[word] = {_VALUES[folded]}
        elif is_unit and len(word) <= _UNIT and folded not in _MONTH_STARTS and not is_code:
            continue
        elif any(map(str.isdigit, word)) or (word.isupper() and len(word) > 1):
            found.codes.add(word)
        elif word[0].isupper() and word != "I" and folded not in _OPENERS:
            before = plain[: token.start()].rstrip(" \t\"'*_`(“«")
            (found.first if not before or before[-1] in ".!?:\n" else found.names).add(word)
        if len(word) >= _LEAST_WORD and folded not in _COMMON and word[-1] <= _LAST_SCRIPT_WITH_SPACES:
            found.words.add(folded[:_STEM])
    return found


def _values_of(number: str) -> set[float]:
    """Return what a number may mean, as 1,500 and 1.500 may be 1500 or 1.5."""
    plain = re.sub(r"[ '\u00a0\u202f]", "", number)
    readings = {plain.replace(",", ""), plain.replace(",", ".")}
    if _GROUPED_BY_DOTS.fullmatch(plain):
        readings.add(plain.replace(".", "").replace(",", "."))
    parts = set(number.split()) if " " in number else set()  # or two numbers
    return {float(reading) for reading in readings | parts if re.fullmatch(r"\d+(?:\.\d+)?", reading)}


def _is_same(one: float, other: float) -> bool:
    """Return whether two numbers may be one quantity, also in another unit, in per cent or rounded."""
    scales = (1.0, *_UNIT_SCALES, *(_PER_CENT if min(one, other) < 1 else ()))
    return any(
        _is_rounded(one, other * scale) or _is_rounded(other * scale, one) or _is_rounded(one * scale, other)
        for scale in scales
    )


def _is_rounded(precise: float, rounded: float) -> bool:
    decimals = len(f"{rounded:.6f}".rstrip("0").partition(".")[2])
    return isclose(precise, rounded) or (precise % 1 > 0 and rounded > 0 and round(precise, decimals) == rounded)


class ClaimTexts:
    """The texts that claims are checked against.

    Args:
        question: The question, from whose words a claim may be completed.
        reference: The reference answer.
        answer: The answer to judge.
    """

    def __init__(self, question: str, reference: str, answer: str) -> None:
        self.reference = reference
        self._question, self._reference, self._answer = map(_words_of, (question, reference, answer))
        self._names = self._question.names | self._reference.names | self._answer.names
        lower = [set(re.findall(r"\b[a-zà-ÿ]+\b", text)) for text in (f"{question} {reference}", answer)]
        # Between two languages, and in German, a capital is no sign that a word must be in both texts.
        is_one_language = not all(lower) or bool(lower[0] & lower[1])
        self._has_names = is_one_language and not (self._answer.is_german or self._reference.is_german)

    def not_of_reference(self, claim: str) -> list[str]:
        """Return the numbers, codes and names in a claim that neither reference nor question has."""
        words = _words_of(_core(claim))
        names = words.names | (words.first if self._is_replaced else words.first & self._names)
        return self._absent(words, names, self._reference)

    def not_of_answer(self, claim: str) -> list[str]:
        """Return the numbers and codes in a claim that neither answer nor question has.

        Names count if the answer has others in their place: a reference may name more than an answer must.
        """
        words = _words_of(_core(claim))
        is_list = _is_list_of_names(_core(claim)) and bool(
            (words.names | words.first) & (self._answer.names | self._answer.first)
        )
        return self._absent(words, words.names | words.first if self._is_replaced or is_list else set(), self._answer)

    def reference_states(self, claim: str) -> bool:
        """Return whether a claim is a sentence of the reference, whatever its case, spaces and last point."""
        return _plain(claim) in map(_plain, _SENTENCE_END.split(self._reference.text))

    def has_words_of_reference(self, claim: str) -> bool:
        """Return whether most words of a claim are of the reference or the question."""
        return self._has_words(claim, self._reference)

    def has_words_of_answer(self, claim: str) -> bool:
        """Return whether most words of a claim are of the answer or the question."""
        return self._has_words(claim, self._answer)

    def left_out(self) -> dict[str, list[str]]:
        """Return the sentences of the reference with something that the answer lacks, and what that is."""
        found = {sentence: self.not_of_answer(sentence) for sentence in sentences_in(self._reference.text)}
        return {sentence: missing for sentence, missing in found.items() if missing}

    def added(self) -> dict[str, list[str]]:
        """Return the sentences of the answer that add something to what they have of the reference, and what that is.

        A sentence that shares nothing with the reference may be a remark on how the answer was found.
        """
        found: dict[str, list[str]] = {}
        for sentence in sentences_in(self._answer.text):
            words = _words_of(sentence)
            new = self.not_of_reference(sentence)
            shared = {*words.numbers, *words.codes, *words.names, *words.first} - set(new)
            is_answer = shared - set(self._absent(words, words.names | words.first, self._reference))
            if new and is_answer and (words.numbers.keys() & set(new) or self._states(words)):
                found[sentence] = new
        return found

    def _states(self, words: "_Words") -> bool:
        """Return whether words have something of the reference that the question has not."""
        named = {*words.codes, *words.names, *words.first}
        return any(
            word.casefold() in self._reference.all and word.casefold() not in self._question.all for word in named
        ) or any(number in self._reference.numbers for number in words.numbers)

    @cached_property
    def _is_chosen(self) -> bool:
        """Whether answer and reference each have a number or code of the question that the other one lacks."""
        answer, reference, question = (
            {*words.numbers, *words.codes} for words in (self._answer, self._reference, self._question)
        )
        return bool(question & (answer - reference) and question & (reference - answer))

    @cached_property
    def _is_replaced(self) -> bool:
        """Whether answer and reference each have a name that the other one lacks."""
        both = ((self._answer, self._reference), (self._reference, self._answer))
        return all(
            set(self._absent(one, one.names | one.first, other)) & (one.names | one.first) for one, other in both
        )

    def _absent(self, words: "_Words", names: set[str], text: "_Words") -> list[str]:
        """Return the numbers and codes of words, and some names, that neither a text nor the question has."""
        question = _words_of("") if self._is_chosen else self._question
        values, known = text.values | question.values, text.all | question.all
        absent = [
            number
            for number, readings in words.numbers.items()
            if not any(_is_same(one, other) for one in readings for other in values)
            or self._has_other_unit(words.units.get(number, {}), text)
        ]
        for word in sorted(words.codes | names if self._has_names else words.codes):
            folded = word.casefold()
            if not {folded, folded.removesuffix("s"), f"{folded}s"} & known and _VALUES.get(folded) not in values:
                absent.append(word)
        return absent

    @staticmethod
    def _has_other_unit(quantities: dict[str, set[float]], text: "_Words") -> bool:
        """Return whether a text has quantities of the same unit, and all are others: 300 MW and 300 kW."""
        for unit, one in quantities.items():
            others = {value for units in text.units.values() for value in units.get(unit, ())}
            near = (
                _is_rounded(value, other) or _is_rounded(other, value) or abs(value - other) <= _ABOUT * other
                for value in one
                for other in others
            )
            if others and not any(near):
                return True
        return False

    def _has_words(self, claim: str, text: "_Words") -> bool:
        found = _words_of(_core(claim))
        missing = len(found.words - text.words - self._question.words)
        # Half will do for a claim with a number or a code, as that is compared too.
        return 2 * missing <= len(found.words) - (0 if found.codes or found.numbers else min(1, len(found.words)))


def _is_list_of_names(text: str) -> bool:
    """Return whether a text joins things that each have a name: all of them must be in an answer."""
    items = [_words_of(item) for item in _ITEM_END.split(text.strip(" ."))]
    has_names = all(item.names or item.first or item.codes for item in items)
    return len(items) > 1 and has_names and re.search(r"\b(?:and|und|og|et|y)\b|&", text) is not None


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .")


def _core(claim: str) -> str:
    """Return a claim without identifiers beside a named thing."""
    core = _IDENTIFIER.sub(" ", claim)
    words = _words_of(core)
    return core if words.codes or words.names or words.first else claim


def sentences_in(text: str) -> list[str]:
    """Return the sentences and lines of a text, without bullets and identifiers."""
    parts = (part.strip() for part in _SENTENCE_END.split(_BULLET.sub("", _IDENTIFIER.sub(" ", text))))
    return [part for part in parts if part]
