"""Why two results match or not, in a sentence for people: the columns compared, and the rows that differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, TypeAlias

from graphrag_eval_lc.matching.rows_new.alignment import Alignment
from graphrag_eval_lc.matching.rows_new.columns import BlankNodes, Budget, SearchCutOff
from graphrag_eval_lc.matching.rows_new.results import SPARQL_JSON, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows_new.terms import Keys, RowsAs
from graphrag_eval_lc.texts import plural

ShownRow: TypeAlias = tuple[str | None, ...]
"""The texts of a row over the required columns; None if a cell is unbound."""

SHOWN_ROWS: Final = 20
"""So many of the rows that differ are listed."""

_SHOWN_LENGTH: Final = 60
_SHOWN_COLUMNS: Final = 5
_SHOWN_FAULTS: Final = 3
_NEAR_ROWS: Final = 20
_MATCHED_ROWS: Final = 200
_NEAR_CELLS: Final = 2
"""A row with more cells that differ is another row."""


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

    @property
    def row_f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.row_precision + self.row_recall
        return 2 * self.row_precision * self.row_recall / total if total else 0.0


def diagnosis_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str], keys: Keys
) -> Diagnosis:
    """Describe two results that match under some columns."""
    renamed = [f"`{name}` is matched by `{found}`" for name, found in columns.items() if name != found]
    if len(renamed) > _SHOWN_COLUMNS:
        renamed[_SHOWN_COLUMNS:] = ["…"]
    names = f" ({'; '.join(renamed)})" if renamed else ""
    rows = "The only row matches" if reference.row_count == 1 else f"All {reference.row_count} rows match"
    near = _near_number_of_match(reference, actual, columns, keys)
    about = f"; {near}, which is within the tolerance" if near else ""
    return Diagnosis(f"{rows}{names}{about}.", dict(columns), row_precision=1.0, row_recall=1.0)


def _near_number_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str], keys: Keys
) -> str | None:
    """Return what is to be said of the first number that is within the tolerance of the reference's."""
    row_of: dict[tuple[int, ...], int] = {}
    for at, row in enumerate(zip(*(keys.reference(name).keys for name in columns), strict=True)):
        row_of.setdefault(row, at)
    rows = zip(*(keys.actual(name).keys for name in columns.values()), strict=True)
    for other, row in enumerate(islice(rows, _MATCHED_ROWS)):
        for name, found in columns.items():
            at = row_of.get(row)
            if at is not None and reference.columns[name].texts[at] != actual.columns[found].texts[other]:
                note = keys.note(name, at, found, other)
                if note:
                    return note
    return None


def diagnosis_of_mismatch(
    reference: SparqlResults,
    actual: SparqlResults,
    columns: Mapping[str, str | None],
    aligned: Alignment,
    keys: Keys,
    cut_off: str | None,
    rows_as: RowsAs,
) -> Diagnosis:
    """Describe two results that do not match, or of which that is not known, under the nearest columns.

    Args:
        reference: The expected results.
        actual: The actual ones.
        columns: For each required column the nearest actual one, or None.
        aligned: The rows under these columns.
        keys: The keys of their cells.
        cut_off: Why the search ended before it could tell; None if they do not match.
        rows_as: How rows count.
    """
    mine = [reference.columns[name] for name in columns]
    others = [None if found is None else actual.columns[found] for found in columns.values()]
    mapped = {name: found for name, found in columns.items() if found is not None}
    missing, extra = aligned.missing, aligned.extra
    parts = [*_about_columns(actual, columns, keys, is_undecided=cut_off is not None)]
    parts += map(actual.fault_of, list(actual.faults)[:_SHOWN_FAULTS])
    if missing:
        are_missing = f"{plural(len(missing), 'is', 'are')} missing"
        total = f"{aligned.total} {plural(aligned.total, 'row')}"
        parts.append(f"{len(missing)} of {total} {are_missing}, e.g. {_in_brackets(mine, missing[0])}")
    if extra and mapped:
        parts.append(f"{len(extra)} {plural(len(extra), 'row')} too many, e.g. {_in_brackets(others, extra[0])}")
    near = _near_miss(columns, aligned, mine, others, keys) if missing and extra else None
    parts += [near] if near else []
    if not missing and not extra:
        parts.append(_about_equal_rows(columns, aligned, mine, others, keys, rows_as, is_undecided=cut_off is not None))
    precision, recall = 1 - len(extra) / aligned.actual_total, 1 - len(missing) / aligned.total
    diagnosis = Diagnosis(
        "",
        mapped,
        tuple(_shown_row(mine, at) for at in missing[:SHOWN_ROWS]),
        tuple(_shown_row(others, at) for at in extra[:SHOWN_ROWS]),
        len(missing),
        len(extra),
        precision,
        recall,
    )
    if (missing or extra) and precision + recall:
        parts.append(f"row F1 {diagnosis.row_f1:.2f}")
    compared = [f"`{name}`" if name == found else f"`{name}` as `{found}`" for name, found in mapped.items()]
    if compared:
        shown = [*compared[:_SHOWN_COLUMNS], "…"] if len(compared) > _SHOWN_COLUMNS else compared
        parts.append(f"columns: {', '.join(shown)}")
    text = "; ".join(parts)
    if cut_off is not None:
        text = (
            f"undecided: {cut_off}, before it could tell whether the actual results hold the required rows; under the "
            f"columns that come nearest {text}"
        )
    return Diagnosis(f"{text[0].upper()}{text[1:]}.", *(getattr(diagnosis, name) for name in Diagnosis.__slots__[1:]))


