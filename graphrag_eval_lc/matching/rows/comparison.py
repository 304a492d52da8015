"""Comparing the results of two queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import ComparisonOutcome
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.alignment import Alignment, nearest_alignment
from graphrag_eval_lc.matching.rows.columns import Budget, SearchCutOff, bare_name, find_columns, namesakes
from graphrag_eval_lc.matching.rows.diagnosis import (
    Grade,
    ShownRow,
    grade_of_empty_results,
    grade_of_rows,
    reason_of_match,
    reason_of_mismatch,
    shown_rows,
    with_notes,
)
from graphrag_eval_lc.matching.rows.graph_values import GraphRules
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import UNBOUND_SHAPE, SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs, Rules, Tolerances, ValueRules
from graphrag_eval_lc.texts import counted

_ASK_COLUMNS: Final = (["__ask_retval"], ["_askresult"])
"""The only column of Virtuoso's and Jena's answers of ASK queries, of which 1 is true; no row or 0 is false."""

_TRUTH_VALUES: Final = {"true": True, "1": True, "false": False, "0": False}
_NAME_VALUES_ONLY: Final = (
    *("an array of row objects", "an object as one row", "JSON lines"),
    *("a list of bindings", "bindings without a head"),
)
"""In these forms rows do not name their unbound cells, nor the columns that have none but such."""

_AT_FAULT: Final = "The reference output in the dataset is at fault"


class _Rows:
    """Two results of at least one row and one required column, with the columns that match; None if none do."""

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        self.reference, self.actual, self._required, self._rows_as = reference, actual, required, rules.rows_as
        self.keys = Keys(reference, actual, required, rules)
        self._by_name_only = reference.is_graph and actual.is_graph
        self.columns: dict[str, str] | None = None
        self.cut_off: str | None = None
        mine, names, budget = {name: self.keys.reference(name) for name in required}, list(actual.columns), Budget()
        try:
            self.columns = find_columns(
                mine, self.keys.actual, names, rules.rows_as, budget, by_name_only=self._by_name_only
            )
        except SearchCutOff as problem:
            self.cut_off = str(problem)
            if self.nearest[0].are_equal and not any(column.blanks for column in mine.values()):
                self.columns = {name: found for name, found in self.nearest[0].columns.items() if found is not None}
        self.steps = budget.spent

    @cached_property
    def nearest(self) -> tuple[Alignment, float]:
        """The rows under the nearest columns, if none match, and the closeness."""
        sides = self.reference, self.actual, self.keys
        return nearest_alignment(*sides, self._rows_as, self._required, by_name_only=self._by_name_only)

    @cached_property
    def aligned(self) -> Alignment:
        """The rows under the columns that match, or under the nearest ones."""
        if self.columns is None:
            return self.nearest[0]
        return Alignment(self.reference, self.actual, self.keys, self._rows_as, dict(self.columns))


@dataclass(eq=False, repr=False)
class SparqlComparison:
    """How two SPARQL results compare. All but the score is worked out when it is first asked for.

    Attributes:
        score: 1.0 if the actual results hold the required ones, else 0.0.
        unreadable: What is wrong with the actual output if it is not results at all, or has too few columns that can
            be read.
        is_undecided: Whether it is not known that the results differ, although the score is 0.
        cut: Where the actual output ends before its end; None if it is whole.
    """

    score: float
    _reason: str = ""
    _settled_grade: Grade | None = None
    _rows: _Rows | None = None
    unreadable: str | None = None
    is_undecided: bool = False
    cut: str | None = None

    def __repr__(self) -> str:
        return f"SparqlComparison(score={self.score}, reason={self.reason!r})"

    @property
    def outcome(self) -> ComparisonOutcome:
        """``match``, ``mismatch`` or, if the search or the output ended too early to tell, ``undecided``."""
        return "match" if self.score else "undecided" if self.is_undecided else "mismatch"

    @property
    def steps(self) -> int:
        """How many steps the search took; 0 if none was needed. It is the same in every run."""
        return self._rows.steps if self._rows else 0

    @cached_property
    def reason(self) -> str:
        """A sentence or two for people."""
        rows = self._rows
        if rows is None:
            return self._reason
        if rows.columns is None:
            reason = reason_of_mismatch(rows.aligned, rows.cut_off)
        else:
            reason = reason_of_match(rows.reference, rows.actual, rows.columns, rows.keys)
        return with_notes(reason, rows.reference, rows.actual)

    @cached_property
    def _grade(self) -> Grade:
        if self._rows is None:
            return self._settled_grade or Grade(self.score, self.reason)
        return grade_of_rows(self._rows.aligned, is_match=self.score == 1.0)

    @property
    def grade(self) -> float:
        """What the results are worth if steps are graded; 0 to 1, and 1 only for a match without surplus columns."""
        return self._grade.value

    @property
    def grade_reason(self) -> str:
        """A sentence or two on what the grade consists of."""
        return self._grade.reason

    @property
    def closeness(self) -> float:
        """How near the results come: 1 for a match, below 1 for all else; for ranking steps."""
        return self.score if self._rows is None or self.score else self._rows.nearest[1]

    @property
    def columns(self) -> dict[str, str]:
        """For each required column the actual one that stands for it, or comes nearest; empty for ASK results."""
        columns = (self._rows.columns or self._rows.aligned.columns) if self._rows else {}
        return {name: found for name, found in columns.items() if found is not None}

    @cached_property
    def _shown_rows(self) -> tuple[list[ShownRow], list[ShownRow]]:
        return shown_rows(self._rows.aligned) if self._rows else ([], [])

    @property
    def missing_rows(self) -> list[ShownRow]:
        """The first few rows of the reference that the actual results lack, over the required columns."""
        return self._shown_rows[0]

    @property
    def extra_rows(self) -> list[ShownRow]:
        """The first few actual rows that the reference lacks, over the required columns."""
        return self._shown_rows[1]

    @property
    def missing_row_count(self) -> int:
        """The number of all missing rows, without duplicates if these are ignored."""
        return len(self._rows.aligned.missing) if self._rows else 0

    @property
    def extra_row_count(self) -> int:
        """The number of all extra rows, without duplicates if these are ignored."""
        return len(self._rows.aligned.extra) if self._rows else 0

    @property
    def row_precision(self) -> float:
        """The share of the actual rows that the reference has, under ``columns``; 0 to 1."""
        return 1 - self.extra_row_count / self._rows.aligned.actual_total if self._rows else self.score

    @property
    def row_recall(self) -> float:
        """The share of the reference rows that the actual results have, under ``columns``; 0 to 1."""
        return 1 - self.missing_row_count / self._rows.aligned.total if self._rows else self.score

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
    (xsd:float 1e-5, xsd:double 1e-12), booleans, times by instant, durations by length, geometries; all else by text.
    Unbound equals unbound, blank nodes are equal up to one renaming. The names of the columns do not matter: the
    required columns match if any actual columns hold their rows, whatever is in the others.

    Args:
        reference: The expected results: SPARQL 1.1 JSON, another form that ``read_sparql_results`` reads, or what it
            returned.
        actual: The results of the query, likewise.
        required_columns: The columns of the reference that must be there; None for all, empty for none of them
            (then only whether there are rows counts).
        ordered: Whether the rows must come in the same order; duplicates count then.
        ignore_duplicates: Whether rows of the same values count once.
        strict: Whether RDF terms are compared: kind, datatype and language tag count as well, a text without a
            datatype is not a number, and numbers are equal within 1e-8, or a tolerance given as a number.
        tolerance: The share, from 0 to below 1, for all numbers but integers, or those of xsd:float and xsd:double:
            ``{"float": 1e-4}``.
        values: Which terms are compared by what they mean, all by default: ``{"times": False}``; see
            ``ValuesConfig``. It is not used if ``strict`` is.
        node_keys: The properties by which nodes and relationships are compared, as far as they have them.
        list_order: Whether the order of the elements of lists in cells counts; Cypher's ``collect()`` has none.

    Returns:
        The score with its reason. Nothing that the results hold makes this raise: a comparison that cannot be made
        scores 0 and says why. If the search reaches its bound, after some seconds, the outcome is ``undecided``.
        Outputs of the same text match, even if nothing can read them.

    Raises:
        ValueError: ``tolerance`` is not a tolerance, or ``values`` has an unknown name.

    Example:
        >>> head = {"vars": ["name"]}
        >>> rows = [{"name": {"type": "literal", "value": "Oslo"}}]
        >>> oslo = {"head": head, "results": {"bindings": rows}}
        >>> compare_sparql_results(oslo, oslo).score
        1.0
        >>> compare_sparql_results(oslo, {"head": head, "results": {"bindings": []}}).reason
        'The actual results have no rows, the reference has 1.'
    """
    rows_as: RowsAs = "list" if ordered else "set" if ignore_duplicates else "bag"
    tolerances = Tolerances.of(tolerance, strict=strict)
    rules = Rules(rows_as, strict, tolerances, ValueRules.of(values), GraphRules(tuple(node_keys), list_order))
    same_text = SparqlComparison(1.0, "Both outputs have the same text.")
    is_same = isinstance(reference, str) and isinstance(actual, str) and reference.strip() == actual.strip() != ""
    try:
        expected = reference if isinstance(reference, SparqlResults) else read_sparql_results(reference)
    except UnreadableOutput as problem:
        return same_text if is_same else SparqlComparison(0.0, f"{_AT_FAULT}: it is {problem}.")
    try:
        found = actual if isinstance(actual, SparqlResults) else read_sparql_results(actual)
    except UnreadableOutput as problem:
        return same_text if is_same else comparison_without_results(problem)
    compared = _compared(expected, found, required_columns, rules)
    return same_text if is_same and compared.is_undecided else compared


