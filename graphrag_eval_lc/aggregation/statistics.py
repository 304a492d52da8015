"""Numbers over many results, in little memory: statistics of metrics, counts of steps, totals spent, and pass@k."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from statistics import mean, median
from typing import Any, Final, cast

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.config import EvaluationConfig, RepeatsConfig
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.matching.rows.row_steps import ROW_TOOLS, SQL_DB_QUERY
from graphrag_eval_lc.metrics import clustered_standard_error, pass_at_k, pass_hat_k
from graphrag_eval_lc.prices import failed_without_tokens
from graphrag_eval_lc.records import StepsSummary
from graphrag_eval_lc.registry.metric_spec import Over
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    BUILT_IN,
    COST,
    JUDGES_COST,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SAMPLES,
    aggregated_metrics,
)

_LARGEST_WHOLE = 2**53
_EMPTY_BINDINGS = re.compile(r'"bindings"\s*:\s*\[\s*\]')


class Column:
    """A growing column of numbers, 12 bytes each, with the rows of their results; integers stay integers if all are.

    A metric of steps may have several values a row.

    Example:
        >>> column = Column()
        >>> column.add(0, [3, 5])
        >>> column.values()
        [3, 5]
        >>> column.add(1, [0.5])
        >>> list(column.items())
        [(0, 3.0), (0, 5.0), (1, 0.5)]
    """

    __slots__ = ("_are_whole", "_rows", "_values")

    def __init__(self) -> None:
        self._rows = array("I")
        self._values = array("d")
        self._are_whole = True

    def add(self, row: int, values: Sequence[float]) -> None:
        """Add the values of a result; an integer beyond 2**53 becomes the nearest float."""
        for value in values:
            self._rows.append(row)
            self._values.append(value)
            self._are_whole = self._are_whole and isinstance(value, int) and abs(value) <= _LARGEST_WHOLE

    def values(self) -> list[float]:
        """Return the numbers in the order in which they were added."""
        return list(map(int, self._values)) if self._are_whole else self._values.tolist()

    def items(self) -> Iterator[tuple[int, float]]:
        """Yield the rows with their values."""
        return zip(self._rows, self.values(), strict=True)


Statistics = dict[str, float]


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """The statistics of one metric by template and over all values, and the mean over the templates' means.

    ``standard_error`` is that of the mean over all values, clustered by template; None if it is unknown.
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


_STEP_PARTS: Final = ("total", "once_per_sample", "empty_results", "errors")


class StepCounts(Counter[tuple[str, str]]):
    """The counts of steps by part and tool name, over the results added so far; ``update`` adds those of others."""

    def add(self, result: Mapping[str, Any]) -> None:
        """Count the steps of a result."""
        names = set()
        for step in result.get("actual_steps") or ():
            name = str(step.get("name"))
            names.add(name)
            self["total", name] += 1
            if step.get("status") == "error" or "comparison_error" in step:
                self["errors", name] += 1
            elif _has_no_rows(name, step.get("output")):
                self["empty_results", name] += 1
        for name in names:
            self["once_per_sample", name] += 1

    def summary(self) -> StepsSummary:
        """Return the counts by part and tool name, the names sorted; a part that would be empty is absent."""
        keys = sorted(self)
        counts = {part: {name: self[of, name] for of, name in keys if of == part} for part in _STEP_PARTS}
        return cast("StepsSummary", {part: by_name for part, by_name in counts.items() if by_name})


def _has_no_rows(name: str, output: object) -> bool:
    """Return whether an output is an empty list of a tool of Cypher or SQL, or a SPARQL result without rows."""
    if name in ROW_TOOLS:
        text = "".join(output.split()) if isinstance(output, str) and len(output) < 100 else None
        if output == [] or text in (("", "[]") if name == SQL_DB_QUERY else ("[]",)):
            return True
    if not isinstance(output, str) or '"bindings"' not in output or not _EMPTY_BINDINGS.search(output):
        return False  # only texts that may be a result are parsed
    try:
        value = parse_json(output)
    except (ValueError, RecursionError):
        return False
    results = value.get("results") if isinstance(value, dict) else None
    return isinstance(results, dict) and results.get("bindings") == []


