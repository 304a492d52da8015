"""What the rows of a query are worth where steps are graded: F1 over cells, times the order's share.

    grade = 2 M ÷ (R x q + A x (p + s)) x order

- M: the cells that both sides share (``shared_cells``), those of each column times its trust (``chance``).
- R x q: the cells that are required: R rows of the reference, q required columns. M ÷ (R x q) is the recall.
- A x (p + s): the cells that are there: A actual rows over p columns that play required ones and s columns that nobody
  asked for. M ÷ (A x (p + s)) is the precision. A column of the reference that is not required was asked for.
- order: the share of the pairs of rows that fit which stands in the order of the reference, where order counts, else 1.

As a set different rows count, over the required columns; otherwise each row. For example two rows (Oslo, 1), (Bergen,
2) are required, and there are (Oslo, 1, x), (Bergen, 3, x), (Paris, 9, x): M is 2 + 1, as Bergen tells which row is
meant; recall is 3 ÷ 4, precision 3 ÷ 9, and the grade 6 ÷ 13 = 0.46.

Of the ways to choose actual columns for the required ones that gives the highest grade counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.rows.chance import bits_of_column, kinds_in, rival_count, trust
from graphrag_eval_lc.matching.rows.coded_rows import Rules
from graphrag_eval_lc.matching.rows.graded_columns import GradedColumns, PlayedBy, are_same_name
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.shared_cells import SharedCells
from graphrag_eval_lc.matching.rows.terms import Shape
from graphrag_eval_lc.texts import listed, plural

_SHOWN_COLUMNS: Final = 5


class Grade(NamedTuple):
    """What a step is worth, 0 to 1, and a sentence on what that consists of."""

    value: float
    reason: str


def grade_of_match(reference: SparqlResults, actual: SparqlResults, mapping: Mapping[str, str]) -> Grade:
    """Return the grade of results that match.

    Args:
        reference: The expected results.
        actual: The actual ones.
        mapping: For each required column the actual one that plays it; at least one.
    """
    required = list(mapping)
    columns = _Columns(reference, actual, required)
    played: list[str | None] = list(columns.namesakes_of_same_cells(list(mapping.values())))
    surplus = columns.surplus(played)
    trusts = [1.0] * len(required)
    for at, rivals in enumerate(columns.rivals(played, surplus) if surplus else ()):
        if rivals:
            values = columns.values_of(at)
            trusts[at] = trust(bits_of_column(values, is_alone=len(required) == 1), rivals)
    about = [*_about_surplus(surplus), *_about_chance(required, trusts)]
    # All rows are shared, so their number does not matter.
    return _Shared(sum(trusts), len(required), len(required) + len(surplus), 1.0, about).grade()


def grade_of_mismatch(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> Grade:
    """Return the grade of results that do not match, or of which it is not known; below 1.

    Args:
        reference: The expected results, with at least one row.
        actual: The actual ones, likewise.
        required: The required columns; at least one.
        rules: How rows are compared.
    """
    coded = GradedColumns(reference, actual, required, rules)
    columns = _Columns(reference, actual, required)
    mappings = (mapping for mapping in coded.mappings() if any(at is not None for at in mapping))
    tried = (_shared_by(coded, columns, mapping, rules) for mapping in mappings)
    best = max(tried, key=lambda shared: (shared.f1, shared.order), default=None)
    if best is None or not best.shared:
        return Grade(0.0, "Worth 0: no cell of the required columns fits.")
    return best.grade()


def _shared_by(coded: GradedColumns, columns: "_Columns", mapping: PlayedBy, rules: Rules) -> "_Shared":
    cells = SharedCells(coded.rows, coded.actual_rows(mapping), rules.rows_as)
    played = [None if at is None else coded.actual_names[at] for at in mapping]
    surplus = columns.surplus(played)
    trusts = [1.0] * len(mapping)
    for at, rivals in enumerate(columns.rivals(played, surplus) if surplus else ()):
        if rivals and cells.by_column[at]:
            values = coded.terms_of(at, cells.values(at))
            trusts[at] = trust(bits_of_column(values, is_alone=len(mapping) == 1), rivals)
    shared = sum(map(float.__mul__, cells.by_column, trusts))
    if not cells.is_short and (cells.are_equal or coded.is_doubtful):
        shared = max(0.0, shared - 0.5)  # they do not match, although it cannot be seen in which cell
    width = len(mapping) - mapping.count(None) + len(surplus)
    absent = [name for name, found in zip(coded.names, played, strict=True) if found is None]
    not_asked_for = [name for name in surplus if not any(are_same_name(name, other) for other in absent)]
    about = [*_about_absent(absent), *_about_surplus(not_asked_for), *_about_chance(coded.names, trusts)]
    required = cells.reference_rows * len(mapping)
    return _Shared(shared, required, cells.actual_rows * width, cells.order, about)


class _Shared(NamedTuple):
    """What two results share.

    Attributes:
        shared: The cells that both sides share, as far as they count.
        required: The cells of the reference.
        there: The actual cells.
        order: The share of the pairs of rows that stands in the right order.
        about: What is to be said beside the numbers.
    """

    shared: float
    required: int
    there: int
    order: float
    about: Sequence[str]

    @property
    def f1(self) -> float:
        """F1 over cells; 0 to 1."""
        return min(1.0, 2 * self.shared / (self.required + self.there))

    def grade(self) -> Grade:
        """Return the grade."""
        value = self.f1 * self.order
        recall, precision = self.shared / self.required, self.shared / self.there
        parts = [f"recall {_shown(recall)} and precision {_shown(precision)} of the cells"]
        if self.order < 1.0:
            parts.append(f"{_shown(self.order)} of the pairs of rows stand in the right order")
        return Grade(value, f"Worth {_shown(value)}: {'; '.join([*parts, *self.about])}.")


def _shown(number: float) -> str:
    text = f"{number:.2f}"
    return "nearly 0" if text == "0.00" and number else "nearly 1" if text == "1.00" and number < 1 else text


def _about_absent(absent: Sequence[str]) -> list[str]:
    return [f"no value of {listed([f'`{name}`' for name in absent])} fits"] if absent else []


def _about_surplus(surplus: Sequence[str]) -> list[str]:
    if not surplus:
        return []
    names = listed([f"`{name}`" for name in surplus[:_SHOWN_COLUMNS]])
    if len(surplus) > _SHOWN_COLUMNS:
        names = f"{', '.join(f'`{name}`' for name in surplus[:_SHOWN_COLUMNS])}, …"
    return [f"nobody asked for {len(surplus)} {plural(len(surplus), 'column')}: {names}"]


def _about_chance(required: Sequence[str], trusts: Sequence[float]) -> list[str]:
    doubted = [f"`{name}`" for name, each in zip(required, trusts, strict=True) if each < 0.995]
    return [f"chance may explain {listed(doubted)}, as other columns have values of the same kind"] if doubted else []


class _Columns:
    """The columns of two results by their names, and what is known of them without their rows."""

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str]) -> None:
        self._reference, self._actual = reference, actual
        self._required = list(required)
        self._optional = [name for name in reference.variables if name not in set(required)]
        self._kinds: dict[tuple[bool, str], frozenset[str]] = {}
        self._values: dict[tuple[bool, str], frozenset[object]] = {}

    def namesakes_of_same_cells(self, mapping: Sequence[str]) -> list[str]:
        """Return the actual columns that play the required ones, by preference those of the same name."""
        played = list(mapping)
        for at, name in enumerate(self._required):
            if are_same_name(name, played[at]):
                continue
            column = self._actual.columns[played[at]]
            for other, found in self._actual.columns.items():
                if are_same_name(name, other) and other not in played and _have_same_cells(column, found):
                    played[at] = other
                    break
        return played

    def surplus(self, played: Iterable[str | None]) -> list[str]:
        """Return the actual columns that play no required one and that nobody asked for.

        A column was asked for that has the name of a column of the reference, or of which at least half the different
        values are those of one, each of which asks for one column.
        """
        taken = set(played)
        left = [name for name in self._actual.variables if name not in taken]
        asked_for = []
        for name in self._optional:
            same = next((other for other in left if are_same_name(name, other)), None)
            if same is None:
                asked_for.append(name)
            else:
                left.remove(same)
        for name in asked_for if left else ():
            if name not in self._reference.columns:
                continue
            mine = self._distinct(name, of_reference=True)
            shares = {
                other: len(mine & values) / len(values)
                for other in left
                if other in self._actual.columns and (values := self._distinct(other, of_reference=False))
            }
            best = max(shares, key=shares.__getitem__, default=None)
            if best is not None and shares[best] >= 0.5:
                left.remove(best)
        return left

    def rivals(self, played: Sequence[str | None], surplus: Sequence[str]) -> list[int]:
        """Return for each required column how many columns could have been chosen in place of the one that plays it."""
        kinds = [self._kinds_of(name, of_reference=True) for name in self._required]
        others = [self._kinds_of(name, of_reference=False) for name in surplus if name in self._actual.columns]
        unplayed = [each for each, found in zip(kinds, played, strict=True) if found is None]
        return [
            0 if found is None or self._names_speak_for(name, found) else rival_count(each, others, unplayed)
            for name, found, each in zip(self._required, played, kinds, strict=True)
        ]

    def _names_speak_for(self, name: str, found: str) -> bool:
        """Return whether a column has the name of a required one, or is the only one that has it in another case."""
        if name == found.lstrip("?$"):
            return True
        return [other for other in self._actual.variables if are_same_name(name, other)] == [found]

    def values_of(self, at: int) -> Counter[tuple[str, Shape]]:
        """Return the values of a required column, each with the number of different rows that have it."""
        columns = [self._reference.columns[name] for name in self._required]
        rows = dict.fromkeys(zip(*map(_cells, columns), strict=True))
        return Counter(row[at] for row in rows)

    def _kinds_of(self, name: str, *, of_reference: bool) -> frozenset[str]:
        key = of_reference, name
        if key not in self._kinds:
            self._kinds[key] = kinds_in((self._reference if of_reference else self._actual).columns[name])
        return self._kinds[key]

    def _distinct(self, name: str, *, of_reference: bool) -> frozenset[object]:
        key = of_reference, name
        if key not in self._values:
            column = (self._reference if of_reference else self._actual).columns[name]
            self._values[key] = frozenset(map(_plain_value, set(column.texts)))
        return self._values[key]


def _cells(column: TermColumn) -> list[tuple[str, Shape]]:
    shapes = column.shapes if isinstance(column.shapes, list) else [column.shapes] * len(column.texts)
    return list(zip(column.texts, shapes, strict=True))


def _have_same_cells(one: TermColumn, other: TermColumn) -> bool:
    return one.texts == other.texts and _cells(one) == _cells(other)


def _plain_value(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def grade_before_cut(
    reference: SparqlResults, found: SparqlResults | None, graded: Callable[[SparqlResults], Grade]
) -> Grade:
    """Return the grade of an output that is cut, by its rows before the cut; below 1, as others may follow.

    Args:
        reference: The expected results.
        found: The rows before the cut; None: there are none that can be read.
        graded: Grades them.
    """
    if found is None or not found.row_count:
        return Grade(0.0, "Worth 0: the output is cut, and no rows before the cut can be read.")
    value, reason = graded(found)
    most = 1.0 - 0.5 / max(1, reference.row_count * len(reference.variables))
    return Grade(min(value, most), f"The output is cut; of the {found.row_count} rows before the cut: {reason}")


def grade_of_emptiness(reference: SparqlResults, actual: SparqlResults, required: Sequence[str], score: float) -> Grade:
    """Return the grade of results of which one has no rows, or of which no column is required.

    Where both are empty, what is left to compare is the names of the columns, or at least their number.
    """
    if reference.row_count or actual.row_count:
        return Grade(score, f"Worth {score:.0f}: {'there are rows' if score else 'one side has no rows'}.")
    wanted = list(required) or list(reference.variables)
    little = "an empty reference tells little of a query"
    named = [name for name in wanted if any(are_same_name(name, other) for other in actual.variables)]
    if not wanted and reference.is_headless and actual.variables:
        return Grade(0.5, f"Worth 0.50: both results are empty, and the reference names no columns; {little}.")
    if len(named) == len(wanted):
        optional = [name for name in reference.variables if name not in set(wanted)]
        surplus = [
            name for name in actual.variables if not any(are_same_name(name, other) for other in (*wanted, *optional))
        ]
        value = 2 * len(wanted) / (2 * len(wanted) + len(surplus)) if surplus else 1.0
        parts = ["both results are empty, with the names of the required columns", *_about_surplus(surplus), little]
        return Grade(value, f"Worth {value:.2f}: {'; '.join(parts)}.")
    if actual.is_headless or len(actual.variables) in (len(wanted), len(reference.variables)) or not required:
        why = "nothing names the columns" if actual.is_headless else "the columns have other names"
        return Grade(0.5, f"Worth 0.50: both results are empty, and {why}; {little}.")
    return Grade(0.0, f"Worth 0: both results are empty, and have other columns; {little}.")
