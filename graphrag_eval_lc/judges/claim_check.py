"""Whether claims are made of the words of the texts that they come from: what code can check, no model is asked.

Numbers, codes such as ``NO5`` and names must be in the texts; other words need not, as meaning counts. What a text
denies, or says of another thing, is not in it. What code cannot decide is left to the model.
"""

import re
from functools import cached_property
from itertools import combinations

from graphrag_eval_lc.judges.claim_numbers import WEAK_NUMBERS, word_set
from graphrag_eval_lc.judges.claim_words import EMPTY, Words, plain_sentence, sentences_in, without_identifiers


class ClaimTexts:
    """The texts that claims are checked against.

    Args:
        question: The question, from whose words a claim may be completed.
        reference: The reference answer.
        answer: The answer to judge.
    """

    def __init__(self, question: str, reference: str, answer: str) -> None:
        self.reference = reference
        self._answer_text = answer
        self._question, self._reference, self._answer = map(Words, (question, reference, answer))
        self._names = self._question.names | self._reference.names | self._answer.names
        lower = [set(re.findall(r"\b[a-zà-ÿ]+\b", text)) for text in (f"{question} {reference}", answer)]
        # Between two languages, and in German, a capital is no sign that a word must be in both texts.
        is_one_language = not all(lower) or bool(lower[0] & lower[1])
        self._has_names = is_one_language and not (self._answer.is_german or self._reference.is_german)

    def not_in_reference(self, claim: str) -> str:
        """Return why a claim is not in the reference: what it lacks or says otherwise; else ``""``."""
        words = _core(claim)
        names = words.names | (words.first if self._is_replaced else words.first & self._names)
        return self._problem(words, names, self._reference, "reference answer")

    def not_in_answer(self, claim: str) -> str:
        """Return why a claim is not in the answer: what it lacks or says otherwise; else ``""``.

        Names count if the answer has others in their place: a reference may name more than an answer must.
        """
        words = _core(claim)
        all_names, of_answer = words.names | words.first, self._answer.names | self._answer.first
        is_list = any(
            listed.is_list_of_names and of_answer & (listed.names | listed.first) for listed in (words, self._reference)
        )
        names = all_names if self._is_replaced or is_list else set[str]()
        return self._problem(words, names, self._answer, "actual answer")

    def reference_states(self, claim: str) -> bool:
        """Return whether a claim is a sentence of the reference, whatever its case, spaces and last point."""
        return plain_sentence(claim) in self._reference.stated

    def has_words_of_reference(self, claim: str) -> bool:
        """Return whether most words of a claim are of the reference or the question."""
        return self._has_words(claim, self._reference)

    def has_words_of_answer(self, claim: str) -> bool:
        """Return whether most words of a claim are of the answer or the question."""
        return self._has_words(claim, self._answer)

    def left_out(self) -> dict[str, str]:
        """Return the sentences of the reference that are not in the answer, and why."""
        found = {sentence: self.not_in_answer(sentence) for sentence in sentences_in(self.reference)}
        return {sentence: problem for sentence, problem in found.items() if problem}

    def added(self) -> dict[str, str]:
        """Return the sentences of the answer that add something to what they have of the reference, and why.

        A sentence that shares nothing with the reference may be a remark on how the answer was found.
        """
        found: dict[str, str] = {}
        for sentence in sentences_in(self._answer_text):
            words, problem = Words(sentence), self.not_in_reference(sentence)
            named = words.names | words.first
            new = set(self._absent(words, named if self._is_replaced else named & self._names, self._reference))
            shared = {*words.numbers, *words.codes, *named} - set(self._absent(words, named, self._reference))
            is_answer = bool(shared) and (bool(words.numbers & new) or self._states(words))
            if problem and (is_answer if new else not self._absent(words, named, self._reference)):
                found[sentence] = problem
        return found

    def _states(self, words: Words) -> bool:
        """Return whether words have something of the reference that the question has not."""
        folded = {name.casefold() for name in (*words.codes, *words.names, *words.first)}
        is_named = bool(folded & self._reference.all - self._question.all)
        return is_named or any(number in self._reference.numbers for number in words.numbers)

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

    def _absent(self, words: Words, names: set[str], text: Words) -> list[str]:
        """Return the numbers and codes of words, and some names, that neither a text nor the question has."""
        question = Words("") if self._is_chosen else self._question
        absent = list[str]()
        for token in words.tokens:
            if (number := token.number) is not None and not any(map(number.is_same, question.values)):
                of_same_noun = [other for other in text.values if number.noun and number.noun == other.noun]
                if not any(map(number.is_same, of_same_noun or text.values)):
                    absent.append(token.text)
        known = text.all | question.all
        for word in sorted(words.codes | names if self._has_names else words.codes):
            folded = word.casefold()
            is_known = bool({folded, folded.removesuffix("s"), f"{folded}s"} & known)
            is_month = any(WEAK_NUMBERS.get(folded) in number.readings for number in text.values)
            if not (is_known or is_month or _may_be_short_for(word, words, text)):
                absent.append(word)
        return absent

    def _has_words(self, claim: str, text: Words) -> bool:
        found = _core(claim)
        missing = len(found.stems - text.stems - self._question.stems)
        # Half will do for a claim with a number or a code, as that is compared too.
        return 2 * missing <= len(found.stems) - (0 if found.codes or found.numbers else min(1, len(found.stems)))

    def _problem(self, claim: Words, names: set[str], text: Words, name: str) -> str:
        # What is denied of something need not be in a text.
        denied = {token.text for clause in claim.clauses if clause.is_denial for token in clause.tokens}
        absent = [word for word in self._absent(claim, names, text) if word not in denied]
        if absent:
            return f"the {name} does not have {', '.join(absent)}"
        if plain_sentence(claim.original) in text.stated:
            return ""
        parts = [*claim.clauses, *claim.sentences]
        if any(_is_denied(part, text, self._question) for part in parts):
            return f"the {name} says the opposite"
        if any(_is_swapped(part, text) or _is_of_another(part, text) for part in parts):
            return f"the {name} says it the other way round"
        return ""


