"""What the terminal shows at the end of a run: the headline, why questions failed, the worst of them, and scores."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.metrics import Measure
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    ANSWER_EXACT,
    ANSWER_GROUNDED,
    ELAPSED_SEC,
    JUDGES,
    JUDGES_COST,
    MAIN_METRIC,
    RETRIEVAL_IDS,
    TOTAL_TOKENS,
    is_built_in,
    metric_spec,
)
from graphrag_eval_lc.report.fitted_table import Column, FittedTable, Shortened
from graphrag_eval_lc.report.formats import amount_text, score_display
from graphrag_eval_lc.texts import counted, listed, plural, shortened
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.failures import lines_of
from graphrag_eval_lc.view.run_view import TemplateLine
from graphrag_eval_lc.view.scores import ScoreLine

_SHOWN_TEXT: Final = 90
_MOST_GROUPS: Final = 20
# The judged metrics that have a column; recall and precision are in their f1.
_JUDGED: Final = tuple(spec.key for judge in JUDGES for spec in judge.metrics if not spec.is_part)
_OF_ANSWERS: Final = (ANSWER_EXACT, ANSWER_GROUNDED)
# What was spent, as columns: how each mean is shown, and what the caption calls it.
_SPENT: Final[Mapping[str, tuple[str, Callable[[float], str], str]]] = {
    "Tokens": (TOTAL_TOKENS, "{:,.0f}".format, "tokens"),
    "Seconds": (ELAPSED_SEC, "{:.2f}".format, "seconds"),
    "Cost": (AGENT_COST, dollars, "the agent's cost"),
}
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

# What a row of a table is about: a template, all questions (micro), or the mean of the templates (macro).
_ALL, _OF_TEMPLATES = "All questions (micro)", "Mean of templates (macro)"
_Place = TemplateLine | str


def summary_tables(view: RunView, *, measures: Sequence[Measure] = ()) -> RenderableType:
    """Return the view of a run as text and tables, with all its failures and these measures of retrieved ids."""
    parts: list[RenderableType] = [data_text(str(view.headline))]
    if view.headline.not_right:
        parts += [Text(), _groups_table(view)]
    if view.failures:
        parts += [Text(), _failures_table(view)]
    parts += [Text(), _main_table(view)]
    if hidden := view.hidden_templates:
        questions = counted(sum(line.samples for line in hidden), "question")
        names = listed([line.template_id for line in hidden], 3)
        text = f"{counted(len(hidden), 'more template')} without any response ({questions}); not shown: {names}"
        parts.append(data_text(text))
    parts += map(data_text, view.notes)
    if measures:
        parts += [Text(), _retrieval_table(view, measures)]
    measured = [line.metric for line in view.scores]
    measured += [line.metric for line in view.spent if metric_spec(line.metric).spent_by != "judges"]
    for title, metrics, note in (
        ("Answers", [metric for metric in _OF_ANSWERS if metric in measured], ""),
        ("Judged scores", [metric for metric in _JUDGED if metric in measured], view.judge_note),
        ("Own scores", [metric for metric in measured if not is_built_in(metric)], ""),
    ):
        if metrics:
            parts += [Text(), _scores_table(view, title, metrics)]
            parts += [data_text(note)] if note else []
    if view.headline.repeats > 1:
        texts = ", ".join(f"{name} {value:.2f}" for name, value in view.chances)
        chances = f"{texts} ({view.chances_note})" if texts else view.chances_note
        parts.append(data_text(f"{view.headline.repeats} repeats: {chances}"))
    costs, unmeasured = [], view.totals.get("unmeasured_samples", {})
    for metric, who in ((AGENT_COST, "agent"), (JUDGES_COST, "judges")):
        if metric in view.totals:
            costs.append(f"{who} {dollars(view.totals[metric])}")
        elif count := unmeasured.get(metric):
            costs.append(f"{who} not known ({count} {plural(count, 'sample has', 'samples have')} no price)")
    return Group(*parts, *([data_text(f"Cost: {', '.join(costs)}")] if costs else []))


def _groups_table(view: RunView) -> Table:
    title = f"Why {view.headline.noun}s are not right"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("Why", overflow="fold", ratio=3)
    table.add_column("For example", overflow="fold", ratio=2)
    lines, rest = lines_of(view.parts, _MOST_GROUPS)
    for count, why, group in lines:
        table.add_row(count, data_text(why), Text() if group is None else Shortened(group.keys[0]))
    if rest:
        table.add_row("", data_text(f"and {counted(rest, 'smaller group')}"), Text())
    return table


def _failures_table(view: RunView) -> Table:
    title = f"The worst questions ({len(view.failures):,} of {view.headline.not_right:,} that are not right)"
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, show_lines=True)
    table.add_column("Question", overflow="fold", ratio=2)
    table.add_column("Score", justify="right", no_wrap=True)
    table.add_column("Why", overflow="fold", ratio=3)
    for failure in view.failures:
        repeat = f", repeat {failure.repeat}" if view.headline.repeats > 1 else ""
        question = question_cell(f"{failure.question_id}{repeat}", failure.question)
        table.add_row(question, failure.score_text, data_text(failure.reason, keeps_lines=True))
    return table


def question_cell(name: str, text: str) -> RenderableType:
    """Return a question for a cell of a table: its id in bold, and below it the beginning of its text."""
    return Group(Shortened(name, "bold"), data_text(shortened(text, _SHOWN_TEXT)))


def _main_table(view: RunView) -> FittedTable:
    main = _score(view, MAIN_METRIC)
    scores = [main, *(line.scores.get(MAIN_METRIC) for line in view.templates)]
    differ = any(score.mean != score.mean_answered for score in scores if score is not None)

    def cells(place: _Place) -> Iterator[str]:
        """Yield counts and means; the mean of templates has no counts."""
        lines = [place] if isinstance(place, TemplateLine) else view.templates
        has_counts = place != _OF_TEMPLATES
        yield f"{sum(line.questions for line in lines):,}" if has_counts else ""
        counts = [sum(getattr(line, key) for line in lines) for key in ("errors", "failed_calls", "empty_results")]
        errors, *calls = (f"{count:,}" if count and has_counts else "" for count in counts)
        yield errors
        every, answered = _means(view, MAIN_METRIC, place)
        yield "–" if every is None else f"{every:.3f}"
        yield "" if not differ else "–" if answered is None else f"{answered:.3f}"
        for metric, text_of, _ in _SPENT.values():
            mean = _mean_spent(view, metric, place)
            yield "–" if mean is None else text_of(mean)
        yield from calls

    def caption(headings: Sequence[str]) -> str:
        spent = [name for heading, (_, _, name) in _SPENT.items() if heading in headings]
        is_split = "answered" in headings
        score = f"{MAIN_METRIC} is the mean over all questions, a failed one as 0"
        says = [f"{score}; answered: the mean of those that did not fail"] if is_split else []
        if named := [*([MAIN_METRIC] if MAIN_METRIC in headings and not is_split else []), *spent]:
            are = "is a mean" if named in ([MAIN_METRIC], ["the agent's cost"]) else "are means"
            says.append(f"{' and '.join(filter(None, (', '.join(named[:-1]), named[-1])))} {are}")
        if view.headline.repeats > 1:
            says.append("each question counts once, with the mean of its repeats; errors and calls count each repeat")
        return "\n".join(filter(None, ["; ".join(says), *_left_out(view, [MAIN_METRIC])]))

    return _template_table(view, "Scores by template", _MAIN_COLUMNS, cells, caption)


def _retrieval_table(view: RunView, measures: Sequence[Measure]) -> RenderableType:
    """Return the means of measures of retrieved ids; a sentence if there are none."""
    measured = [line for line in view.templates if line.missing is not None]
    if not measured:
        return data_text("Nothing is measured of retrieval: no scored reference step names relevant ids.")
    metrics = {str(measure): f"{RETRIEVAL_IDS}{measure.key}" for measure in measures}

    def cells(place: _Place) -> Iterator[str]:
        yield from _score_cells(view, place, metrics.values())
        missing = place.missing if isinstance(place, TemplateLine) else sum(line.missing or 0 for line in measured)
        yield "" if place == _OF_TEMPLATES else str(missing)

    columns = [Column(name, rank, nothing=frozenset()) for rank, name in enumerate((*metrics, "Missing"))]
    says = ["Missing: reference steps of retrieval that no step of the agent fulfilled"]
    says += _failures_note(view, metrics.values())
    title = "Retrieved ids by template (means)"
    return _template_table(view, title, columns, cells, lambda _: "\n".join(says), measured)


def _scores_table(view: RunView, title: str, metrics: Sequence[str]) -> FittedTable:
    """Return the means of scores, and the notes on those that a user registered."""
    notes = {metric: score_display(metric).get("note") for metric in metrics}
    says = [f"{metric}: {note}" for metric, note in notes.items() if note]
    says += [*_failures_note(view, metrics), *_left_out(view, metrics)]
    columns = [Column(name, rank) for rank, name in enumerate(metrics)]
    return _template_table(
        view,
        f"{title} by template (means)",
        columns,
        lambda place: _score_cells(view, place, metrics),
        lambda _: "\n".join(says),
    )


def _template_table(
    view: RunView,
    title: str,
    columns: Sequence[Column],
    cells: Callable[[_Place], Iterable[str]],
    caption: Callable[[Sequence[str]], str],
    lines: Sequence[TemplateLine] | None = None,
) -> FittedTable:
    """Return a table with a row for each template and two for all of them."""
    hidden = {line.template_id for line in view.hidden_templates}
    shown = [line for line in (view.templates if lines is None else lines) if line.template_id not in hidden]
    rows = [(line.template_id, [*cells(line)]) for line in shown]
    totals = [(name, [*cells(name)]) for name in (_ALL, _OF_TEMPLATES)]
    return FittedTable("Template", columns, rows, title, caption, totals=totals)


def _score(view: RunView, metric: str) -> ScoreLine | None:
    return next((line for line in view.scores if line.metric == metric), None)


def _means(view: RunView, metric: str, place: _Place) -> tuple[float | None, float | None]:
    """Return a score's means over all and over the answered questions of a row."""
    if isinstance(place, TemplateLine):
        of_template = place.scores.get(metric)
        return (None, None) if of_template is None else of_template.means
    score = _score(view, metric)
    if score is None:
        return None, None
    return score.means if place == _ALL else score.mean_of_templates


