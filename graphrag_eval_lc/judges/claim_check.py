"""Checks without a model whether the texts that claims come from support their numbers, codes and names.

Numbers, codes such as ``NO5`` and names must be in the texts. Other words need not be, as only their meaning counts. A
claim is not supported if the text denies it in the same words, or has its number in the same words for another name.
The model decides everything else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from graphrag_eval_lc.judges.claim_numbers import (
    MONTHS,
    UNITS,
    WEAK_NUMBERS,
    Number,
    readings_of,
    with_digits,
    word_set,
)


class ClaimTexts:
    """The texts that claims are checked against; a claim may also use words of the question."""

    def __init__(self, question: str, reference: str, answer: str) -> None:
        self.reference = reference
        self.answer = answer
        self._question, self._reference, self._answer = map(_Words, (question, reference, answer))
        self._names = self._question.names | self._reference.names | self._answer.names
        lower = [set(re.findall(r"\b[a-zà-ÿ]+\b", text)) for text in (f"{question} {reference}", answer)]
        # In German, or if the texts are in two languages, a capital letter does not mean that both must have the word.
        is_one_language = not all(lower) or bool(lower[0] & lower[1])
        self._has_names = is_one_language and not (self._answer.is_german or self._reference.is_german)

    def not_in_reference(self, claim: str) -> str:
        """Return a sentence on what in a claim the reference lacks, denies or says of another name; else ``""``."""
        words = _core(claim)
        names = words.names | (words.first if self._is_replaced else words.first & self._names)
        absent = self._absent(words, names, self._reference)
        return _problem(absent, _Words(claim), self._reference, "reference answer")

    def not_in_answer(self, claim: str) -> str:
        """Return a sentence on what in a claim the answer lacks, denies or says of another name; else ``""``.

        A missing name counts only if the answer has other names instead, or lists some of them: a reference may name
        more than an answer must.
        """
        words = _core(claim)
        of_answer = self._answer.names | self._answer.first
        is_list = any(
            listed.is_list_of_names and of_answer & (listed.names | listed.first) for listed in (words, self._reference)
        )
        names = words.names | words.first if self._is_replaced or is_list else set[str]()
        return _problem(self._absent(words, names, self._answer), _Words(claim), self._answer, "actual answer")

    def reference_states(self, claim: str) -> bool:
        """Return whether a claim is a sentence of the reference; case, spaces and a final full stop are ignored."""
        return _plain(claim) in set(map(_plain, sentences_in(self.reference)))

    def has_words_of_reference(self, claim: str) -> bool:
        """Return whether most words of a claim are words of the reference or the question."""
        return self._has_words(claim, self._reference)

    def has_words_of_answer(self, claim: str) -> bool:
        """Return whether most words of a claim are words of the answer or the question."""
        return self._has_words(claim, self._answer)

    def left_out(self) -> dict[str, str]:
        """Return the sentences of the reference that the answer does not support, each with the reason."""
        found = {sentence: self.not_in_answer(sentence) for sentence in sentences_in(self.reference)}
        return {sentence: problem for sentence, problem in found.items() if problem}

    def added(self) -> dict[str, str]:
        """Return the sentences of the answer that add a number, code or name to something from the reference.

        A sentence that shares nothing with the reference is left out: it may say how the answer was found.
        """
        found: dict[str, str] = {}
        for sentence in sentences_in(self.answer):
            words = _Words(sentence)
            things = {*words.numbers, *words.codes, *words.names, *words.first} - _CURRENCIES
            absent = set(self._absent(words, words.names | words.first, self._reference))
            if any(self._is_of_reference(thing) for thing in things - absent):
                problem = self.not_in_reference(sentence)
                found |= {sentence: problem} if problem else {}
        return found

    def _is_of_reference(self, thing: str) -> bool:
        """Return whether the reference has a number, code or name that the question lacks."""
        folded = thing.casefold()
        return thing in self._reference.numbers or folded in self._reference.all - self._question.all

    @cached_property
    def _is_chosen(self) -> bool:
        """Whether the question offers a choice, so that answer and reference each have one of its numbers or codes."""
        answer, reference, question = (
            {*words.numbers, *words.codes} for words in (self._answer, self._reference, self._question)
        )
        return bool(question & (answer - reference) and question & (reference - answer))

    @cached_property
    def _is_replaced(self) -> bool:
        """Whether answer and reference each have a name that the other lacks."""
        both = ((self._answer, self._reference), (self._reference, self._answer))
        return all(
            set(self._absent(one, one.names | one.first, other)) & (one.names | one.first) for one, other in both
        )

    def _absent(self, words: "_Words", names: set[str], text: "_Words") -> list[str]:
        """Return the numbers and codes in ``words``, and those of ``names``, that the text and the question lack."""
        question = _Words("") if self._is_chosen else self._question
        absent = list[str]()
        for token in words.tokens:
            number = token.number
            if number is None or words.leaves_open(number) or text.leaves_open(number):
                continue
            if not any(map(number.is_same, question.values)):
                of_same_noun = [other for other in text.values if number.noun and number.noun == other.noun]
                if not any(map(number.is_same, of_same_noun or text.values)):
                    absent.append(token.text)
        known = text.all | question.all
        codes = words.codes if text.codes & _CURRENCIES else words.codes - _CURRENCIES
        for word in sorted(codes | names if self._has_names else codes):
            folded = word.casefold()
            is_known = bool({folded, folded.removesuffix("s"), f"{folded}s"} & known)
            is_month = any(MONTHS.get(folded) in number.readings for number in text.values)
            if not (is_known or is_month or _may_be_short_for(word, words, text)):
                absent.append(word)
        return absent

    def _has_words(self, claim: str, text: "_Words") -> bool:
        found = _core(claim)
        missing = len(found.stems - text.stems - self._question.stems)
        # If a claim has a number or a code, half of the words are enough, as the number or code is compared too.
        return 2 * missing <= len(found.stems) - (0 if found.codes or found.numbers else min(1, len(found.stems)))


def _problem(absent: list[str], claim: "_Words", text: "_Words", name: str) -> str:
    if absent:
        return f"the {name} does not have {', '.join(absent)}"
    if any(_is_denied(clause, text.clauses) for clause in claim.clauses):
        return f"the {name} says the opposite"
    if any(_is_said_of_another_name(clause, text.clauses) for clause in claim.clauses):
        return f"the {name} says it the other way round"
    return ""


def _is_denied(claim: "_Clause", clauses: "Sequence[_Clause]") -> bool:
    """Return whether a text has the words of a clause, but a negation on one side only."""
    found = {clause.is_denial for clause in clauses if clause.singular == claim.singular}
    return len(claim.words) > 1 and claim.is_denial is not None and found - {None} == {not claim.is_denial}


def _is_said_of_another_name(claim: "_Clause", clauses: "Sequence[_Clause]") -> bool:
    """Return whether a text has the clause with another number, and the claim's number for another name."""
    differences = [clause.difference(claim) for clause in clauses]
    if [] in differences:
        return False
    for place in claim.numbers:
        with_number = [clause for clause in clauses if claim.words[place] in clause.words]
        has_another = any(
            places == [place] and place in clause.numbers for clause, places in zip(clauses, differences, strict=True)
        )
        is_of_other = any(len(clause.difference(claim) or ()) == 1 for clause in with_number)
        if has_another and is_of_other and all(clause.names - claim.names for clause in with_number):
            return True
    return False


