"""Why two results match or not, in a sentence for people, and what they are worth if steps are graded.

The formula of the grade is in ``alignment``. A column is trusted as far as chance does not explain what it shares with
the required one: a query that returns 300 numbers has the one that was asked for, and one that returns true and false
has the right answer.

- A value has as many bits as its kind has room for: a boolean or a blank node 1, a number 3.3 for each digit, a text 5
  for each character up to 40, an IRI 40. A column has the bits of its different values; or, next to other columns,
  those of how its values lie over the rows, if these are more.
- Rivals are the actual columns with values of the same kind that stand for no required column and were not asked for,
  less the required columns of this kind that no column stands for.
- Chance explains the column to (rivals + 1) ÷ 2^bits, 1 at most; without rivals, or if the column has the name of the
  required one, not at all. The rest is its trust.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import log2
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.alignment import Alignment
from graphrag_eval_lc.matching.rows.columns import BlankNodes, Budget, SearchCutOff, bare_name, namesakes
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD_BOOLEAN
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, Shape, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs
from graphrag_eval_lc.texts import listed, plural

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

_NUMBER: Final = re.compile(r"\s{0,9}[+-]?([0-9]{0,999}(?:\.[0-9]{0,999})?)(?:[eE][+-]?[0-9]{1,9})?\s{0,9}")
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}:[^\s<>]+")
_MOST_BITS: Final = 40.0
_ENOUGH_BITS: Final = 100.0
_NEGLIGIBLE: Final = 1e-6
_SAMPLED: Final = 1_000


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
            at = row_of.get(row, -1)
            if at >= 0 and reference.columns[name].texts[at] != actual.columns[found].texts[other]:
                note = keys.note(name, at, found, other)
                if note:
                    return note
    return None


class Mismatch:
    """Two results that do not match, or of which that is not known, under the nearest columns.

    Args:
        reference: The expected results.
        actual: The actual ones.
        columns: For each required column the nearest actual one, or None.
        aligned: The rows under these columns.
        keys: The keys of their cells.
        rows_as: How rows count.
        cut_off: Why the search ended before it could tell; None if they do not match.
    """

    def __init__(
        self,
        reference: SparqlResults,
        actual: SparqlResults,
        columns: Mapping[str, str | None],
        aligned: Alignment,
        keys: Keys,
        rows_as: RowsAs,
        cut_off: str | None,
    ) -> None:
        self._actual, self._columns, self._aligned, self._keys = actual, columns, aligned, keys
        self._rows_as, self._cut_off = rows_as, cut_off
        self._mine = [reference.columns[name] for name in columns]
        self._others = [None if found is None else actual.columns[found] for found in columns.values()]

    def diagnosis(self) -> Diagnosis:
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
        precision, recall = 1 - len(extra) / aligned.actual_total, 1 - len(missing) / aligned.total
        if (missing or extra) and precision + recall:
            parts.append(f"row F1 {2 * precision * recall / (precision + recall):.2f}")
        if mapped:
            names = [f"`{name}`" if name == found else f"`{name}` as `{found}`" for name, found in mapped.items()]
            parts.append(f"columns: {', '.join([*names[:_SHOWN_COLUMNS], *['…'][: len(names) > _SHOWN_COLUMNS]])}")
        text = "; ".join(parts)
        if self._cut_off is not None:
            text = (
                f"undecided: {self._cut_off}, before it could tell whether the actual results hold the required rows; "
                f"under the columns that come nearest {text}"
            )
        return Diagnosis(
            f"{text[0].upper()}{text[1:]}.",
            mapped,
            tuple(_shown_row(self._mine, at) for at in missing[:SHOWN_ROWS]),
            tuple(_shown_row(self._others, at) for at in extra[:SHOWN_ROWS]),
            len(missing),
            len(extra),
            precision,
            recall,
        )

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
                if all(found and self._keys.note(name, at, found, other) for name, found in self._unlike(at, other)):
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
        if self._rows_as == "list" and aligned.rows != aligned.actual_rows:
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


class Grade(NamedTuple):
    """What a step is worth, 0 to 1, and a sentence on what that consists of."""

    value: float
    reason: str


def _shown(number: float) -> str:
    text = f"{number:.2f}"
    return "nearly 0" if text == "0.00" and number else "nearly 1" if text == "1.00" and number < 1 else text


def grade_of_rows(
    reference: SparqlResults,
    actual: SparqlResults,
    columns: Mapping[str, str | None],
    aligned: Alignment,
    *,
    is_match: bool,
) -> Grade:
    """Return what two results are worth under some columns.

    Args:
        reference: The expected results.
        actual: The actual ones.
        columns: For each required column the actual one that stands for it, or None.
        aligned: Their rows under these columns.
        is_match: Whether they match. If not, the grade is below 1, even if it cannot be seen which cell differs.
    """
    surplus = _surplus(reference, actual, columns)
    trusts = _trusts(reference, actual, columns, surplus, aligned) if surplus else [1.0] * len(columns)
    shared = sum(map(float.__mul__, aligned.shared, trusts))
    if not is_match and aligned.are_equal:
        shared = max(0.0, shared - 0.5)
    if not shared:
        return Grade(0.0, "Worth 0: no cell of the required columns fits.")
    absent = [name for name, found in columns.items() if found is None]
    required = aligned.total * len(columns)
    there = aligned.actual_total * (len(columns) - len(absent) + len(surplus))
    value = min(1.0, 2 * shared / (required + there)) * aligned.order
    about = [f"recall {_shown(shared / required)} and precision {_shown(shared / there)} of the cells"]
    if aligned.order < 1.0:
        about.append(f"{_shown(aligned.order)} of the pairs of rows are in the right order")
    if absent:
        about.append(f"no value of {_listed(absent)} fits")
    about += _about_surplus(
        [name for name in surplus if not any(bare_name(name) == bare_name(other) for other in absent)]
    )
    doubted = [name for name, trust in zip(columns, trusts, strict=True) if trust < 0.995]
    if doubted:
        about.append(f"chance may explain {_listed(doubted)}, as other columns have values of the same kind")
    return Grade(value, f"Worth {_shown(value)}: {'; '.join(about)}.")


def _listed(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names])


def _about_surplus(surplus: Sequence[str]) -> list[str]:
    more = ", …" if len(surplus) > _SHOWN_COLUMNS else ""
    names = f"{_listed(surplus[:_SHOWN_COLUMNS])}{more}"
    return [f"nobody asked for {len(surplus)} {plural(len(surplus), 'column')}: {names}"] if surplus else []


def _surplus(reference: SparqlResults, actual: SparqlResults, columns: Mapping[str, str | None]) -> list[str]:
    """Return the actual columns that stand for no required one and that nobody asked for.

    A column was asked for that has the name of a column of the reference, or of which at least half the different
    values are those of one, each of which asks for one column.
    """
    taken = set(columns.values())
    left = [name for name in actual.variables if name not in taken]
    optional = [name for name in reference.variables if name not in columns]
    same = namesakes(optional, left)
    left = [name for name in left if name not in same.values()]
    for name in optional if left else ():
        if name in same or name not in reference.columns:
            continue
        mine = _plain_values(reference.columns[name])
        shares = {
            other: len(mine & found) / len(found)
            for other in left
            if other in actual.columns and (found := _plain_values(actual.columns[other]))
        }
        best = max(shares, key=shares.__getitem__, default=None)
        if best is not None and shares[best] >= 0.5:
            left.remove(best)
    return left


def _plain_values(column: TermColumn) -> frozenset[object]:
    def value(text: str) -> object:
        try:
            return float(text)
        except ValueError:
            return text

    return frozenset(map(value, set(column.texts)))


def _trusts(
    reference: SparqlResults,
    actual: SparqlResults,
    columns: Mapping[str, str | None],
    surplus: Sequence[str],
    aligned: Alignment,
) -> list[float]:
    """Return how far each column is trusted; 0 to 1."""
    others = [_kinds(actual.columns[name]) for name in surplus if name in actual.columns]
    absent = [_kinds(reference.columns[name]) for name, found in columns.items() if found is None]
    bare_names = Counter(map(bare_name, actual.variables))
    trusts = []
    for at, (name, found) in enumerate(columns.items()):
        trusts.append(1.0)
        has_its_name = found is not None and bare_name(name) == bare_name(found)
        if found is None or name == found.lstrip("?$") or (has_its_name and bare_names[bare_name(name)] == 1):
            continue
        column = reference.columns[name]
        kinds = _kinds(column)
        rivals = sum(not kinds.isdisjoint(each) for each in others) - sum(not kinds.isdisjoint(each) for each in absent)
        if rivals > 0:
            bits = _bits(column, aligned, at, is_alone=len(columns) == 1)
            chance = (rivals + 1) * 2.0**-bits
            trusts[-1] = 1.0 - min(1.0, chance) if chance > _NEGLIGIBLE else 1.0
    return trusts


def _kinds(column: TermColumn) -> frozenset[str]:
    """Return the kinds of values in a column, of the first different ones."""
    cells = {text: row for row, text in reversed(list(enumerate(column.texts[:_SAMPLED])))}
    return frozenset(_kind_and_bits(text, column.shape(row))[0] for text, row in cells.items()) - {""}


def _bits(column: TermColumn, aligned: Alignment, at: int, *, is_alone: bool) -> float:
    """Return the bits of what is shared of a column; once they are enough, not all of them."""
    shared = aligned.shared_keys(at)
    row_of = {row[at]: place for place, row in enumerate(aligned.rows)}
    rows = shared.total()
    by_values = by_rows = 0.0
    for key, times in shared.items():
        by_values += _kind_and_bits(column.texts[row_of[key]], column.shape(row_of[key]))[1]
        by_rows += times * log2(rows / times)
        if by_values > _ENOUGH_BITS:
            break
    return min(_ENOUGH_BITS, by_values if is_alone else max(by_values, by_rows))


def _kind_and_bits(text: str, shape: Shape) -> tuple[str, float]:
    """Return the kind of value that a cell is, as a guess would have to be, and its bits."""
    kind, datatype, _ = shape
    if kind in ("", "bnode"):
        return kind, 1.0
    if datatype == XSD_BOOLEAN or text in ("true", "false"):
        return "boolean", 1.0
    match = _NUMBER.fullmatch(text)
    if match is not None and (digits := match[1].strip(".")):
        digits = (digits.rstrip("0") if "." in digits else digits).replace(".", "").lstrip("0")
        return "number", min(_MOST_BITS, log2(10) * max(1, len(digits)))
    if kind == "uri" or _IRI.fullmatch(text):
        return "iri", _MOST_BITS
    return "text", max(1.0, min(_MOST_BITS, 5.0 * len(text)))


def grade_of_emptiness(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], score: float) -> Grade:
    """Return the grade of results of which one has no rows, or of which no column is required.

    If both are empty, what is left to compare is the names of the columns, or at least their number.
    """
    if reference.row_count or actual.row_count:
        return Grade(score, f"Worth {score:.0f}: {'there are rows' if score else 'one side has no rows'}.")
    wanted = list(required) or list(reference.variables)
    found = namesakes(wanted, actual.variables)
    sizes = (len(wanted), len(reference.variables))
    about, value = ["with the names of the required columns"], 1.0
    if len(found) == len(wanted) and (wanted or not reference.is_headless or not actual.variables):
        surplus = _surplus(reference, actual, found)
        value = 2 * len(wanted) / (2 * len(wanted) + len(surplus)) if surplus else 1.0
        about += _about_surplus(surplus)
    elif actual.is_headless or reference.is_headless:
        about, value = ["and nothing names the columns of one"], 0.5
    elif len(actual.variables) in sizes or not required:
        about, value = ["and the columns have other names"], 0.5
    else:
        about, value = ["and have other columns"], 0.0
    text = "; ".join([" ".join(["both results are empty,", about[0]]), *about[1:]])
    return Grade(value, f"Worth {value:.2f}: {text}; an empty reference tells little of a query.")
