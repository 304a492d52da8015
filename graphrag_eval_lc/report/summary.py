"""What a terminal shows at the end of a run: scores by template, and the worst questions."""

import heapq
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.aggregation import RunValues, is_error, reason_of
from graphrag_eval_lc.aggregation.notes import uncertainty_texts
from graphrag_eval_lc.aggregation.repeats import shown_chances
from graphrag_eval_lc.aggregation.score_means import ScoreMean, ScoreValues, score_values
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.evaluation.question_result import NO_RESPONSE
from graphrag_eval_lc.metrics import Measure
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    ELAPSED_SEC,
    JUDGES,
    JUDGES_COST,
    MAIN_METRIC,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SUCCESS_SAMPLES,
    OUTPUTS_CUT,
    RETRIEVAL_IDS,
    RETRIEVAL_MISSING,
    STEPS_SCORE,
    TOTAL_TOKENS,
    UNDECIDED,
    metric_spec,
    own_metrics,
)
from graphrag_eval_lc.report.fitted_table import Column, FittedTable, Shortened
from graphrag_eval_lc.report.formats import amount_text, passing_sign, score_display
from graphrag_eval_lc.texts import counted, listed, plural, shortened

MICRO, MACRO = "micro", "macro"
_SPENT: Final = {"Tokens": "tokens", "Seconds": "seconds", "Cost": "the agent's cost"}
# Before a template's id, as one may be called "micro".
_TEMPLATE = "template "
_SHOWN_TEXT = 90
_FEW = 10  # questions or templates without a response that are shown like others
# The judged metrics that have a column; recall and precision are in their f1.
_JUDGED = tuple(spec.key for judge in JUDGES for spec in judge.metrics if not spec.is_part)


def summary_tables(
    results: Iterable[Mapping[str, Any]],
    aggregates: Mapping[str, Any],
    *,
    worst: int = 5,
    measures: Sequence[Measure] = (),
    config: EvaluationConfig | None = None,
) -> RenderableType:
    """Return the tables of a run for ``rich`` to print.

    Means of scores are those that gates, comparisons and the report have: failed questions count as 0.

    Args:
        results: The scored questions, read once; only the worst, and numbers, are kept in memory.
        aggregates: Their aggregates.
        worst: How many of the worst questions are shown.
        measures: The measures of retrieved ids that are shown.
        config: The run's configuration, as far as it says which metrics the results have.
    """
    numbers = RunValues(config, own_metrics(aggregates["micro"]))
    seen = SeenResults(added_to(numbers, results), worst)
    means = Means(score_values(numbers), len(numbers.questions))
    hidden = seen.templates_to_hide()
    if hidden:
        by_template = aggregates["per_template"].items()
        aggregates = {**aggregates, "per_template": {key: each for key, each in by_template if key not in hidden}}
    parts: list[RenderableType] = [_main_table(aggregates, means)]
    if hidden:
        parts.append(data_text(f"{_without_response(hidden)}; not shown: {listed(list(hidden), 3)}"))
    micro = aggregates["micro"]
    parts += map(data_text, _uncertainty(micro, means.of(STEPS_SCORE).every, numbers.mean_of_upper_bound(STEPS_SCORE)))
    if measures:
        parts += [Text(), _retrieval_table(aggregates, means, measures)]
    for title, metrics in (
        ("Judged scores", [metric for metric in _JUDGED if metric in micro]),
        ("Own scores", own_metrics(micro)),
    ):
        if metrics:
            parts += [Text(), _scores_table(title, metrics, aggregates, means)]
    if "repeats" in aggregates:
        parts.append(data_text(_repeats_line(aggregates["repeats"], means)))
    if cost := _cost_line(aggregates.get("totals", {})):
        parts.append(data_text(cost))
    if table := _worst_table(seen, has_repeats="repeats" in aggregates):
        parts += [Text(), table]
    return Group(*parts)


