"""The rows of the list of questions, as compact JSON that a page may hold."""

from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.aggregation import reason_of
from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, TOTAL_TOKENS
from graphrag_eval_lc.report.samples import ReportedSample
from graphrag_eval_lc.report.texts import one_line, shown_name

_QUESTION, _REASON = 160, 300
_DIGITS = 6


class IndexRows:
    """Takes up a row for each sample.

    Attributes:
        tools: The tools that were called, in the order in which they were first seen; rows name them by their index.
    """

    def __init__(self) -> None:
        self.tools: dict[str, int] = {}
        self._rows: list[str] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, sample: ReportedSample, chunk: int) -> None:
        """Take up a sample.

        Args:
            sample: The sample.
            chunk: The number of the chunk that holds its detail.
        """
        result = sample.result
        row = {
            "k": sample.key,
            "q": one_line(result.get("question_text", ""), _QUESTION),
            "t": sample.template_id,
            "s": "error" if sample.has_failed else "success",
            "m": {metric: round(value, _DIGITS) for metric, value in sample.scores.items()},
            "tok": number(result.get(TOTAL_TOKENS)),
            "sec": _rounded(number(result.get(ELAPSED_SEC))),
            "usd": number(result.get(AGENT_COST)),
            "tools": sorted(self._tool_indices(result)),
            "c": chunk,
            "r": "" if sample.steps_right and not sample.has_failed else _reason(result),
        }
        self._rows.append(json_text(row))

    def json(self) -> str:
        """Give all rows as a JSON array that ends no script element."""
        return ("[" + ",\n".join(self._rows) + "]").replace("<", "\\u003c")

    def _tool_indices(self, result: Mapping[str, Any]) -> set[int]:
        names = {shown_name(step.get("name")) for step in result.get("actual_steps") or ()}
        return {self.tools.setdefault(name, len(self.tools)) for name in sorted(names)}


def _reason(result: Mapping[str, Any]) -> str:
    try:
        return one_line(reason_of(result), _REASON)
    except (KeyError, IndexError, TypeError):  # a diagnosis that another tool wrote or cut
        return ""


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
