"""One question of a run as a person reads it: what was asked, answered and done, and which steps it misses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.tables.fulfilling_steps import fulfilling_steps
from graphrag_eval_lc.tables.notebook_html import (
    LONGEST_TEXT,
    Cell,
    Column,
    Marked,
    facts_html,
    never_raising,
    page_html,
    rows_html,
)
from graphrag_eval_lc.tables.run_tables import question_row
from graphrag_eval_lc.tables.table import Table, scores
from graphrag_eval_lc.texts import counted, shortened, visible
from graphrag_eval_lc.view.samples import repeat_of

_MOST_STEPS: Final = 20
_MOST_SCORES: Final = 12
_LONGEST_LINE: Final = 220
_LONGEST_PART: Final = 80

_STEP_COLUMNS = (
    Column("step", is_number=True),
    Column("tool"),
    Column("status"),
    Column("arguments", longest=LONGEST_TEXT),
    Column("output or error", longest=LONGEST_TEXT),
)
_REFERENCE_COLUMNS = (
    Column("group", is_number=True),
    Column("reference step"),
    Column("score", is_number=True),
    Column("why", longest=LONGEST_TEXT),
)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the agent; ``fulfils`` is the number of the group whose step it fulfils, from 1."""

    place: int
    name: str
    status: str
    args: str
    outcome: str
    fulfils: int | None


@dataclass(frozen=True, slots=True)
class _Reference:
    """A reference step: its group, from 1, its score, and why it has that; both None and empty if none is known."""

    group: int
    name: str
    score: float | None
    reason: str


class ShownQuestion:
    """A question of a run as tables in a notebook, and as lines of text elsewhere.

    Long texts are cut, secrets masked, and of many steps the first are shown; the result has all of it.

    Args:
        result: A result of ``run_evaluation`` or of a run.

    Attributes:
        result: That result.

    Example:
        >>> step = {"name": "now", "args": {}, "id": "c1", "status": "success", "output": "12:00"}
        >>> result = {"question_id": "q", "template_id": "t", "question_text": "What time is it?"}
        >>> print(ShownQuestion({**result, "actual_answer": "Noon.", "actual_steps": [step]}))
        q of t: What time is it?
        answer: Noon.
        1 step of the agent
          1. now success {} → 12:00
    """

    def __init__(self, result: Mapping[str, Any]) -> None:
        self.result = result

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    @never_raising
    def _repr_html_(self) -> str:
        result = self.result
        place = f"{result['question_id']} of {result['template_id']}"
        calls, references = list(self._calls()), list(self._references())
        left_out = [count - _MOST_STEPS for count in self._numbers_of_steps()]
        parts = [facts_html(place if repeat_of(result) == 1 else f"{place}, repeat {repeat_of(result)}", self._facts())]
        if references:
            rows = map(_reference_row, references)
            parts.append(rows_html("The reference", _REFERENCE_COLUMNS, rows, _more(left_out[0])))
        if calls:
            rows = map(_call_row, calls)
            parts.append(rows_html("What the agent did", _STEP_COLUMNS, rows, _more(left_out[1])))
        return page_html(*parts)

    def _lines(self) -> Iterator[str]:
        (_, asked), *facts = self._facts()
        yield _line(f"{self.result.get('question_id')} of {self.result.get('template_id')}: {asked}", _LONGEST_LINE)
        yield from (_line(f"{name}: {value}", _LONGEST_LINE) for name, value in facts)
        in_reference, of_agent = self._numbers_of_steps()
        if in_reference:
            yield counted(in_reference, "reference step")
        for reference in self._references():
            score = "–" if reference.score is None else f"{reference.score:.3g}"
            yield _line(f"  group {reference.group}, {reference.name}: {score}, {reference.reason}", _LONGEST_LINE)
        if of_agent:
            yield f"{counted(of_agent, 'step')} of the agent"
        for call in self._calls():
            args, outcome = shortened(call.args, _LONGEST_PART), shortened(call.outcome, _LONGEST_PART)
            yield _line(f"  {call.place}. {call.name} {call.status} {args} → {outcome}", _LONGEST_LINE)

    def _numbers_of_steps(self) -> tuple[int, int]:
        """Return how many steps there are in the reference, and how many of the agent."""
        groups = self.result.get("reference_steps") or ()
        return sum(map(len, groups)), len(self.result.get("actual_steps") or ())

    def _facts(self) -> list[tuple[str, str]]:
        result = self.result
        rows = [("question", _text(result.get("question_text", "")))]
        if is_error(result):
            rows.append(("error", _text(result.get("error") or "failed without a message")))
        rows += [
            (name, _text(result[key]))
            for name, key in (("answer", "actual_answer"), ("reference answer", "reference_answer"))
            if result.get(key) is not None
        ]
        return [*rows, *self._scores()]

    def _scores(self) -> list[tuple[str, str]]:
        """Return the scores that are not part of others: of steps, of judges and users' own."""
        row = question_row(self.result)
        found = [key for key in scores(Table.of([row])) if not metric_spec(key).is_part]
        return [(key, f"{float(row[key]):.3f}") for key in found[:_MOST_SCORES]]

    def _calls(self) -> Iterator[_Call]:
        fulfils = {at: group for (group, _), at in fulfilling_steps(self.result).items()}
        for at, step in enumerate(islice(self.result.get("actual_steps") or (), _MOST_STEPS)):
            outcome = step.get("error") if step.get("status") == "error" else step.get("output")
            group = fulfils.get(at)
            yield _Call(
                at + 1,
                str(step.get("name")),
                str(step.get("status", "")),
                _text(json_text(step.get("args", {}))),
                _text("" if outcome is None else outcome),
                None if group is None else group + 1,
            )

    def _references(self) -> Iterator[_Reference]:
        diagnosis = self.result.get("steps_diagnosis") or ()
        steps = [
            (group, place, step)
            for group, steps in enumerate(self.result.get("reference_steps") or ())
            for place, step in enumerate(steps)
        ]
        for group, place, step in steps[:_MOST_STEPS]:
            told = diagnosis[group] if group < len(diagnosis) else ()
            found = told[place] if place < len(told) else {}
            yield _Reference(
                group + 1, str(step.get("name")), number(found.get("score")), _text(found.get("reason", ""))
            )


def _reference_row(step: _Reference) -> tuple[Cell, ...]:
    score = "–" if step.score is None else f"{step.score:.3f}"
    verdict = "" if step.score is None else "better" if step.score == 1 else "worse"
    return str(step.group), step.name, score, Marked(step.reason, verdict)


def _call_row(call: _Call) -> tuple[Cell, ...]:
    told = call.status if call.fulfils is None else f"{call.status}, fulfils group {call.fulfils}"
    verdict = "worse" if call.status == "error" else "" if call.fulfils is None else "better"
    return str(call.place), call.name, Marked(told, verdict), call.args, call.outcome


def _more(left_out: int) -> str:
    return f"and {left_out:,} more" if left_out > 0 else ""


def _text(value: object) -> str:
    """Return the beginning of a value's text, more of it than is shown, with its secrets masked."""
    return masked_text(str(value)[: 4 * LONGEST_TEXT])


def _line(text: str, longest: int) -> str:
    indent = text[: len(text) - len(text.lstrip(" "))]
    return indent + visible(shortened(text, longest), keeps_lines=False)
