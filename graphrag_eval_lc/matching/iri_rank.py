"""The place of an IRI among those that an output has, in reading order: the more an agent looked through, the later."""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from graphrag_eval_lc.matching.matchers import StepScore
from graphrag_eval_lc.matching.rows.results import SparqlResults

# What may stand in an IRI (RFC 3987), so that urn:a is no part of urn:ab.
IRI_CHARACTER: Final = r"[^\s<>\"'{}|\\^`,;()\[\]]"

_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]*:"
_WHOLE: Final = re.compile(rf"{_SCHEME}[^\s<>\"{{}}|\\^`]+")
_IN_TEXT: Final = re.compile(rf"(?<!{IRI_CHARACTER}){_SCHEME}{IRI_CHARACTER}+")
_DECLARATION: Final = re.compile(r"(?im)^[ \t]*@?(?:prefix|base)\b[^\n]*")
# The parts of a triple, as their columns are called, in the order in which they are written.
_AS_WRITTEN: Final = str.maketrans("spo", "012")


def rank_in_results(results: SparqlResults, iri: str) -> int:
    """Return the rank of an IRI among the distinct ones of some results, row by row and column by column, from 1.

    A literal counts where it is written as an IRI, so that STR() hides none.

    Args:
        results: The results, in which the IRI stands.
        iri: The IRI.
    """
    columns = [
        cells
        for column in results.columns.values()
        for _, cells in sorted(column.with_parts.items(), key=lambda part: part[0].translate(_AS_WRITTEN))
    ]
    before: set[str] = set()
    for row in range(results.row_count):
        for cells in columns:
            text = cells.texts[row]
            if text == iri:
                return len(before) + 1
            if text not in before and (cells.kind(row) == "uri" or _WHOLE.fullmatch(text)):
                before.add(text)
    return len(before) + 1


def rank_in_text(text: str, place: int) -> int:
    """Return the rank of what stands at a place of a text among its distinct IRIs and prefixed names, from 1.

    Declarations of prefixes do not count.

    Example:
        >>> rank_in_text("<urn:a> a <urn:b>, <urn:a>, <urn:c> .", 28)
        3
    """
    terms = _IN_TEXT.findall(_DECLARATION.sub("", text[:place]))
    return len({term.rstrip(".") for term in terms}) + 1


def found_at(rank_of: Callable[[], int], reason: str, *, cut: str | None = None) -> StepScore:
    """Return the score of a step in whose output an IRI stands; its grade is 1 ÷ the rank.

    Args:
        rank_of: Returns the rank.
        reason: Why, for people.
        cut: Where the output ends before its end, if that leaves open whether the step fits.
    """
    rank = cache(rank_of)
    score = 1.0 if cut is None else 0.0
    return StepScore(
        score,
        lambda: reason,
        lambda: score,
        is_undecided=cut is not None,
        cut=cut,
        grade=lambda: 1 / rank(),
        grade_reason=lambda: f"Worth 1/{rank():,}: it is number {rank():,} of the IRIs there.",
    )
