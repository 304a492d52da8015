"""The numbers of the results taken up so far, in little memory, and the statistics over them."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from statistics import fmean, mean, median
from typing import cast

from graphrag_eval_lc.aggregation.measurements import Metrics, Sample, is_error, steps_of
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.records import StepsSummary
from graphrag_eval_lc.registry.metrics import metric_spec

Question = tuple[str, Hashable]


class Column:
    """The measured values of one metric, each with the row of its result; a step metric may have several a row."""

    __slots__ = ("numbers", "rows")

    def __init__(self) -> None:
        self.rows = array("I")
        self.numbers = Numbers()

    def append(self, row: int, value: float) -> None:
        """Add a value."""
        self.rows.append(row)
        self.numbers.append(value)

    def items(self) -> Iterable[tuple[int, float]]:
        """Return the values with their rows."""
        return zip(self.rows, self.numbers.values(), strict=True)


class Samples:
    """The results of a run as far as statistics need them.

    Args:
        metrics: The figures that are taken up.

    Attributes:
        repeats: The highest ``repeat`` that a result carries; 1 where none does.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.repeats = 1
        self._metrics = metrics
        self._template_ids: list[str] = []
        self._question_ids: list[Hashable] = []
        self._failures = bytearray()
        self._columns: dict[str, Column] = {}
        self._known_ids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._template_ids)

    def add(self, sample: Sample, *, is_counted: bool) -> None:
        """Take up a result; the values of one that is not counted are left out."""
        row = len(self)
        template_id = str(sample["template_id"])
        self._template_ids.append(self._known_ids.setdefault(template_id, template_id))
        question_id = sample.get("question_id")
        self._question_ids.append(row if question_id is None else str(question_id))
        self._failures.append(is_error(sample))
        repeat = sample.get("repeat")
        if isinstance(repeat, int) and repeat > self.repeats:
            self.repeats = repeat
        if is_counted:
            for numbers in (self._metrics.sample_numbers(sample), self._metrics.step_numbers(sample)):
                for metric, value in numbers:
                    column = self._columns.get(metric)
                    if column is None:
                        column = self._columns[metric] = Column()
                    column.append(row, value)

    def template_ids(self) -> Iterable[str]:
        """Return the templates of which there are results, the first seen first."""
        return self._known_ids

    def metrics(self) -> Set[str]:
        """Return the metrics that were measured."""
        return self._columns.keys()

    def sample_counts(self) -> Counter[tuple[str, bool]]:
        """Return the number of results by template and whether they failed."""
        return Counter(zip(self._template_ids, map(bool, self._failures), strict=True))

    def question_counts(self) -> Counter[str]:
        """Return the number of questions by template."""
        return Counter(template_id for template_id, _ in set(self._questions()))

    def running_mean(self, metric: str) -> float | None:
        """Return the mean of a metric's values so far, at once; None where there is none."""
        column = self._columns.get(metric)
        return column.numbers.mean() if column else None

    def values_by_template(self, metric: str) -> dict[str, list[float]]:
        """Return what statistics are taken over: a metric's values, or with repeats its mean for each question."""
        values: dict[str, list[float]] = {}
        if self.repeats == 1:
            for row, value in self._items(metric):
                values.setdefault(self._template_ids[row], []).append(value)
            return values
        for (template_id, _), repeated in self._values_by_question(metric).items():
            values.setdefault(template_id, []).append(fmean(repeated))
        return values

    def sums_by_template(self, metric: str) -> dict[str, float]:
        """Return the sum of a metric's values, each repeat of its own, for the templates that have any."""
        sums: dict[str, float] = {}
        for row, value in self._items(metric):
            sums[self._template_ids[row]] = sums.get(self._template_ids[row], 0) + value
        return sums

    def outcomes(self, metric: str, threshold: float) -> Mapping[Question, Sequence[bool | None]]:
        """Tell for each question which of its samples passed; None for one that succeeded unmeasured.

        A sample passes where it did not fail and the metric, of steps its mean over them, is at least the threshold;
        at most where less is better.
        """
        values: dict[int, list[float]] = {}
        for row, value in self._items(metric):
            values.setdefault(row, []).append(value)
        is_lower_better = metric_spec(metric).lower_is_better
        passed = {row: _passes(fmean(each), threshold, is_lower_better) for row, each in values.items()}
        outcomes: dict[Question, list[bool | None]] = {}
        for row, question in enumerate(self._questions()):
            outcomes.setdefault(question, []).append(False if self._failures[row] else passed.get(row))
        return outcomes

    def _questions(self) -> Iterable[Question]:
        return zip(self._template_ids, self._question_ids, strict=True)

    def _items(self, metric: str) -> Iterable[tuple[int, float]]:
        """Yield the values of a metric with their rows, and a zero for each that is missing and counts so."""
        zeros = self._columns.get(self._metrics.retrieval.zeros_key(metric) or "")
        for row, value in self._columns[metric].items() if metric in self._columns else ():
            yield row, value
        for row, number_of_zeros in zeros.items() if zeros else ():
            yield from ((row, 0.0) for _ in range(int(number_of_zeros)))

    def _values_by_question(self, metric: str) -> dict[Question, list[float]]:
        values: dict[Question, list[float]] = {}
        for row, value in self._items(metric):
            values.setdefault((self._template_ids[row], self._question_ids[row]), []).append(value)
        return values


