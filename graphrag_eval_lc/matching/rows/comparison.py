"""Comparing the results of two queries."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import (
    ComparisonOutcome,
    CutOutput,
    UnreadableOutput,
)
from graphrag_eval_lc.matching.rows.blank_nodes import rows_agree_in_detail
from graphrag_eval_lc.matching.rows.candidate_columns import find_mapping, find_ordered_mapping
from graphrag_eval_lc.matching.rows.closeness import closeness_of
from graphrag_eval_lc.matching.rows.coded_rows import Budget, RowsAs, Rules, SearchCutOff
from graphrag_eval_lc.matching.rows.column_search import ColumnMapping
from graphrag_eval_lc.matching.rows.cut_rows import rows_before_cut
from graphrag_eval_lc.matching.rows.diagnosis import (
    Diagnosis,
    ShownRow,
    diagnosis_of_match,
    diagnosis_of_mismatch,
    with_notes,
)
from graphrag_eval_lc.matching.rows.encoding import encoding_for
from graphrag_eval_lc.matching.rows.grade import (
    Grade,
    grade_before_cut,
    grade_of_emptiness,
    grade_of_match,
    grade_of_mismatch,
)
from graphrag_eval_lc.matching.rows.graph_columns import comparable_results
from graphrag_eval_lc.matching.rows.graph_parts import GraphRules
from graphrag_eval_lc.matching.rows.quick_verdict import quick_verdict
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import (
    SPARQL_JSON,
    SparqlResults,
)
from graphrag_eval_lc.matching.rows.tables import detailed_rows, encoded_tables
from graphrag_eval_lc.matching.rows.values import ValueRules
from graphrag_eval_lc.matching.rows.xsd_numbers import Tolerances


class SparqlComparison:
    """How two SPARQL results compare. All but the score is worked out when it is first asked for.

    Attributes:
        score: 1.0 if the actual results hold the required ones, else 0.0.
        unreadable: What is wrong with the actual output where it is no SPARQL results at all, or has too few columns
            that can be read.
        is_undecided: Whether it is not known that the results differ, although the score is 0.
        cut: Where the actual output ends before its end; None where it is whole.
        steps: How many steps the search took, each about 0.1 µs; 0 where none was needed. It is the same in every run.
    """

    def __init__(
        self,
        score: float,
        diagnose: Callable[[], Diagnosis],
        closeness: Callable[[], float] | None = None,
        unreadable: str | None = None,
        *,
        is_undecided: bool = False,
        cut: str | None = None,
        steps: int = 0,
        graded: Callable[[], Grade] | None = None,
    ) -> None:
        self.score = score
        self.steps = steps
        self.unreadable = unreadable
        self.is_undecided = is_undecided
        self.cut = cut
        self._diagnose = diagnose
        self._closeness = closeness
        self._graded = graded

    def __repr__(self) -> str:
        return f"SparqlComparison(score={self.score}, reason={self.reason!r})"

    @property
    def outcome(self) -> ComparisonOutcome:
        """``match``, ``mismatch`` or, where the search or the output ended too early to tell, ``undecided``."""
        return "match" if self.score else "undecided" if self.is_undecided else "mismatch"

    def with_notes(self, reference: SparqlResults, actual: SparqlResults) -> "SparqlComparison":
        """Return the same comparison, whose reason says from which form and with which allowances it was read."""
        if reference.form == actual.form == SPARQL_JSON and not reference.notes and not actual.notes:
            return self
        return SparqlComparison(
            self.score,
            lambda: with_notes(self.diagnosis, reference, actual),
            self._closeness,
            self.unreadable,
            is_undecided=self.is_undecided,
            cut=self.cut,
            steps=self.steps,
            graded=self._graded,
        )

    @cached_property
    def graded(self) -> Grade:
        """What the results are worth where steps are graded, with the reason."""
        return Grade(self.score, self.reason) if self._graded is None else self._graded()

    @property
    def grade(self) -> float:
        """What the results are worth where steps are graded; 0 to 1, and 1 only for a match without surplus columns."""
        return self.graded.value

    @property
    def grade_reason(self) -> str:
        """A sentence or two on what the grade consists of."""
        return self.graded.reason

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """All that is known beyond the score."""
        return self._diagnose()

    @property
    def closeness(self) -> float:
        """How near the results come, without a search: 1 for a match, below 1 for all else; for ranking steps."""
        return self.score if self._closeness is None else self._closeness()

    @property
    def reason(self) -> str:
        """A sentence or two for people."""
        return self.diagnosis.reason

    @property
    def columns(self) -> dict[str, str]:
        """For each required column the actual one that stands for it.

        On a mismatch these are the nearest ones; a column without one is absent. Empty for ASK results.
        """
        return dict(self.diagnosis.columns)

    @property
    def missing_rows(self) -> list[ShownRow]:
        """The first few rows of the reference that the actual results lack, over the required columns."""
        return list(self.diagnosis.missing_rows)

    @property
    def extra_rows(self) -> list[ShownRow]:
        """The first few actual rows that the reference lacks, over the required columns."""
        return list(self.diagnosis.extra_rows)

    @property
    def missing_row_count(self) -> int:
        """The number of all missing rows, without duplicates where these are ignored."""
        return self.diagnosis.missing_row_count

    @property
    def extra_row_count(self) -> int:
        """The number of all extra rows, without duplicates where these are ignored."""
        return self.diagnosis.extra_row_count

    @property
    def row_precision(self) -> float:
        """The share of the actual rows that the reference has, under ``columns``; 0 to 1."""
        return self.diagnosis.row_precision

    @property
    def row_recall(self) -> float:
        """The share of the reference rows that the actual results have, under ``columns``; 0 to 1."""
        return self.diagnosis.row_recall

    @property
    def row_f1(self) -> float:
        """The harmonic mean of row precision and row recall; 0 to 1."""
        return self.diagnosis.row_f1


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
    """Compare the results of a query with those that it should give.

    Rows are tuples of cells. Cells are equal when their values are: numbers within a tolerance, booleans as
    booleans, times by instant, durations by length, geometries by their words and numbers, IRIs but for the case of
    percent-encoding, triple terms by their parts. All else is equal by its text in the Unicode normal form C, and so
    are terms of different kinds, such as a number beside a name. Unbound equals unbound, blank nodes equal up to one
    renaming. The names of the columns do not matter: the required columns match if any actual columns hold their
    rows, whatever stands in the others.

    Numbers are equal within 1e-8 or, where that is more, a share of the larger one: of xsd:float 1e-5, of xsd:double
    1e-12, of two datatypes the larger share; decimals among themselves have none, nor has an integer beside anything.
    A text without a datatype that is written as JSON writes numbers is an integer if it is whole, else a double.

    Times without a zone never equal times with one. A text without a datatype that is a point in time with a zone
    (2020-01-01 01:00:00+01), or a time of day with one, is such a time; a date is not.

    Args:
        reference: The expected results: SPARQL 1.1 JSON, or another form that ``read_sparql_results`` reads, or what
            it returned.
        actual: The results of the query, likewise.
        required_columns: The columns of the reference that must be there; None for all, empty for none of them
            (then only whether there are rows counts). Actual columns beyond these are free.
        ordered: Whether the rows must come in the same order; duplicates count then.
        ignore_duplicates: Whether rows of the same values count once, however often they come. Rows whose numbers
            are nearly the same are rows of their own: each has a partner of its own on the other side.
        strict: Whether RDF terms are compared: kind, datatype and language tag of texts count as well, a text without
            a datatype is no number, and numbers are equal within 1e-8 only, or within a tolerance given as a number.
        tolerance: A number from 0 to below 1: the share for all numbers but integers, decimals too. Or the shares of
            xsd:float and xsd:double where they differ from the defaults: ``{"float": 1e-4}``.
        values: Which terms are compared by what they mean, all by default: ``{"times": False}``; see
            ``ValuesConfig``. It is not used where ``strict`` is.
        node_keys: The properties by which the nodes and relationships of a property graph are compared, as far as they
            have them; else all properties with the labels or the type are.
        list_order: Whether the order of the elements of lists in cells counts; Cypher's ``collect()`` has none.

    Returns:
        The score with its reason. Nothing that the results hold makes this raise: a comparison that cannot be
        made scores 0 and says why. Which columns and blank nodes stand for which is found by a search. It ends at a
        bound in steps, some seconds of work, which is the same on every machine (a search of more than 60 seconds of
        wall time ends too, and says so). A comparison whose search ended before it could tell scores 0, but is
        ``undecided`` and no mismatch; its reason says what is known.

    Raises:
        ValueError: ``tolerance`` is no tolerance, or ``values`` has an unknown name.

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
    rules = Rules(rows_as, strict, Tolerances.of(tolerance, strict=strict), ValueRules.of(values))
    try:
        expected = _results(reference)
    except UnreadableOutput as error:
        return _settled(0.0, _reference_at_fault(f"it is {error}"))

    graph = GraphRules(tuple(node_keys), list_order)

    def compared(results: SparqlResults) -> SparqlComparison:
        return _comparison_of_results(expected, results, required_columns, rules, graph)

    try:
        found = _results(actual)
    except UnreadableOutput as error:
        return comparison_without_results(
            error, lambda: grade_before_cut(expected, rows_before_cut(actual), lambda rows: compared(rows).graded)
        )
    return compared(found).with_notes(expected, found)


