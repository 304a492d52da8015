"""How often each tool was called, gave nothing, or failed."""

import re
from collections import Counter
from typing import cast

from graphrag_eval_lc.aggregation.sample_values import Sample, steps_of
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.records import StepsSummary

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
        """Give the counts by part and tool name, the names sorted; a part that would be empty is absent."""
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
    """Tell whether an output is a SPARQL result without rows; only texts that may be one are parsed."""
    if not isinstance(output, str) or '"bindings"' not in output or not _EMPTY_BINDINGS.search(output):
        return False
    try:
        value = parse_json(output)
    except (ValueError, RecursionError):
        return False
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, dict) and results.get("bindings") == []
