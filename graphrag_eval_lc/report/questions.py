"""The question list of a report, and the details that open below each question, packed for the browser."""

import base64
import gzip
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.aggregation.sample_values import Metrics, number
from graphrag_eval_lc.aggregation.statistics import failed_attempts_of
from graphrag_eval_lc.answers.answer_text import answer_text
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_bytes
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.row_steps import step_results
from graphrag_eval_lc.registry.metric_spec import cost_key, error_key, reason_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_F1,
    ANSWER_VALUES,
    ELAPSED_SEC,
    FALSE_NEGATIVES,
    FALSE_POSITIVES,
    STEPS_SCORE,
    TOTAL_TOKENS,
    TRUE_POSITIVES,
    metric_spec,
)
from graphrag_eval_lc.report.formats import if_known, known_only, score_display, shown_value, without_middle
from graphrag_eval_lc.report.steps import SampleSteps, extra_steps, step_groups, uses_of
from graphrag_eval_lc.report.transcript import call_starts, timeline, transcript
from graphrag_eval_lc.texts import shown_name
from graphrag_eval_lc.view.failures import Failure
from graphrag_eval_lc.view.samples import SeenSample, Verdict

_DIGITS: Final = 6
_MOST_PREFIXES: Final = 200
_PREFIX: Final = re.compile(r"\b(?:PREFIX|prefix|Prefix)\s+([\w.-]*):\s*<([^<>\s]*)>")


class IndexRows:
    """The rows of the list of questions, one for each sample, as JSON.

    Rows refer to called ``tools`` and to ``groups`` of failures by their indices here. ``keys`` has the keys of each
    question's samples, ``prefixes`` the namespaces that reference queries declare.
    """

    def __init__(self) -> None:
        self.tools: dict[str, int] = {}
        self.groups: dict[str, int] = {}
        self.keys: dict[str, list[str]] = {}
        self.prefixes: dict[str, str] = {}
        self._rows: list[str] = []

    def __iter__(self) -> Iterator[str]:
        """Yield all rows as a JSON array, in pieces."""
        before = "["
        for row in self._rows:
            yield before + row
            before = ",\n"
        yield "]" if self._rows else "[]"

    def add(
        self, sample: SeenSample, steps: SampleSteps, chunk: int, verdict: Verdict, failure: Failure | None
    ) -> None:
        """Add a sample whose detail is in the chunk with this number, and its failure if it is not right."""
        self.keys.setdefault(sample.question_id, []).append(sample.key)
        for reference in steps.references if len(self.prefixes) < _MOST_PREFIXES else ():
            args = reference.step.get("args")
            query = args.get("query") if isinstance(args, Mapping) else args
            for prefix, namespace in _PREFIX.findall(query) if isinstance(query, str) else ():
                self.prefixes.setdefault(prefix, namespace)
        names = {shown_name(step.get("name")) for step in steps.actual}
        row = {
            "k": sample.key,
            "q": sample.question,
            "t": sample.template_id,
            "s": verdict.state,
            "m": {metric: round(value, _DIGITS) for metric, value in sample.scores.items()},
            "tok": sample.tokens,
            "sec": None if sample.seconds is None else round(sample.seconds, _DIGITS),
            "usd": sample.usd,
            "tools": sorted(self.tools.setdefault(name, len(self.tools)) for name in sorted(names)),
            "c": chunk,
        }
        if failure is not None:
            row |= {
                "r": failure.reason,
                "v": round(verdict.rank[1], _DIGITS),
                "g": self.groups.setdefault(failure.group, len(self.groups)),
                **known_only({"e": failure.expected, "a": failure.received}),
            }
        self._rows.append(json_bytes(row).decode())


class _Measure(NamedTuple):
    """A metric as it is shown, and the keys of its error, its reason and its cost."""

    name: str
    error_key: str
    reason_key: str
    cost_key: str
    display: Mapping[str, Any]