def _comparison_of_results(
    expected: SparqlResults,
    found: SparqlResults,
    required_columns: Sequence[str] | None,
    rules: Rules,
    graph: GraphRules,
) -> SparqlComparison:
    if expected.boolean is not None or found.boolean is not None:
        return _comparison_of_answers(expected, found)
    if required_columns is None:
        required_columns = expected.variables
    fault = _fault_of_columns(required_columns, expected)
    if fault is not None:
        return _settled(0.0, _reference_at_fault(fault))
    required = tuple(dict.fromkeys(required_columns))
    if not required or not expected.row_count or not found.row_count:
        return _comparison_by_emptiness(expected, found, required)
    expected, found = comparable_results(expected, found, required, graph, rules)
    return _comparison_of_rows(expected, found, required, rules)


def _results(results: Any) -> SparqlResults:
    return results if isinstance(results, SparqlResults) else read_sparql_results(results)


def comparison_without_results(
    problem: UnreadableOutput, graded: Callable[[], Grade] | None = None
) -> SparqlComparison:
    """Return the comparison with an actual output that cannot be read: undecided where it is cut.

    Args:
        problem: What is wrong with it.
        graded: Grades the rows before the cut; None: there are none that can be read.
    """
    if isinstance(problem, CutOutput):
        return _settled(0.0, f"It cannot be told, as {problem}.", is_undecided=True, cut=str(problem), graded=graded)
    return _settled(0.0, f"The actual output is {problem}.", unreadable=str(problem))


