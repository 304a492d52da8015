"""Where an IRI is in an output as a whole term, and its rank there: the more an agent looked through, the later."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{0,40}:"
# Outside quotes a comma and brackets end an IRI, though it may have them; inside quotes only the quotes do.
_CHARACTER: Final = r"[^\s<>\"'{}|\\^`,;()\[\]]"
_QUOTED: Final = re.compile(rf"{_SCHEME}[^\s<>\"{{}}|\\^`]+")
_BARE: Final = re.compile(rf"(?<![A-Za-z0-9]){_SCHEME}{_CHARACTER}+")
# The punctuation of a sentence, Markdown's emphasis too, that may follow an IRI without being part of it.
_PUNCTUATION: Final = ".:!?*…。，、；：！？）】」』》”’»"
_BARE_END: Final = re.compile(rf"[{_PUNCTUATION}]*(?!{_CHARACTER})")
_QUOTED_END: Final = re.compile(rf"[{_PUNCTUATION},;()\[\]]*(?:[\s<>\"'{{}}|\\^`]|\Z|(?<=[,;]){_SCHEME})")
_OPENING: Final = frozenset("<\"'`")
_BREAK: Final = re.compile(r"[\s<>\"'{}|\\^`,;()\[\]]")
# What may precede an IRI without a break: "iri=", "**", an opening bracket of any script; nothing that began an IRI.
_BEFORE: Final = re.compile(r"(?:[^:/?#]*[^:/?#A-Za-z0-9+.-])?[+.-]*")
_LONGEST_BEFORE: Final = 200
_ESCAPES: Final = re.compile(r"""(?:\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))+""")
_DECLARATION: Final = re.compile(r"(?im)^[ \t]*@?(?:prefix|base)\b[^\n]*")
# The parts of a triple, as their columns are called, in the order in which they are written.
_AS_WRITTEN: Final = str.maketrans("spo", "012")


def readable_text(output: Any) -> str:
    r"""Return an output as a text without the escapes of JSON, also of JSON inside a string of JSON.

    Example:
        >>> readable_text('["https:\\/\\/x.example\\/a"]'), readable_text(["urn:a"])
        ('["https://x.example/a"]', '["urn:a"]')
    """
    text = output if isinstance(output, str) else json_text(output)
    for _ in range(2):
        if "\\" in text:
            text = _ESCAPES.sub(lambda escapes: str(json.loads(f'"{escapes[0]}"')), text)
    return text


def place_of(text: str, iri: str) -> int | None:
    """Return where an IRI first is in a text as a whole term; None if it is not.

    It is part of another IRI if further characters of one follow it or precede it, other than the punctuation of a
    sentence. In quotes and angle brackets everything up to their end is one IRI.

    Example:
        >>> place_of("It is urn:a.", "urn:a"), place_of("<urn:a.b> urn:a-1", "urn:a")
        (6, None)
    """
    place = text.find(iri)
    while place >= 0:
        if text[place - 1 : place] in _OPENING:
            is_whole = _QUOTED_END.match(text, place + len(iri)) is not None
        else:
            before = _BREAK.split(text[max(0, place - _LONGEST_BEFORE) : place])[-1]
            is_whole = bool(_BEFORE.fullmatch(before) and _BARE_END.match(text, place + len(iri)))
        if is_whole:
            return place
        place = text.find(iri, place + 1)
    return None


def holds_whole(text: str, iri: str) -> bool:
    """Return whether an IRI is in a text as a whole term, not as part of another one."""
    return place_of(text, iri) is not None


def iris_in_text(text: str) -> list[str]:
    """Return what may be an IRI or a prefixed name in a text, in order, each once.

    Example:
        >>> iris_in_text("It is <urn:a,b> or urn:c.")
        ['urn:a,b', 'urn:a', 'urn:c.', 'urn:c']
    """
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        bare = _BARE.match(text, match.start())
        ends = [match[0].rstrip("'"), *([bare[0], bare[0].rstrip(_PUNCTUATION)] if bare else ())]
        found.update(dict.fromkeys(ends))
    return list(found)


def terms_of(column: TermColumn, row: int) -> Iterator[tuple[str, str]]:
    """Yield the text and the kind of a cell, and of a triple term those of its parts, as they are written.

    Args:
        column: A column of results.
        row: The index of the row.
    """
    yield column.texts[row], column.kind(row)
    for _, part in sorted(getattr(column, "parts", {}).items(), key=lambda each: each[0].translate(_AS_WRITTEN)):
        yield part.texts[row], part.kind(row)
    waiting: list[Any] = [column.structures.get(row)]
    while waiting:
        part = waiting.pop()
        if hasattr(part, "predicate"):  # a triple
            waiting += [part.object, part.predicate, part.subject]
        elif hasattr(part, "shape"):  # a term
            yield part.text, part.shape[0]


def rank_in_results(results: SparqlResults, iri: str) -> int | None:
    """Return the rank of an IRI among the distinct ones of some results, row by row and column by column, from 1.

    A literal counts where it is written as an IRI, so that STR() hides none. None where no cell is the IRI.

    Args:
        results: The results.
        iri: The IRI.
    """
    columns = results.columns.values()
    if not any(iri in column.texts or getattr(column, "parts", {}) or column.structures for column in columns):
        return None
    before: set[str] = set()
    for row in range(results.row_count):
        for text, kind in (term for column in columns for term in terms_of(column, row)):
            if text == iri:
                return len(before) + 1
            if text not in before and (kind == "uri" or _QUOTED.fullmatch(text)):
                before.add(text)
    return None


def rank_in_text(text: str, place: int) -> int:
    """Return the rank of what stands at a place of a text among its distinct IRIs and prefixed names, from 1.

    Declarations of prefixes do not count.

    Example:
        >>> rank_in_text("<urn:a> a <urn:b>, <urn:a>, <urn:c> .", 28)
        3
    """
    terms = _BARE.findall(_DECLARATION.sub("", text[:place]))
    return len({term.rstrip(_PUNCTUATION) for term in terms}) + 1
