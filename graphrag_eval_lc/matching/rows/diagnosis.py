"""Why two results match or not, and what their grade consists of, in sentences for people."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.alignment import Alignment, surplus_columns
from graphrag_eval_lc.matching.rows.columns import BlankNodes, Budget, SearchCutOff, bare_name, namesakes
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs
from graphrag_eval_lc.texts import listed, plural

ShownRow: TypeAlias = tuple[str | None, ...]
"""The texts of a row over the required columns; None if a cell is unbound."""

_SHOWN_ROWS: Final = 20
_SHOWN_LENGTH: Final = 60
_SHOWN_COLUMNS: Final = 5
_SHOWN_FAULTS: Final = 3
_NEAR_ROWS: Final = 20
_MATCHED_ROWS: Final = 200
_NEAR_CELLS: Final = 2
"""A row with more cells that differ is another row."""


def reason_of_match(reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str], keys: Keys) -> str:
    """Describe two results that match under some columns."""
    renamed = [f"`{name}` is matched by `{found}`" for name, found in columns.items() if name != found]
    if len(renamed) > _SHOWN_COLUMNS:
        renamed[_SHOWN_COLUMNS:] = ["…"]
    names = f" ({'; '.join(renamed)})" if renamed else ""
    rows = "The only row matches" if reference.row_count == 1 else f"All {reference.row_count} rows match"
    near = _near_number_of_match(reference, actual, columns, keys)
    return f"{rows}{names}{f'; {near}, which is within the tolerance' if near else ''}."


def _near_number_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str], keys: Keys
) -> str | None:
    """Return what is to be said of the first number that is within the tolerance of the reference's."""
    pairs = [(reference.columns[name].texts, actual.columns[found].texts) for name, found in columns.items()]
    if all(set(found[:_MATCHED_ROWS]) <= set(texts) for texts, found in pairs):
        return None
    row_of: dict[tuple[int, ...], int] = {}
    for at, row in enumerate(zip(*(keys.reference(name).keys for name in columns), strict=True)):
        row_of.setdefault(row, at)
    rows = zip(*(keys.actual(name).keys for name in columns.values()), strict=True)
    for other, row in enumerate(islice(rows, _MATCHED_ROWS)):
        at = row_of.get(row, -1)
        for (name, found), (texts, other_texts) in zip(columns.items(), pairs, strict=True):
            if at >= 0 and texts[at] != other_texts[other] and (note := keys.note(name, at, found, other)):
                return note
    return None