def _core(claim: str) -> Words:
    """Return the words of a claim without identifiers beside a named thing."""
    words = Words(without_identifiers(claim))
    return words if words.codes or words.names or words.first else Words(claim)


# --- abbreviations ---

_LEAST_SPELLED_OUT = 4  # letters of a word in lower case that an initial may stand for
_LONGEST_CODE = 4
_SHORT_FORMS = {
    "ave": "avenue",
    "co": "company",
    "corp": "corporation",
    "dr": "doctor drive",
    "inc": "incorporated",
    "ltd": "limited",
    "mt": "mount",
    "prof": "professor",
    "st": "saint street",
}


def _may_be_short_for(word: str, words: Words, text: Words) -> bool:
    """Return whether a text may have a word in its short or long form: UN, U.S. for USA, Dr. A model decides then."""
    codes = {code for code in text.codes if code.isalpha() and len(code) <= _LONGEST_CODE}
    if word.isupper() and word.isalpha() and len(word) <= _LONGEST_CODE:
        is_prefix = any(code.startswith(word) or word.startswith(code) for code in codes)
        return is_prefix or (not codes and word in _initials(text))
    if any(word[0].upper() in code and code in _initials(words) for code in codes):
        return True
    folded = word.casefold()
    return any(
        folded in long.split() if short in text.all else folded == short and not text.all.isdisjoint(long.split())
        for short, long in _SHORT_FORMS.items()
    )


def _initials(words: Words) -> str:
    """Return the first letters of names and longer words."""
    spelled = (token for token in words.tokens if token.number is None)
    return "".join(
        token.text[0].upper()
        for token in spelled
        if token.kind in {"name", "first"} or len(token.text) >= _LEAST_SPELLED_OUT
    )


# --- what a text says of the same things ---

_OPENER = re.compile(r"\s*(yes|no|ja|nein)\b(?!\.? \d)", re.IGNORECASE)


