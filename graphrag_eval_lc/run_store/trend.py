"""The trend of scores and costs over runs: each run's means with intervals, and its difference from a baseline.

Results are read one run at a time, and only the values of the shown metrics are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.question_values import ScoreValues, score_values
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.compare.comparison_view import verdict_word
from graphrag_eval_lc.compare.metric_comparison import MetricComparison
from graphrag_eval_lc.compare.metric_tests import MetricValues, compared_metrics
from graphrag_eval_lc.compare.runs import NamedRun, Pairing, run_results
from graphrag_eval_lc.config.base import named
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.metrics.intervals import mean_interval
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import AGENT_COST, ELAPSED_SEC, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.run_store.baselines import PREVIOUS, Baseline, baseline_of, changes_between, main_metric
from graphrag_eval_lc.run_store.stored_runs import StoredRun, list_runs
from graphrag_eval_lc.tables import Table
from graphrag_eval_lc.tables.plots import plot_trend
from graphrag_eval_lc.texts import counted, listed, on_one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Kind = Literal["runs", "templates"]
SPENT = (TOTAL_TOKENS, AGENT_COST, ELAPSED_SEC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendValue:
    """A score in one run, over all questions or those of a template."""

    mean: float  # failed questions count as 0, or as the greatest value if lower is better
    answered: float | None  # over the questions that were answered
    low: float | None  # of the 95 % interval of ``mean``
    high: float | None
    note: str | None  # the reason if the interval is too narrow
    number_of_questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A run in a trend.

    Attributes:
        run: The run.
        number_of_questions: How many questions it has.
        number_of_errors: How many of its samples failed.
        values: The scores over all questions, by metric; a metric that the run does not have is absent.
        templates: The scores by metric, then by template.
        spent: The mean tokens, USD and seconds per question, by metric; unknown ones are absent.
        changes: What else changed since the run before, as short sentences.
        differences: How the run differs from its baseline, by metric; absent if they cannot be compared.
        baseline: The run that it is compared with: the previous one, or that of ``against``, or None.
    """

    run: StoredRun
    number_of_questions: int
    number_of_errors: int
    values: Mapping[str, TrendValue]
    templates: Mapping[str, Mapping[str, TrendValue]]
    spent: Mapping[str, float]
    changes: Sequence[str]
    differences: Mapping[str, MetricComparison]
    baseline: Baseline | None


@dataclass(frozen=True, slots=True, repr=False)
class RunTrend:
    """Runs in the order in which they began.

    Attributes:
        folder: The folder of the runs.
        metrics: The scores that are shown, the main one first.
        points: The runs.
        warnings: Warnings for the user, such as on runs that are left out.
        against: The baseline of each run, such as ``previous``.
    """

    folder: Path
    metrics: tuple[str, ...]
    points: tuple[TrendPoint, ...]
    warnings: tuple[str, ...] = ()
    against: str = PREVIOUS

    @on_one_line
    def __repr__(self) -> str:
        return f"<RunTrend of {counted(len(self.points), 'run')} in {self.folder}: {', '.join(self.metrics)}>"

    def templates(self, metric: str) -> list[str]:
        """Return the templates that have a score in some run, the first seen first."""
        return list(dict.fromkeys(each for point in self.points for each in point.templates.get(metric, ())))

    def rows(self, kind: Kind = "runs") -> list[dict[str, Any]]:
        """Return the trend as rows.

        Args:
            kind: ``runs``: one for each run and metric. ``templates``: one for each run, metric and template.

        Raises:
            OptionError: The kind is unknown.
        """
        if kind not in ("runs", "templates"):
            raise OptionError(f"unknown kind of rows {kind!r}", key="kind", hint="Give runs or templates.")
        rows: list[dict[str, Any]] = []
        for point in self.points:
            run = {key: each for key, each in point.run.identity.items() if each is not None}
            for metric, templates in point.templates.items() if kind == "templates" else ():
                about = {**run, "metric": metric}
                rows += ({**about, "template_id": each, **_cells(value)} for each, value in templates.items())
            for metric, value in point.values.items() if kind == "runs" else ():
                row = {**run, "metric": metric, **_cells(value)}
                row |= {"number_of_errors": point.number_of_errors, **point.spent}
                if (difference := point.differences.get(metric)) is not None:
                    row |= {"difference": difference.difference, "p_value": difference.p_value}
                    row["verdict"] = verdict_word(difference)
                    if point.baseline is not None and self.against != PREVIOUS:
                        row["against"] = " + ".join(str(each.path) for each in point.baseline.runs)
                rows.append({**row, "changes": "; ".join(point.changes)})
        return rows

    def to_pandas(self, kind: Kind = "runs") -> "pd.DataFrame":
        """Return the rows as a frame.

        Raises:
            MissingExtraError: pandas is not installed.
            OptionError: The kind is unknown.
        """
        return Table.of(self.rows(kind)).to_pandas()

    def to_csv(self, path: str | PathLike[str], kind: Kind = "runs") -> Path:
        """Write the rows as comma-separated values.

        Raises:
            RunFolderError: The file cannot be written.
            OptionError: The kind is unknown.
        """
        return Table.of(self.rows(kind)).to_csv(path)

    def plot(self, metric: str | None = None, *, ax: "Axes | None" = None) -> "Axes":
        """Draw a score's means over the runs with their 95 % intervals.

        Args:
            metric: The score; the first one by default.
            ax: The axes to draw on; new ones by default.

        Raises:
            MissingExtraError: matplotlib is not installed.
            OptionError: No run has the score.
        """
        return plot_trend(self.rows(), metric or self.metrics[0], ax=ax)