def comparison_without_results(problem: UnreadableOutput) -> SparqlComparison:
    """Return the comparison with an actual output that cannot be read: undecided if it is cut."""
    if isinstance(problem, CutOutput):
        return SparqlComparison(0.0, f"It cannot be told, as {problem}.", is_undecided=True, cut=str(problem))
    return SparqlComparison(0.0, f"The actual output is {problem}.", unreadable=str(problem))


def _compared(
    reference: SparqlResults, actual: SparqlResults, required_columns: Sequence[str] | None, rules: Rules
) -> SparqlComparison:
    def settled(score: float, reason: str, grade: Grade | None = None) -> SparqlComparison:
        return SparqlComparison(score, with_notes(reason, reference, actual), grade)

    if _is_answer(reference) or _is_answer(actual):
        return settled(*_outcome_of_answers(_answer(reference), _answer(actual)))
    wanted = reference.variables if required_columns is None else required_columns
    if (fault := _fault_of_columns(wanted, reference)) is not None:
        return settled(0.0, f"{_AT_FAULT}: {fault}.")
    required = tuple(dict.fromkeys(wanted))
    if reference.row_count and actual.row_count:
        if not required:
            grade = Grade(1.0, "Worth 1: there are rows.")
            return settled(1.0, "Both results have rows; no column is required.", grade)
        rows = _Rows(reference, _with_unbound_columns(actual, reference, required), required, rules)
        if rows.columns is not None:
            return SparqlComparison(1.0, _rows=rows)
        has_too_few = len(actual.columns) < len(required) <= len(actual.variables)
        unreadable = "; ".join(map(actual.fault_of, actual.faults)) if has_too_few else None
        return SparqlComparison(0.0, _rows=rows, unreadable=unreadable, is_undecided=rows.cut_off is not None)
    if reference.row_count or actual.row_count:
        reason = f"The actual results have no rows, the reference has {reference.row_count}."
        if actual.row_count:
            reason = f"The actual results have {counted(actual.row_count, 'row')}, the reference has none."
        return settled(0.0, reason, Grade(0.0, "Worth 0: one side has no rows."))
    grade = grade_of_empty_results(reference, actual, required)
    if len(actual.variables) < len(required) and not actual.is_headless:
        found = f"only {counted(len(actual.variables), 'column')} for {len(required)} required"
        return settled(0.0, f"Both results have no rows, but the actual ones have {found}.", grade)
    return settled(1.0, "Both results have no rows.", grade)