class Measures:
    """Reads the metrics of results for the details: values, errors, reasons and costs; keys are looked up only once."""

    def __init__(self, config: EvaluationConfig, metrics: Metrics) -> None:
        self._metrics = metrics
        self._evaluations = {key: each.name for each in config.custom_evaluations or () for key in each.outputs}
        self._known: dict[str, _Measure | None] = {}  # by metric; None for metrics of spending

    def of(self, sample: SeenSample) -> list[dict[str, Any]]:
        """Return the values of a question's metrics, and the errors of those without one; spending is left out."""
        result = sample.result
        seen: set[str] = set()
        found: list[dict[str, Any]] = []
        if len(self._known) < len(self._metrics.names()):  # some metrics are only discovered while results are read
            self._known = {metric: self._measure(metric) for metric in (STEPS_SCORE, *self._metrics.names())}
        for metric, measure in self._known.items():
            if measure is None or not (metric in result or measure.error_key in result):
                continue
            value = result.get(metric)
            keys = {"reason": measure.reason_key}  # one that several metrics share is shown with the claims
            if measure.error_key not in seen:  # an error or cost that several metrics share is next to the first
                keys |= {"error": measure.error_key, "usd": measure.cost_key}
            more = {name: item for name, key in keys.items() if (item := result.get(key)) is not None}
            if value is None and "error" not in more:
                continue
            seen.add(measure.error_key)
            shown = {name: item if number(item) is not None else shown_value(item) for name, item in more.items()}
            value = value if number(value) is not None else if_known(shown_value, value)
            found.append({"name": measure.name, "value": value, **shown, **measure.display})
        for metric, score in sample.scores.items():
            if metric not in result and metric_spec(metric).over == "steps":
                found.append({"name": metric, "value": score})
        return found

    def _measure(self, metric: str) -> _Measure | None:
        spec, of_evaluation = metric_spec(metric), self._evaluations.get(metric, metric)
        if spec.is_spent:
            return None
        return _Measure(
            shown_name(metric),
            spec.error_key or error_key(of_evaluation),
            reason_key(metric),
            spec.cost_key or cost_key(of_evaluation),
            # As far as the detail's own table cannot know it.
            {key: text for key, text in score_display(metric).items() if key in ("unit", "note")},
        )


_TEXTS: Final = ("error", "reference_answer", "actual_answer")
_CLAIMS: Final = {"supported": TRUE_POSITIVES, "wrong": FALSE_POSITIVES, "missing": FALSE_NEGATIVES}


def detail_of(sample: SeenSample, steps: SampleSteps, measures: Measures) -> dict[str, Any]:
    """Return the details that open below a question, as plain JSON values; the page shows their texts as text."""
    result = sample.result
    groups = step_groups(steps)
    starts, marked = call_starts(result), answer_values(steps)
    events = timeline(steps.actual, starts)
    for at, use in uses_of(groups).items():
        events[at]["used_for"] = use
    detail = {
        "key": sample.key,
        "id": shown_name(result.get("question_id")),
        "question": without_middle(result.get("question_text", "")),
        "template": sample.template_id,
        "status": "error" if sample.has_failed else "success",
        **{key: shown_value(result[key]) for key in _TEXTS if result.get(key) is not None},
        **({"actual_answer": shown_value(answer_text(result.get("actual_answer")))} if marked else {}),
        "answer_values": marked,
        "claims": _claims(result),
        "measures": measures.of(sample),
        "failed_attempts": list(_failed_attempts(result)) if "failed_attempts" in result else [],
        "warnings": [without_middle(warning) for warning in result.get("capture_warnings") or ()],
        "total_sec": sample.seconds,
        TOTAL_TOKENS: sample.tokens,
        "timeline": events,
        "transcript": transcript(result, starts),
        **{key: shown_name(result[key]) for key in ("run_id", "started_at") if result.get(key) is not None},
        "groups": groups,
        "extra_steps": extra_steps(groups, steps.actual) if groups else [],
        "counts": result.get("steps_counts"),
    }
    return known_only(detail)


