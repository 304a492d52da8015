"""Comparing the results of two queries."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, Final

from graphrag_eval_lc.config import ValuesConfig
from graphrag_eval_lc.matching.matchers import ComparisonOutcome
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.alignment import (
    Alignment,
    Way,
    assigned_by_name,
    best_columns,
    shares_of_values,
)
from graphrag_eval_lc.matching.rows.columns import Budget, SearchCutOff, bare_name, find_columns, namesakes
from graphrag_eval_lc.matching.rows.diagnosis import (
    Diagnosis,
    Grade,
    Mismatch,
    ShownRow,
    diagnosis_of_match,
    grade_of_emptiness,
    grade_of_rows,
    notes_on,
)
from graphrag_eval_lc.matching.rows.graph_values import GraphRules
from graphrag_eval_lc.matching.rows.readers import read_sparql_results
from graphrag_eval_lc.matching.rows.results import SparqlResults
from graphrag_eval_lc.matching.rows.terms import Keys, RowsAs, Rules, Tolerances, ValueRules

_ASK_COLUMNS: Final = (["__ask_retval"], ["_askresult"])
"""The only column of Virtuoso's and Jena's answers of ASK queries, of which 1 is true; no row or 0 is false."""

_TRUTH_VALUES: Final = {"true": True, "1": True, "false": False, "0": False}
_NEAR_ROWS: Final = 20


class SparqlComparison:
    """How two SPARQL results compare. All but the score is worked out when it is first asked for.

    Attributes:
        score: 1.0 if the actual results hold the required ones, else 0.0.
        unreadable: What is wrong with the actual output if it is not results at all, or has too few columns that can
            be read.
        is_undecided: Whether it is not known that the results differ, although the score is 0.
        cut: Where the actual output ends before its end; None if it is whole.
        steps: How many steps the search took; 0 if none was needed. It is the same in every run.
    """

    def __init__(
        self,
        score: float,
        diagnose: Callable[[], Diagnosis],
        *,
        closeness: Callable[[], float] | None = None,
        graded: Callable[[], Grade] | None = None,
        notes: Callable[[str], str] | None = None,
        unreadable: str | None = None,
        is_undecided: bool = False,
        cut: str | None = None,
        steps: int = 0,
    ) -> None:
        self.score = score
        self.steps = steps
        self.unreadable = unreadable
        self.is_undecided = is_undecided
        self.cut = cut
        self._diagnose, self._closeness, self._graded, self._notes = diagnose, closeness, graded, notes

    def __repr__(self) -> str:
        return f"SparqlComparison(score={self.score}, reason={self.reason!r})"

    @property
    def outcome(self) -> ComparisonOutcome:
        """``match``, ``mismatch`` or, if the search or the output ended too early to tell, ``undecided``."""
        return "match" if self.score else "undecided" if self.is_undecided else "mismatch"

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """All that is known beyond the score."""
        return self._diagnose()

    @cached_property
    def reason(self) -> str:
        """A sentence or two for people."""
        return self.diagnosis.reason if self._notes is None else self._notes(self.diagnosis.reason)

    @cached_property
    def graded(self) -> Grade:
        """What the results are worth if steps are graded, with the reason."""
        return Grade(self.score, self.reason) if self._graded is None else self._graded()

    @property
    def grade(self) -> float:
        """What the results are worth if steps are graded; 0 to 1, and 1 only for a match without surplus columns."""
        return self.graded.value

    @property
    def grade_reason(self) -> str:
        """A sentence or two on what the grade consists of."""
        return self.graded.reason

    @cached_property
    def closeness(self) -> float:
        """How near the results come: 1 for a match, below 1 for all else; for ranking steps."""
        return self.score if self._closeness is None else self._closeness()

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
        """The number of all missing rows, without duplicates if these are ignored."""
        return self.diagnosis.missing_row_count

    @property
    def extra_row_count(self) -> int:
        """The number of all extra rows, without duplicates if these are ignored."""
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
    """Compare the results of a query with those that it should return.

    Rows are tuples of cells. Cells are equal if their values are: numbers within a tolerance, booleans as booleans,
    times by instant, durations by length, geometries by their words and numbers, IRIs but for the case of
    percent-encoding, triple terms by their parts. All else is equal by its text in the Unicode normal form C, and so
    are terms of different kinds, such as a number and a name. Unbound equals unbound, blank nodes equal up to one
    renaming. The names of the columns do not matter: the required columns match if any actual columns hold their
    rows, whatever is in the others.

    Numbers are equal within 1e-8 or, if that is more, a share of the larger one: of xsd:float 1e-5, of xsd:double
    1e-12, of two datatypes the larger share; decimals among themselves have none, nor has an integer with anything.
    A number that equals several of the reference counts as the nearest of them. A text without a datatype that is
    written as JSON writes numbers is an integer if it is whole, else a double.

    Times without a zone never equal times with one. A text without a datatype that is a point in time with a zone
    (2020-01-01 01:00:00+01), or a time of day with one, is such a time; a date is not.

    Args:
        reference: The expected results: SPARQL 1.1 JSON, or another form that ``read_sparql_results`` reads, or what
            it returned.
        actual: The results of the query, likewise.
        required_columns: The columns of the reference that must be there; None for all, empty for none of them
            (then only whether there are rows counts). Actual columns beyond these are free.
        ordered: Whether the rows must come in the same order; duplicates count then.
        ignore_duplicates: Whether rows of the same values count once, however often they come.
        strict: Whether RDF terms are compared: kind, datatype and language tag of texts count as well, a text without
            a datatype is not a number, and numbers are equal within 1e-8 only, or within a tolerance given as a number.
        tolerance: A number from 0 to below 1: the share for all numbers but integers, decimals too. Or the shares of
            xsd:float and xsd:double if they differ from the defaults: ``{"float": 1e-4}``.
        values: Which terms are compared by what they mean, all by default: ``{"times": False}``; see
            ``ValuesConfig``. It is not used if ``strict`` is.
        node_keys: The properties by which the nodes and relationships of a property graph are compared, as far as they
            have them; else all properties with the labels or the type are.
        list_order: Whether the order of the elements of lists in cells counts; Cypher's ``collect()`` has none.

    Returns:
        The score with its reason. Nothing that the results hold makes this raise: a comparison that cannot be
        made scores 0 and says why. Outputs of the same text match, even if nothing can read them. A search whose
        steps reach its bound, after some seconds, scores 0, but is ``undecided``, not a mismatch.

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
    same_text = isinstance(reference, str) and isinstance(actual, str) and reference.strip() == actual.strip() != ""
    try:
        expected = reference if isinstance(reference, SparqlResults) else read_sparql_results(reference)
    except UnreadableOutput as problem:
        return _same_text() if same_text else _settled(0.0, f"{_AT_FAULT}: it is {problem}.")
    try:
        found = actual if isinstance(actual, SparqlResults) else read_sparql_results(actual)
    except UnreadableOutput as problem:
        return _same_text() if same_text else comparison_without_results(problem)
    compared = _compared(expected, found, required_columns, rules)
    return _same_text() if same_text and compared.is_undecided else compared


