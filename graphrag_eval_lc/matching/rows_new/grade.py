"""What the rows of a query are worth if steps are graded; ``alignment`` has the formula.

A column is trusted as far as chance does not explain what it shares with the required one. A query that returns 300
numbers has the one that was asked for, and one that returns true and false has the right answer:

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
from collections.abc import Mapping, Sequence
from math import log2
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.rows_new.alignment import Alignment
from graphrag_eval_lc.matching.rows_new.columns import bare_name, namesakes
from graphrag_eval_lc.matching.rows_new.results import Shape, SparqlResults, TermColumn
from graphrag_eval_lc.texts import listed, plural

_SHOWN_COLUMNS: Final = 5
_NUMBER: Final = re.compile(r"\s{0,9}[+-]?([0-9]{0,999}(?:\.[0-9]{0,999})?)(?:[eE][+-]?[0-9]{1,9})?\s{0,9}")
_IRI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}:[^\s<>]+")
_XSD_BOOLEAN: Final = "http://www.w3.org/2001/XMLSchema#boolean"
_MOST_BITS: Final = 40.0
_ENOUGH_BITS: Final = 100.0
_SAMPLED: Final = 1_000


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
            trusts[-1] = 1.0 - min(1.0, (rivals + 1) * 2.0**-bits)
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
    if datatype == _XSD_BOOLEAN or text in ("true", "false"):
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
