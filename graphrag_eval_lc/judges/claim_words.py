"""The words of a text as claims are compared by them: numbers, codes, names, clauses and what they deny."""

import re
from dataclasses import dataclass
from functools import cached_property

from graphrag_eval_lc.judges.claim_numbers import (
    MONTHS_SHORT,
    UNITS,
    WEAK_NUMBERS,
    Number,
    readings_of,
    with_digits,
    word_set,
)

_LEAST_WORD = 5  # letters; shorter words carry little meaning, and so do these
_COMMON = word_set("there their these those which where about between located called after before since under other")
_STEM = 5


def stem(word: str) -> str:
    """Return the beginning of a word without the s of a plural."""
    return (word[:-1] if word.endswith("s") and not word.endswith("ss") else word)[:_STEM]


@dataclass(frozen=True)
class Token:
    """A number, a code such as ``NO5``, a name, or another word; ``first``: a capital begins a sentence."""

    kind: str
    text: str
    start: int
    end: int
    number: Number | None = None

    @property
    def folded(self) -> str:
        """The text without its case."""
        return self.text.casefold()


@dataclass(frozen=True)
class Item:
    """A word, or a thing: a name, a code, or a number with what it measures or counts."""

    kind: str
    key: str
    of: str = ""

    @property
    def is_entity(self) -> bool:
        """Whether it is a thing."""
        return self.kind != "word"

    def is_like(self, other: "Item") -> bool:
        """Return whether two things are of one kind."""
        return self.kind == other.kind and (self.of == other.of or not self.of or not other.of)


_ARTICLES = frozenset(("a", "an", "the"))
_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)|(?P<word>[^\W_]+)"
)
_UNIT = re.compile(r"[ \u00a0-]?([^\W\d_]+)")
_LEAST_NOUN = 4
_LONGEST_UNIT = 3  # letters of one that is not known, right after a number
# Words that begin a sentence with a capital and name nothing; "yes" and "no" are answers.
_OPENERS = word_set(
    "the a an it its this that these those there they he she we not both all each some any in on at of for from with "
    "by as to according based here also only and or but if when while"
)
_PRONOUNS = word_set("it they this these that he she")
EMPTY = _PRONOUNS | word_set(
    "0 a an the is are was were be been being has have had do does did can could will would should may might not no "
    "never neither nor none cannot there any some its their those of to in on at for from with by as and or also both "
    "either yes t s don doesn didn isn aren wasn weren hasn haven hadn kein keine keinen nicht nie nein ja"
)
"""Words that a statement has or lacks without saying anything else."""
_NEGATION = re.compile(
    r"\b(?:[nN](?:ot|ever|either|or|one|icht|ie)|[cC]annot|[kK]ein\w*|\w+n['’]t|no(?!\.? \d)|No(?= [a-z]))\b"
    r"(?! (?:only|just|more|less|fewer|later|earlier|doubt)\b)"
)
_NO_NOUNS = EMPTY | _COMMON | word_set("over than into more less when each only then while that were")
_OPPOSITE = re.compile(r"(?:un|dis|non|in|im)(\w{4,})")