def _about_columns(
    actual: SparqlResults, columns: Mapping[str, str | None], keys: Keys, *, is_undecided: bool
) -> Iterator[str]:
    absent = [name for name, found in columns.items() if found is None]
    if absent and len(actual.columns) < len(columns):
        readable = " that can be read" if actual.faults else ""
        count = len(actual.columns)
        yield f"only {count} {plural(count, 'column')}{readable} for {len(columns)} required"
    # Another required column may be nearer to the only one that has its values.
    contents = {name: set(keys.actual(name).keys) for name in actual.columns} if absent else {}
    taken = [
        name
        for name in absent
        if is_undecided or any(not found.isdisjoint(keys.reference(name).keys) for found in contents.values())
    ]
    unlike = [f"`{name}`" for name in absent if name not in taken]
    if unlike:
        yield f"no result column matches {', '.join(unlike)}"
    if taken:
        yield f"no column is left for {', '.join(f'`{name}`' for name in taken)}"


def _near_miss(
    columns: Mapping[str, str | None],
    aligned: Alignment,
    mine: Sequence[TermColumn],
    others: Sequence[TermColumn | None],
    keys: Keys,
) -> str | None:
    """Say which cells differ in the first missing row that has a near one among those too many."""
    near = {pair.reference: pair for pair in reversed(aligned.pairs) if pair.share}
    actual_place = {aligned.actual_rows[at]: at for at in reversed(aligned.extra)}
    names = list(columns.items())
    for at in aligned.missing:
        pair = near.get(aligned.rows[at])
        if pair is not None and len(names) - len(pair.columns) <= _NEAR_CELLS:
            other = actual_place[pair.actual]
            cells = [
                _about_cell(name, found, mine[place], others[place], at, other, keys)
                for place, (name, found) in enumerate(names)
                if place not in pair.columns
            ]
            return f"row {at + 1}: {', '.join(cells)}"
    for at in aligned.missing[:_NEAR_ROWS]:
        for other in aligned.extra[:_NEAR_ROWS]:
            notes = [
                None if found is None else keys.note(name, at, found, other)
                for place, (name, found) in enumerate(names)
                if aligned.rows[at][place] != aligned.actual_rows[other][place]
            ]
            if all(notes):
                return f"row {at + 1}: {', '.join(filter(None, notes))}"
    return None


def _about_cell(
    name: str, found: str | None, column: TermColumn, other: TermColumn | None, at: int, place: int, keys: Keys
) -> str:
    note = None if found is None else keys.note(name, at, found, place)
    expected, actual = (_shown_text(each, row) or "unbound" for each, row in ((column, at), (other, place)))
    return f"`{name}` {note or f'{actual} instead of {expected}'}"


def _about_equal_rows(
    columns: Mapping[str, str | None],
    aligned: Alignment,
    mine: Sequence[TermColumn],
    others: Sequence[TermColumn | None],
    keys: Keys,
    rows_as: RowsAs,
    *,
    is_undecided: bool,
) -> str:
    """Say why rows that are the same but for their blank nodes do not match, or are in another order."""
    if rows_as == "list" and aligned.rows != aligned.actual_rows:
        rows = enumerate(zip(aligned.rows, aligned.actual_rows, strict=True))
        first = next(at for at, (row, other) in rows if row != other)
        cells = f"{_in_brackets(others, first)} instead of {_in_brackets(mine, first)}"
        return f"the rows are the same but in another order, from row {first + 1} on: {cells}"
    if is_undecided:
        return (
            "the rows are the same but for their blank nodes; whether a one-to-one renaming makes these equal is open"
        )
    text = "the rows differ in their blank nodes only: no one-to-one renaming makes them equal"
    sides = (
        [keys.reference(name) for name in columns],
        [keys.actual(name) for name in columns.values() if name is not None],
    )
    try:
        coloured, other_coloured = BlankNodes(*sides, rows_as, Budget()).coloured_rows()
    except SearchCutOff:
        return text
    missing = next((at for at, row in enumerate(coloured) if row not in set(other_coloured)), None)
    extra = next((at for at, row in enumerate(other_coloured) if row not in set(coloured)), None)
    if missing is None or extra is None:
        return text
    return f"{text}, such as those of {_in_brackets(mine, missing)} and {_in_brackets(others, extra)}"


def _in_brackets(columns: Sequence[TermColumn | None], at: int) -> str:
    cells = ("–" if column is None else _shown_text(column, at) or "unbound" for column in columns)
    return f"({', '.join(cells)})"


def _shown_row(columns: Sequence[TermColumn | None], at: int) -> ShownRow:
    return tuple(_shown_text(column, at) for column in columns)


def _shown_text(column: TermColumn | None, at: int) -> str | None:
    """Return the text of a cell on one line, without its middle if it is long; None if it is unbound."""
    text = None if column is None else column.readable(at)
    if text is None:
        return None
    if len(text) <= _SHOWN_LENGTH and text.isprintable():
        return text
    line = " ".join(text[:1_000].split())
    if len(line) <= _SHOWN_LENGTH and len(text) <= 1_000:
        return line
    return f"{line[:20]}…{text[-(_SHOWN_LENGTH - 21) :]}"


def notes_on(reference: SparqlResults, actual: SparqlResults, reason: str) -> str:
    """Add to a reason from which form and with which allowances the results were read."""
    added = "; the reference was read with allowances: " + ", ".join(reference.notes) if reference.notes else ""
    added += "; read with allowances: " + ", ".join(actual.notes) if actual.notes else ""
    forms = ""
    if reference.form == actual.form:
        forms = "" if actual.form == SPARQL_JSON else f" Both were read from {actual.form}."
    elif reference.form == SPARQL_JSON:
        forms = f" It was read from {actual.form}."
    else:
        other = "" if actual.form == SPARQL_JSON else f", the output from {actual.form}"
        forms = f" The reference was read from {reference.form}{other}."
    return f"{reason.removesuffix('.')}{added}.{forms}"