def _passes(value: float, threshold: float, is_lower_better: bool) -> bool:
    return value <= threshold if is_lower_better else value >= threshold


_LARGEST_WHOLE = 2**53


class Numbers:
    """A growing row of numbers, 8 bytes each; whole numbers come out whole where all are.

    Example:
        >>> numbers = Numbers()
        >>> numbers.append(3)
        >>> numbers.values()
        [3]
        >>> numbers.append(0.5)
        >>> numbers.values(), numbers.mean()
        ([3.0, 0.5], 1.75)
    """

    __slots__ = ("_are_whole", "_running", "_values")

    def __init__(self) -> None:
        self._values = array("d")
        self._are_whole = True
        self._running = (0, 0.0)

    def append(self, value: float) -> None:
        """Add a number; a whole one beyond 2**53 becomes the nearest float."""
        self._values.append(value)
        self._are_whole = self._are_whole and isinstance(value, int) and abs(value) <= _LARGEST_WHOLE
        count, total = self._running
        self._running = (count + 1, total + value)

    def values(self) -> list[float]:
        """Return the numbers in the order in which they were added."""
        return [int(value) for value in self._values] if self._are_whole else self._values.tolist()

    def mean(self) -> float | None:
        """Return the mean as far as a running sum of floats knows it, at once; None without numbers.

        Another thread may ask while numbers are added.
        """
        count, total = self._running
        return total / count if count else None


_EMPTY_BINDINGS = re.compile(r'"bindings"\s*:\s*\[\s*\]')


class StepCounts:
    """The counts of steps by tool name, over the results taken up so far."""

    __slots__ = ("_empty_results", "_errors", "_once_per_sample", "_total")

    def __init__(self) -> None:
        self._total: Counter[str] = Counter()
        self._once_per_sample: Counter[str] = Counter()
        self._empty_results: Counter[str] = Counter()
        self._errors: Counter[str] = Counter()

    def add(self, sample: Sample) -> None:
        """Count the steps of a result."""
        names = set()
        for step in steps_of(sample):
            name = str(step.get("name"))
            names.add(name)
            self._total[name] += 1
            if step.get("status") == "error" or "comparison_error" in step:
                self._errors[name] += 1
            elif _has_no_rows(step.get("output")):
                self._empty_results[name] += 1
        for name in names:
            self._once_per_sample[name] += 1

    def update(self, other: "StepCounts") -> None:
        """Add the counts of other results."""
        for counter, more in zip(self._counters().values(), other._counters().values(), strict=True):
            counter.update(more)

    def summary(self) -> StepsSummary:
        """Return the counts by part and tool name, the names sorted; a part that would be empty is absent."""
        parts = {part: dict(sorted(counter.items())) for part, counter in self._counters().items() if counter}
        return cast("StepsSummary", parts)

    def _counters(self) -> dict[str, Counter[str]]:
        return {
            "total": self._total,
            "once_per_sample": self._once_per_sample,
            "empty_results": self._empty_results,
            "errors": self._errors,
        }


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


Statistics = dict[str, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """What is known of a metric.

    Attributes:
        per_template: Its statistics by template: ``sum``, ``mean``, ``median``, ``min`` and ``max``.
        micro: Its statistics over all values.
        macro: The mean over the templates' means.
        standard_error: That of the mean over all values, clustered by template; None where it is not known.
    """

    per_template: Mapping[str, Statistics]
    micro: Statistics
    macro: float
    standard_error: float | None = None


def figures_of(values: Mapping[str, Sequence[float]], *, with_error: bool) -> Figures:
    """Return the statistics of values by template, of which each has at least one."""
    per_template = {template_id: statistics_of(group) for template_id, group in values.items()}
    return Figures(
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
    """Add up exactly: whole numbers stay whole, and floats do not depend on their order."""
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)