class Mismatch:
    """Two results that do not match, or of which that is not known, under the nearest columns.

    Args:
        aligned: The rows under these columns.
        keys: The keys of their cells.
        rows_as: How rows count.
        cut_off: Why the search ended before it could tell; None if they do not match.
    """

    def __init__(self, aligned: Alignment, keys: Keys, rows_as: RowsAs, cut_off: str | None) -> None:
        self._aligned, self._keys, self._rows_as, self._cut_off = aligned, keys, rows_as, cut_off
        self._columns, self._actual = aligned.columns, aligned.actual
        self._mine, self._others = _columns_of(aligned)

    def reason(self) -> str:
        """Describe them."""
        aligned, missing, extra = self._aligned, self._aligned.missing, self._aligned.extra
        mapped = {name: found for name, found in self._columns.items() if found is not None}
        parts = [*self._about_columns(), *map(self._actual.fault_of, list(self._actual.faults)[:_SHOWN_FAULTS])]
        if missing:
            of_rows = f"{len(missing)} of {aligned.total} {plural(aligned.total, 'row')}"
            are_missing = f"{plural(len(missing), 'is', 'are')} missing"
            parts.append(f"{of_rows} {are_missing}, e.g. {_in_brackets(self._mine, missing[0])}")
        if extra and mapped:
            rows = f"{len(extra)} {plural(len(extra), 'row')} too many"
            parts.append(f"{rows}, e.g. {_in_brackets(self._others, extra[0])}")
        if missing and extra:
            parts += self._about_near_rows()
        if not missing and not extra:
            parts.append(self._about_equal_rows())
        elif aligned.full:
            parts.append(f"row F1 {2 * sum(aligned.full.values()) / (aligned.total + aligned.actual_total):.2f}")
        if mapped:
            names = [f"`{name}`" if name == found else f"`{name}` as `{found}`" for name, found in mapped.items()]
            parts.append(f"columns: {', '.join([*names[:_SHOWN_COLUMNS], *['…'][: len(names) > _SHOWN_COLUMNS]])}")
        text = "; ".join(parts)
        if self._cut_off is not None:
            text = (
                f"undecided: {self._cut_off}, before it could tell whether the actual results hold the required rows; "
                f"under the columns that come nearest {text}"
            )
        return f"{text[0].upper()}{text[1:]}."

    def _about_columns(self) -> Iterator[str]:
        absent = [name for name, found in self._columns.items() if found is None]
        count = len(self._actual.columns)
        if count < len(self._columns):
            readable = " that can be read" if self._actual.faults else ""
            yield f"only {count} {plural(count, 'column')}{readable} for {len(self._columns)} required"
        # The only column that has its values may be nearer to another required one.
        known = {key for name in self._actual.columns if absent for key in self._keys.actual(name).keys}
        taken = [name for name in absent if self._cut_off or not known.isdisjoint(self._keys.reference(name).keys)]
        if len(taken) < len(absent):
            yield f"no result column matches {', '.join(f'`{name}`' for name in absent if name not in taken)}"
        if taken:
            yield f"no column is left for {', '.join(f'`{name}`' for name in taken)}"

    def _about_near_rows(self) -> Iterator[str]:
        """Say which cells differ in the first missing row that has a near one among those too many."""
        aligned = self._aligned
        near = {pair.reference: pair for pair in reversed(aligned.pairs)}
        place_of = {aligned.actual_rows[at]: at for at in reversed(aligned.extra)}
        for at in aligned.missing:
            pair = near.get(aligned.rows[at])
            if pair is not None and len(self._mine) - len(pair.columns) <= _NEAR_CELLS:
                yield self._about_cells(at, place_of[pair.actual])
                return
        for at in aligned.missing[:_NEAR_ROWS]:
            for other in aligned.extra[:_NEAR_ROWS]:
                unlike = self._unlike(at, other)
                if all(found and self._keys.note(name, at, found, other) for name, found in unlike):
                    yield self._about_cells(at, other)
                    return

    def _unlike(self, at: int, other: int) -> list[tuple[str, str | None]]:
        """Return the columns in which two rows differ."""
        cells = zip(self._columns.items(), self._aligned.rows[at], self._aligned.actual_rows[other], strict=True)
        return [names for names, key, other_key in cells if key != other_key]

    def _about_cells(self, at: int, other: int) -> str:
        parts = []
        columns = dict(zip(self._columns, zip(self._mine, self._others, strict=True), strict=True))
        for name, found in self._unlike(at, other):
            note = None if found is None else self._keys.note(name, at, found, other)
            column, other_column = columns[name]
            expected, actual = _shown_text(column, at) or "unbound", _shown_text(other_column, other) or "unbound"
            parts.append(f"`{name}` {note or f'{actual} instead of {expected}'}")
        return f"row {at + 1}: {', '.join(parts)}"

    def _about_equal_rows(self) -> str:
        """Say why rows that are the same but for their blank nodes do not match, or are in another order."""
        aligned, mine, others = self._aligned, self._mine, self._others
        if not aligned.are_equal:
            rows = enumerate(zip(aligned.rows, aligned.actual_rows, strict=True))
            first = next(at for at, (row, other) in rows if row != other)
            cells = f"{_in_brackets(others, first)} instead of {_in_brackets(mine, first)}"
            return f"the rows are the same but in another order, from row {first + 1} on: {cells}"
        if self._cut_off:
            return "the rows are the same but for their blank nodes; whether these can be renamed one to one is open"
        text = "the rows differ in their blank nodes only: no one-to-one renaming makes them equal"
        columns = [self._keys.reference(name) for name in self._columns]
        other_columns = [self._keys.actual(found) for found in self._columns.values() if found is not None]
        try:
            places = BlankNodes(columns, other_columns, self._rows_as, Budget()).rows_that_differ()
        except SearchCutOff:
            return text
        if places is None:
            return text
        return f"{text}, such as those of {_in_brackets(mine, places[0])} and {_in_brackets(others, places[1])}"


def _columns_of(aligned: Alignment) -> tuple[list[TermColumn | None], list[TermColumn | None]]:
    names = aligned.columns.values()
    others = [None if found is None else aligned.actual.columns[found] for found in names]
    return [aligned.reference.columns[name] for name in aligned.columns], others