def _with_unbound_columns(actual: SparqlResults, reference: SparqlResults, required: Sequence[str]) -> SparqlResults:
    """Return actual results with the columns that their form cannot name and that have no value in the reference."""
    if not actual.form.startswith(_NAME_VALUES_ONLY):
        return actual
    without = [
        name for name in required if all(not reference.columns[name].kind(row) for row in range(reference.row_count))
    ]
    new = [name for name in without if name not in namesakes(required, list(actual.columns))]
    unbound = TermColumn([""] * actual.row_count, UNBOUND_SHAPE)
    return replace(actual, columns={**actual.columns, **dict.fromkeys(new, unbound)}) if new else actual


def _is_answer(results: SparqlResults) -> bool:
    return results.boolean is not None or [bare_name(name) for name in results.variables] in _ASK_COLUMNS


def _answer(results: SparqlResults) -> bool | None:
    """Return the answer of an ASK query, or a lone truth value in its place."""
    if results.boolean is not None or len(results.columns) != 1 or results.row_count > 1:
        return results.boolean
    if not results.row_count:
        return False if _is_answer(results) else None
    [(name, column)] = results.columns.items()
    text = column.texts[0].strip().casefold()
    if name.strip().casefold() in ("true", "false"):  # one answer as the header of the other
        return None
    is_truth_value = column.kind(0) in ("literal", "typed-literal") and (
        _is_answer(results) or text in ("true", "false")
    )
    return _TRUTH_VALUES.get(text) if is_truth_value else None


def _outcome_of_answers(answer: bool | None, found: bool | None) -> tuple[float, str]:
    """Compare results of which at least one is the answer of an ASK query."""
    if answer is None:
        return 0.0, "The actual output answers an ASK query, the reference holds rows."
    expected = str(answer).lower()
    if found is None:
        return 0.0, f"The actual output holds rows, the reference answers an ASK query with {expected}."
    if found == answer:
        return 1.0, f"Both answer {expected}."
    return 0.0, f"The actual answer is {str(found).lower()}, the reference has {expected}."


def _fault_of_columns(required_columns: Any, reference: SparqlResults) -> str | None:
    if not isinstance(required_columns, list | tuple) or not all(isinstance(name, str) for name in required_columns):
        return "required_columns is not a list of column names"
    variables = reference.variables
    absent = [f"`{name}`" for name in dict.fromkeys(required_columns) if name not in variables]
    if absent:
        return f"it has no column {', '.join(absent)}, which required_columns names"
    return next((f"its {reference.fault_of(name)}" for name in required_columns if name in reference.faults), None)
