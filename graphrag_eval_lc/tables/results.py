"""Results as a list with frames, CSV files and plots."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from yaml.representer import Representer, SafeRepresenter

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.records import Result, is_error
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.tables.notebook_html import never_raising, run_html
from graphrag_eval_lc.tables.plots import plot_scores
from graphrag_eval_lc.tables.run_tables import questions_table, steps_table
from graphrag_eval_lc.tables.shown_question import ShownQuestion
from graphrag_eval_lc.tables.table import Table, scores
from graphrag_eval_lc.texts import listed
from graphrag_eval_lc.view import run_view
from graphrag_eval_lc.view.samples import repeat_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

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
