"""The values of one metric over many results, in little memory, and the statistics over them."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import cast

from graphrag_eval_lc.aggregation.sample_values import Sample
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.rows.row_steps import ROW_TOOLS, SQL_DB_QUERY
from graphrag_eval_lc.metrics import clustered_standard_error
from graphrag_eval_lc.records import StepsSummary

_LARGEST_WHOLE = 2**53
_EMPTY_BINDINGS = re.compile(r'"bindings"\s*:\s*\[\s*\]')


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

    __slots__ = ("_rows", "_values")

    def __init__(self) -> None:
        self._rows = array("I")
        self._values = ValueArray()

    def add(self, row: int, values: Sequence[float]) -> None:
        """Add the values of a result."""
        for value in values:
            self._rows.append(row)
            self._values.append(value)

    def items(self) -> Iterator[tuple[int, float]]:
        """Yield the rows with their values."""
        return zip(self._rows, self._values.tolist(), strict=True)


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

    @classmethod
    def of(cls, values: Mapping[str, Sequence[float]], *, with_error: bool) -> "MetricStatistics":
        """Return the statistics of values by template; each template has at least one."""
        per_template = {template_id: _statistics_of(group) for template_id, group in values.items()}
        return cls(
            per_template,
            micro=_statistics_of([value for group in values.values() for value in group]),
            macro=mean(statistics["mean"] for statistics in per_template.values()),
            standard_error=clustered_standard_error(values.values()) if with_error else None,
        )


def _statistics_of(values: Sequence[float]) -> Statistics:
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
    """Return whether a tool of Cypher or SQL, known by its name, returned no rows."""
    if name not in ROW_TOOLS:
        return False
    text = "".join(output.split()) if isinstance(output, str) and len(output) < 100 else None
    return output == [] or text in (("", "[]") if name == SQL_DB_QUERY else ("[]",))