def passes(value: float, threshold: float, *, lower_is_better: bool) -> bool:
    """Return whether a sample passes by its value."""
    return value <= threshold if lower_is_better else value >= threshold


def repeats_summary(
    outcomes: Mapping[Any, Sequence[bool | None]],
    count: int,
    statistics: Mapping[str, MetricStatistics],
    config: RepeatsConfig,
) -> dict[str, Any]:
    """Return the section ``repeats`` of the aggregates: pass@k and pass^k by k as a text, and means of metrics.

    ``outcomes`` has for each question which of its samples passed. None marks a sample that succeeded without a value;
    pass@k and pass^k leave out its question. ``count`` is the highest repeat; ``statistics`` are over the questions'
    means. k goes from "1" to the smallest number of samples of a question. Failed samples did not pass.
    """
    measured = [passed for passed in outcomes.values() if None not in passed]
    summary: dict[str, Any] = {
        "count": count,
        "metric": config.metric,
        "threshold": config.threshold,
        NUMBER_OF_QUESTIONS: len(outcomes),
        "number_of_unmeasured_questions": len(outcomes) - len(measured),
    }
    if measured:
        counts = Counter((len(passed), passed.count(True)) for passed in measured)
        summary["pass@k"] = _means_by_k(pass_at_k, counts)
        summary["pass^k"] = _means_by_k(pass_hat_k, counts)
    summary["metrics"] = {
        metric: {"mean": known.micro["mean"]}
        | ({} if known.standard_error is None else {"standard_error": known.standard_error})
        for metric, known in statistics.items()
    }
    return summary


def _means_by_k(chance: Callable[[int, int, int], float], counts: Mapping[tuple[int, int], int]) -> dict[str, float]:
    """Return the mean of a chance over the questions by k; k is a text, because JSON keys are.

    ``counts`` has the number of questions with n samples of which c passed.
    """
    smallest = min(number_of_samples for number_of_samples, _ in counts)
    number_of_questions = sum(counts.values())
    return {
        str(k): fsum(count * chance(n, c, k) for (n, c), count in counts.items()) / number_of_questions
        for k in range(1, smallest + 1)
    }