def _is_denied(claim: Words, text: Words, question: Words) -> bool:
    """Return whether a text says the opposite of a claim, and nowhere the same."""
    found = set[bool]()
    for said in (*text.clauses, *text.sentences):
        mine, is_mine_denied = claim.content_for(said)
        others, is_other_denied = said.content_for(claim)
        missing = mine - others
        is_of_question = missing <= question.content and said.has_pronoun
        is_enough = len(mine) > 1 or (mine and not claim.entities and not said.entities)
        if is_enough and (not missing or (is_of_question and (len(missing) == 1 or not said.entities))):
            is_opposite = is_mine_denied != is_other_denied
            # A denial within a longer sentence may be that of another clause.
            if not (is_opposite and is_other_denied and len(said.clauses) > 1):
                found.add(is_opposite)
    opener = _OPENER.match(text.text)
    if opener is not None and not question.is_denial and len(claim.content) > 1 and claim.content <= question.content:
        found.add(claim.is_denial != (opener[1][0] in "nN"))
    return found == {True}


# Relations that are the same both ways.
_SYMMETRIC = re.compile(
    r"(?:inter)?connect|link|join|border|adjac|neighb|between$|beside|next$|marri|parallel|equal|same$|similar|differ|touch|"
    r"away|apart|distan|with$"
)
_COPULAS = word_set("is are was were has have equals")
_JOINERS = word_set("and or und og et y")
_MOST_ENTITIES = 6


def _is_swapped(claim: Words, text: Words) -> bool:
    """Return whether a text says just what a claim says, with two names, numbers or codes exchanged."""
    keys = [item.key for item in claim.items]
    places = [place for place, item in enumerate(claim.items) if item.is_entity]
    is_distance = "from" in keys and any(item.of == "m" for item in claim.items)
    if len(places) > _MOST_ENTITIES or is_distance or any(map(_SYMMETRIC.match, keys)):
        return False
    sentences = [[item.key for item in sentence.items] for sentence in text.sentences]
    sentences = [sentence for sentence in sentences if set(keys) <= set(sentence)]
    if any(_has_part(sentence, keys) for sentence in sentences):
        return False
    for one, two in combinations(places, 2):
        between = {item.key for item in claim.items[one:two] if not item.is_entity}
        if between <= _JOINERS or (between <= _COPULAS and two == len(keys) - 1):
            continue  # a list, or "A is B": the order says nothing
        exchanged = [*keys]
        exchanged[one], exchanged[two] = keys[two], keys[one]
        if any(_has_part(sentence, exchanged) for sentence in sentences):
            return True
    return False


def _has_part(whole: list[str], part: list[str]) -> bool:
    return any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))


def _is_of_another(claim: Words, text: Words) -> bool:
    """Return whether a claim says of one thing what a text says of another, as two stations with two voltages.

    Each clause of the text with one of the claim's two things must have one other thing, of the same kind as the
    claim's; two names must be exchanged in an equal clause.
    """
    entities = claim.entities
    if len(entities) != 2 or entities[0].key == entities[1].key:
        return False
    keys = [item.key for item in claim.items if item.key not in _COPULAS]
    found, said, is_said_so = set[str](), set[str](), True
    for clause in text.clauses:
        others = {item.key: item for item in clause.entities}
        for own, expected in (entities, entities[::-1]):
            if own.key not in others:
                continue
            partners = [other for key, other in others.items() if key != own.key]
            if not partners and len(clause.content) > 1:
                continue  # it says something else of the thing
            if len(partners) != 1 or partners[0].key == expected.key or not partners[0].is_like(expected):
                return False
            found.add(own.key)
            said |= {item.key for item in clause.items}
            exchanged = [expected.key if item.key == partners[0].key else item.key for item in clause.items]
            is_said_so &= [key for key in exchanged if key not in _COPULAS] == keys
    if len(found) != len(entities):
        return False
    has_value = any(item.kind in {"number", "code"} for item in entities)
    return is_said_so or (has_value and {key for key in keys if key not in found and key not in EMPTY} <= said)
