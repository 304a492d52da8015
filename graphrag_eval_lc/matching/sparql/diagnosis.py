"""What two results have in common and what not, for people: the nearest columns, and the rows that differ."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.sparql.closeness import NearNumber, near_number, nearest_candidates, overlaps_of
from graphrag_eval_lc.matching.sparql.encoding import Encoding, Table, coded_tables, encoding_for
from graphrag_eval_lc.matching.sparql.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.sparql.row_pairing import rows_left_over
from graphrag_eval_lc.matching.sparql.rows import (
    BLANK_CODE,
    UNBOUND_CODE,
    Budget,
    DetailedCodes,
    Row,
    RowsAs,
    Rules,
    SearchCutOff,
    rows_of,
)
from graphrag_eval_lc.matching.sparql.xsd_numbers import Tolerances
from graphrag_eval_lc.texts import plural

SHOWN_ROWS: Final = 20
"""So many of the rows that differ are given."""

ShownRow: TypeAlias = tuple[str | None, ...]
"""The texts of a row over the required columns; None where a cell is unbound."""

_SHOWN_LENGTH: Final = 60


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why two results match or not; see ``SparqlComparison`` for the attributes."""

    reason: str
    columns: dict[str, str] = field(default_factory=dict)
    missing_rows: tuple[ShownRow, ...] = ()
    extra_rows: tuple[ShownRow, ...] = ()
    missing_row_count: int = 0
    extra_row_count: int = 0
    row_precision: float = 0.0
    row_recall: float = 0.0


def diagnosis_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: dict[str, str], rules: Rules, *, is_exact: bool
) -> Diagnosis:
    """Describe two results that match.

    Args:
        reference: The expected results.
        actual: The actual results.
        columns: For each required column the actual one that plays it.
        rules: How the results were compared.
        is_exact: Whether they are known to match without a tolerance, too.
    """
    row_count = reference.row_count
    renamed = [f"`{mine}` is played by `{other}`" for mine, other in columns.items() if mine != other]
    names = f" ({'; '.join(renamed)})" if renamed else ""
    rows = "The only row matches" if row_count == 1 else f"All {row_count} rows match"
    near = None if is_exact else _near_number_of_match(reference, actual, columns, rules)
    about_near = "" if near is None else f"; {_about_near(near)}, which is within the tolerance"
    return Diagnosis(f"{rows}{names}{about_near}.", columns, row_precision=1.0, row_recall=1.0)


def _near_number_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: dict[str, str], rules: Rules
) -> NearNumber | None:
    """Compare the results again without a tolerance to find numbers that needed it."""
    encoding = Encoding(rules.strict, Tolerances())
    candidates = SparqlResults(
        {candidate: actual.columns[candidate] for candidate in columns.values()}, actual.row_count
    )
    mine, others = coded_tables(reference, candidates, list(columns), encoding, all_columns=True)
    rows, other_rows = list(rows_of(mine.columns)), list(rows_of(others.columns))
    if rules.rows_as == "list":
        unlike = [at for at, (row, other) in enumerate(zip(rows, other_rows, strict=True)) if row != other]
        return next(filter(None, (_near_number(mine, others, [at], [at]) for at in unlike[:SHOWN_ROWS])), None)
    return _near_number(mine, others, *_unlike_rows(rows, other_rows, rules.rows_as))


def _near_number(
    mine: Table, others: Table, missing: Sequence[int], extra: Sequence[int], candidates: dict[int, int] | None = None
) -> NearNumber | None:
    places = [at if candidates is None else candidates[at] for at in range(len(mine.names))]
    columns = mine.term_columns, [others.term_columns[at] for at in places]
    codes = mine.detailed_columns, [others.detailed_columns[at] for at in places]
    return near_number(*columns, missing[:SHOWN_ROWS], extra, *codes)


def diagnosis_of_mismatch(
    reference_results: SparqlResults,
    actual_results: SparqlResults,
    required: Sequence[str],
    rules: Rules,
    cut_off: str | None,
) -> Diagnosis:
    """Describe two results that do not match.

    Args:
        reference_results: The expected results, of at least one row.
        actual_results: The actual results, of at least one row.
        required: The names of the required columns, at least one.
        rules: How the results were compared.
        cut_off: Says that the search was cut off, if it was.
    """
    encoding = encoding_for(reference_results, actual_results, required, rules)
    reference, actual = coded_tables(reference_results, actual_results, required, encoding, all_columns=True)
    candidates = nearest_candidates(reference, actual, overlaps_of(reference, actual))
    columns = {reference.names[at]: actual.names[candidate] for at, candidate in candidates.items()}
    played = [actual.columns[candidates[at]] if at in candidates else None for at in range(len(reference.names))]
    unbound = [UNBOUND_CODE] * actual_results.row_count
    mine = list(rows_of(reference.columns))
    others = list(rows_of([unbound if column is None else column for column in played]))
    unlike = UnlikeRows(
        *_unlike_rows(mine, others, rules.rows_as), *(_row_total(rows, rules.rows_as) for rows in (mine, others))
    )
    is_complete = len(columns) == len(reference.names)
    if is_complete and reference.needs_details:
        unlike = _unlike_in_detail(reference, actual, candidates, rules.rows_as, encoding.details) or unlike
    missing, extra, total, actual_total = unlike
    shown = [actual.term_columns[candidates[at]] if at in candidates else None for at in range(len(reference.names))]
    parts = [
        cut_off,
        _about_columns(reference, actual, columns),
        _about_missing(len(missing), total, _shown(reference.term_columns, missing[0])) if missing else None,
        _about_extra(len(extra), _shown(shown, extra[0])) if extra and is_complete else None,
    ]
    if is_complete and missing and extra:
        near = _near_number(reference, actual, missing, extra, candidates)
        parts.append(None if near is None else _about_near(near))
    if not missing and not extra:
        parts.append(_about_equal_rows(mine, others, rules.rows_as))
    precision, recall = 1 - len(extra) / actual_total, 1 - len(missing) / total
    if (missing or extra) and precision + recall:
        parts.append(f"row F1 {2 * precision * recall / (precision + recall):.2f}")
    return Diagnosis(
        _sentences(parts),
        columns,
        tuple(_shown(reference.term_columns, at) for at in missing[:SHOWN_ROWS]),
        tuple(_shown(shown, at) for at in extra[:SHOWN_ROWS]),
        len(missing),
        len(extra),
        precision,
        recall,
    )