_AT_FAULT: Final = "The reference output in the dataset is at fault"


def comparison_without_results(problem: UnreadableOutput) -> SparqlComparison:
    """Return the comparison with an actual output that cannot be read: undecided if it is cut."""
    if isinstance(problem, CutOutput):
        return _settled(0.0, f"It cannot be told, as {problem}.", is_undecided=True, cut=str(problem))
    return _settled(0.0, f"The actual output is {problem}.", unreadable=str(problem))


def _same_text() -> SparqlComparison:
    return _settled(1.0, "Both outputs have the same text.")


def _settled(score: float, reason: str, **more: Any) -> SparqlComparison:
    diagnosis = Diagnosis(reason, row_precision=score, row_recall=score)
    return SparqlComparison(score, lambda: diagnosis, **more)


def _compared(
    reference: SparqlResults,
    actual: SparqlResults,
    required_columns: Sequence[str] | None,
    rules: Rules,
) -> SparqlComparison:
    def notes(reason: str) -> str:
        return notes_on(reference, actual, reason)

    if _is_answer(reference) or _is_answer(actual):
        return _comparison_of_answers(_answer(reference), _answer(actual), notes)
    if required_columns is None:
        required_columns = reference.variables
    fault = _fault_of_columns(required_columns, reference)
    if fault is not None:
        return _settled(0.0, f"{_AT_FAULT}: {fault}.", notes=notes)
    required = tuple(dict.fromkeys(required_columns))
    if not required or not reference.row_count or not actual.row_count:
        score, reason = _outcome_of_emptiness(reference, actual, required)
        return _settled(
            score, reason, notes=notes, graded=lambda: grade_of_emptiness(reference, actual, required, score)
        )
    return _Rows(reference, actual, required, rules).comparison(notes)


