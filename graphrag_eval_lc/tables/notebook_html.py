"""HTML for notebooks: a run and other small tables, readable in light and dark themes; all data is text.

The HTML has no script, and sets no text or background colours: those belong to the theme. Every text is cut before
it is escaped, so that the output stays small.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from math import isfinite
from typing import Final, TypeVar

from graphrag_eval_lc.aggregation.question_values import mean_text
from graphrag_eval_lc.texts import counted, error_text, plural, shortened, shown_html
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.failures import lines_of

T = TypeVar("T")

LONGEST_NAME: Final = 80
LONGEST_TEXT: Final = 300
_LONGEST_PARAGRAPH: Final = 2000

_SPACES = re.compile("[ \t\n]+|\r\n")
_RAW_TIMES: Final = 4

_LEFT = ' style="text-align: left"'
_CAPTION = ' style="text-align: left; font-weight: bold"'
_RIGHT = ' style="text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"'
# Names stay whole if possible; long texts, which may have no space, break anywhere.
_NAME = ' style="text-align: left; max-width: 30em; overflow-wrap: break-word"'
_TEXT = ' style="text-align: left; max-width: 40em; overflow-wrap: anywhere"'
# A fixed width: a percentage has no effect in a table cell whose width is unknown.
_TRACK = "display: inline-block; width: 6em; height: 0.7em; background: rgba(128, 128, 128, 0.3)"
_BAR = "height: 100%; background: #2c7bb6"
# Two colours of the plots, with the same contrast on a light and on a dark background.
_MARKS = {"better": "#2c7bb6", "worse": "#c2501a"}


@dataclass(frozen=True, slots=True)
class Share:
    """A cell that is a bar: how much of a range a value fills, from 0 to 1."""

    value: float


@dataclass(frozen=True, slots=True)
class Marked:
    """A cell with a mark in the colour of a verdict, ``better`` or ``worse``; other verdicts have none."""

    text: str
    verdict: str


Cell = str | Share | Marked


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, whether it holds numbers, and after how many characters its texts are cut."""

    heading: str
    is_number: bool = False
    longest: int = LONGEST_NAME


def short_html(text: str, longest: int = LONGEST_TEXT) -> str:
    r"""Return a text on one line, cut and escaped; hidden characters are made visible."""
    # The beginning of a long text is enough; cutting it first keeps the rest fast.
    start = text[: _RAW_TIMES * longest]
    line = _SPACES.sub(" ", start).strip(" ")
    end = "…" if len(line) <= longest and len(start) < len(text) else ""
    return shown_html(shortened(line, longest, keeps_lines=True) + end)


def facts_html(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and values, which are shown as text."""
    cells = "".join(
        f'<tr><th scope="row"{_LEFT}>{short_html(name, LONGEST_NAME)}</th><td{_LEFT}>{short_html(value)}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption{_CAPTION}>{short_html(caption)}</caption>{cells}</table>"


def rows_html(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], more: str = "") -> str:
    """Return a table with a line for each row, and a text below it, such as how many rows were left out."""
    heads = "".join(
        f'<th scope="col"{_RIGHT if column.is_number else _LEFT}>{short_html(column.heading, LONGEST_NAME)}</th>'
        for column in columns
    )
    lines = "".join(f"<tr>{''.join(map(_cell_html, columns, row))}</tr>" for row in rows)
    below = f"<div>{short_html(more)}</div>" if more else ""
    head = f"<caption{_CAPTION}>{short_html(caption)}</caption><thead><tr>{heads}</tr></thead>"
    return f"<table>{head}<tbody>{lines}</tbody></table>{below}"


def _cell_html(column: Column, cell: Cell) -> str:
    if isinstance(cell, Share):
        width = 100 * min(1.0, max(0.0, cell.value)) if isfinite(cell.value) else 0
        bar = f'<div style="{_TRACK}"><div style="{_BAR}; width: {width:.0f}%"></div></div>'
        return f'<td{_LEFT} aria-hidden="true">{bar}</td>'
    if isinstance(cell, Marked):
        color = _MARKS.get(cell.verdict, "transparent")
        text = short_html(cell.text, column.longest)
        return f'<td style="text-align: left; border-left: 4px solid {color}; max-width: 40em">{text}</td>'
    style = _RIGHT if column.is_number else _NAME if column.longest <= LONGEST_NAME else _TEXT
    return f"<td{style}>{short_html(cell, column.longest)}</td>"


def paragraphs_html(texts: Iterable[str]) -> str:
    """Return texts as paragraphs."""
    return "".join(f"<p>{short_html(text, _LONGEST_PARAGRAPH)}</p>" for text in texts)


def page_html(*parts: str) -> str:
    """Join parts into one page; without its class, Jupyter would read dollar signs as formulas."""
    return f'<div class="tex2jax_ignore mathjax_ignore">{"".join(parts)}</div>'


def never_raising(html_of: Callable[[T], str]) -> Callable[[T], str]:
    """Make a method that returns HTML show its error as a line, so that a cell has no traceback of this package."""

    @wraps(html_of)
    def html(self: T) -> str:
        try:
            return html_of(self)
        except Exception as problem:
            return page_html(paragraphs_html([f"This {type(self).__name__} cannot be shown: {error_text(problem)}"]))

    return html


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