def shown_chances(summary: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the chances that are shown: pass@1, and pass@k and pass^k for the largest k."""
    if "pass@k" not in summary:
        return []
    most = list(summary["pass@k"])[-1]
    chances = [("pass@", "1")] if most == "1" else [("pass@", "1"), ("pass@", most), ("pass^", most)]
    return [(f"{name}{k}", summary[f"{name}k"][k]) for name, k in chances]


# By the key of each cost, the keys that a result has if that judge was called.
Judges = Mapping[str, tuple[str, ...]]


def _judges(over: Over) -> Judges:
    """Return the costs of this package's judges, without those that are sums of others."""
    judges: dict[str, tuple[str, ...]] = {}
    for spec in BUILT_IN:
        # The cost of the contexts' F1 is the sum of its parts' costs.
        is_sum = any(part.part_of == spec.key and part.cost_key not in (None, spec.cost_key) for part in BUILT_IN)
        if spec.over == over and spec.cost_key is not None and not is_sum:
            others = (key for key in spec.keys if key != spec.cost_key)
            judges[spec.cost_key] = (*judges.get(spec.cost_key, ()), *others)
    return judges


_SAMPLE_JUDGES = _judges("questions")
_STEP_JUDGES = _judges("steps")


class JudgeCosts:
    """Finds the costs of judges in results.

    Example:
        >>> costs = JudgeCosts(EvaluationConfig())
        >>> costs.of({"answer_f1": 0.5, "answer_correctness_cost": 0.01, "answer_relevance": 0.9})
        [0.01, None]
    """

    def __init__(self, config: EvaluationConfig) -> None:
        custom = {each.cost_key: tuple(each.outputs) for each in config.custom_evaluations or ()}
        # Error keys of custom judges are left out: a judge that lacks its inputs fails without a request.
        self._sample_judges = {**_SAMPLE_JUDGES, **custom}
        self._sample_keys = frozenset(self._sample_judges).union(*self._sample_judges.values())

    def of(self, result: Mapping[str, Any]) -> list[float | None]:
        """Return the cost in USD of each judge that was called; None if it is unknown.

        A judge that failed states its cost next to its error, also one of 0; if it does not, the cost is unknown.
        """
        # A quick check: most records have no key of any judge.
        costs = [] if self._sample_keys.isdisjoint(result) else list(_costs(result, self._sample_judges))
        for step in result.get("actual_steps") or ():
            if not _STEP_KEYS.isdisjoint(step):
                costs += _costs(step, _STEP_JUDGES)
        return costs


_STEP_KEYS = frozenset(_STEP_JUDGES).union(*_STEP_JUDGES.values())


def _costs(record: Mapping[str, Any], judges: Judges) -> Iterable[float | None]:
    for key, others in judges.items():
        cost = number(record.get(key))
        if cost is not None or any(record.get(each) is not None for each in others):
            yield cost


_OF_AGENT = [spec for spec in aggregated_metrics("questions") if spec.spent_by == "agent"]
_AGENT_METRICS = tuple(spec.key for spec in _OF_AGENT)
# Sums over the agent's model calls; 0 if no model was called.
_MODEL_METRICS = tuple(spec.key for spec in _OF_AGENT if spec.unit in ("tokens", "usd"))
_METRICS = (*_AGENT_METRICS, JUDGES_COST)


class Totals:
    """The totals of the results added so far.

    A sample spent what its response and the failed attempts before it spent. If no model was called, no tokens were
    spent. A model call that failed without usage counts as nothing, as in a response's own sums. Any other call with
    unknown tokens or cost makes the sample unmeasured. Judges that were not called are not missing a cost.
    """

    def __init__(self) -> None:
        self._number_of_samples = 0
        self._number_of_failed_attempts = 0
        self._spent = {metric: Column() for metric in _METRICS}
        self._measured = dict.fromkeys(_METRICS, 0)
        self._unmeasured = dict.fromkeys(_METRICS, 0)

    def add(self, result: Mapping[str, Any], judge_costs: Iterable[float | None]) -> None:
        """Add what a result spent, with what ``JudgeCosts`` found in it."""
        attempts = failed_attempts_of(result) if "failed_attempts" in result else ()
        self._number_of_samples += 1
        self._number_of_failed_attempts += len(attempts)
        unmeasured: set[str] = set()
        for record in (result, *attempts):
            lacking = []
            for metric in _AGENT_METRICS:
                if metric in record and (value := number(record[metric])) is not None:
                    self._measured[metric] += 1
                    self._spent[metric].add(0, (value,))
                else:
                    lacking.append(metric)
            if lacking:
                # Without calls, an attempt has no list of them, and a response an empty one.
                calls = record.get("llm_calls", None if record is result else [])
                asked_no_model = isinstance(calls, list) and all(map(failed_without_tokens, calls))
                unmeasured.update(metric for metric in lacking if metric not in _MODEL_METRICS or not asked_no_model)
        for cost in judge_costs:
            if cost is None:
                unmeasured.add(JUDGES_COST)
            else:
                self._measured[JUDGES_COST] += 1
                self._spent[JUDGES_COST].add(0, (cost,))
        for metric in unmeasured:
            self._unmeasured[metric] += 1

    def summary(self) -> dict[str, Any]:
        """Return the totals; one that some samples lack is absent, and ``unmeasured_samples`` says how many do."""
        summary: dict[str, Any] = {NUMBER_OF_SAMPLES: self._number_of_samples}
        if self._number_of_failed_attempts:
            summary["number_of_failed_attempts"] = self._number_of_failed_attempts
        measured = [metric for metric in _METRICS if self._measured[metric]]
        summary.update(
            {metric: exact_sum(self._spent[metric].values()) for metric in measured if not self._unmeasured[metric]}
        )
        if AGENT_COST in summary and JUDGES_COST in summary:
            summary[COST] = summary[AGENT_COST] + summary[JUDGES_COST]
        unmeasured = {metric: self._unmeasured[metric] for metric in measured if self._unmeasured[metric]}
        if unmeasured:
            summary["unmeasured_samples"] = unmeasured
        return summary


def failed_attempts_of(result: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the failed attempts before a result; most have none."""
    attempts = result.get("failed_attempts")
    return [each for each in attempts if isinstance(each, Mapping)] if isinstance(attempts, list) else ()
