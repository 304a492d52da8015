"""Results as a list with frames, CSV files and plots, and one question of them as a person reads it."""

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from yaml.representer import Representer, SafeRepresenter

from graphrag_eval_lc.aggregation.sample_values import number
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import Result, is_error
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.tables.notebook_html import (
    LONGEST_TEXT,
    Cell,
    Column,
    Marked,
    facts_html,
    never_raising,
    page_html,
    rows_html,
    run_html,
)
from graphrag_eval_lc.tables.plots import plot_scores
from graphrag_eval_lc.tables.run_tables import fulfilling_steps, question_row, questions_table, steps_table
from graphrag_eval_lc.tables.table import Table, scores
from graphrag_eval_lc.texts import counted, listed, shortened, visible
from graphrag_eval_lc.view import run_view
from graphrag_eval_lc.view.samples import repeat_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


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


class ShownQuestion:
    """A question of a run as tables in a notebook, and as lines of text elsewhere.

    Long texts are cut, secrets masked, and only the first of many steps shown; the attribute ``result`` has everything.

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
        place, repeat = f"{result['question_id']} of {result['template_id']}", repeat_of(result)
        parts = [facts_html(place if repeat == 1 else f"{place}, repeat {repeat}", self._facts())]
        references, calls = list(self._references()), list(self._calls())
        if references:
            rows: list[tuple[Cell, ...]] = []
            for group, name, score, reason in references:
                verdict = "" if score is None else "better" if score == 1 else "worse"
                rows.append((str(group), name, "–" if score is None else f"{score:.3f}", Marked(reason, verdict)))
            parts.append(rows_html("The reference", _REFERENCE_COLUMNS, rows[:_MOST_STEPS], _more(rows)))
        if calls:
            rows = []
            for at, name, status, args, outcome, fulfilled in calls:
                status_text = status if fulfilled is None else f"{status}, fulfils group {fulfilled}"
                verdict = "worse" if status == "error" else "" if fulfilled is None else "better"
                rows.append((str(at), name, Marked(status_text, verdict), args, outcome))
            parts.append(rows_html("What the agent did", _STEP_COLUMNS, rows[:_MOST_STEPS], _more(rows)))
        return page_html(*parts)

    def _lines(self) -> Iterator[str]:
        (_, asked), *facts = self._facts()
        yield _line(f"{self.result.get('question_id')} of {self.result.get('template_id')}: {asked}")
        yield from (_line(f"{name}: {value}") for name, value in facts)
        references, calls = list(self._references()), list(self._calls())
        if references:
            yield counted(len(references), "reference step")
        for group, name, score, reason in references[:_MOST_STEPS]:
            yield _line(f"  group {group}, {name}: {'–' if score is None else f'{score:.3g}'}, {reason}")
        if calls:
            yield f"{counted(len(calls), 'step')} of the agent"
        for at, name, status, args, outcome, _ in calls[:_MOST_STEPS]:
            yield _line(
                f"  {at}. {name} {status} {shortened(args, _LONGEST_PART)} → {shortened(outcome, _LONGEST_PART)}"
            )

    def _facts(self) -> list[tuple[str, str]]:
        """Return the question, its error and answers, and the scores that are not part of others."""
        result, row = self.result, question_row(self.result)
        facts = {"question": result.get("question_text", "")}
        if is_error(result):
            facts["error"] = result.get("error") or "failed without a message"
        answers = {"answer": result.get("actual_answer"), "reference answer": result.get("reference_answer")}
        facts |= {name: text for name, text in answers.items() if text is not None}
        found = [key for key in scores(Table.of([row])) if not metric_spec(key).is_part]
        values = [(key, f"{float(row[key]):.3f}") for key in found[:_MOST_SCORES]]
        return [*((name, _text(value)) for name, value in facts.items()), *values]

    def _calls(self) -> Iterator[tuple[int, str, str, str, str, int | None]]:
        """Yield the number, name, status, arguments and outcome of each call, and the group whose step it fulfils."""
        fulfils = {at: group + 1 for (group, _), at in fulfilling_steps(self.result).items()}
        for at, step in enumerate(self.result.get("actual_steps") or ()):
            outcome = step.get("error") if step.get("status") == "error" else step.get("output")
            texts = _text(json_text(step.get("args", {}))), _text("" if outcome is None else outcome)
            yield at + 1, str(step.get("name")), str(step.get("status", "")), *texts, fulfils.get(at)

    def _references(self) -> Iterator[tuple[int, str, float | None, str]]:
        """Yield each reference step's group, from 1, its name, its score if that is known, and the reason for it."""
        diagnosis = self.result.get("steps_diagnosis") or ()
        for group, steps in enumerate(self.result.get("reference_steps") or ()):
            known = diagnosis[group] if group < len(diagnosis) else ()
            for place, step in enumerate(steps):
                found = known[place] if place < len(known) else {}
                yield group + 1, str(step.get("name")), number(found.get("score")), _text(found.get("reason", ""))