@recorded_only_here()
def trend(
    folder: str | PathLike[str],
    metrics: Sequence[str] | None = None,
    *,
    template_ids: Sequence[str] = (),
    tags: Sequence[str] = (),
    last: int | None = None,
    against: str = PREVIOUS,
) -> RunTrend:
    """Return how scores and costs changed over the runs in a folder.

    Runs are ordered by their start; unfinished runs are left out. Each run is compared with the one before it, or with
    the baseline ``against``, on the questions that both have, as ``compare_runs`` does.

    Args:
        folder: The folder of the runs.
        metrics: The scores, the main one first; None: steps_score, or what is the first score of the last run.
        template_ids: Only the questions of these templates.
        tags: Only the runs that have all these tags.
        last: Only the last runs, this many.
        against: What each run is compared with: ``previous``; ``first``, the first run on the same dataset; ``best``,
            the best earlier run by the main metric, with p-values multiplied by the number of candidates; or a run by
            its label, folder name or path. ``first`` and ``best`` find a loss that is small in each run. Runs of one
            commit that are otherwise alike are pooled, except with ``previous``.

    Raises:
        RunFolderError: The folder does not exist, or a file of a run cannot be read.
        OptionError: The folder has no finished run with these tags; or no run has one of the scores or templates; or a
            metric is not a score; or no run matches ``against``.
        MissingExtraError: scipy is not installed.

    Example:
        >>> trend("runs/").to_pandas()[["label", "mean", "low", "high", "verdict"]]  # doctest: +SKIP
    """
    found = list_runs(folder)
    tagged = [run for run in found if set(tags) <= set(run.tags)]
    whole = [run for run in tagged if run.shard is None]
    runs = [run for run in whole if run.is_finished]
    shown = runs if last is None else runs[-last:] if last > 0 else []
    if not shown:
        what = "no run in the folder finished"
        if found and not tagged:
            what = "none of the runs has these tags"
        elif tagged and not whole:
            what = "the folder holds only shards, which merge puts together"
        raise OptionError(what, path=folder, hint="Give the folder that run, score or demo wrote runs to.")
    warnings = []
    if shards := len(tagged) - len(whole):
        warnings.append(f"{counted(shards, 'shard')} left out, as merge has to put them together first")
    if unfinished := [str(run.path) for run in whole if not run.is_finished]:
        number = counted(len(unfinished), "unfinished run")
        warnings.append(f"{number} left out: {listed(unfinished, 3)}")
    wanted = tuple(dict.fromkeys(metrics)) if metrics else (main_metric(shown),)
    known = list(dict.fromkeys(metric for run in shown for metric in run.metrics()))
    for metric in wanted:
        if metric not in known and metric_spec(metric).is_spent:
            hint = "Name a score. Tokens, cost and seconds are shown next to it."
            raise OptionError(f"{metric} is not a score", hint=hint)
        if metric not in known:
            hint = f"{named(known, metric)}." if known else "Score the runs with references."
            raise OptionError(f"none of the runs has the score {metric}", hint=hint)
    read = _ReadRuns(wanted, frozenset(template_ids))
    points = []
    for before, run in zip((None, *shown), shown, strict=False):
        earlier = shown if against == PREVIOUS else runs
        baseline = baseline_of(run, earlier, against, metric=wanted[0], mean_of=read.mean)
        points.append(_point(before, run, baseline, read))
    for template_id in template_ids:
        if template_id not in read.templates:
            hint = f"{named(list(read.templates), template_id)}." if read.templates else "Give no template."
            raise OptionError(f"none of the runs has the template {template_id}", hint=hint)
    return RunTrend(Path(folder), wanted, tuple(points), tuple(warnings), against)


