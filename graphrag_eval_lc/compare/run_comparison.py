"""RunComparison, the result of a comparison: the baseline, the other runs, their differences, gates, rows and plots."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from graphrag_eval_lc.compare.comparison_view import (
    ComparisonView,
    PairComparison,
    RunSummary,
    pair_view,
    verdict_word,
)
from graphrag_eval_lc.compare.gate_checks import GateResult, check
from graphrag_eval_lc.compare.gate_values import GateValues
from graphrag_eval_lc.compare.gates import Gates, check_names, gates_in, read_gates
from graphrag_eval_lc.compare.metric_comparison import difference_of, p_values_note
from graphrag_eval_lc.compare.notebook_comparison import notebook_comparison
from graphrag_eval_lc.compare.runs import RunResults
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.custom_metrics import note_recorded, recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.tables import Table
from graphrag_eval_lc.tables.notebook_html import never_raising
from graphrag_eval_lc.tables.plots import plot_differences, plot_questions
from graphrag_eval_lc.texts import counted, on_one_line, visible

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Kind = Literal["metrics", "questions"]
_METRIC_COLUMNS: Final = (
    *("metric", "unit", "is_main", "is_spent", "lower_is_better"),
    *("number_of_questions", "number_of_templates", "left_out"),
    *("mean_a", "mean_b", "difference", "low", "high", "confidence"),
    *("p_value", "adjusted_p_value", "can_tell", "effect_size", "wins", "ties", "losses", "verdict"),
    *("questions_needed", "questions_needed_low", "questions_needed_high", "power"),
)


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison:
    """A comparison of runs.

    Attributes:
        baseline: The first run, A.
        pairs: Each other run, compared with it.
        metric: The main metric, chosen before the comparison: it decides whether there is a regression and, if it is a
            score, which questions are broken and fixed. None if none is named and the runs have no score in common.
        warnings: What may make the runs hard to compare.
        sources: The results of the runs, read again for gates; the tables do not contain them.
    """

    baseline: RunSummary
    pairs: tuple[PairComparison, ...]
    metric: str | None
    warnings: tuple[str, ...]
    sources: tuple[RunResults, ...] = field(default=(), compare=False)

    @property
    def runs(self) -> tuple[RunSummary, ...]:
        """All runs, the baseline first."""
        return (self.baseline, *(pair.run for pair in self.pairs))

    def view(self, gates: Sequence[GateResult] = ()) -> ComparisonView:
        """Return what the terminal, notebooks, Markdown, JSON and HTML show of the comparison.

        Args:
            gates: Gates that are shown too, as ``gate_results`` returns them.
        """
        shown = {each.metric: each for pair in self.pairs for each in pair.metrics}
        return ComparisonView(
            runs=self.runs,
            metric=self.metric,
            pairs=tuple(pair_view(pair, self.metric) for pair in self.pairs),
            gates=tuple(gates),
            warnings=self.warnings,
            note=p_values_note(self.metric, shown.values()),
            sources=self.sources,
        )

    @recorded_only_here()
    def gate_results(self, gates: Gates = None) -> list[GateResult]:
        """Check gates on each run except the first: gates on one run, and gates that compare it with A.

        Gates that compare use the questions that both runs have; ``under`` and ``over`` with a number use all questions
        of the run. A question is broken if it was right in A and is not right in the run. It is right if it has the
        best value of the metric, with repeats in each of them.

        Args:
            gates: Texts as options of the command (``--max-drop steps_score=0.05``, ``--max-drop-per-template 0.2``,
                ``--max-lost 2/template``, ``--fail-over total_tokens=+10%``, ``--fail-on-regression``) or as
                ``gate_results`` accepts them (``steps_score=0.9``), mappings as in the config's section ``gates``, or
                a configuration with this section. None: for each run the gates of its configuration.

        Returns:
            The gates, run by run.

        Raises:
            OptionError: A gate names a metric or a template that the runs do not have.
            ConfigError: The same of a gate in a configuration that is given.
            RunFolderError: This version does not know a gate in a run's record.

        Example:
            >>> from graphrag_eval_lc import compare_runs
            >>> def results(*scores):
            ...     return [
            ...         {"template_id": f"t{n}", "question_id": f"q{n}", "steps_score": score}
            ...         for n, score in enumerate(scores)
            ...     ]
            >>> comparison = compare_runs(results(1, 1, 1, 1), results(1, 1, 0, 1))
            >>> for gate in comparison.gate_results(["--max-drop steps_score=0.05", {"max_lost": 1}]):
            ...     print(gate.state, "|", gate)
            failed | B: steps_score 1.000 → 0.750, drop 0.250 > 0.05
            passed | B: steps_score: 1 of 4 right questions broken ≤ 1: q2
        """
        if not self.sources:
            raise OptionError("the comparison has no results to check gates on", hint="Make it with compare_runs.")
        for results in self.sources:
            note_recorded(results.declarations().items())
        if gates is not None:
            wanted = [read_gates(gates, has_baseline=True)] * len(self.pairs)
        else:
            wanted = [gates_in(results, checks_bounds=True) for results in self.sources[1:]]
        names = [
            gate.metric or (self.metric if gate.under is gate.over is None else None) or MAIN_METRIC
            for own in wanted
            for gate in own
        ]
        if not names:
            return []
        baseline = GateValues(self.sources[0], names, letter="A", main=self.metric)
        runs = [
            GateValues(
                results,
                names,
                letter=pair.run.letter,
                main=self.metric,
                compared=None if self.metric is None else pair.metric(self.metric),
                undecided={flip.question_id for flip in pair.flips if flip.is_undecided},
            )
            for pair, results in zip(self.pairs, self.sources[1:], strict=True)
        ]
        if gates is not None:
            check_names(wanted[0], baseline, runs, of_config=isinstance(gates, EvaluationConfig))
        return [check(gate, run, baseline) for own, run in zip(wanted, runs, strict=True) for gate in own]

    def rows(self, kind: Kind = "metrics") -> list[dict[str, Any]]:
        """Return the comparison as rows.

        Args:
            kind: ``metrics``: a row for each run and metric, with the verdict as tables show it. ``questions``: a row
                for each run, question and metric.

        Raises:
            OptionError: The kind is unknown.
        """
        if kind not in get_args(Kind):
            hint = f"Give {', '.join(get_args(Kind))}."
            raise OptionError(f"unknown kind of frame {kind!r}", key="kind", hint=hint)
        rows: list[dict[str, Any]] = []
        for pair in self.pairs:
            for metric in pair.metrics if kind == "metrics" else ():
                low, high = metric.interval or (None, None)
                found = {"low": low, "high": high, "verdict": verdict_word(metric)}
                values = {name: found[name] if name in found else getattr(metric, name) for name in _METRIC_COLUMNS}
                rows.append({"run": pair.run.letter, "label": pair.run.label, **values})
            for question in pair.questions if kind == "questions" else ():
                about = {"run": pair.run.letter, "question_id": question.question_id}
                about |= {"template_id": question.template_id}
                for name, (a, b) in question.values.items():
                    rows.append({**about, "metric": name, "a": a, "b": b, "difference": difference_of((a, b))})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain dicts, lists and values, as in JSON."""
        plain = asdict(replace(self, sources=()))
        del plain["sources"]
        return plain

    def to_pandas(self, kind: Kind = "metrics") -> "pd.DataFrame":
        """Return the rows of a kind as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return Table.of(self.rows(kind)).to_pandas()

    def to_csv(self, path: str | PathLike[str], kind: Kind = "metrics") -> Path:
        """Write the rows of a kind as comma-separated values; an existing file is replaced.

        Raises:
            RunFolderError: The file cannot be written.
        """
        return Table.of(self.rows(kind)).to_csv(path)

    def plot_differences(self, *, spent: bool = False, ax: "Axes | None" = None) -> "Axes":
        """Draw the difference of each metric with its interval.

        Args:
            spent: Whether to draw what was spent, in percent of the baseline, instead of the scores.
            ax: The axes to draw on; new ones by default.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: There is nothing to draw.
        """
        return plot_differences(self.rows(), spent=spent, ax=ax)

    def plot_questions(self, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw each question's difference from the baseline.

        Args:
            metric: The metric that is drawn; ``RunComparison.metric`` by default.
            ax: The axes to draw on; new ones by default.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: No question has the metric in both runs.
        """
        drawn = str(metric or self.metric)
        known = next(filter(None, (pair.metric(drawn) for pair in self.pairs)), None)
        is_lower_better = None if known is None else known.lower_is_better
        return plot_questions(self.rows("questions"), drawn, lower_is_better=is_lower_better, ax=ax)

    @on_one_line
    def __repr__(self) -> str:
        others = ", ".join(f"{pair.run.label} ({counted(pair.number_of_questions, 'question')})" for pair in self.pairs)
        return f"<RunComparison of {self.baseline.label} with {others}>"

    def __str__(self) -> str:
        lines = [f"{pair.headline}." for pair in self.view().pairs]
        lines += [f"{run.letter}: {run.label}" for run in self.runs]
        metrics = [metric for pair in self.pairs for metric in pair.metrics]
        lines += [metric.sentence for metric in metrics if not metric.is_spent or metric.verdict != "no evidence"]
        return "\n".join(visible(line, keeps_lines=False) for line in lines)

    @never_raising
    def _repr_html_(self) -> str:
        """Return a small table, as a notebook shows it."""
        return notebook_comparison(self.view())