def _tokens_of(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.search(text, position):
        position = match.end()
        if match["word"]:
            tokens.append(_word_token(match, text))
            continue
        unit = _UNIT.match(text, match.end())
        word = unit[1] if unit is not None and not text[unit.end() : unit.end() + 1].isdigit() else ""
        known = UNITS.get(word) or (UNITS.get(word.casefold()) if len(word) > 2 else None)
        is_short = 0 < len(word) <= _LONGEST_UNIT and word.casefold() not in MONTHS_SHORT
        if unit is not None and (known or is_short):
            position = unit.end()
        is_unit = known is not None or (is_short and word not in _NO_NOUNS)
        noun = "" if known or len(word) < _LEAST_NOUN or word in _NO_NOUNS else stem(word)
        number = Number(frozenset(readings_of(match[0])), *(known or ("", 1.0)), noun, is_unit)
        tokens.append(_joined(tokens, Token("number", match[0], match.start(), position, number), text))
    return tokens


def _joined(tokens: list[Token], token: Token, text: str) -> Token:
    """Return one number for a time such as 1 h 30 min, whose beginning is taken from the tokens."""
    before = next((each for each in reversed(tokens) if each.folded != "and"), None)
    if before is None or before.number is None or token.number is None or text[before.end : token.start].strip(" and"):
        return token
    hours, minutes = before.number, token.number
    if not hours.measures == minutes.measures == "s" or max(minutes.readings) * minutes.scale >= hours.scale:
        return token
    total = max(hours.readings) * hours.scale / minutes.scale + max(minutes.readings)
    del tokens[tokens.index(before) :]
    number = Number(frozenset({total}), "s", minutes.scale)
    return Token("number", text[before.start : token.end], before.start, token.end, number)


def _word_token(match: re.Match[str], text: str) -> Token:
    word = match[0]
    kind = "word"
    if any(map(str.isdigit, word)) or (word.isupper() and len(word) > 1):
        kind = "code"
    elif word[0].isupper() and word != "I" and word.casefold() not in _OPENERS:
        before = text[: match.start()].rstrip(" \t\"'*_`(“«")
        kind = "first" if not before or before[-1] in ".!?:\n" else "name"
    return Token(kind, word, match.start(), match.end())


_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_CLAUSE_END = re.compile(
    r"[,;]\s|\s[-–—]\s|\b(?:and|but|while|whereas|although|because|if|when|which|who|that|without|except|unlike|rather|"
    r"with no|und|aber|während)\b",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^\s*(?:[-*•>#|]+\s*|\d{1,3}[.)]\s+)+", re.MULTILINE)
_IDENTIFIER = re.compile(
    r"<?(?:https?://|urn:)[^\s<>()\[\],;]+>?|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}\b", re.IGNORECASE
)
_ITEM_END = re.compile(r"[,;|&\n]|\b(?:and|und|og|et|y)\b")
_LAST_SCRIPT_WITH_SPACES = "\u058f"
# German capitalises all nouns, so that capitals are no sign of names there.
_GERMAN = word_set("der die das den ist sind und von mit ein eine einer hat haben wird nicht auf für bei")


class Words:
    """The words of one text: a claim, a question or an answer."""

    def __init__(self, text: str) -> None:
        self.original = text
        self.text = _BULLET.sub(lambda bullet: " " * len(bullet[0]), with_digits(text))
        self.tokens = _tokens_of(self.text)
        self.all = {token.folded for token in self.tokens}
        self.numbers = {token.text for token in self.tokens if token.number is not None}
        self.codes, self.names, self.first = (
            {token.text for token in self.tokens if token.kind == kind} for kind in ("code", "name", "first")
        )

    @cached_property
    def values(self) -> set[Number]:
        """All numbers, and how many items its lists have, as a count may follow from a list."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        items = [len(_ITEM_END.split(part)) for part in _SENTENCE_END.split(self.text)]
        counts = (*items, len(lines), len(lines) - 1, len(self.names | self.codes))
        weak = [WEAK_NUMBERS[word] for word in self.all & WEAK_NUMBERS.keys()]
        others = {*weak, *(float(count) for count in counts if count > 1)}
        numbers = (token.number for token in self.tokens if token.number is not None)
        return {*numbers, *(Number(frozenset({value})) for value in others)}

    @cached_property
    def stems(self) -> set[str]:
        """The beginnings of the longer words, which carry the meaning."""
        long = (token.folded for token in self.tokens if token.number is None and len(token.text) >= _LEAST_WORD)
        return {word[:_STEM] for word in long if word not in _COMMON and word[-1] <= _LAST_SCRIPT_WITH_SPACES}

    @cached_property
    def items(self) -> list["Item"]:
        """The words without articles, each name of several words as one."""
        items: list[Item] = []
        end = 0
        for token in self.tokens:
            is_name = token.kind in {"name", "first"}
            if is_name and items and items[-1].kind == "name" and not self.text[end : token.start].strip():
                items[-1] = Item("name", f"{items[-1].key} {token.folded}")
            elif token.number is not None:
                items.append(Item("number", token.folded, token.number.measures or token.number.noun))
            elif is_name or token.folded not in _ARTICLES:
                items.append(Item("name" if is_name else token.kind, token.folded))
            end = token.end
        return items

    @cached_property
    def clauses(self) -> list["Words"]:
        """The parts of its sentences that may each state something."""
        parts = (part for sentence in _SENTENCE_END.split(self.text) for part in _CLAUSE_END.split(sentence))
        return [Words(part) for part in parts if _WORD_CHARACTER.search(part)]

    @cached_property
    def sentences(self) -> list["Words"]:
        """Its sentences and lines."""
        return [Words(part) for part in _SENTENCE_END.split(self.text) if _WORD_CHARACTER.search(part)]

    @cached_property
    def stated(self) -> set[str]:
        """Its sentences as they are, but for case, spaces and the last point."""
        return set(map(plain_sentence, sentences_in(self.original)))

    @cached_property
    def entities(self) -> list["Item"]:
        """Its names, codes and numbers."""
        return [item for item in self.items if item.is_entity]

    @cached_property
    def content(self) -> frozenset[str]:
        """The beginnings of the words that say something."""
        return frozenset(map(stem, self.all - EMPTY))

    @cached_property
    def is_denial(self) -> bool:
        """Whether something is denied."""
        has_none = any(token.number is not None and token.number.is_none for token in self.tokens)
        return has_none or _NEGATION.search(self.text) is not None

    @property
    def has_pronoun(self) -> bool:
        """Whether it may speak of what the question names."""
        return not self.all.isdisjoint(_PRONOUNS)

    def content_for(self, other: "Words") -> tuple[frozenset[str], bool]:
        """Return the content and whether it is denied, as ``disconnected`` denies another text's ``connected``."""
        content, is_denied = set(self.content), self.is_denial
        for word in self._with_prefix:
            plain, denied = stem(word[1]), stem(word[0])
            if plain in other.content and denied not in other.content:
                content = content - {denied} | {plain}
                is_denied = not is_denied
        return frozenset(content), is_denied

    @cached_property
    def _with_prefix(self) -> list[re.Match[str]]:
        return [found for word in sorted(self.all) if (found := _OPPOSITE.fullmatch(word)) is not None]

    @property
    def is_german(self) -> bool:
        """Whether it is in German."""
        return len(self.all & _GERMAN) > 1

    @cached_property
    def is_list_of_names(self) -> bool:
        """Whether things that each have a name are joined: three by commas, or two by a word."""
        items = [Words(item) for item in _ITEM_END.split(self.text.strip(" ."))]
        has_names = all(item.names or item.first or item.codes for item in items)
        return has_names and len(items) > (1 if re.search(r"\b(?:and|und|og|et|y)\b|&", self.text) else 2)


_WORD_CHARACTER = re.compile(r"\w")


def sentences_in(text: str) -> list[str]:
    """Return the sentences and lines of a text, without bullets and identifiers."""
    parts = (part.strip() for part in _SENTENCE_END.split(_BULLET.sub("", without_identifiers(text))))
    return [part for part in parts if part]


def without_identifiers(text: str) -> str:
    """Return a text without IRIs and UUIDs."""
    return _IDENTIFIER.sub(" ", text)


def plain_sentence(text: str) -> str:
    """Return a text without its case, its spaces and its last point."""
    return " ".join(text.casefold().split()).rstrip(" .")
