"""Compares the results of two queries: ``compare_sparql_results`` and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import ComparisonOutcome
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.alignment import Alignment, Search
from graphrag_eval_lc.matching.rows.columns import bare_name, namesakes
from graphrag_eval_lc.matching.rows.diagnosis import (
    Grade,
    ShownRow,
    grade_of_emptiness,
    grade_of_rows,
    reason_of_search,
    shown_rows,
    with_notes,
)
from graphrag_eval_lc.matching.rows.graph_values import GraphRules
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import UNBOUND_SHAPE, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs, Rules, Tolerances, value_rules
from graphrag_eval_lc.texts import counted

_ASK_COLUMNS: Final = ("__ask_retval", "_askresult")
"""The only column in which Virtuoso and Jena answer ASK queries: 1 is true; 0 or no row is false."""

_TRUTH_VALUES: Final = {"true": True, "1": True, "false": False, "0": False}
_NAME_VALUES_ONLY: Final = ("an array of row", "an object as", "JSON lines", "a list of bindings", "bindings without")
"""Forms whose rows omit unbound cells, so that a column with only such cells is missing."""

_AT_FAULT: Final = "The reference output in the dataset is at fault"


class SparqlComparison:
    """The comparison of two SPARQL results. Everything except the attributes is computed when it is first read.

    Attributes:
        score: 1.0 if the actual results hold the required ones, else 0.0.
        unreadable: What is wrong with the actual output if it is not results, or has too few columns that can be read.
        is_undecided: Whether the results may be equal although the score is 0.
        cut: How the actual output was cut; None if it is complete.
        steps: The number of steps of the search, the same in every run; 0 if no search was needed.
    """

    def __init__(
        self,
        score: float,
        reason: str = "",
        *,
        grade: Grade | None = None,
        unreadable: str | None = None,
        cut: str | None = None,
        search: Search | None = None,
    ) -> None:
        self.score = score
        self.unreadable = unreadable
        self.cut = cut
        self.is_undecided = not score and (cut is not None or (search is not None and bool(search.cut_off)))
        self.steps = search.steps if search else 0
        self._known = reason, grade or Grade(score, f"Worth {score:.0f}.")
        self._search = search

    def __repr__(self) -> str:
        return f"SparqlComparison(score={self.score}, reason={self.reason!r})"

    @property
    def alignment(self) -> Alignment | None:
        """Which rows belong together under ``columns``; None if nothing was searched."""
        return self._search.alignment if self._search else None

    @cached_property
    def _grade(self) -> Grade:
        return grade_of_rows(self.alignment, is_match=self.score == 1.0) if self.alignment else self._known[1]

    @property
    def outcome(self) -> ComparisonOutcome:
        """``match``, ``mismatch`` or, if the search or the output ended too early, ``undecided``."""
        return "match" if self.score else "undecided" if self.is_undecided else "mismatch"

    @cached_property
    def reason(self) -> str:
        """Why the results match or not, in a sentence or two."""
        return reason_of_search(self._search) if self._search else self._known[0]

    @property
    def grade(self) -> float:
        """The grade of the results, 0 to 1; 1 only for a match without surplus columns."""
        return self._grade.value

    @property
    def grade_reason(self) -> str:
        """What the grade consists of, in a sentence or two."""
        return self._grade.reason

    @property
    def closeness(self) -> float:
        """How near the results are, for ranking steps: 1 for a match, else the share that they have in common."""
        return self.score or (self._search.common_share if self._search else self.grade)

    @property
    def columns(self) -> dict[str, str]:
        """The actual column that matches each required one, or comes nearest; empty for ASK results."""
        if self._search is None or self._search.columns is None:
            return self.alignment.found if self.alignment else {}
        return self._search.columns

    @property
    def missing_rows(self) -> list[ShownRow]:
        """The first few rows of the reference that the actual results lack, over the required columns."""
        return shown_rows(self.alignment.terms, self.alignment.missing) if self.alignment else []

    @property
    def extra_rows(self) -> list[ShownRow]:
        """The first few actual rows that the reference lacks, over the required columns."""
        return shown_rows(self.alignment.actual_terms, self.alignment.extra) if self.alignment else []

    @property
    def missing_row_count(self) -> int:
        """The number of all missing rows, without duplicates if these are ignored."""
        return len(self.alignment.missing) if self.alignment else 0

    @property
    def extra_row_count(self) -> int:
        """The number of all extra rows, without duplicates if these are ignored."""
        return len(self.alignment.extra) if self.alignment else 0

    @property
    def row_precision(self) -> float:
        """The share of the actual rows that the reference has, under ``columns``; 0 to 1."""
        return 1 - self.extra_row_count / self.alignment.actual_total if self.alignment else self.score

    @property
    def row_recall(self) -> float:
        """The share of the reference rows that the actual results have, under ``columns``; 0 to 1."""
        return 1 - self.missing_row_count / self.alignment.total if self.alignment else self.score

    @property
    def row_f1(self) -> float:
        """The harmonic mean of row precision and row recall; 0 to 1."""
        total = self.row_precision + self.row_recall
        return 2 * self.row_precision * self.row_recall / total if total else 0.0


def compare_sparql_results(
    reference: str | Mapping[str, Any] | SparqlResults,
    actual: str | Mapping[str, Any] | SparqlResults,
    required_columns: Sequence[str] | None = None,
    *,
    ordered: bool = False,
    ignore_duplicates: bool = True,
    strict: bool = False,
    tolerance: float | Mapping[str, float] | None = None,
    values: Mapping[str, bool] | ValuesConfig | None = None,
    node_keys: Sequence[str] = (),
    list_order: bool = True,
) -> SparqlComparison:
    """Compare the results of a query with those that it should return.

    Rows are tuples of cells. Cells are equal if their values are: numbers within 1e-8 or a share of the larger one
    (xsd:float 1e-5, xsd:double 1e-12), booleans, times by instant, durations by length, geometries; anything else by
    text. Blank nodes are equal up to one renaming. The required columns match if any actual columns hold their rows,
    whatever their names are and whatever other columns hold.

    Args:
        reference: The expected results, in any form that ``read_sparql_results`` reads, or its return value.
        actual: The results of the query, in the same forms.
        required_columns: The columns of the reference that must be found; None for all. If it is empty, it only counts
            whether there are rows.
        ordered: Whether the rows must be in the same order. Duplicates count then.
        ignore_duplicates: Whether equal rows count once.
        strict: Whether RDF terms are compared instead of values. Kind, datatype and language tag count too, a text
            without a datatype is not a number, and numbers are equal within 1e-8 or a ``tolerance`` that is a number.
        tolerance: The share, from 0 to below 1, for all numbers but integers, or by datatype: ``{"float": 1e-4}``.
        values: Which kinds of terms are compared by value, such as ``{"times": False}``; all by default. See
            ``ValuesConfig``. Ignored if ``strict`` is set.
        node_keys: The properties by which nodes and relationships that have them are compared.
        list_order: Whether the order of elements counts for lists in cells; Cypher's ``collect()`` has no fixed order.

    Returns:
        The score with its reason. If the results cannot be compared, the score is 0 and the reason says why: no content
        of the results raises. If the search reaches its bound, the outcome is ``undecided``. Equal texts match.

    Raises:
        ValueError: ``tolerance`` is not a tolerance, or ``values`` has an unknown name.

    Example:
        >>> compare_sparql_results('[{"name": "Oslo", "kv": 420}]', '[{"v": 420.0, "x": "Oslo"}]').columns
        {'name': 'x', 'kv': 'v'}
        >>> compare_sparql_results('[{"name": "Oslo"}]', '[{"name": "Bergen"}]').missing_rows
        [('Oslo',)]
    """
    rows_as: RowsAs = "list" if ordered else "set" if ignore_duplicates else "bag"
    tolerances = Tolerances.of(tolerance, strict=strict)
    rules = Rules(rows_as, strict, tolerances, value_rules(values), GraphRules(tuple(node_keys), list_order))
    compared = _read_and_compared(reference, actual, required_columns, rules)
    is_same = isinstance(reference, str) and isinstance(actual, str) and reference.strip() == actual.strip() != ""
    return SparqlComparison(1.0, "Both outputs have the same text.") if is_same and not compared.score else compared


def comparison_without_reference(problem: UnreadableOutput) -> SparqlComparison:
    """Return the comparison with a reference output that cannot be read."""
    return SparqlComparison(0.0, f"{_AT_FAULT}: {'' if isinstance(problem, CutOutput) else 'it is '}{problem}.")


def comparison_without_results(problem: UnreadableOutput) -> SparqlComparison:
    """Return the comparison with an actual output that cannot be read: undecided if it is cut."""
    if isinstance(problem, CutOutput):
        return SparqlComparison(0.0, f"Undecided: {problem}.", cut=str(problem))
    return SparqlComparison(0.0, f"The actual output is {problem}.", unreadable=str(problem))


def _read_and_compared(reference: Any, actual: Any, required_columns: Any, rules: Rules) -> SparqlComparison:
    try:
        expected = reference if isinstance(reference, SparqlResults) else read_sparql_results(reference)
    except UnreadableOutput as problem:
        return comparison_without_reference(problem)
    try:
        found = actual if isinstance(actual, SparqlResults) else read_sparql_results(actual)
    except UnreadableOutput as problem:
        return comparison_without_results(problem)
    without_search = _compared_without_search(expected, found, required_columns)
    if without_search is not None:
        score, reason, grade = without_search
        return SparqlComparison(score, with_notes(reason, expected, found), grade=grade)
    required = tuple(dict.fromkeys(expected.variables if required_columns is None else required_columns))
    if found.form.startswith(_NAME_VALUES_ONLY):  # it cannot name columns that have no value
        new = [name for name in required if not any(map(expected.columns[name].kind, range(expected.row_count)))]
        absent = set(new) - namesakes(required, list(found.columns)).keys()
        unbound = TermColumn([""] * found.row_count, UNBOUND_SHAPE)
        columns = {**found.columns, **{name: unbound for name in new if name in absent}}
        found = replace(found, columns=columns) if absent else found
    search = Search(Keys(expected, found, required, rules))
    if search.columns is not None:
        return SparqlComparison(1.0, search=search)
    has_too_few = len(found.columns) < len(required) <= len(found.variables)
    unreadable = "; ".join(map(found.fault_of, found.faults)) if has_too_few else None
    return SparqlComparison(0.0, unreadable=unreadable, search=search)


def _compared_without_search(
    reference: SparqlResults, actual: SparqlResults, required: Any
) -> tuple[float, str, Grade | None] | None:
    """Return score, reason and grade if no search is needed: ASK answers, a faulty reference, or no rows."""
    if _is_answer(reference) or _is_answer(actual):
        answer, found = (None if each is None else str(each).lower() for each in map(_answer, (reference, actual)))
        if answer is None:
            return 0.0, "The actual output answers an ASK query, the reference holds rows.", None
        if found is None:
            return 0.0, f"The actual output holds rows, the reference answers an ASK query with {answer}.", None
        if found == answer:
            return 1.0, f"Both answer {answer}.", None
        return 0.0, f"The actual answer is {found}, the reference has {answer}.", None
    if (fault := _fault_of_columns(required, reference)) is not None:
        return 0.0, f"{_AT_FAULT}: {fault}.", None
    required = reference.variables if required is None else required
    rows, found_rows = reference.row_count, actual.row_count
    if rows and found_rows:
        return None if required else (1.0, "Both results have rows; no column is required.", None)
    if rows:
        return 0.0, f"The actual results have no rows, the reference has {rows}.", None
    if found_rows:
        return 0.0, f"The actual results have {counted(found_rows, 'row')}, the reference has none.", None
    wanted, columns = len(set(required)), len(actual.variables)
    if columns < wanted and not actual.is_headless:
        lack = f"only {counted(columns, 'column')} for {wanted} required"
        return 0.0, f"Both results have no rows, but the actual ones have {lack}.", None
    return 1.0, "Both results have no rows.", grade_of_emptiness(reference, actual, required)


def _is_answer(results: SparqlResults) -> bool:
    if results.boolean is not None or len(results.columns) != 1:
        return results.boolean is not None
    return bare_name(next(iter(results.columns))) in _ASK_COLUMNS


def _answer(results: SparqlResults) -> bool | None:
    """Return the answer of an ASK query, also if it is given as a single truth value."""
    if results.boolean is not None or len(results.columns) != 1 or results.row_count > 1:
        return results.boolean
    is_answer = _is_answer(results)
    if not results.row_count:
        return False if is_answer else None
    [(name, column)] = results.columns.items()
    text = column.texts[0].strip().casefold()
    is_value = column.kind(0) in ("literal", "typed-literal") and (is_answer or text in ("true", "false"))
    is_header = name.strip().casefold() in ("true", "false")  # two answers, one read as the header of the other
    return _TRUTH_VALUES.get(text) if is_value and not is_header else None


def _fault_of_columns(required_columns: Any, reference: SparqlResults) -> str | None:
    if required_columns is None:
        required_columns = reference.variables
    elif not isinstance(required_columns, list | tuple) or not all(isinstance(name, str) for name in required_columns):
        return "required_columns is not a list of column names"
    absent = [f"`{name}`" for name in dict.fromkeys(required_columns) if name not in reference.variables]
    if absent:
        return f"it has no column {', '.join(absent)}, which required_columns names"
    return next((f"its {reference.fault_of(name)}" for name in required_columns if name in reference.faults), None)