def _mean_spent(view: RunView, metric: str, place: _Place) -> float | None:
    if isinstance(place, TemplateLine):
        return place.spent.get(metric)
    if place == _ALL:
        return next((line.mean for line in view.spent if line.metric == metric), None)
    means = [line.spent[metric] for line in view.templates if metric in line.spent]
    return sum(means) / len(means) if means else None


def _score_cells(view: RunView, place: _Place, metrics: Iterable[str]) -> Iterator[str]:
    """Yield metrics' means as texts in their units; of a score that of the answered questions if it differs."""
    for metric in metrics:
        unit = metric_spec(metric).unit
        every, answered = _means(view, metric, place)
        if every is None:
            yield amount_text(_mean_spent(view, metric, place), unit)
            continue
        text, other = amount_text(every, unit), amount_text(answered, unit)
        yield text if text == other else f"{text} ({other})"


def _left_out(view: RunView, metrics: Iterable[str]) -> list[str]:
    """Say which scores are missing for some questions."""
    lines = [line for metric in metrics if (line := _score(view, metric)) is not None and line.without]
    return [f"{line.metric}: {line.questions:,} of {view.headline.questions:,} questions have it" for line in lines]


def _failures_note(view: RunView, metrics: Iterable[str]) -> list[str]:
    """Say which questions the means cover, if some failed."""
    lines = [line for metric in metrics if (line := _score(view, metric)) is not None]
    differ = any(line.mean != line.mean_answered for line in lines)
    return ["failed questions count as 0; in brackets the mean of the answered ones"] if differ else []