def _is_answer(results: SparqlResults) -> bool:
    return results.boolean is not None or [bare_name(name) for name in results.variables] in _ASK_COLUMNS


def _answer(results: SparqlResults) -> bool | None:
    """Return the answer of an ASK query, or a lone truth value in its place."""
    if results.boolean is not None or len(results.columns) != 1 or results.row_count > 1:
        return results.boolean
    if not results.row_count:
        return False if _is_answer(results) else None
    [column] = results.columns.values()
    text = column.texts[0].strip().casefold()
    is_truth_value = column.kind(0) in ("literal", "typed-literal") and (
        _is_answer(results) or text in ("true", "false")
    )
    return _TRUTH_VALUES.get(text) if is_truth_value else None


def _comparison_of_answers(answer: bool | None, found: bool | None, notes: Callable[[str], str]) -> SparqlComparison:
    """Compare results of which at least one is the answer of an ASK query."""
    if answer is None:
        return _settled(0.0, "The actual output answers an ASK query, the reference holds rows.", notes=notes)
    expected = str(answer).lower()
    if found is None:
        reason = f"The actual output holds rows, the reference answers an ASK query with {expected}."
        return _settled(0.0, reason, notes=notes)
    if found == answer:
        return _settled(1.0, f"Both answer {expected}.", notes=notes)
    return _settled(0.0, f"The actual answer is {str(found).lower()}, the reference has {expected}.", notes=notes)


def _fault_of_columns(required_columns: Any, reference: SparqlResults) -> str | None:
    if not isinstance(required_columns, list | tuple) or not all(isinstance(name, str) for name in required_columns):
        return "required_columns is not a list of column names"
    variables = reference.variables
    absent = [f"`{name}`" for name in dict.fromkeys(required_columns) if name not in variables]
    if absent:
        return f"it has no column {', '.join(absent)}, which required_columns names"
    return next((f"its {reference.fault_of(name)}" for name in required_columns if name in reference.faults), None)


def _outcome_of_emptiness(
    reference: SparqlResults, actual: SparqlResults, required: tuple[str, ...]
) -> tuple[float, str]:
    """Compare results of which one has no rows, or of which no column counts."""
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


