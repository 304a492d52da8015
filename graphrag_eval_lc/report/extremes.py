"""The slowest and the dearest questions."""

from heapq import nlargest
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.aggregation.totals import failed_attempts_of
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, STALLED_SEC, TOTAL_TOKENS
from graphrag_eval_lc.report.samples import ReportedSample
from graphrag_eval_lc.report.texts import one_line

_SHOWN = 10
_QUESTION = 160

# By question: how much its worst sample spent, and what is shown of it.
_Worst = dict[str, tuple[float, dict[str, Any]]]


class Extremes:
    """Keeps what took the longest and spent the most; of a question that was asked several times the worst sample."""

    def __init__(self) -> None:
        self._longest: _Worst = {}
        self._dearest: _Worst = {}
        self._most_tokens: _Worst = {}

    def add(self, sample: ReportedSample) -> None:
        """Take up a sample; its time is that of its failed attempts too."""
        result = sample.result
        attempts = failed_attempts_of(result)
        seconds = [number(record.get(ELAPSED_SEC)) for record in (result, *attempts)]
        stalled = sum(number(record.get(STALLED_SEC)) or 0.0 for record in (result, *attempts))
        shown = {"key": sample.key, "question": one_line(result.get("question_text", ""), _QUESTION)}
        question = str(result.get("question_id"))
        _keep(
            self._longest,
            question,
            sum(filter(None, seconds)),
            {**shown, "failed_attempts": len(attempts), "stalled": stalled},
        )
        _keep(self._dearest, question, number(result.get(AGENT_COST)), shown)
        _keep(self._most_tokens, question, number(result.get(TOTAL_TOKENS)), shown)

    def slowest(self) -> list[dict[str, Any]]:
        """Give the section ``slowest``."""
        return [{**shown, "seconds": value} for value, shown in _most(self._longest)]

    def dearest(self) -> list[dict[str, Any]]:
        """Give the section ``dearest``: by the agent's cost, and where nothing has a price, by tokens."""
        unit, kept = ("usd", self._dearest) if self._dearest else ("tokens", self._most_tokens)
        return [{**shown, "value": value, "unit": unit} for value, shown in _most(kept)]


def _keep(kept: _Worst, question: str, value: float | None, shown: dict[str, Any]) -> None:
    if value is not None and value > 0 and (question not in kept or value > kept[question][0]):
        kept[question] = (value, shown)


def _most(kept: _Worst) -> list[tuple[float, dict[str, Any]]]:
    return nlargest(_SHOWN, kept.values(), key=lambda each: each[0])  # of equal ones the first stay
