"""What two results have in common and what not, for people: the nearest columns, and the rows that differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.closeness import NearNumber, near_number, nearest_columns, overlaps_of
from graphrag_eval_lc.matching.rows.coded_rows import (
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
from graphrag_eval_lc.matching.rows.encoding import encoding_for, full_encoding
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.row_pairing import rows_left_over
from graphrag_eval_lc.matching.rows.tables import Table, detailed_rows, encoded_tables
from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances
from graphrag_eval_lc.texts import plural

SHOWN_ROWS: Final = 20
"""So many of the rows that differ are given."""

ShownRow: TypeAlias = tuple[str | None, ...]
"""The texts of a row over the required columns; None where a cell is unbound."""

_SHOWN_LENGTH: Final = 60
_SHOWN_FAULTS: Final = 3


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
    reference: SparqlResults, actual: SparqlResults, columns: dict[str, str], rules: Rules, *, is_exact: bool
) -> Diagnosis:
    """Describe two results that match by these columns; exact ones match without a tolerance, too."""
    row_count = reference.row_count
    renamed = [f"`{mine}` is played by `{other}`" for mine, other in columns.items() if mine != other]
    names = f" ({'; '.join(renamed)})" if renamed else ""
    rows = "The only row matches" if row_count == 1 else f"All {row_count} rows match"
    near = None if is_exact else _near_number_of_match(reference, actual, columns, rules)
    about_near = "" if near is None else f"; {_about_near(near)}, which is within the tolerance"
    return Diagnosis(f"{rows}{names}{about_near}.", columns, row_precision=1.0, row_recall=1.0)


def with_notes(diagnosis: Diagnosis, reference: SparqlResults, actual: SparqlResults) -> Diagnosis:
    """Add to the reason from which form and with which allowances the results were read."""
    added = "; the reference was read with allowances: " + ", ".join(reference.notes) if reference.notes else ""
    added += "; read with allowances: " + ", ".join(actual.notes) if actual.notes else ""
    return replace(diagnosis, reason=f"{diagnosis.reason.removesuffix('.')}{added}.{_forms_text(reference, actual)}")


def _forms_text(reference: SparqlResults, actual: SparqlResults) -> str:
    """Say from which forms the results were read, where these are not SPARQL JSON."""
    if reference.form == actual.form:
        return "" if actual.form == SPARQL_JSON else f" Both were read from {actual.form}."
    if reference.form == SPARQL_JSON:
        return f" It was read from {actual.form}."
    other = "" if actual.form == SPARQL_JSON else f", the output from {actual.form}"
    return f" The reference was read from {reference.form}{other}."


def _near_number_of_match(
    reference: SparqlResults, actual: SparqlResults, columns: dict[str, str], rules: Rules
) -> NearNumber | None:
    """Compare the results again without a tolerance to find numbers that needed it."""
    matched = SparqlResults({name: actual.columns[name] for name in columns.values()}, actual.row_count)
    encoding = full_encoding(reference, matched, list(columns), rules._replace(rows_as="bag", tolerances=Tolerances()))
    mine, others = encoded_tables(reference, matched, list(columns), encoding, all_columns=True)
    rows, other_rows = list(rows_of(mine.columns)), list(rows_of(others.columns))
    if rules.rows_as == "list":
        unlike = [at for at, (row, other) in enumerate(zip(rows, other_rows, strict=True)) if row != other]
        return next(filter(None, (_near_number(mine, others, [at], [at]) for at in unlike[:SHOWN_ROWS])), None)
    return _near_number(mine, others, *_unlike_rows(rows, other_rows, rules.rows_as))


def _near_number(
    mine: Table, others: Table, missing: Sequence[int], extra: Sequence[int], mapping: dict[int, int] | None = None
) -> NearNumber | None:
    # A part that one side never has is no number there.
    places = [
        (at, found, path)
        for at in range(len(mine.names))
        for found in [at if mapping is None else mapping[at]]
        for path in mine.detailed_columns[at]
        if path in others.detailed_columns[found]
    ]
    return near_number(
        [mine.term_columns[at].with_parts[path] for at, _, path in places],
        [others.term_columns[found].with_parts[path] for _, found, path in places],
        missing[:SHOWN_ROWS],
        extra,
        [mine.detailed_columns[at][path] for at, _, path in places],
        [others.detailed_columns[found][path] for _, found, path in places],
    )


def diagnosis_of_mismatch(
    reference_results: SparqlResults,
    actual_results: SparqlResults,
    required: Sequence[str],
    rules: Rules,
    cut_off: str | None,
) -> Diagnosis:
    """Describe two results that do not match, of at least one row and required column; or whose search was cut off."""
    encoding = encoding_for(reference_results, actual_results, required, rules)
    reference, actual = encoded_tables(reference_results, actual_results, required, encoding, all_columns=True)
    mapping = nearest_columns(reference, actual, overlaps_of(reference, actual))
    columns = {reference.names[at]: actual.names[found] for at, found in mapping.items()}
    positions = [mapping.get(at) for at in range(len(reference.names))]
    unbound = [UNBOUND_CODE] * actual_results.row_count
    mine = list(rows_of(reference.columns))
    others = list(rows_of([unbound if at is None else actual.columns[at] for at in positions]))
    unlike = UnlikeRows(
        *_unlike_rows(mine, others, rules.rows_as), *(_row_total(rows, rules.rows_as) for rows in (mine, others))
    )
    is_complete = len(columns) == len(reference.names)
    if is_complete and reference.needs_details:
        unlike = _unlike_in_detail(reference, actual, mapping, rules.rows_as, encoding.details) or unlike
    missing, extra, total, actual_total = unlike
    found_columns = [None if at is None else actual.term_columns[at] for at in positions]
    is_undecided = cut_off is not None
    has_faults = bool(actual_results.faults)
    parts = [_about_columns(reference, actual, columns, has_faults=has_faults, is_undecided=is_undecided)]
    parts += map(actual_results.fault_of, list(actual_results.faults)[:_SHOWN_FAULTS])
    if missing:
        example = _in_brackets(_shown_row(reference.term_columns, missing[0]))
        are_missing = f"{plural(len(missing), 'is', 'are')} missing"
        parts.append(f"{len(missing)} of {_counted(total, 'row')} {are_missing}, e.g. {example}")
    if extra and is_complete:
        example = _in_brackets(_shown_row(found_columns, extra[0]))
        parts.append(f"{_counted(len(extra), 'row')} too many, e.g. {example}")
    if is_complete and missing and extra:
        near = _near_number(reference, actual, missing, extra, mapping)
        parts.append(None if near is None else _about_near(near))
    if not missing and not extra and (is_complete or is_undecided):
        about = _about_equal_rows(
            mine,
            others,
            rules.rows_as,
            has_blank_nodes=reference.has_blank_nodes,
            has_near_numbers=not encoding.inexact.isdisjoint(chain.from_iterable(mine)),
        )
        parts.append(_about_undecided_rows(mine, others, rules.rows_as) if is_undecided else about)
    diagnosis = Diagnosis(
        "",
        columns,
        tuple(_shown_row(reference.term_columns, at) for at in missing[:SHOWN_ROWS]),
        tuple(_shown_row(found_columns, at) for at in extra[:SHOWN_ROWS]),
        len(missing),
        len(extra),
        row_precision=1 - len(extra) / actual_total,
        row_recall=1 - len(missing) / total,
    )
    if (missing or extra) and diagnosis.row_precision + diagnosis.row_recall:
        parts.append(f"row F1 {diagnosis.row_f1:.2f}")
    text = "; ".join(filter(None, parts))
    if is_undecided:
        text = (
            f"undecided: {cut_off}, before it could tell whether the actual results hold the required rows; under the "
            f"columns that come nearest {text}"
        )
    return replace(diagnosis, reason=f"{text[0].upper()}{text[1:]}.")


class UnlikeRows(NamedTuple):
    """The positions of the rows that the other side lacks, and how many rows count, on either side."""

    missing: list[int]
    extra: list[int]
    total: int
    actual_total: int


def _unlike_rows(mine: list[Row], others: list[Row], rows_as: RowsAs) -> tuple[list[int], list[int]]:
    """Return the positions of the rows that the other side lacks, on either side."""
    if rows_as == "set":
        missing, extra = Counter(set(mine).difference(others)), Counter(set(others).difference(mine))
    else:
        missing, extra = Counter(mine), Counter(others)
        missing, extra = missing - extra, extra - missing
    return _first_positions(mine, missing), _first_positions(others, extra)


def _unlike_in_detail(
    reference: Table, actual: Table, mapping: dict[int, int], rows_as: RowsAs, codes: DetailedCodes
) -> UnlikeRows | None:
    """Find the rows that lack a partner when inexact cells are compared, and blank nodes are all alike.

    Returns:
        The rows; None where that takes too many steps.
    """
    details, other_details = detailed_rows(reference, actual, [mapping[at] for at in range(len(mapping))])
    for rows in (details, other_details):
        rows[:] = [tuple(BLANK_CODE if code < 0 else code for code in row) for row in rows]
    budget = Budget(max(len(details), len(other_details)))
    counted: RowsAs = "set" if rows_as == "set" else "bag"
    try:
        alone = rows_left_over(details, other_details, counted, codes, budget)
        others_alone = rows_left_over(other_details, details, counted, codes, budget)
    except SearchCutOff:
        return None
    return UnlikeRows(
        _first_positions(details, alone),
        _first_positions(other_details, others_alone),
        _row_total(details, counted),
        _row_total(other_details, counted),
    )


def _first_positions(rows: list[Row], wanted: Counter[Row]) -> list[int]:
    """Return the first positions of some rows, of each as many as are wanted."""
    left = dict(wanted)
    positions = []
    for at, row in enumerate(rows) if left else ():
        if left.get(row):
            left[row] -= 1
            positions.append(at)
    return positions


def _row_total(rows: Sequence[Row], rows_as: RowsAs) -> int:
    return len(set(rows)) if rows_as == "set" else len(rows)


def _shown_row(columns: Sequence[TermColumn | None], at: int) -> ShownRow:
    return tuple(None if column is None else _without_middle(column.readable(at)) for column in columns)


def _without_middle(text: str | None) -> str | None:
    """Return a text on one line, without its middle where it is long."""
    if text is None or (len(text) <= _SHOWN_LENGTH and text.isprintable()):
        return text
    line = " ".join(text[:1_000].split())
    if len(line) <= _SHOWN_LENGTH and len(text) <= 1_000:
        return line
    return f"{line[:20]}…{text[-(_SHOWN_LENGTH - 21) :]}"


def _about_columns(
    reference: Table, actual: Table, columns: dict[str, str], *, has_faults: bool, is_undecided: bool
) -> str | None:
    absent = [at for at, name in enumerate(reference.names) if name not in columns]
    if not absent:
        return None
    known = set(actual.contents)
    # A column of the same contents may play it; that is only known not to be where another plays that one's part.
    unlike = [f"`{reference.names[at]}`" for at in absent if reference.contents[at] not in known]
    alike = [f"`{reference.names[at]}`" for at in absent if reference.contents[at] in known]
    parts = [f"no column plays {', '.join(unlike)}"] if unlike and not is_undecided else []
    if alike or (unlike and is_undecided):
        parts.append(f"no column is left for {', '.join(alike if not is_undecided else unlike + alike)}")
    if len(actual.names) < len(reference.names):
        readable = " that can be read" if has_faults else ""
        found = f"only {_counted(len(actual.names), 'column')}{readable} for {len(reference.names)} required"
        parts.insert(0, found)
    return "; ".join(parts)


def _about_near(number: NearNumber) -> str:
    mantissa, exponent = f"{number.difference:.0e}".split("e")
    texts = f"{_without_middle(number.found)} instead of {_without_middle(number.expected)}"
    return f"{texts} differs by {mantissa}e{int(exponent)} of its value"


def _about_equal_rows(
    mine: list[Row], others: list[Row], rows_as: RowsAs, *, has_blank_nodes: bool, has_near_numbers: bool
) -> str:
    """Say why rows of equal codes do not match, which is known for all columns that could stand for the required."""
    if rows_as == "list" and mine != others:
        return _about_order(mine, others)
    if has_blank_nodes:
        if has_near_numbers:
            return (
                "no one-to-one renaming of the blank nodes makes the rows equal, of which some numbers are near others"
            )
        return "the rows differ in their blank nodes only: no one-to-one renaming makes them equal"
    if rows_as == "list":
        return (
            "the rows are not equal one by one: some numbers are within the tolerance of others but not of each other"
        )
    return "the rows cannot be paired off: some numbers are within the tolerance of others but not of each other"


def _about_undecided_rows(mine: list[Row], others: list[Row], rows_as: RowsAs) -> str:
    """Say what is known of rows of equal codes where the search ended before it could tell."""
    if rows_as == "list" and mine != others:
        return _about_order(mine, others)
    if any(BLANK_CODE in row for row in mine):
        return (
            "the rows are the same but for their blank nodes; whether a one-to-one renaming makes these equal is open"
        )
    return "each row has rows with nearly the same numbers; whether all can be paired off within the tolerance is open"


def _about_order(mine: list[Row], others: list[Row]) -> str:
    first = next(at for at, (row, other) in enumerate(zip(mine, others, strict=True), 1) if row != other)
    return f"the rows are the same but in another order, from row {first} on"


def _in_brackets(row: ShownRow) -> str:
    return f"({', '.join('unbound' if text is None else text for text in row)})"


def _counted(count: int, noun: str) -> str:
    return f"{count} {plural(count, noun)}"
