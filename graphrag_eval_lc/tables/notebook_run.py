"""The view of a run in a notebook: the headline, why questions failed, the worst questions, scores and templates."""

from collections.abc import Sequence
from typing import Final

from graphrag_eval_lc.aggregation.question_values import mean_text
from graphrag_eval_lc.tables.notebook_html import LONGEST_TEXT, Cell, Column, Share, facts_html, page_html, rows_html
from graphrag_eval_lc.texts import counted, plural
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.failures import lines_of

# With more means, the table is no longer small.
_MOST_MEANS: Final = 12
_MOST_TEMPLATES: Final = 12
_MOST_GROUPS: Final = 12
_MOST_QUESTIONS: Final = 5
_MOST_GATES: Final = 5

_GROUPS = (Column("questions", is_number=True), Column("why", longest=LONGEST_TEXT), Column("for example"))
_Rows = Sequence[tuple[str, str]]


def run_html(title: str, view: RunView, before: _Rows = (), after: _Rows = ()) -> str:
    """Return a run as HTML for a notebook, with more facts before and after those of its view; all data is text."""
    failed = [gate for gate in view.gates if gate.state != "passed"]
    gates = [("gates", f"{len(view.gates) - len(failed):,} of {len(view.gates):,} passed")] if view.gates else []
    gates += [(f"gate {gate.state}", gate.text) for gate in failed[:_MOST_GATES]]
    differ = any(line.mean != line.mean_answered for line in view.scores)
    note = " (means over all questions, failed ones count as 0)" if differ else ""
    facts = [("result", str(view.headline)), *gates, *before, *_mean_rows(view), *after]
    return page_html(
        facts_html(f"{title}{note}", facts),
        _groups_html(view),
        _failures_html(view),
        _templates_html(view),
    )


def _mean_rows(view: RunView) -> list[tuple[str, str]]:
    """Return names and texts of the means; if there are many, parts of other scores are left out first."""
    wholes_first = sorted(view.scores, key=lambda line: line.is_part)
    kept = {line.metric for line in wholes_first[:_MOST_MEANS]}
    rows = []
    for line in view.scores:
        if line.metric in kept:
            upper = "" if line.upper is None else f"; {line.upper:.3f} if all undecided steps fitted"
            rows.append((f"mean {line.metric}", f"{mean_text(line.means)}{upper}"))
    left_out = len(view.scores) - len(rows)
    return [*rows, ("more", f"{left_out:,} {plural(left_out, 'mean')} in the aggregates")] if left_out else rows


def _groups_html(view: RunView) -> str:
    if not view.groups:
        return ""
    lines, left_out = lines_of(view.parts, _MOST_GROUPS)
    rows = [(count, title, "" if group is None else group.keys[0]) for count, title, group in lines]
    more = f"and {counted(left_out, 'smaller group')}" if left_out else ""
    return rows_html("Why questions failed", _GROUPS, rows, more)


def _failures_html(view: RunView) -> str:
    if not view.failures:
        return ""
    columns = (Column("question"), Column("text"), Column("score", is_number=True), Column("why", longest=LONGEST_TEXT))
    rows = []
    for failure in view.failures[:_MOST_QUESTIONS]:
        score = "error" if failure.state == "error" else "" if failure.score is None else f"{failure.score:.3f}"
        rows.append((failure.key, failure.question, score, failure.reason))
    left_out = view.headline.not_right - len(rows)
    more = f"and {left_out:,} more that are not right" if left_out else ""
    return rows_html("The worst questions", columns, rows, more)


def _templates_html(view: RunView) -> str:
    if view.main is None:
        return ""
    metric, (low, high) = view.main.metric, view.main.range
    scored = [line for line in view.templates if metric in line.scores]
    has_failed = any(line.errors for line in view.templates)
    columns = [
        Column("template"),
        Column("questions", is_number=True),
        *([Column("failed", is_number=True)] if has_failed else []),
        Column(f"mean {metric}", is_number=True),
        Column(""),
    ]
    rows: list[list[Cell]] = [
        [
            line.template_id,
            f"{line.questions:,}",
            *([f"{line.errors:,}"] if has_failed else []),
            f"{line.scores[metric].mean:.3f}",
            Share((line.scores[metric].mean - low) / (high - low) if high > low else 1.0),
        ]
        for line in scored[:_MOST_TEMPLATES]
    ]
    left_out = len(scored) - len(rows)
    more = f"and {left_out:,} better {plural(left_out, 'template')}" if left_out else ""
    return rows_html("Templates, the worst first", columns, rows, more)
