"""The values of all results added so far, in little memory, and the statistics over them."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import fmean, mean, median
from typing import cast

from graphrag_eval_lc.aggregation.sample_values import Metrics, Sample, counts_of, with_upper_bounds
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.rows.row_steps import ROW_TOOLS, SQL_DB_QUERY
from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.records import StepsSummary, is_error
from graphrag_eval_lc.registry.metrics import UPPER_BOUNDS, metric_spec

Question = tuple[str, Hashable]

_LARGEST_WHOLE = 2**53


class ValueArray:
    """A growing array of numbers, 8 bytes each; they come out as integers where all are.

    Example:
        >>> values = ValueArray()
        >>> values.append(3)
        >>> values.tolist()
        [3]
        >>> values.append(0.5)
        >>> values.tolist()
        [3.0, 0.5]
    """

    __slots__ = ("_are_whole", "_values")

    def __init__(self) -> None:
        self._values = array("d")
        self._are_whole = True

    def append(self, value: float) -> None:
        """Add a number; an integer beyond 2**53 becomes the nearest float."""
        self._values.append(value)
        self._are_whole = self._are_whole and isinstance(value, int) and abs(value) <= _LARGEST_WHOLE

    def tolist(self) -> list[float]:
        """Return the numbers in the order in which they were added."""
        return [int(value) for value in self._values] if self._are_whole else self._values.tolist()


class Column:
    """The values of one metric, each with the row of its result; a metric of steps may have several a row."""

    __slots__ = ("rows", "values")

    def __init__(self) -> None:
        self.rows = array("I")
        self.values = ValueArray()


class Samples:
    """What statistics need of the results of a run.

    Args:
        metrics: The metrics whose values are kept.

    Attributes:
        repeats: The highest ``repeat`` of a result; 1 where none has one.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.repeats = 1
        self._metrics = metrics
        self._template_ids: list[str] = []
        self._question_ids: list[Hashable] = []
        self._failures = bytearray()
        self._columns: dict[str, Column] = {}
        self._known_ids: dict[str, str] = {}
        self._bounded: dict[str, set[str]] = {}

    def add(self, sample: Sample, *, is_counted: bool) -> None:
        """Add a result; the values of one that is not counted are left out."""
        row = len(self._template_ids)
        template_id = str(sample["template_id"])
        self._template_ids.append(self._known_ids.setdefault(template_id, template_id))
        question_id = sample.get("question_id")
        self._question_ids.append(row if question_id is None else str(question_id))
        self._failures.append(is_error(sample))
        repeat = sample.get("repeat")
        if isinstance(repeat, int) and repeat > self.repeats:
            self.repeats = repeat
        if is_counted:
            own = dict(self._metrics.sample_values(sample))
            for metric in own.keys() & UPPER_BOUNDS.keys():
                self._bounded.setdefault(metric, set()).add(template_id)
            for values in (with_upper_bounds(own).items(), counts_of(sample), self._metrics.step_values(sample)):
                for metric, value in values:
                    column = self._columns.get(metric)
                    if column is None:
                        column = self._columns[metric] = Column()
                    column.rows.append(row)
                    column.values.append(value)

    def template_ids(self) -> Iterable[str]:
        """Return the templates that have results, the first seen first."""
        return self._known_ids

    def bounded(self, metric: str) -> Set[str] | None:
        """Return the templates that have an upper bound; None for a metric that is not an upper bound.

        An upper bound is only told if some result has it.

        Example:
            >>> from graphrag_eval_lc.aggregation.sample_values import metrics_of
            >>> from graphrag_eval_lc.config import EvaluationConfig
            >>> samples = Samples(metrics_of(EvaluationConfig()))
            >>> samples.add({"template_id": "t", "steps_score": 1.0}, is_counted=True)
            >>> samples.bounded("steps_score"), samples.bounded("steps_score_upper")
            (None, set())
        """
        return self._bounded.get(metric, set()) if metric in UPPER_BOUNDS else None

    def metrics(self) -> Set[str]:
        """Return the metrics that have values."""
        return self._columns.keys()

    def sample_counts(self) -> Counter[tuple[str, bool]]:
        """Return the number of results by template and whether they failed."""
        return Counter(zip(self._template_ids, map(bool, self._failures), strict=True))

    def question_counts(self) -> Counter[str]:
        """Return the number of questions by template."""
        return Counter(template_id for template_id, _ in set(self._questions()))

    def values_by_template(self, metric: str) -> dict[str, list[float]]:
        """Return what statistics are taken over: a metric's values, with repeats its mean for each question."""
        values: dict[str, list[float]] = {}
        if self.repeats == 1:
            for row, value in self._items(metric):
                values.setdefault(self._template_ids[row], []).append(value)
            return values
        by_question: dict[Question, list[float]] = {}
        for row, value in self._items(metric):
            by_question.setdefault((self._template_ids[row], self._question_ids[row]), []).append(value)
        for (template_id, _), repeated in by_question.items():
            values.setdefault(template_id, []).append(fmean(repeated))
        return values

    def sums_by_template(self, metric: str) -> dict[str, float]:
        """Return the sum of a metric's values over all repeats, for each template that has any."""
        if metric not in self._columns:
            return {}
        sums: dict[str, float] = {}
        for row, value in self._items(metric):
            sums[self._template_ids[row]] = sums.get(self._template_ids[row], 0) + value
        return sums

    def outcomes(self, metric: str, threshold: float) -> Mapping[Question, Sequence[bool | None]]:
        """Return for each question which of its samples passed; None stands for one that succeeded unmeasured.

        A sample passes if it did not fail and its value, of a metric of steps the mean over them, is at least the
        threshold; where less is better, at most the threshold.
        """
        values: dict[int, list[float]] = {}
        for row, value in self._items(metric):
            values.setdefault(row, []).append(value)
        is_lower_better = metric_spec(metric).lower_is_better
        passed = {row: passes(fmean(each), threshold, lower_is_better=is_lower_better) for row, each in values.items()}
        outcomes: dict[Question, list[bool | None]] = {}
        for row, question in enumerate(self._questions()):
            outcomes.setdefault(question, []).append(False if self._failures[row] else passed.get(row))
        return outcomes

    def _questions(self) -> Iterable[Question]:
        return zip(self._template_ids, self._question_ids, strict=True)

    def _items(self, metric: str) -> Iterable[tuple[int, float]]:
        """Yield a metric's values with their rows, then a zero for each missing one that counts as 0."""
        if metric in self._columns:
            column = self._columns[metric]
            yield from zip(column.rows, column.values.tolist(), strict=True)
        zeros = self._columns.get(self._metrics.retrieval.zeros_key(metric) or "")
        for row, number_of_zeros in zip(zeros.rows, zeros.values.tolist(), strict=True) if zeros else ():
            yield from ((row, 0.0) for _ in range(int(number_of_zeros)))


