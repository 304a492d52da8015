"""Comparing results of plain cells whose columns differ in content: most results, and quickly."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.sparql.numbers import ABSOLUTE_TOLERANCE, NumberKind, Tolerances
from graphrag_eval_lc.matching.sparql.plain_cells import PlainCells, are_comparable
from graphrag_eval_lc.matching.sparql.results import SparqlResults
from graphrag_eval_lc.matching.sparql.rows import Rules

PlainColumns: TypeAlias = tuple[list[PlainCells], list[PlainCells]]
"""The cells of the required columns of the reference, and of all actual columns."""

_SLACK: Final = 1.000001
"""More than what is lost where the tolerance is computed in floats."""


@dataclass(frozen=True, slots=True)
class PlainVerdict:
    """Whether two results match, and by which columns.

    Attributes:
        players: For each required column the place of the actual one that plays it; None where they do not match.
    """

    players: list[int] | None


def plain_columns(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], *, by_value: bool
) -> PlainColumns | None:
    """Give the required and the actual columns as texts and floats; None where they cannot be compared so.

    Args:
        reference: The results with the required columns.
        actual: The other results.
        required: The names of the required columns.
        by_value: Whether cells differ only where their values do; else texts may be numbers of the same value.
    """
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    plain = [cells for column in columns if (cells := column.plain_by_value if by_value else column.plain) is not None]
    if len(plain) < len(columns) or not are_comparable(plain):
        return None
    return plain[: len(required)], plain[len(required) :]


def quick_verdict(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules
) -> PlainVerdict | None:
    """Compare results as texts and floats, as far as that settles it; terms are not compared strictly.

    What is equal as texts is so by value; so it is only looked into where texts are numbers if nothing else fits.
    """
    plain = plain_columns(reference, actual, required, by_value=False)
    verdict = None if plain is None else plain_verdict(*plain, rules)
    if verdict is not None and verdict.players is not None:
        return verdict
    if any(column.has_untyped_numbers for results in (reference, actual) for column in results.columns.values()):
        plain = plain_columns(reference, actual, required, by_value=True)
        verdict = None if plain is None else plain_verdict(*plain, rules)
    return verdict


def plain_verdict(required: Sequence[PlainCells], actual: Sequence[PlainCells], rules: Rules) -> PlainVerdict | None:
    """Compare rows, where the contents of the columns leave no choice which actual column plays which required one.

    Args:
        required: The cells of the required columns of the reference.
        actual: The cells of all actual columns.
        rules: How they are compared.

    Returns:
        The verdict; None where several actual columns have the contents of a required one, or where rows that differ
        may be equal within a tolerance.
    """
    contents = [_content(column, rules) for column in actual]
    players: list[int] = []
    for column in required:
        wanted = _content(column, rules)
        alike = [at for at, content in enumerate(contents) if content == wanted]
        if not alike:
            return None if _may_be_near([column], actual, rules.tolerances) else PlainVerdict(None)
        if len(alike) > 1 or alike[0] in players:
            return None
        players.append(alike[0])
    if rules.rows_as == "list":
        return PlainVerdict(players)  # equal columns in order are equal rows in order
    mine = zip(*(column.cells for column in required), strict=True)
    others = zip(*(actual[at].cells for at in players), strict=True)
    if _gathered(mine, rules) == _gathered(others, rules):
        return PlainVerdict(players)
    return None if _may_be_near(required, actual, rules.tolerances) else PlainVerdict(None)


def _content(column: PlainCells, rules: Rules) -> object:
    return column.cells if rules.rows_as == "list" else _gathered(column.cells, rules)


def _gathered(items: Iterable[Hashable], rules: Rules) -> object:
    return set(items) if rules.rows_as == "set" else Counter(items)


def _may_be_near(required: Sequence[PlainCells], actual: Sequence[PlainCells], tolerances: Tolerances) -> bool:
    """Tell whether numbers of different values may be equal within a tolerance, by a look at all of them in order."""
    kinds = frozenset[NumberKind]().union(*(column.kinds for column in actual))
    tolerant = [column for column in required if tolerances.loosest(column.kinds, kinds)]
    if not tolerant:
        return False
    relative = _SLACK * float(max(tolerances.loosest(column.kinds, kinds) for column in tolerant))
    absolute = _SLACK * float(ABSOLUTE_TOLERANCE)
    numbers = sorted({float(number) for column in (*tolerant, *actual) if column.numbers for number in column.cells})
    return any(high - low <= max(absolute, relative * max(-low, high)) for low, high in pairwise(numbers))