class UnlikeRows(NamedTuple):
    """The places of the rows that the other side lacks, and how many rows count, on either side."""

    missing: list[int]
    extra: list[int]
    total: int
    actual_total: int


def _unlike_rows(mine: list[Row], others: list[Row], rows_as: RowsAs) -> tuple[list[int], list[int]]:
    """Return the positions of the rows that the other side lacks, on either side."""
    if rows_as == "set":
        return _absent(mine, set(others)), _absent(others, set(mine))
    return _surplus(mine, Counter(others)), _surplus(others, Counter(mine))


def _absent(rows: list[Row], others: set[Row]) -> list[int]:
    return _first_positions(rows, set(rows) - others)


def _first_positions(rows: list[Row], wanted: Iterable[Row]) -> list[int]:
    first_at = dict(zip(reversed(rows), range(len(rows) - 1, -1, -1), strict=True))
    return sorted(first_at[row] for row in wanted)


def _surplus(rows: list[Row], others: Counter[Row]) -> list[int]:
    return _places(rows, Counter(rows) - others)


def _unlike_in_detail(
    reference: Table,
    actual: Table,
    candidates: dict[int, int],
    rows_as: RowsAs,
    codes: DetailedCodes,
) -> UnlikeRows | None:
    """Find the rows that lack a partner when inexact cells are compared; blank nodes are all alike here.

    Returns:
        The rows; None where the details are not known.
    """
    details = list(rows_of(reference.detailed_columns))
    other_details = list(rows_of([actual.detailed_columns[candidates[at]] for at in range(len(candidates))]))
    for rows in (details, other_details):
        rows[:] = [tuple(BLANK_CODE if code < 0 else code for code in row) for row in rows]
    budget = len(details) + len(other_details)
    counted: RowsAs = "set" if rows_as == "set" else "bag"
    try:
        alone = rows_left_over(details, other_details, counted, codes, Budget(budget))
        others_alone = rows_left_over(other_details, details, counted, codes, Budget(budget))
    except SearchCutOff:
        return None
    return UnlikeRows(
        _places(details, alone),
        _places(other_details, others_alone),
        _row_total(details, counted),
        _row_total(other_details, counted),
    )


def _places(rows: list[Row], wanted: Counter[Row]) -> list[int]:
    """Return the first places of some rows, of each as many as are wanted."""
    left = Counter(wanted)
    places = []
    for at, row in enumerate(rows) if left else ():
        if left[row] > 0:
            left[row] -= 1
            places.append(at)
    return places


def _row_total(rows: Sequence[Row], rows_as: RowsAs) -> int:
    return len(set(rows)) if rows_as == "set" else len(rows)


def _shown(columns: Sequence[TermColumn | None], at: int) -> ShownRow:
    return tuple(None if column is None else _without_middle(column.readable(at)) for column in columns)


def _without_middle(text: str | None) -> str | None:
    """Return a text on one line, without its middle where it is long."""
    if text is None or (len(text) <= _SHOWN_LENGTH and text.isprintable()):
        return text
    line = " ".join(text[:1_000].split())
    if len(line) <= _SHOWN_LENGTH and len(text) <= 1_000:
        return line
    return f"{line[:20]}…{text[-(_SHOWN_LENGTH - 21) :]}"


def _about_columns(reference: Table, actual: Table, columns: dict[str, str]) -> str | None:
    absent = [f"`{name}`" for name in reference.names if name not in columns]
    if not absent:
        return None
    if len(actual.names) < len(reference.names):
        found = f"only {_counted(len(actual.names), 'column')} for {len(reference.names)} required"
        return f"{found}; no column plays {', '.join(absent)}"
    return f"no column plays {', '.join(absent)}"


def _about_missing(count: int, total: int, example: ShownRow) -> str:
    return f"{count} of {_counted(total, 'row')} {plural(count, 'is', 'are')} missing, e.g. {_in_brackets(example)}"


def _about_extra(count: int, example: ShownRow) -> str:
    return f"{_counted(count, 'row')} too many, e.g. {_in_brackets(example)}"


def _about_near(number: NearNumber) -> str:
    mantissa, exponent = f"{number.difference:.0e}".split("e")
    texts = f"{_without_middle(number.found)} instead of {_without_middle(number.expected)}"
    return f"{texts} differs by {mantissa}e{int(exponent)} of its value"


def _about_equal_rows(mine: list[Row], others: list[Row], rows_as: RowsAs) -> str:
    if rows_as == "list" and mine != others:
        first = next(at for at, (row, other) in enumerate(zip(mine, others, strict=True), 1) if row != other)
        return f"the rows are the same but in another order, from row {first} on"
    if any(BLANK_CODE in row for row in mine):
        return "the rows differ in their blank nodes only: no one-to-one renaming makes them equal"
    return "the rows cannot be paired off: some numbers are within the tolerance of others but not of each other"


def _in_brackets(row: ShownRow) -> str:
    return f"({', '.join('unbound' if text is None else text for text in row)})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {plural(count, noun)}"


def _sentences(parts: Iterable[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."