def _claims(result: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the claims of the answers as a judge sorted them; None if none did."""
    if not any(isinstance(result.get(key), list) for key in _CLAIMS.values()):
        return None
    claims = {name: [without_middle(claim) for claim in result.get(key) or ()] for name, key in _CLAIMS.items()}
    reason = result.get(str(metric_spec(ANSWER_F1).reason_key))
    return known_only({**claims, "reason": if_known(without_middle, reason)})


def _failed_attempts(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for attempt in failed_attempts_of(result):
        steps = attempt.get("actual_steps")
        yield {
            "error": without_middle(attempt.get("error") or "failed without a message"),
            "seconds": number(attempt.get(ELAPSED_SEC)),
            "tokens": number(attempt.get(TOTAL_TOKENS)),
            "calls": len(steps) if isinstance(steps, list) else 0,
        }


_ADDRESS: Final = re.compile(r"row (\d{1,9})/(.+)", re.DOTALL)
_MOST_VALUES, _MOST_ROWS, _MOST_CELLS = 2_000, 200, 12


def answer_values(steps: SampleSteps) -> dict[str, Any] | None:
    """Return the values of an answer as the report shows them; None if they were not looked up.

    Returns:
        ``values``: for each its text, kind, verdict and address, and if that is a row, its index in ``rows`` and the
        column; ``rows``: for each its address, columns and cells. Malformed parts of results are passed over.
    """
    found = steps.result.get(ANSWER_VALUES)
    if not isinstance(found, list) or not found:
        return None
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    values = []
    for each in found[:_MOST_VALUES]:
        if not isinstance(each, Mapping) or not isinstance(each.get("text"), str):
            continue
        value: dict[str, Any] = {key: shown_name(each.get(key)) for key in ("kind", "verdict")}
        value["text"] = without_middle(each["text"])
        if isinstance(at := each.get("at"), str):
            value["at"] = shown_name(at)
            step, row, column = _place_of(steps, at)
            if (step, row) not in rows and len(rows) < _MOST_ROWS and (record := _row(steps, step, row)) is not None:
                rows[step, row] = record
            if (step, row) in rows:
                value |= {"row": list(rows).index((step, row)), "column": shown_name(column)}
        values.append(value)
    return {"values": values, "rows": list(rows.values())}


def _place_of(steps: SampleSteps, at: str) -> tuple[int, int, str]:
    """Return the index of the step, the row from 0 and the column at an address; -1 if it is of no row."""
    for index, step in enumerate(steps.actual):
        identifier = str(step["id"]) if step.get("id") is not None else str(index)
        if at.startswith(f"{identifier}/") and (found := _ADDRESS.fullmatch(at, len(identifier) + 1)):
            return index, int(found[1]) - 1, found[2]
    return -1, -1, ""


def _row(steps: SampleSteps, step: int, row: int) -> dict[str, Any] | None:
    """Return a row of a step; None if the step can no longer be read, or has no such row."""
    if row < 0:
        return None
    try:
        results = step_results(steps.actual_view(step))
    except UnreadableOutput:
        return None
    if row >= results.row_count:
        return None
    kept = list(results.columns)[:_MOST_CELLS]
    name = shown_name(steps.actual[step].get("name"))
    return {
        "address": f"{name}, call {step + 1}, row {row + 1:,}",
        "columns": list(map(shown_name, kept)),
        "cells": [if_known(without_middle, results.columns[each].readable(row)) for each in kept],
    }


_CHUNK_SIZE: Final = 150_000
_MOST_WAITING: Final = 4  # chunks that wait to be packed, some 150 KB each


class DetailChunks:
    """Details packed into chunks: each is the base64 of the gzip of a JSON object of details by key.

    A thread packs them while the next questions are read.
    """

    def __init__(self) -> None:
        self._packed: list[str] = []
        self._packing = ThreadPoolExecutor(1)
        self._waiting: deque[Future[str]] = deque()
        self._open: list[bytes] = []
        self._size = 0

    def add(self, key: str, detail: Mapping[str, Any]) -> int:
        """Add a question's detail, and return the number of its chunk."""
        item = json_bytes({key: detail})[1:-1]
        if self._open and self._size + len(item) > _CHUNK_SIZE:
            self._pack(_MOST_WAITING)
        self._open.append(item)
        self._size += len(item)
        return len(self._packed) + len(self._waiting)

    def packed(self) -> Iterable[str]:
        """Return all chunks; nothing may be added afterwards."""
        if self._open:
            self._pack(0)
        self._packing.shutdown()
        return self._packed

    def _pack(self, most_waiting: int) -> None:
        """Start to pack the open chunk, and wait until at most ``most_waiting`` chunks are not packed yet."""
        self._waiting.append(self._packing.submit(_packed, self._open))
        self._open, self._size = [], 0
        while len(self._waiting) > most_waiting:
            self._packed.append(self._waiting.popleft().result())


def _packed(items: Sequence[bytes]) -> str:
    # Without a time, so that the same results make the same file.
    return base64.b64encode(gzip.compress(b"{" + b",\n".join(items) + b"}", compresslevel=6, mtime=0)).decode()
