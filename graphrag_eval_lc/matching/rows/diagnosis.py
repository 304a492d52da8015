"""Puts into sentences why two results match or not, and what their grade consists of."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from graphrag_eval_lc.matching.rows.alignment import Alignment, Search, surplus_columns
from graphrag_eval_lc.matching.rows.columns import namesakes
from graphrag_eval_lc.matching.rows.results import SPARQL_JSON, SparqlResults, TermColumn
from graphrag_eval_lc.texts import counted, listed, plural

ShownRow: TypeAlias = tuple[str | None, ...]
"""The texts of a row over the required columns; None if a cell is unbound."""

_SHOWN_ROWS: Final = 20
_SHOWN_LENGTH: Final = 60
_SHOWN_FAULTS: Final = 3
_NEAR_CELLS: Final = 2
"""A near row differs in at most this many cells."""

_LABEL: Final = re.compile(r"(.*?)[ _.]?(?:name|label|title)", re.IGNORECASE)
"""The name of a column of labels: on its own, or after the name of the column with the labelled IRIs."""


def reason_of_search(search: Search) -> str:
    """Describe two results under the columns that match, or under the nearest ones."""
    if search.columns is not None:
        rows = search.keys.reference.row_count
        names = listed([f"`{name}` is matched by `{found}`" for name, found in search.columns.items() if name != found])
        text = f"{'The only row matches' if rows == 1 else f'All {rows} rows match'}{f' ({names})' if names else ''}"
    else:
        text = "; ".join(_about_mismatch(search.alignment, is_cut_off=bool(search.cut_off)))
        if search.cut_off:
            about = "before it was known whether the actual results hold the required rows"
            text = f"undecided: {search.cut_off}, {about}; nearest: {text}"
    return with_notes(f"{text[0].upper()}{text[1:]}.", search.keys.reference, search.keys.actual)


def _about_mismatch(aligned: Alignment, *, is_cut_off: bool) -> Iterator[str]:
    missing, extra, actual, found = aligned.missing, aligned.extra, aligned.actual, aligned.found
    near, labels = _near_rows(aligned), _labels(aligned)

    def cell(column: TermColumn | None, at: int) -> str:
        text = _shown_text(column, at)
        return "–" if column is None else "unbound" if text is None else labels.get(column.texts[at], text) or "''"

    def row(columns: Sequence[TermColumn | None], at: int) -> str:
        return f"({', '.join(cell(column, at) for column in columns)})"

    if (count := len(actual.columns)) < len(aligned.columns):
        readable = " that can be read" if actual.faults else ""
        yield f"only {count} {plural(count, 'column')}{readable} for {len(aligned.columns)} required"
    if absent := [name for name in aligned.columns if name not in found]:
        yield f"{'no column is left for' if is_cut_off else 'no result column matches'} {_listed(absent)}"
    yield from map(actual.fault_of, list(actual.faults)[:_SHOWN_FAULTS])
    if renamed := [f"`{other}` for `{name}`" for name, other in found.items() if name != other]:
        yield f"the result has {listed(renamed)}"  # possibly the cause
    if missing:
        rows = f"{len(missing)} of {aligned.total} {plural(aligned.total, 'row')} {plural(len(missing), 'is', 'are')}"
        example = f"{', e.g. ' if len(missing) > 1 else ': '}{row(aligned.terms, near[0] if near else missing[0])}"
        yield f"{rows if aligned.total > 1 else 'the only row is'} missing{example}"
    if extra and found:
        about = f"{', e.g. ' if len(extra) > 1 else ': '}{row(aligned.actual_terms, extra[0])}"
        if near:
            at, other = near
            columns = list(zip(aligned.columns, aligned.terms, aligned.actual_terms, strict=True))
            parts = [
                f"no `{name}` ({cell(term, at)})"
                if actual_term is None
                else f"`{name}` {_how_near(term, at, actual_term, other) or instead}"
                for name, term, actual_term in map(columns.__getitem__, _unlike(aligned, at, other))
                for instead in (f"{cell(actual_term, other)} instead of {cell(term, at)}",)
            ]
            about = f", {'one like it' if len(extra) > 1 else 'like it'} but with {listed(parts)}"
        yield f"{counted(len(extra), 'extra row')}{about}"
    if missing or extra:
        if aligned.equal_total and aligned.order < 1.0:
            yield "the rows that both have are in another order"
    elif not aligned.are_equal:
        pairs = enumerate(zip(aligned.rows, aligned.actual_rows, strict=True))
        first = next(at for at, (one, other_one) in pairs if one != other_one)
        sides = f"{row(aligned.actual_terms, first)} instead of {row(aligned.terms, first)}"
        yield f"the rows are the same but in another order, from row {first + 1} on: {sides}"
    elif is_cut_off:
        yield "the rows differ only in their blank nodes; it is not known whether one renaming makes them equal"
    else:
        yield "the rows differ in their blank nodes only: no one-to-one renaming makes them equal"


def _near_rows(aligned: Alignment) -> tuple[int, int] | None:
    """Return the positions of the first missing row that has a near extra row, and of that extra row."""
    pairs = {pair.reference: pair for pair in reversed(aligned.pairs)}
    for at in aligned.missing:
        pair = pairs.get(aligned.rows[at])
        if pair is not None and len(aligned.columns) - len(pair.columns) <= _NEAR_CELLS:
            return at, next(other for other in aligned.extra if aligned.actual_rows[other] == pair.actual)
    if len(aligned.missing) == len(aligned.extra) == 1:
        at, other = aligned.missing[0], aligned.extra[0]
        cells = ((aligned.terms[column], aligned.actual_terms[column]) for column in _unlike(aligned, at, other))
        if all(_how_near(expected, at, found, other) for expected, found in cells):
            return at, other
    return None


def _unlike(aligned: Alignment, at: int, other: int) -> list[int]:
    """Return the positions of the columns in which two rows differ."""
    cells = zip(aligned.rows[at], aligned.actual_rows[other], strict=True)
    return [column for column, (key, other_key) in enumerate(cells) if key != other_key]


def _how_near(expected: TermColumn, at: int, found: TermColumn | None, other: int) -> str | None:
    """Return in which way two different cells are similar; None if they are not."""
    if found is None or not expected.kind(at) or not found.kind(other):
        return None
    text, actual = expected.texts[at], found.texts[other]
    if text == actual:
        return f"{actual!r:.60} in another datatype, language tag or kind"
    is_near = " ".join(text.split()).casefold() == " ".join(actual.split()).casefold()
    return f"{actual!r:.60} instead of {text!r:.60}, another case or other spaces" if is_near else None


def shown_rows(columns: Sequence[TermColumn | None], rows: Sequence[int]) -> list[ShownRow]:
    """Return the first few rows as texts."""
    return [tuple(_shown_text(column, at) for column in columns) for at in rows[:_SHOWN_ROWS]]


def _labels(aligned: Alignment) -> dict[str, str]:
    """Return unambiguous labels of the compared IRIs, from columns that were not required."""
    pairs: dict[tuple[str, str], None] = {}
    for results, compared in ((aligned.reference, list(aligned.columns)), (aligned.actual, [*aligned.found.values()])):
        for name, labels in results.columns.items():
            if name in compared or (named := _LABEL.fullmatch(name)) is None:
                continue
            stem = named[1].casefold()
            of = (results.columns[each] for each in compared if each.casefold() == stem or not stem)
            iris = next((column for column in of if any(map(column.is_iri, range(results.row_count)))), None)
            if iris is not None:
                for at in range(results.row_count):
                    if iris.is_iri(at) and (label := _shown_text(labels, at)):
                        pairs[iris.texts[at], label] = None
    count = Counter(label for _, label in pairs)
    return {iri: label for iri, label in reversed(pairs) if count[label] == 1}  # the first of several labels


def _shown_text(column: TermColumn | None, at: int) -> str | None:
    """Return the text of a cell on one line, with the middle left out if it is long; None if it is unbound."""
    text = None if column is None else column.readable(at)
    if text is None or (len(text) <= _SHOWN_LENGTH and text.isprintable()):
        return text
    line = " ".join(text[:1_000].split())
    if len(line) <= _SHOWN_LENGTH and len(text) <= 1_000:
        return line
    return f"{line[:20]}…{text[-(_SHOWN_LENGTH - 21) :]}"


def with_notes(reason: str, reference: SparqlResults, actual: SparqlResults) -> str:
    """Add to a reason the form in which results were read and how it deviates from the standard."""
    added = f"; the reference was read with allowances: {', '.join(reference.notes)}" if reference.notes else ""
    added += f"; read with allowances: {', '.join(actual.notes)}" if actual.notes else ""
    form, other, forms = reference.form, actual.form, ""
    if form != other:
        forms = f" It was read from {other}{'' if form == SPARQL_JSON else f', the reference from {form}'}."
    return f"{reason.removesuffix('.')}{added}.{forms}"


class Grade(NamedTuple):
    """The grade of a step, 0 to 1, and a sentence on what it consists of."""

    value: float
    reason: str


def grade_of_rows(aligned: Alignment, *, is_match: bool) -> Grade:
    """Return the grade of rows; below 1 if they do not match, even if no single cell shows the difference."""
    value, (shared, required, found) = aligned.grade, aligned.cells
    if not is_match and aligned.are_equal:
        value, shared = value * (1 - 0.5 / required), shared - 0.5
    if not shared:
        return Grade(0.0, "Worth 0: no cell of the required columns matches.")
    about = [f"recall {_shown(shared / required)} and precision {_shown(shared / found)} of the cells"]
    if aligned.order < 1.0:
        about.append(f"{_shown(aligned.order)} of the pairs of rows are in the right order")
    absent = [name for name, cells in zip(aligned.columns, aligned.shared, strict=True) if not cells]
    if absent:
        about.append(f"no value of {_listed(absent)} matches")
    about += _about_surplus(aligned.surplus)
    return Grade(value, f"Worth {_shown(value)}: {'; '.join(about)}.")


def _shown(number: float) -> str:
    text = f"{number:.2f}"
    return "nearly 0" if text == "0.00" and number else "nearly 1" if text == "1.00" and number < 1 else text


def _listed(names: Sequence[str]) -> str:
    return listed([f"`{name}`" for name in names])


def _about_surplus(surplus: Sequence[str]) -> list[str]:
    count = len(surplus)
    return [f"{counted(count, 'column')} that {plural(count, 'was', 'were')} not required: {_listed(surplus)}"][:count]


def grade_of_emptiness(reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> Grade:
    """Return the grade of results without rows; only their columns can be compared."""
    wanted = required or reference.variables
    found = namesakes(wanted, actual.variables)
    is_open = actual.is_headless or reference.is_headless
    is_open = is_open or len(actual.variables) in (len(wanted), len(reference.variables))
    value, about = 0.5 * is_open, "and their columns have other names or none"
    if len(found) == len(wanted) and not (reference.is_headless and actual.variables):
        surplus = surplus_columns(reference, actual, found)
        value = 2 * len(wanted) / (2 * len(wanted) + len(surplus)) if surplus else 1.0
        about = "; ".join(["with the names of the required columns", *_about_surplus(surplus)])
    tail = "an empty reference says little about a query"
    return Grade(value, f"Worth {value:.2f}: both results are empty, {about}; {tail}.")