def passes(value: float, threshold: float, *, lower_is_better: bool) -> bool:
    """Return whether a sample passes by its value."""
    return value <= threshold if lower_is_better else value >= threshold


_EMPTY_BINDINGS = re.compile(r'"bindings"\s*:\s*\[\s*\]')


class StepCounts:
    """The counts of steps by tool name, over the results added so far."""

    __slots__ = ("_counters",)

    def __init__(self) -> None:
        parts = ("total", "once_per_sample", "empty_results", "errors")
        self._counters: dict[str, Counter[str]] = {part: Counter() for part in parts}

    def add(self, sample: Sample) -> None:
        """Count the steps of a result."""
        names = set()
        for step in sample.get("actual_steps") or ():
            name = str(step.get("name"))
            names.add(name)
            self._counters["total"][name] += 1
            if step.get("status") == "error" or "comparison_error" in step:
                self._counters["errors"][name] += 1
            elif _has_no_rows(step.get("output")) or _is_empty_list(name, step.get("output")):
                self._counters["empty_results"][name] += 1
        self._counters["once_per_sample"].update(names)

    def update(self, other: "StepCounts") -> None:
        """Add the counts of other results."""
        for part, counter in self._counters.items():
            counter.update(other._counters[part])

    def summary(self) -> StepsSummary:
        """Return the counts by part and tool name, the names sorted; a part that would be empty is absent."""
        parts = {part: dict(sorted(counter.items())) for part, counter in self._counters.items() if counter}
        return cast("StepsSummary", parts)


def _has_no_rows(output: object) -> bool:
    """Return whether an output is a SPARQL result without rows; only texts that may be one are parsed."""
    if not isinstance(output, str) or '"bindings"' not in output or not _EMPTY_BINDINGS.search(output):
        return False
    try:
        value = parse_json(output)
    except (ValueError, RecursionError):
        return False
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, dict) and results.get("bindings") == []


def _is_empty_list(name: str, output: object) -> bool:
    """Return whether a tool of Cypher or SQL, known by its name, gave no rows."""
    if name not in ROW_TOOLS:
        return False
    text = "".join(output.split()) if isinstance(output, str) and len(output) < 100 else None
    return output == [] or text in (("", "[]") if name == SQL_DB_QUERY else ("[]",))


Statistics = dict[str, float]


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """The statistics of one metric.

    Attributes:
        per_template: ``sum``, ``mean``, ``median``, ``min`` and ``max`` by template.
        micro: The same over all values.
        macro: The mean over the templates' means.
        standard_error: That of the mean over all values, clustered by template; None where it is not known.
    """

    per_template: Mapping[str, Statistics]
    micro: Statistics
    macro: float
    standard_error: float | None = None


def metric_statistics(values: Mapping[str, Sequence[float]], *, with_error: bool) -> MetricStatistics:
    """Return the statistics of values by template; each template has at least one."""
    per_template = {template_id: statistics_of(group) for template_id, group in values.items()}
    return MetricStatistics(
        per_template,
        micro=statistics_of([value for group in values.values() for value in group]),
        macro=mean(statistics["mean"] for statistics in per_template.values()),
        standard_error=clustered_standard_error(values.values()) if with_error else None,
    )


def statistics_of(values: Sequence[float]) -> Statistics:
    """Return sum, mean, median, min and max of at least one number."""
    return {
        "sum": exact_sum(values),
        "mean": mean(values),
        "median": median(values),
        "min": min(values),
        "max": max(values),
    }


def exact_sum(values: Sequence[float]) -> float:
    """Add up exactly: integers stay integers, and the order of floats does not matter."""
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)