def _settled(
    score: float,
    reason: str,
    *,
    unreadable: str | None = None,
    is_undecided: bool = False,
    cut: str | None = None,
    graded: Callable[[], Grade] | None = None,
) -> SparqlComparison:
    diagnosis = Diagnosis(reason, row_precision=score, row_recall=score)
    return SparqlComparison(
        score, lambda: diagnosis, None, unreadable, is_undecided=is_undecided, cut=cut, graded=graded
    )


def _reference_at_fault(fault: str) -> str:
    return f"The reference output in the dataset is at fault: {fault}."


def _fault_of_columns(required_columns: Any, reference: SparqlResults) -> str | None:
    if not isinstance(required_columns, list | tuple) or not all(isinstance(name, str) for name in required_columns):
        return "required_columns is no list of column names"
    variables = reference.variables
    absent = [f"`{name}`" for name in dict.fromkeys(required_columns) if name not in variables]
    if absent:
        return f"it has no column {', '.join(absent)}, which required_columns names"
    return next((f"its {reference.fault_of(name)}" for name in required_columns if name in reference.faults), None)


def _comparison_of_answers(reference: SparqlResults, actual: SparqlResults) -> SparqlComparison:
    """Compare results of which at least one is the answer of an ASK query."""
    if reference.boolean is None:
        return _settled(0.0, "The actual output answers an ASK query, the reference holds rows.")
    answer = str(reference.boolean).lower()
    if actual.boolean is None:
        return _settled(0.0, f"The actual output holds rows, the reference answers an ASK query with {answer}.")
    if actual.boolean == reference.boolean:
        return _settled(1.0, f"Both answer {answer}.")
    return _settled(0.0, f"The actual answer is {str(actual.boolean).lower()}, the reference has {answer}.")