class _ReadRuns:
    """Reads and caches the values of runs in the metrics of a trend; pooled runs count as repeats."""

    def __init__(self, metrics: Sequence[str], template_ids: frozenset[str]) -> None:
        self.metrics = metrics
        self.templates: dict[str, None] = {}  # that were seen
        self._template_ids = template_ids
        self._known: dict[Path, NamedRun] = {}

    def of(self, runs: Sequence[StoredRun]) -> NamedRun:
        """Return the values of a run, or of several that are pooled."""
        known = [self._known.get(run.path) or self._read(run) for run in runs]
        if len(known) == 1:
            return known[0]
        pooled = RunValues(Metrics(known[0].results.config(), (*self.metrics, *SPENT), only=True))
        for each in known:
            pooled.add_all(each.numbers)
        return NamedRun("", known[0].results, pooled)

    def mean(self, run: StoredRun) -> float | None:
        """Return a run's mean of the main metric; None if it has none."""
        scores = score_values(self.of([run]).numbers)
        return scores[self.metrics[0]].mean().every if self.metrics[0] in scores else None

    def _read(self, run: StoredRun) -> NamedRun:
        results = run_results(run.path)
        numbers = RunValues(Metrics(results.config(), (*self.metrics, *SPENT), only=True))
        for result in results:
            template_id = str(result.get("template_id"))
            self.templates[template_id] = None
            if not self._template_ids or template_id in self._template_ids:
                numbers.add(result)
        self._known[run.path] = NamedRun("", results, numbers)
        return self._known[run.path]


def _point(before: StoredRun | None, run: StoredRun, baseline: Baseline | None, read: _ReadRuns) -> TrendPoint:
    numbers = read.of([run]).numbers
    scores = {key: values for key, values in score_values(numbers).items() if key in read.metrics and values.every}
    values = {metric: _value(metric, scores[metric]) for metric in read.metrics if metric in scores}
    questions = numbers.questions.values()
    spent = {key: [mean for each in questions if (mean := each.mean(key)) is not None] for key in SPENT}
    return TrendPoint(
        run=run,
        number_of_questions=len(questions),
        number_of_errors=sum(question.errors for question in questions),
        values=values,
        templates={
            metric: {
                each: _value(metric, scores[metric].of_template(each), of_one=True) for each in scores[metric].every
            }
            for metric in values
        },
        spent={key: fsum(means) / len(means) for key, means in spent.items() if means},
        changes=() if before is None else changes_between(before, run),
        differences={} if baseline is None else _differences(baseline, run, read, list(values)),
        baseline=baseline,
    )


def _value(metric: str, values: ScoreValues, *, of_one: bool = False) -> TrendValue:
    every, mean = values.all_values(), values.mean()
    clusters: Iterable[Any] = (key for key, group in values.every.items() for _ in group)
    if of_one:  # each question of a single template is its own cluster
        clusters = range(len(every))
    interval = mean_interval(every, list(clusters), bounds=metric_spec(metric).bounds_of(every))
    low, high, _, note = (None, None, None, None) if interval is None else interval
    return TrendValue(
        mean=mean.every or 0.0, answered=mean.answered, low=low, high=high, note=note, number_of_questions=len(every)
    )


def _differences(
    baseline: Baseline, run: StoredRun, read: _ReadRuns, metrics: Sequence[str]
) -> dict[str, MetricComparison]:
    """Compare a run with its baseline in each metric separately, each as the main metric of ``compare_runs``."""
    pairing = Pairing.of(read.of(baseline.runs), read.of([run]))
    if not pairing.common or pairing.texts_that_differ() == len(pairing.common):
        return {}
    number = len(set(pairing.template_ids().values()))
    found = {}
    for metric in metrics:
        if pairing.can_compare(metric) and (pairs := pairing.values(metric)):
            values = MetricValues(metric_spec(metric), pairing.by_template(pairs), pairing.left_out(metric))
            (found[metric],) = compared_metrics(
                [values], main=metric, number_of_templates=number, letter="B", chosen_from=baseline.chosen_from
            )
    return found


def _cells(value: TrendValue) -> dict[str, Any]:
    cells = {"mean": value.mean, "mean_answered": value.answered, "low": value.low, "high": value.high}
    known = {key: each for key, each in cells.items() if each is not None}
    return {**known, "number_of_questions": value.number_of_questions}