class _Rows:
    """Two results of at least one row and one required column."""

    def __init__(self, reference: SparqlResults, actual: SparqlResults, required: Sequence[str], rules: Rules) -> None:
        self._reference, self._actual, self._required = reference, actual, required
        self._rows_as = rules.rows_as
        self._keys = Keys(reference, actual, required, rules)
        self._by_name_only = reference.is_graph and actual.is_graph

    def comparison(self, notes: Callable[[str], str]) -> SparqlComparison:
        """Search for the columns, and return the comparison."""
        actual, budget, cut_off = self._actual, Budget(), None
        mine = {name: self._keys.reference(name) for name in self._required}
        names = list(actual.columns)
        try:
            columns = find_columns(
                mine, self._keys.actual, names, self._rows_as, budget, by_name_only=self._by_name_only
            )
        except SearchCutOff as problem:
            columns, cut_off = self._equal_columns(), str(problem)
        if columns is not None:
            found = columns
            return SparqlComparison(
                1.0,
                lambda: diagnosis_of_match(self._reference, actual, found, self._keys),
                graded=lambda: self._grade(tuple(found.values()), is_match=True),
                notes=notes,
                steps=budget.spent,
            )
        has_too_few = len(names) < len(self._required) <= len(actual.variables)
        return SparqlComparison(
            0.0,
            lambda: Mismatch(self._reference, actual, *self._shown, self._keys, self._rows_as, cut_off).diagnosis(),
            closeness=self._closeness,
            graded=lambda: self._grade(self._nearest),
            notes=notes,
            unreadable="; ".join(map(actual.fault_of, actual.faults)) if has_too_few else None,
            is_undecided=cut_off is not None,
            steps=budget.spent,
        )

    def _equal_columns(self) -> dict[str, str] | None:
        """Return the nearest columns if they happen to have equal rows, without blank nodes."""
        columns = {name: found for name, found in zip(self._required, self._nearest, strict=True) if found is not None}
        if len(columns) < len(self._required) or not self._aligned(self._nearest).are_equal:
            return None
        return None if any(self._keys.reference(name).blanks for name in columns) else columns

    def _aligned(self, way: Way) -> Alignment:
        """Return the rows under some columns; those of the last way that was looked at are kept."""
        if self._last is None or self._last[0] != way:
            mine, others = self._reference.columns, self._actual.columns
            aligned = Alignment(
                [self._keys.reference(name).keys for name in self._required],
                [None if name is None else self._keys.actual(name).keys for name in way],
                [mine[name].texts for name in self._required],
                [None if name is None else others[name].texts for name in way],
                self._rows_as,
                self._actual.row_count,
            )
            self._last = way, aligned
        return self._last[1]

    _last: tuple[Way, Alignment] | None = None

    def _grade(self, way: Way, *, is_match: bool = False) -> Grade:
        columns = dict(zip(self._required, way, strict=True))
        return grade_of_rows(self._reference, self._actual, columns, self._aligned(way), is_match=is_match)

    @cached_property
    def _columns(self) -> tuple[dict[str, list[int]], dict[str, list[int]], list[dict[str, float]]]:
        """The keys of the required and the actual columns, and what they have in common."""
        mine = {name: self._keys.reference(name).keys for name in self._required}
        others = {name: self._keys.actual(name).keys for name in self._actual.columns}
        weights = shares_of_values(mine, others)
        if self._by_name_only:
            weights = [{name: 1.0} if name in others else {} for name in mine]
        return mine, others, weights

    @cached_property
    def _nearest(self) -> Way:
        """The columns that come nearest: those under which the results are worth most, then those of the same names."""
        mine, others, weights = self._columns

        @cache
        def worth(way: Way) -> tuple[float, float]:
            alike = (
                each[other] + 2 * (bare_name(name) == bare_name(other))
                for name, other, each in zip(mine, way, weights, strict=True)
                if other is not None
            )
            return round(self._grade(way).value, 9), sum(alike)

        return best_columns(mine, others, weights, worth)

    @property
    def _shown(self) -> tuple[dict[str, str | None], Alignment]:
        """The nearest columns, also those that have near values or the same names, with the rows under these."""
        columns = dict(zip(self._required, self._nearest, strict=True))
        for name in self._required:
            if columns[name] is None:
                free = (other for other in self._actual.columns if other not in columns.values())
                columns[name] = next((other for other in free if self._is_near(name, other)), None)
        absent = [name for name, found in columns.items() if found is None]
        columns |= namesakes(absent, [other for other in self._actual.columns if other not in columns.values()])
        return columns, self._aligned(tuple(columns.values()))

    def _is_near(self, name: str, other: str) -> bool:
        """Return whether some of the first values of two columns are nearly the same."""
        rows, other_rows = (
            range(min(_NEAR_ROWS, self._reference.row_count)),
            range(min(_NEAR_ROWS, self._actual.row_count)),
        )
        return any(self._keys.note(name, row, other, found) for row in rows for found in other_rows)

    def _closeness(self) -> float:
        """Return how much the results have in common; 0 to below 1: rows, then values, then nearly the same values."""
        mine, others, weights = self._columns
        way = assigned_by_name(list(mine), list(others), weights)
        overlap = 0.0
        pairs = []
        for name, other, found in zip(mine, way, weights, strict=True):
            if other is not None:
                overlap += found[other]
                pairs.append((mine[name], others[other]))
            elif any(self._is_near(name, each) for each in others):
                overlap += 0.5
        dice = 0.0
        if pairs:
            rows, other_rows = (set(zip(*columns, strict=True)) for columns in zip(*pairs, strict=True))
            dice = len(pairs) / len(mine) * 2 * len(rows & other_rows) / (len(rows) + len(other_rows))
        return 0.9 * dice + 0.09 * overlap / len(mine)