def added_to(numbers: RunValues, results: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield results after they were added to a run's values."""
    for result in results:
        numbers.add(result)
        yield result


class Means:
    """The means of the scores, of all questions or of a template.

    Args:
        values: The values of each score.
        number_of_questions: How many questions there are, with and without a score.
    """

    def __init__(self, values: Mapping[str, ScoreValues], number_of_questions: int) -> None:
        self._values = values
        self._number = number_of_questions

    def of(self, metric: str, place: str = MICRO) -> ScoreMean:
        """Return a score's means in a part of the aggregates: ``micro``, ``macro`` or a template's."""
        values = self._values.get(metric)
        if values is None:
            return ScoreMean(None, None)
        if place in (MICRO, MACRO):
            return values.mean() if place == MICRO else values.mean_of_templates()
        return values.of_template(place.removeprefix(_TEMPLATE)).mean()

    def left_out(self, metrics: Iterable[str]) -> list[str]:
        """Say of which scores some questions have none."""
        counts = {metric: len(self._values[metric].all_values()) for metric in metrics if metric in self._values}
        return [
            f"{metric}: {count:,} of {self._number:,} questions have it"
            for metric, count in counts.items()
            if count < self._number
        ]


# The columns of the main table, the least important last.
_MAIN_COLUMNS: Final = (
    Column("Questions", 1),
    Column("Errors", 2),
    Column(MAIN_METRIC),
    Column("answered", 3),
    Column("Tokens", 4),
    Column("Seconds", 6),
    Column("Cost", 5, nothing=frozenset({"", "–", dollars(0)})),
    Column("Failed calls", 7),
    Column("Empty results", 8),
)


def _main_table(aggregates: Mapping[str, Any], means: Means) -> FittedTable:
    has_repeats = "repeats" in aggregates
    places = [MICRO, MACRO, *(f"{_TEMPLATE}{name}" for name in aggregates["per_template"])]
    differ = any(mean.every != mean.answered for mean in (means.of(MAIN_METRIC, place) for place in places))

    def caption(headings: Sequence[str]) -> str:
        spent = [_SPENT[heading] for heading in headings if heading in _SPENT]
        is_split = "answered" in headings
        score = f"{MAIN_METRIC} is the mean over all questions, a failed one as 0"
        says = [f"{score}; answered: the mean of those that did not fail"] if is_split else []
        if named := [*([MAIN_METRIC] if MAIN_METRIC in headings and not is_split else []), *spent]:
            are = "is a mean" if named in ([MAIN_METRIC], [_SPENT["Cost"]]) else "are means"
            says.append(f"{' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))} {are}")
        if is_split and spent:
            says[-1] += ", without failed questions unless the config includes them"
        if has_repeats:
            says.append("each question counts once, with the mean of its repeats; errors and calls count each repeat")
        return "\n".join(filter(None, ["; ".join(says), *means.left_out([MAIN_METRIC])]))

    return _template_table(
        "Scores by template",
        _MAIN_COLUMNS,
        aggregates,
        lambda summary, place: _main_cells(summary, means.of(MAIN_METRIC, place)[: 2 if differ else 1]),
        caption,
    )


def _uncertainty(micro: Mapping[str, Any], score: float | None, upper: float | None) -> list[str]:
    """Say how many steps are undecided, how many outputs are cut, and between what the score lies."""
    return uncertainty_texts(micro.get(UNDECIDED, 0), micro.get(OUTPUTS_CUT, 0), score, upper)


def _retrieval_table(aggregates: Mapping[str, Any], means: Means, measures: Sequence[Measure]) -> RenderableType:
    """Return the means of measures of retrieved ids; a sentence where there are none."""
    if RETRIEVAL_MISSING not in aggregates["micro"]:
        return data_text("Nothing is measured of retrieval: no scored reference step names relevant ids.")
    metrics = {str(measure): f"{RETRIEVAL_IDS}{measure.key}" for measure in measures}
    summaries = aggregates["per_template"].items()
    measured = {template_id: summary for template_id, summary in summaries if RETRIEVAL_MISSING in summary}
    notes = ["Missing: reference steps of retrieval that no step of the agent fulfilled"]
    return _template_table(
        "Retrieved ids by template (means)",
        [
            *(Column(name, rank, nothing=frozenset()) for rank, name in enumerate(metrics)),
            Column("Missing", len(metrics)),
        ],
        {**aggregates, "per_template": measured},
        lambda summary, place: (
            *_means(summary, place, means, metrics.values()),
            str(summary.get(RETRIEVAL_MISSING, "")),
        ),
        lambda headings: "\n".join([*notes, *_failures_note(means, metrics.values())]),
    )


def _scores_table(title: str, metrics: Sequence[str], aggregates: Mapping[str, Any], means: Means) -> FittedTable:
    """Return the means of scores, and the notes on those that a user registered."""
    notes = {metric: score_display(metric).get("note") for metric in metrics}
    told = [f"{metric}: {note}" for metric, note in notes.items() if note]
    told += [*_failures_note(means, metrics), *means.left_out(metrics)]
    return _template_table(
        f"{title} by template (means)",
        [Column(name, rank) for rank, name in enumerate(metrics)],
        aggregates,
        lambda summary, place: _means(summary, place, means, metrics),
        lambda headings: "\n".join(told),
    )


def _failures_note(means: Means, metrics: Iterable[str]) -> list[str]:
    """Say what the means are over, where some questions failed."""
    pairs = (means.of(metric) for metric in metrics)
    differ = any(mean.every != mean.answered for mean in pairs)
    return ["failed questions count as 0; in brackets the mean of the answered ones"] if differ else []


def _template_table(
    title: str,
    columns: Sequence[Column],
    aggregates: Mapping[str, Any],
    cells: Callable[[Mapping[str, Any], str], Iterable[str]],
    caption: Callable[[Sequence[str]], str],
) -> FittedTable:
    """Return a table with a row for each template and two for all of them; ``cells`` are those of a summary."""
    summaries = aggregates["per_template"].items()
    return FittedTable(
        "Template",
        columns,
        [(str(name), [*cells(summary, f"{_TEMPLATE}{name}")]) for name, summary in summaries],
        title,
        caption,
        totals=[
            (name, [*cells(aggregates[part], part)])
            for name, part in (("All questions (micro)", MICRO), ("Mean of templates (macro)", MACRO))
        ],
    )


def _cost_line(totals: Mapping[str, Any]) -> str | None:
    """Say what agent and judges cost; None where nothing is known of either."""
    unmeasured = totals.get("unmeasured_samples", {})
    says = []
    for metric, who in ((AGENT_COST, "agent"), (JUDGES_COST, "judges")):
        if metric in totals:
            says.append(f"{who} {dollars(totals[metric])}")
        elif metric in unmeasured:
            count = unmeasured[metric]
            says.append(f"{who} not known ({count} {plural(count, 'sample has', 'samples have')} no price)")
    return f"Cost: {', '.join(says)}" if says else None


def _repeats_line(repeats: Mapping[str, Any], means: Means) -> str:
    """Say how often the questions were passed, and how sure the mean score is; of the answered ones where it is."""
    metric = repeats["metric"]
    says = []
    if chances := shown_chances(repeats):
        texts = ", ".join(f"{name} {value:.2f}" for name, value in chances)
        unmeasured = repeats["number_of_unmeasured_questions"]
        without = f", without {unmeasured} that were not measured" if unmeasured else ""
        says.append(f"{texts} ({metric} {passing_sign(metric)} {repeats['threshold']:g}{without})")
    if metric in repeats["metrics"]:
        score = repeats["metrics"][metric]
        every = means.of(metric).every
        is_of_answered = every is not None and not math.isclose(score["mean"], every)
        says.append(f"{metric} {score['mean']:.3f}{' of the answered' if is_of_answered else ''}")
        if "standard_error" in score:
            says[-1] += f" ± {score['standard_error']:.3f} (standard error, clustered by template)"
    return f"{repeats['count']} repeats: {'; '.join(says) or f'{metric} was not measured'}"


def _main_cells(summary: Mapping[str, Any], scores: Sequence[float | None]) -> Iterator[str]:
    """Yield counts and means; of the mean of templates, which has no counts, only means.

    ``scores`` are the mean over all questions and, if it is another one somewhere, that over those that were answered.
    """
    errors = summary.get(NUMBER_OF_ERROR_SAMPLES)
    samples = None if errors is None else errors + summary[NUMBER_OF_SUCCESS_SAMPLES]
    yield "" if samples is None else f"{summary.get(NUMBER_OF_QUESTIONS, samples):,}"
    yield f"{errors:,}" if errors else ""
    yield from ("–" if value is None else f"{value:.3f}" for value in scores)
    yield from [""] * (2 - len(scores))
    yield _mean(summary, TOTAL_TOKENS, "{:,.0f}".format)
    yield _mean(summary, ELAPSED_SEC, "{:.2f}".format)
    yield _mean(summary, AGENT_COST, dollars)
    for part in ("errors", "empty_results"):
        number = sum(summary.get("steps", {}).get(part, {}).values())
        yield f"{number:,}" if number else ""


def _means(summary: Mapping[str, Any], place: str, means: Means, metrics: Iterable[str]) -> Iterator[str]:
    """Yield metrics' means as texts in their units; of a score that of the answered questions where it differs."""
    for metric in metrics:
        unit = metric_spec(metric).unit
        every, answered = means.of(metric, place)
        if every is None:  # what was spent, and counts
            yield amount_text(summary.get(metric, {}).get("mean"), unit)
            continue
        text, other = amount_text(every, unit), amount_text(answered, unit)
        yield text if text == other else f"{text} ({other})"


def _mean(summary: Mapping[str, Any], metric: str, text_of: Callable[[float], str]) -> str:
    """Return a metric's mean as text; a dash where it was not measured."""
    return text_of(summary[metric]["mean"]) if metric in summary else "–"


def _without_response(questions: Mapping[str, int]) -> str:
    """Say how many templates have no response; ``questions`` are their samples by template."""
    number = sum(questions.values())
    return f"{counted(len(questions), 'more template')} without any response ({counted(number, 'question')})"


def _worst_table(seen: "SeenResults", *, has_repeats: bool) -> Table | None:
    shown = seen.worst()
    if not shown:
        return None
    title = f"The worst questions ({len(shown):,} of {seen.lacking:,} that did not score in full)"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, show_lines=True)
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("Score", justify="right", no_wrap=True)
    table.add_column("Why", overflow="fold", ratio=3)
    for result in shown:
        repeat = f", repeat {result.get('repeat', 1)}" if has_repeats else ""
        question = question_cell(f"{result['question_id']}{repeat}", result["question_text"])
        score = "error" if is_error(result) else format(result[MAIN_METRIC], ".2f")
        table.add_row(question, score, data_text(reason_of(result), keeps_lines=True))
    return table