def _more(rows: Sequence[object]) -> str:
    return f"and {len(rows) - _MOST_STEPS:,} more" if len(rows) > _MOST_STEPS else ""


def _text(value: object) -> str:
    """Return the beginning of a value's text, with secrets masked; it is longer than what is shown."""
    return masked_text(str(value)[: 4 * LONGEST_TEXT])


def _line(text: str) -> str:
    indent = text[: len(text) - len(text.lstrip(" "))]
    return indent + visible(shortened(text, _LONGEST_LINE), keeps_lines=False)


ResultsKind = Literal["questions", "steps"]
_SHOWN_FAILURES = 5


class Results(list[Result]):
    """A list of results, with frames and plots of them.

    Example:
        >>> results = Results([{"question_id": "q", "template_id": "t", "question_text": "?", "actual_steps": []}])
        >>> results == list(results), results.table("steps").rows
        (True, [])
    """

    def table(self, kind: ResultsKind = "questions") -> Table:
        """Return a row for each result (``questions``) or for each call of the agent (``steps``).

        Raises:
            OptionError: The kind is unknown.
        """
        if kind == "questions":
            return questions_table(self)
        if kind == "steps":
            return steps_table(self)
        raise OptionError(f"unknown kind of frame {kind!r}", key="kind", hint="Give questions or steps.")

    def to_pandas(self, kind: ResultsKind = "questions") -> "pd.DataFrame":
        """Return the results as a frame, with a row for each result or each call of the agent.

        Raises:
            MissingExtraError: pandas is not installed.
            OptionError: The kind is unknown.
        """
        return self.table(kind).to_pandas()

    def to_csv(self, path: str | PathLike[str], kind: ResultsKind = "questions") -> Path:
        """Write the results as comma-separated values, with a row for each result or each call of the agent.

        Raises:
            OptionError: The kind is unknown.
            RunFolderError: The file cannot be written.
        """
        return self.table(kind).to_csv(path)

    def show(self, question_id: str, repeat: int = 1) -> ShownQuestion:
        """Return one question for a notebook or ``print``: what was asked, answered and done, and why it scored so.

        Raises:
            OptionError: It has no result.

        Example:
            >>> result = {"question_id": "q", "template_id": "t", "question_text": "1 + 1?", "actual_answer": "2"}
            >>> print(Results([result]).show("q"))
            q of t: 1 + 1?
            answer: 2
        """
        for result in self:
            if (str(result["question_id"]), repeat_of(result)) == (question_id, repeat):
                return ShownQuestion(result)
        known = [str(result["question_id"]) for result in self]
        what = f"found no result for repeat {repeat} of the question {question_id!r}"
        raise OptionError(what, key="question_id", hint=f"Give one of {listed(known)}.")

    def plot_scores(self, metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
        """Draw how the values of a metric are distributed, by template.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: No result has the metric.
        """
        return plot_scores(self.table().rows, metric, ax=ax)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print one line in a notebook or IPython, instead of a list with all its content."""
        failed = sum(map(is_error, self))
        printer.text(f"<Results: {len(self) - failed:,} answered, {failed:,} failed>")

    @never_raising
    def _repr_html_(self) -> str:
        failed = sum(map(is_error, self))
        counts = [("answered", f"{len(self) - failed:,}"), ("failed", f"{failed:,}")]
        return run_html("Results", run_view(self, metrics=scores(self.table()), most_failures=_SHOWN_FAILURES), counts)


# YAML writes them as a plain list.
for _representer in (SafeRepresenter, Representer):
    _representer.add_representer(Results, SafeRepresenter.represent_list)
