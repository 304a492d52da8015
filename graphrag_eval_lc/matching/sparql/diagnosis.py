"""What two results have in common and what not, for people: the nearest columns, and the rows that differ."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.sparql.budget import Budget, SearchCutOff
from graphrag_eval_lc.matching.sparql.cells import BLANK_CODE, UNBOUND_CODE, DetailedCodes
from graphrag_eval_lc.matching.sparql.nearest_columns import nearest_players, overlaps_of
from graphrag_eval_lc.matching.sparql.plain_coding import coding_for
from graphrag_eval_lc.matching.sparql.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.sparql.rows import Row, RowsAs, rows_of, without_partner
from graphrag_eval_lc.matching.sparql.tables import Table, coded_tables

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


def diagnosis_of_match(columns: dict[str, str], row_count: int) -> Diagnosis:
    """Describe two results that match.

    Args:
        columns: For each required column the actual one that plays it.
        row_count: The number of rows of the reference.
    """
    renamed = [f"`{mine}` is played by `{other}`" for mine, other in columns.items() if mine != other]
    names = f" ({'; '.join(renamed)})" if renamed else ""
    rows = "The only row matches" if row_count == 1 else f"All {row_count} rows match"
    return Diagnosis(f"{rows}{names}.", columns, row_precision=1.0, row_recall=1.0)


def diagnosis_of_mismatch(
    reference_results: SparqlResults,
    actual_results: SparqlResults,
    required: Sequence[str],
    rows_as: RowsAs,
    strict: bool,
    cut_off: str | None,
) -> Diagnosis:
    """Describe two results that do not match.

    Args:
        reference_results: The expected results, of at least one row.
        actual_results: The actual results, of at least one row.
        required: The names of the required columns, at least one.
        rows_as: How the rows were compared.
        strict: Whether RDF terms were compared.
        cut_off: Says that the search was cut off, if it was.
    """
    coding = coding_for(reference_results, actual_results, required, strict)
    reference, actual = coded_tables(reference_results, actual_results, required, coding, all_columns=True)
    players = nearest_players(reference, actual, overlaps_of(reference, actual))
    columns = {reference.names[at]: actual.names[player] for at, player in players.items()}
    played = [actual.columns[players[at]] if at in players else None for at in range(len(reference.names))]
    unbound = [UNBOUND_CODE] * actual_results.row_count
    mine = list(rows_of(reference.columns))
    others = list(rows_of([unbound if column is None else column for column in played]))
    missing, extra = _unlike_rows(mine, others, rows_as)
    total, actual_total = _row_total(mine, rows_as), _row_total(others, rows_as)
    if not missing and not extra and len(players) == len(reference.names):
        detailed = _unlike_in_detail(reference, actual, players, rows_as, coding.details)
        if detailed is not None:
            missing, extra, total, actual_total = detailed
    shown = [actual.term_columns[players[at]] if at in players else None for at in range(len(reference.names))]
    is_complete = len(columns) == len(reference.names)
    parts = [
        cut_off,
        _about_columns(reference, actual, columns),
        _about_missing(len(missing), total, _shown(reference.term_columns, missing[0])) if missing else None,
        _about_extra(len(extra), _shown(shown, extra[0])) if extra and is_complete else None,
    ]
    if not missing and not extra:
        parts.append(_about_equal_rows(mine, others, rows_as))
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


def _unlike_rows(mine: list[Row], others: list[Row], rows_as: RowsAs) -> tuple[list[int], list[int]]:
    """Give the positions of the rows that the other side lacks, on either side."""
    if rows_as == "set":
        return _absent(mine, set(others)), _absent(others, set(mine))
    return _surplus(mine, Counter(others)), _surplus(others, Counter(mine))


def _absent(rows: list[Row], others: set[Row]) -> list[int]:
    return _first_positions(rows, set(rows) - others)


def _first_positions(rows: list[Row], wanted: Iterable[Row]) -> list[int]:
    first_at = dict(zip(reversed(rows), range(len(rows) - 1, -1, -1), strict=True))
    return sorted(first_at[row] for row in wanted)


def _surplus(rows: list[Row], others: Counter[Row]) -> list[int]:
    left = Counter(rows) - others
    surplus = []
    for at, row in enumerate(rows) if left else ():
        if left[row] > 0:
            left[row] -= 1
            surplus.append(at)
    return surplus


def _unlike_in_detail(
    reference: Table,
    actual: Table,
    players: dict[int, int],
    rows_as: RowsAs,
    codes: DetailedCodes,
) -> tuple[list[int], list[int], int, int] | None:
    """Find the rows that lack an equal one only when inexact cells are compared; blank nodes are all alike here.

    Returns:
        The positions of such rows on either side, and the number of distinct rows of either side; None where the
        details are not known.
    """
    if rows_as != "set" or not reference.needs_details:
        return None
    details = list(rows_of(reference.detailed_columns))
    other_details = list(rows_of([actual.detailed_columns[players[at]] for at in range(len(players))]))
    for rows in (details, other_details):
        rows[:] = [tuple(BLANK_CODE if code < 0 else code for code in row) for row in rows]
    budget = len(details) + len(other_details)
    try:
        alone = without_partner(details, other_details, codes, Budget(budget))
        others_alone = without_partner(other_details, details, codes, Budget(budget))
    except SearchCutOff:
        return None
    missing, extra = _first_positions(details, alone), _first_positions(other_details, others_alone)
    return missing, extra, len(set(details)), len(set(other_details))


def _row_total(rows: Sequence[Row], rows_as: RowsAs) -> int:
    return len(set(rows)) if rows_as == "set" else len(rows)


def _shown(columns: Sequence[TermColumn | None], at: int) -> ShownRow:
    return tuple(None if column is None else shortened(column.readable(at)) for column in columns)


def shortened(text: str | None) -> str | None:
    """Give a text on one line, without its middle where it is long."""
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
    verb = "is" if count == 1 else "are"
    return f"{count} of {_counted(total, 'row')} {verb} missing, e.g. {_in_brackets(example)}"


def _about_extra(count: int, example: ShownRow) -> str:
    return f"{_counted(count, 'row')} too many, e.g. {_in_brackets(example)}"


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
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _sentences(parts: Iterable[str | None]) -> str:
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}."