def shown_rows(aligned: Alignment) -> tuple[list[ShownRow], list[ShownRow]]:
    """Return the first few missing rows, and the first few that are too many."""
    mine, others = (
        [tuple(_shown_text(column, at) for column in columns) for at in rows[:_SHOWN_ROWS]]
        for columns, rows in zip(_columns_of(aligned), (aligned.missing, aligned.extra), strict=True)
    )
    return mine, others


def _in_brackets(columns: Sequence[TermColumn | None], at: int) -> str:
    cells = ("–" if column is None else _shown_text(column, at) or "unbound" for column in columns)
    return f"({', '.join(cells)})"


def _shown_text(column: TermColumn | None, at: int) -> str | None:
    """Return the text of a cell on one line, without its middle if it is long; None if it is unbound."""
    text = None if column is None else column.readable(at)
    if text is None or (len(text) <= _SHOWN_LENGTH and text.isprintable()):
        return text
    line = " ".join(text[:1_000].split())
    if len(line) <= _SHOWN_LENGTH and len(text) <= 1_000:
        return line
    return f"{line[:20]}…{text[-(_SHOWN_LENGTH - 21) :]}"


def with_notes(reason: str, reference: SparqlResults, actual: SparqlResults) -> str:
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


class Grade(NamedTuple):
    """What a step is worth, 0 to 1, and a sentence on what that consists of."""

    value: float
    reason: str


def grade_of_rows(aligned: Alignment, *, is_match: bool) -> Grade:
    """Return what rows are worth; below 1 if they do not match, even if it cannot be seen which cell differs."""
    value, shared = aligned.grade, aligned.trusted
    if not is_match and aligned.are_equal:
        value, shared = value * (1 - 0.5 / aligned.required_cells), shared - 0.5
    if not value:
        return Grade(0.0, "Worth 0: no cell of the required columns fits.")
    recall, precision = shared / aligned.required_cells, shared / aligned.actual_cells
    about = [f"recall {_shown(recall)} and precision {_shown(precision)} of the cells"]
    if aligned.order < 1.0:
        about.append(f"{_shown(aligned.order)} of the pairs of rows are in the right order")
    absent = [name for name, cells in zip(aligned.columns, aligned.shared, strict=True) if not cells]
    if absent:
        about.append(f"no value of {_listed(absent)} fits")
    about += _about_surplus(
        [name for name in aligned.surplus if not any(bare_name(name) == bare_name(other) for other in absent)]
    )
    doubted = [name for name, trust in zip(aligned.columns, aligned.trusts, strict=True) if trust < 0.995]
    if doubted:
        about.append(f"chance may explain {_listed(doubted)}, as other columns have values of the same kind")
    return Grade(value, f"Worth {_shown(value)}: {'; '.join(about)}.")


def _shown(number: float) -> str:
    text = f"{number:.2f}"
    return "nearly 0" if text == "0.00" and number else "nearly 1" if text == "1.00" and number < 1 else text


def _listed(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names])


def _about_surplus(surplus: Sequence[str]) -> list[str]:
    more = ", …" if len(surplus) > _SHOWN_COLUMNS else ""
    names = f"{_listed(surplus[:_SHOWN_COLUMNS])}{more}"
    return [f"nobody asked for {len(surplus)} {plural(len(surplus), 'column')}: {names}"] if surplus else []


def grade_of_empty_results(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> Grade:
    """Return the grade of results without rows: what is left to compare is the names of the columns, or their number."""
    wanted = list(required) or list(reference.variables)
    found = namesakes(wanted, actual.variables)
    surplus = surplus_columns(reference, actual, found)
    if len(found) == len(wanted) and (wanted or not reference.is_headless or not actual.variables):
        value = 2 * len(wanted) / (2 * len(wanted) + len(surplus)) if surplus else 1.0
        about = "; ".join(["with the names of the required columns", *_about_surplus(surplus)])
    elif actual.is_headless or reference.is_headless:
        value, about = 0.5, "and nothing names the columns of one"
    elif len(actual.variables) in (len(wanted), len(reference.variables)) or not required:
        value, about = 0.5, "and the columns have other names"
    else:
        value, about = 0.0, "and have other columns"
    return Grade(
        value, f"Worth {value:.2f}: both results are empty, {about}; an empty reference tells little of a query."
    )
