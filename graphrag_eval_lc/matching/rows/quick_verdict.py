"""The quick way to compare rows: as texts, floats and values, where the columns' contents leave no choice."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from graphrag_eval_lc.matching.rows.coded_rows import Rules
from graphrag_eval_lc.matching.rows.plain_cells import PlainCells
from graphrag_eval_lc.matching.rows.results import SparqlResults, plain_columns, relevant_values
from graphrag_eval_lc.matching.rows.values import NO_VALUES
from graphrag_eval_lc.matching.rows.xsd_numbers import ABSOLUTE_TOLERANCE, SLACK, NumberKind, Tolerances


@dataclass(frozen=True, slots=True)
class PlainVerdict:
    """Whether two results match, and by which columns.

    Attributes:
        mapping: For each required column the position of the actual one; None where the results do not match.
    """

    mapping: list[int] | None


def quick_verdict(
    reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules
) -> PlainVerdict | None:
    """Compare results as texts, floats and values, which is quick; None where that does not settle it.

    Results that match as texts match by value too, so values of the texts are read only if they do not.
    """
    plain = plain_columns(reference, actual, required, None)
    verdict = None if plain is None else plain_verdict(*plain, rules)
    if verdict is not None and verdict.mapping is not None:
        return verdict
    values = relevant_values(reference, actual, required, rules.values)
    columns = [*map(reference.columns.__getitem__, required), *actual.columns.values()]
    if values != NO_VALUES or any(column.has_untyped_numbers for column in columns):
        plain = plain_columns(reference, actual, required, values)
        verdict = None if plain is None else plain_verdict(*plain, rules)
    return verdict


def plain_verdict(required: Sequence[PlainCells], actual: Sequence[PlainCells], rules: Rules) -> PlainVerdict | None:
    """Compare rows where the contents of the columns leave no choice which actual column stands for a required one.

    None where several actual columns have the contents of a required one, or where rows that differ may be equal
    within a tolerance.
    """
    contents = [_content(column, rules) for column in actual]
    mapping: list[int] = []
    for column in required:
        wanted = _content(column, rules)
        alike = [at for at, content in enumerate(contents) if content == wanted]
        if not alike:
            return None if _may_be_near([column], actual, rules.tolerances) else PlainVerdict(None)
        if len(alike) > 1 or alike[0] in mapping:
            return None
        mapping.append(alike[0])
    if rules.rows_as == "list":
        return PlainVerdict(mapping)  # equal columns in order are equal rows in order
    mine = zip(*(column.cells for column in required), strict=True)
    others = zip(*(actual[at].cells for at in mapping), strict=True)
    if _gathered(mine, rules) == _gathered(others, rules):
        return PlainVerdict(mapping)
    return None if _may_be_near(required, actual, rules.tolerances) else PlainVerdict(None)


def _content(column: PlainCells, rules: Rules) -> object:
    return column.cells if rules.rows_as == "list" else _gathered(column.cells, rules)


def _gathered(items: Iterable[Hashable], rules: Rules) -> object:
    return set(items) if rules.rows_as == "set" else Counter(items)


def _may_be_near(required: Sequence[PlainCells], actual: Sequence[PlainCells], tolerances: Tolerances) -> bool:
    """Return whether some neighbours among all numbers in order differ, but may be equal within a tolerance."""
    kinds = frozenset[NumberKind]().union(*(column.kinds for column in actual))
    tolerant = [column for column in required if tolerances.loosest(column.kinds, kinds)]
    if not tolerant:
        return False
    relative = SLACK * float(max(tolerances.loosest(column.kinds, kinds) for column in tolerant))
    absolute = SLACK * float(ABSOLUTE_TOLERANCE)
    cells: list[list[Any]] = [column.cells for column in (*tolerant, *actual) if column.kinds]
    numbers = sorted({float(number) for column in cells for number in column})
    return any(high - low <= max(absolute, relative * max(-low, high)) for low, high in pairwise(numbers))