def _core(claim: str) -> "_Words":
    """Return the words of a claim before its negation, as what a claim denies need not be in a text.

    Identifiers next to a named thing are left out.
    """
    claim = _NEGATION.split(claim)[0]
    words = _Words(_IDENTIFIER.sub(" ", claim))
    return words if words.codes or words.names or words.first else _Words(claim)


def _may_be_short_for(word: str, words: "_Words", text: "_Words") -> bool:
    """Return whether a text may have a word in a shorter or longer form, such as UN or USA; then the model decides."""
    codes = {code for code in text.codes - _CURRENCIES if code.isalpha() and len(code) <= _LONGEST_CODE}
    if word.isupper() and word.isalpha() and len(word) <= _LONGEST_CODE:
        is_prefix = any(code.startswith(word) or word.startswith(code) for code in codes)
        return is_prefix or (not codes and word in text.initials)
    return any(word[0].upper() in code and code in words.initials for code in codes)


# --- words ---

_LONGEST_CODE = 4  # letters of an abbreviation
_LEAST_WORD = 5  # letters; shorter words carry little meaning, and so do the common ones
_STEM = 5
_COMMON = word_set("there their these those which where about between located called after before since under other")
# Capitalised words at the start of a sentence that are not names, and titles. "Yes" and "no" are answers.
_OPENERS = word_set(
    "the a an it its this that these those there they he she we not both all each some any in on at of for from with "
    "by as to according based here also only and or but if when while st saint dr doctor prof professor mr mrs ms "
    "mt mount"
)
# The model compares quantities in these words: counts, lengths and times.
_VAGUE = re.compile(
    r"\b(?:half|quarters?|thirds?|dozen|hundred|inch(?:es)?|(?<!\d)(?<!\d[ -])(?:miles?|foot|feet))\b", re.IGNORECASE
)
_VAGUE_TIME = re.compile(
    r"\b(?:an?|one) (?:second|minute|hour|day|week|month|year)\b|\band a half\b|\d ?[ap]m\b", re.IGNORECASE
)
_NEGATION = re.compile(
    r"\b(?:not|never|neither|(?!(?-i:NO))no(?!\.? ?\d)|none|cannot|\w+n['’]t|nicht|nie|kein\w*)\b"
    r"(?! (?:only|just|more|less|fewer)\b)",
    re.IGNORECASE,
)
# Words that do not change what a clause says.
_EMPTY = word_set(
    "a an the is are was were be been has have had do does did can will could would it its of there yes but and ist "
    "sind hat haben der die das ein eine"
)
_CURRENCIES = word_set("EUR USD GBP NOK SEK DKK CHF JPY CNY INR AUD CAD NZD PLN CZK")
_SIGNS = {"€": " EUR ", "£": " GBP ", "$": " USD "}
_SIGN = re.compile(r"[€£]|(?<!\w)(?:US ?)?\$(?=\s?\d)|(?<=\d)\s?\$(?!\w)")
_GERMAN = word_set("der die das den ist sind und von mit ein eine einer hat haben wird nicht auf für bei")
_TOKEN = re.compile(
    r"(?P<number>\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?)|(?P<word>[^\W_]+)"
)
_UNIT = re.compile(r"[ \u00a0-]?([^\W\d_]+)(?!\d)")
_DOTTED_DATE = re.compile(r"\b(\d\d?)\.(\d\d?)\.(\d{4})\b")
_ABBREVIATION = re.compile(r"\b(?:[A-Z]\.)+[A-Z]\b\.?")
_BULLET = re.compile(r"^\s*(?:-+(?!\d)\s*|[*•>#|]+\s*|\d{1,3}[.)]\s+)+", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_IDENTIFIER = re.compile(
    r"<?(?:https?://|urn:)[^\s<>()\[\],;]+>?|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}\b", re.IGNORECASE
)
_CLAUSE_END = re.compile(r"[,;]\s|\b(?:and|but|while|whereas|und|aber|og)\b", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")
_ITEM_END = re.compile(r"[,;|&\n]|\b(?:and|und|og|et|y)\b")
_AND = re.compile(r"\b(?:and|und|og|et|y)\b|&")
_LAST_SCRIPT_WITH_SPACES = "\u058f"


def _stem(word: str) -> str:
    return (word[:-1] if word.endswith("s") and not word.endswith("ss") else word)[:_STEM]


@dataclass(frozen=True)
class _Token:
    """A number, a code such as ``NO5``, a name, or another word; ``first``: it begins a sentence with a capital."""

    kind: str
    text: str
    number: Number | None = None


@dataclass(frozen=True)
class _Clause:
    """The meaningful words of a clause without negations, the indices of its numbers, and its names.

    ``is_denial`` is None if it is unclear because another clause of the sentence has a negation.
    """

    words: list[str]
    numbers: list[int]
    names: set[str]
    is_denial: bool | None

    @cached_property
    def singular(self) -> list[str]:
        """The words without a final s of plurals and verbs."""
        return [word.removesuffix("s") for word in self.words]

    def difference(self, other: "_Clause") -> list[int] | None:
        """Return the indices at which the words of two clauses differ; None if one has more words."""
        if len(self.words) != len(other.words):
            return None
        pairs = zip(self.words, other.words, strict=True)
        return [place for place, (one, two) in enumerate(pairs) if one != two]


def _clause(text: str, sentence: str) -> _Clause:
    tokens = [token for token in _tokens_of(_NEGATION.sub(" ", text)) if token.text.casefold() not in _EMPTY]
    names = (token.text for token in tokens if token.kind in {"code", "name", "first"} or _YEAR.fullmatch(token.text))
    is_denial = _NEGATION.search(text) is not None
    return _Clause(
        [token.text.casefold() for token in tokens],
        [place for place, token in enumerate(tokens) if token.number],
        {name.casefold() for name in names},
        is_denial if is_denial or not _NEGATION.search(sentence) else None,
    )


class _Words:
    """The words of one text (a claim, a question or an answer), and what is derived from them."""

    def __init__(self, text: str) -> None:
        text = _DOTTED_DATE.sub(r"\1 \2 \3", with_digits(text))
        text = _ABBREVIATION.sub(lambda match: match[0].replace(".", ""), text)
        text = _SIGN.sub(lambda match: _SIGNS[match[0][-1]], text)
        self.text = _BULLET.sub("", text)
        self.tokens = _tokens_of(self.text)
        self.all = {token.text.casefold() for token in self.tokens}
        self.numbers, self.codes, self.names, self.first = (
            {token.text for token in self.tokens if token.kind == kind} for kind in ("number", "code", "name", "first")
        )

    @cached_property
    def values(self) -> set[Number]:
        """All numbers, and the lengths of its lists, as a claim may count the items of a list."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        items = [len(_ITEM_END.split(part)) for part in _SENTENCE_END.split(self.text)]
        counts = (*items, len(lines), len(lines) - 1, len(self.names | self.codes))
        weak = [WEAK_NUMBERS[word] for word in self.all & WEAK_NUMBERS.keys()]
        others = {*weak, *(float(count) for count in counts if count > 1)}
        numbers = (token.number for token in self.tokens if token.number is not None)
        return {*numbers, *(Number(frozenset({value})) for value in others)}

    @cached_property
    def clauses(self) -> list[_Clause]:
        """The clauses of its sentences."""
        sentences = _SENTENCE_END.split(self.text)
        parts = ((part, sentence) for sentence in sentences for part in {sentence, *_CLAUSE_END.split(sentence)})
        return [clause for part, sentence in parts if (clause := _clause(part, sentence)).words]

    def leaves_open(self, number: Number) -> bool:
        """Return whether code cannot compare a number, because of "half an hour" or "2 hours and 15 minutes"."""
        if _VAGUE.search(self.text):
            return number.quantity in {"", "s", "m"}
        scales = {token.number.scale for token in self.tokens if token.number and token.number.quantity == "s"}
        is_time = number.quantity == "s" or not (number.quantity or number.noun)
        return is_time and (len(scales) > 1 or _VAGUE_TIME.search(self.text) is not None)

    @cached_property
    def stems(self) -> set[str]:
        """The stems of the longer words, which carry the meaning."""
        long = (token.text.casefold() for token in self.tokens if token.number is None)
        words = (word for word in long if len(word) >= _LEAST_WORD and word not in _COMMON)
        return {word[:_STEM] for word in words if word[-1] <= _LAST_SCRIPT_WITH_SPACES}

    @cached_property
    def initials(self) -> str:
        """The first letters of names."""
        return "".join(token.text[0] for token in self.tokens if token.kind in {"name", "first"})

    @property
    def is_german(self) -> bool:
        """Whether the text is in German."""
        return len(self.all & _GERMAN) > 1

    @cached_property
    def is_list_of_names(self) -> bool:
        """Whether it lists named things: three or more separated by commas, or two joined by a word."""
        items = [_Words(item) for item in _ITEM_END.split(self.text.strip(" ."))]
        has_names = all(item.names or item.first or item.codes for item in items)
        return has_names and len(items) > (1 if _AND.search(self.text) else 2)


def _tokens_of(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while match := _TOKEN.search(text, position):
        position = match.end()
        if match["word"]:
            tokens.append(_Token(_kind_of(match, text), match[0]))
            continue
        unit = _UNIT.match(text, position)
        word = unit[1] if unit is not None else ""
        known = UNITS.get(word) or (UNITS.get(word.casefold()) if len(word) > 2 else None)
        if unit is not None and known:
            position = unit.end()
        noun = "" if known or len(word) < _LEAST_WORD - 1 or word in _COMMON | _OPENERS else _stem(word)
        tokens.append(_Token("number", match[0], Number(frozenset(readings_of(match[0])), *(known or ("", 1.0)), noun)))
    return tokens


def _kind_of(match: re.Match[str], text: str) -> str:
    word = match[0]
    if any(map(str.isdigit, word)) or (word.isupper() and len(word) > 1):
        return "code"
    if not word[0].isupper() or word == "I" or word.casefold() in _OPENERS:
        return "word"
    before = text[: match.start()].rstrip(" \t\"'*_`(“«")
    return "first" if not before or before[-1] in ".!?:\n" else "name"


def sentences_in(text: str) -> list[str]:
    """Return the sentences and lines of a text, without bullets and identifiers."""
    parts = (part.strip() for part in _SENTENCE_END.split(_BULLET.sub("", _IDENTIFIER.sub(" ", text))))
    return [part for part in parts if part]


def _plain(text: str) -> str:
    """Return a text in lower case with single spaces and without a final full stop."""
    return " ".join(text.casefold().split()).rstrip(" .")


# --- refusals ---

_APOSTROPHES = str.maketrans("’ʼ", "''")
# Marks for bold text and code are ignored.
_MARKS = re.compile(r"[*_`]+")
_FOUND = r"(?:find|locate|identify|retrieve|fetch|extract|determine|list|resolve|answer|compute|tell|return|access)"
_REFUSALS = re.compile(
    "|".join(
        (
            # "I could not find", "I'm unable to determine", "I can't tell which one"
            rf"\b(?:I|we)(?:'m| am| was| were|'re| are)? (?:could not|couldn't|cannot|can't|unable to|not able to|"
            rf"did not|didn't|do not|don't|was not able to|wasn't able to) (?:\w+ ){{0,2}}?{_FOUND}\b",
            r"\b(?:I|we) (?:do not|don't) (?:have|know)\b",
            r"\bI need (?:the|more|to know|an?)\b",
            r"\b(?:could not|couldn't|cannot|can't) be (?:found|determined|answered|identified|resolved)\b",
            r"\b(?:does not|doesn't|do not|don't) exist\b",
            r"\bthere(?: is|'s| are) no (?:such|\S+(?: \S+)? (?:named|called|with the (?:name|id|mRID|IRI)))\b",
            r"\bno such (?!thing as)\w+",
            r"\bno (?:results?|matches|match|data|information|answer) (?:was|were|could be) found\b",
            r"\bwhich (?:specific |particular )?(?:one|\S+)(?: \S+)? do you mean\b",
            r"\bwhich (?:specific )?\S+ you mean\b",
            r"\bplease (?:specify|clarify|provide|tell me|say) ",
            r"\b(?:ambiguous|more than one match|not enough information|insufficient information)\b",
            # German
            r"\b(?:konnte|kann|können|konnten) (?:ich|wir)?\b[^.?!]*\bnicht (?:finden|beantworten|ermitteln)\b",
            r"\b(?:es gibt|gibt es) kein\w* (?:solche\w*|\w+ (?:mit dem Namen|namens))\b",
            r"\bwelche\w* (?:\w+ )?(?:meinst du|meinen Sie)\b",
        )
    ),
    re.IGNORECASE,
)
_OPENING = re.compile(r"\A\s*(.*?)(?:\n\s*\n|\n\s*(?:[-*•|]|\d+[.)])|\Z)", re.DOTALL)
_LONGEST_OPENING = 400


def is_refusal(answer: str) -> bool:
    """Return whether an answer refuses: "I could not find …", "which T1 do you mean?", "there is no such entity".

    Only the first paragraph up to a list counts: "I could not find more" after an answer is not a refusal. "No, they
    are not connected" and "it has no transformers" are answers. English and German are supported; no model is asked.

    Example:
        >>> is_refusal("I couldn't find any terminal with this id. If you want, I can search by name.")
        True
        >>> is_refusal("There are many terminals named T1. Which one do you mean?")
        True
        >>> is_refusal("No, OSLO has no wind units.")
        False
    """
    text = _MARKS.sub("", answer.translate(_APOSTROPHES))
    opening = _OPENING.match(text)
    return opening is not None and _REFUSALS.search(opening[1][:_LONGEST_OPENING]) is not None