def question_cell(name: str, text: str) -> RenderableType:
    """Return a question for a cell of a table: its id in bold, and below it the beginning of its text."""
    return Group(Shortened(name, "bold"), data_text(shortened(text, _SHOWN_TEXT)))


class SeenResults:
    """What is kept of the results: the worst of them, and which templates have no response at all.

    Args:
        results: The results; read once.
        worst: How many of the worst are kept.

    Attributes:
        lacking: How many did not score in full.
    """

    def __init__(self, results: Iterable[Mapping[str, Any]], worst: int) -> None:
        self.lacking = 0
        self._number = 0
        self._kept = worst
        self._unanswered: list[_Ranked] = []
        self._unanswered_of: Counter[str] = Counter()
        self._answered_of: set[str] = set()
        lacking = self._read(results)
        # Equal ones stay in the dataset's order.
        self._worst = heapq.nsmallest(worst, lacking, key=lambda ranked: ranked[:2])
        deque(lacking, maxlen=0)  # where none is kept, none was read

    @property
    def is_mostly_unanswered(self) -> bool:
        """Whether more than half of the samples, and more than a few, have no response."""
        unanswered = self._unanswered_of.total()
        return unanswered > _FEW and 2 * unanswered > self._number

    def worst(self) -> list[Mapping[str, Any]]:
        """Return the worst results; where most have no response, those that have one first."""
        both = [*self._worst, *self._unanswered]
        if not self.is_mostly_unanswered:
            both.sort(key=lambda ranked: ranked[:2])
        return [result for _, _, result in both[: self._kept]]

    def templates_to_hide(self) -> dict[str, int]:
        """Return the templates without any response, with their samples, where they would be most of a long table."""
        without = {name: count for name, count in self._unanswered_of.items() if name not in self._answered_of}
        return without if self.is_mostly_unanswered and len(without) > _FEW else {}

    def _read(self, results: Iterable[Mapping[str, Any]]) -> Iterator["_Ranked"]:
        for place, result in enumerate(results):
            self._number += 1
            template, is_unanswered = str(result.get("template_id")), result.get("error") == NO_RESPONSE
            if is_unanswered:
                self._unanswered_of[template] += 1
            else:
                self._answered_of.add(template)
            if is_error(result) or result.get(MAIN_METRIC, 1.0) < 1.0:
                self.lacking += 1
                ranked = _rank(result), place, result
                if not is_unanswered:
                    yield ranked
                elif len(self._unanswered) < self._kept:
                    self._unanswered.append(ranked)


_Ranked = tuple[tuple[bool, float], int, Mapping[str, Any]]


def _rank(result: Mapping[str, Any]) -> tuple[bool, float]:
    """Order failed questions first, then by score."""
    return not is_error(result), result.get(MAIN_METRIC, 0.0)