def _comparison_by_emptiness(
    reference: SparqlResults, actual: SparqlResults, required: tuple[str, ...]
) -> SparqlComparison:
    """Compare results of which one has no rows, or of which no column counts."""
    score, reason = _outcome_of_emptiness(reference, actual, required)
    return _settled(score, reason, graded=lambda: grade_of_emptiness(reference, actual, required, score))


def _outcome_of_emptiness(
    reference: SparqlResults, actual: SparqlResults, required: tuple[str, ...]
) -> tuple[float, str]:
    if reference.row_count and not actual.row_count:
        return 0.0, f"The actual results have no rows, the reference has {reference.row_count}."
    if actual.row_count and not reference.row_count:
        return 0.0, f"The actual results have {actual.row_count} rows, the reference has none."
    if len(actual.variables) < len(required) and not actual.row_count and not actual.is_headless:
        found = f"only {len(actual.variables)} columns for {len(required)} required"
        return 0.0, f"Both results have no rows, but the actual ones have {found}."
    if not actual.row_count:
        return 1.0, "Both results have no rows."
    return 1.0, "Both results have rows; no column is required."


def _comparison_of_rows(
    reference: SparqlResults, actual: SparqlResults, required: tuple[str, ...], rules: Rules
) -> SparqlComparison:
    names = tuple(actual.columns)
    has_too_few = len(names) < len(required) <= len(actual.variables)
    unreadable = "; ".join(map(actual.fault_of, actual.faults)) if has_too_few else None
    budget = Budget(max(reference.row_count, actual.row_count))

    def mismatch(cut_off: str | None = None) -> SparqlComparison:
        return SparqlComparison(
            0.0,
            lambda: diagnosis_of_mismatch(reference, actual, required, rules, cut_off),
            lambda: closeness_of(reference, actual, required, None if rules.strict else rules.values),
            unreadable,
            is_undecided=cut_off is not None,
            steps=budget.spent,
            graded=lambda: grade_of_mismatch(reference, actual, required, rules),
        )

    def match(mapping: Sequence[int], *, is_exact: bool = True) -> SparqlComparison:
        columns = {name: names[at] for name, at in zip(required, mapping, strict=True)}
        return SparqlComparison(
            1.0,
            lambda: diagnosis_of_match(reference, actual, columns, rules, is_exact=is_exact),
            steps=budget.spent,
            graded=lambda: grade_of_match(reference, actual, columns),
        )

    verdict = None if rules.strict else quick_verdict(reference, actual, required, rules)
    if verdict is not None:
        return mismatch() if verdict.mapping is None else match(verdict.mapping)
    encoding = encoding_for(reference, actual, required, rules)
    mine, others = encoded_tables(reference, actual, required, encoding, all_columns=False)

    def agrees_in_detail(mapping: ColumnMapping) -> bool:
        if not mine.needs_details:
            return True
        return rows_agree_in_detail(*detailed_rows(mine, others, mapping), rules.rows_as, encoding.details, budget)

    try:
        if rules.rows_as == "list":
            mapping = find_ordered_mapping(mine, others, encoding.details, budget)
        else:
            mapping = find_mapping(mine, others, rules.rows_as, encoding.details, agrees_in_detail, budget)
    except SearchCutOff as problem:
        return mismatch(f"the search for matching columns and rows {problem}")
    if mapping is None:
        return mismatch()
    return match([names.index(others.names[at]) for at in mapping], is_exact=not encoding.has_near_numbers)
