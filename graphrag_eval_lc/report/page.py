"""Rendering pages: templates, styles and scripts become one HTML file that contacts no server."""

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.report.formats import amount_text, score_display, unbroken_amount_text
from graphrag_eval_lc.texts import counted, shown_name, visible
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.scores import ScoreLine, whole_scores

if TYPE_CHECKING:
    import jinja2

_HEAD_SCRIPTS = ("theme.js",)  # before the first paint, so that a dark page does not flash
_LIST_SCRIPTS = (
    *("elements.js", "formats.js", "scroll_boxes.js", "sorting.js", "records.js", "address.js", "opened.js"),
    *("filtered_list.js", "queries.js", "rows.js"),
)
_REPORT_SCRIPTS = (
    *_LIST_SCRIPTS,
    *("notes.js", "timeline.js", "transcript.js", "steps.js", "answer_values.js", "details.js", "filters.js"),
    *("list.js", "report.js"),
)
COMPARISON_SCRIPTS = (*_LIST_SCRIPTS, "comparison_details.js", "comparison_list.js", "comparison.js")
_STYLES = ("page.css", "tables.css", "details.css", "comparison.css", "trend.css", "print.css")
_PIECES_AT_A_TIME = 100
_MOST_PARTS = 50  # of groups of failures, with a button each
_PIECES = re.compile(r"(?<=[_./])(?=\w)")  # allows a line break in a name
_MATRIX_LABELS = {
    "right_right": "Steps right, answer right",
    "right_wrong": "Steps right, answer wrong",
    "wrong_right": "Steps wrong, answer right",
    "wrong_wrong": "Steps wrong, answer wrong",
}


def render_report(report: Mapping[str, Any], *, is_live: bool = False) -> Iterator[str]:
    """Yield the HTML page of a run's report in pieces, from its ``report_data``.

    A live page comes from a server, from which it requests updates.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    view: RunView = report["view"]
    ranges = {line.metric: line.range for line in view.scores}
    displays = {metric: display for metric in ranges if (display := score_display(metric))}
    columns = whole_scores(ranges)
    lists = {
        "templates": [shown_name(line.template_id) for line in view.templates],
        "metrics": columns,
        "ranges": ranges,
        **{key: report[key] for key in ("tools", "groups", "prefixes", "run", "dataset")},
        **({"isLive": True} if is_live else {}),
        **({"again": report["again"]} if report["again"] else {}),
        "hasRepeats": view.headline.repeats > 1,
        **({"displays": displays} if displays else {}),
    }
    return _rendered(
        "report.html.j2",
        (*_REPORT_SCRIPTS[:-1], "live.js", _REPORT_SCRIPTS[-1]) if is_live else _REPORT_SCRIPTS,
        connects_to="'self'" if is_live else "'none'",
        report=report,
        view=view,
        score_metrics=columns,
        usual=[line for line in view.scores if _is_usual(line, view)],
        families=_families([line for line in view.scores if not _is_usual(line, view)]),
        ranges=ranges,
        displays=displays,
        index_json=map(inert_json, report["index_json"]),
        lists_json=inert_json(json_text(lists, is_compact=True)),
        sets_json=inert_json(json_text(_sets(report), is_compact=True)),
    )


def _is_usual(line: ScoreLine, view: RunView) -> bool:
    """Return whether a score is shown at once: the main one, and those that most questions have."""
    return line is view.main or (not line.is_part and 2 * line.questions > view.headline.questions)


def _families(lines: Sequence[ScoreLine]) -> list[tuple[str, int, list[ScoreLine]]]:
    """Group the other scores by the beginnings of their names: name, largest number of questions, and the scores."""
    families: dict[str, list[ScoreLine]] = {}
    for line in lines:
        parts = line.metric.split("_")
        families.setdefault("_".join(parts[: 2 if len(parts) > 2 else 1]), []).append(line)
    return [
        (f"{name}_…" if len(group) > 1 else group[0].metric, max(line.questions for line in group), group)
        for name, group in families.items()
    ]


def render_page(template: str, scripts: Sequence[str], **context: Any) -> str:
    """Return a page with inlined styles and scripts; its content security policy allows no others.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return "".join(_rendered(template, scripts, **context))


def _rendered(template: str, scripts: Sequence[str], *, connects_to: str = "'none'", **context: Any) -> Iterator[str]:
    environment = _environment()
    head_script, script = (
        "\n".join(["(() => {", '"use strict";', *map(_source, names), "})();"]) for names in (_HEAD_SCRIPTS, scripts)
    )
    hashes = (hashlib.sha256(text.encode("utf-8")).digest() for text in (head_script, script))
    digests = " ".join(f"'sha256-{base64.b64encode(each).decode('ascii')}'" for each in hashes)
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; img-src data:; "
        f"connect-src {connects_to}; base-uri 'none'; form-action 'none'"
    )
    pieces = environment.get_template(template).stream(
        policy=policy,
        styles="\n".join(_source(name) for name in _STYLES),
        head_script=head_script,
        script=script,
        **context,
    )
    pieces.enable_buffering(_PIECES_AT_A_TIME)
    return pieces


def relative_address(file: Path, folder: Path) -> str:
    """Return the address of a file as a link on a page in a folder.

    Example:
        >>> relative_address(Path("runs/a b/report.html"), Path("runs"))
        'a%20b/report.html'
    """
    try:
        # Symbolic links are not followed: the page is opened at the path that the user named.
        relative = Path(os.path.relpath(file, folder))
    except ValueError:  # on another drive of Windows
        return file.absolute().as_uri()
    return quote(os.fsencode(relative.as_posix()))


@cache  # with the templates that it has compiled
def _environment() -> "jinja2.Environment":
    try:
        import jinja2
    except ModuleNotFoundError as problem:
        if problem.name not in ("jinja2", "markupsafe"):
            raise
        raise MissingExtraError("A report", "report", str(problem.name)) from problem
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount_text,
        "counted": counted,
        "pieces": _PIECES.split,
        "shown_name": shown_name,
        "unbroken_amount": unbroken_amount_text,
        "visible": visible,
    }
    environment.globals["matrix_labels"] = _MATRIX_LABELS
    return environment


@cache
def _source(name: str) -> str:
    return files("graphrag_eval_lc.report").joinpath("templates", name).read_text(encoding="utf-8")


def inert_json(text: str) -> str:
    """Return JSON, escaped so that it cannot end its script element."""
    return text.replace("<", "\\u003c")


def _sets(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sets of questions behind the template's buttons, by the buttons' names."""
    changes, funnel, matrix = report["view"].headline.changes, report["funnel"], report["matrix"]
    sets = [(way, f"{way.capitalize()} since {changes.run}", keys) for way, keys in report["turned"].items()]
    for number, part in enumerate(report["view"].parts[:_MOST_PARTS]):
        sets.append((f"part-{number}", part.title, [key for group in part.groups for key in group.keys]))
    for number, stage in enumerate(funnel["stages"] if funnel else ()):
        sets.append((f"funnel-{number}", f"Not passed: {stage['name']}", stage["fell_out"]))
    sets += [(f"matrix-{cell}", label, matrix[cell]) for cell, label in _MATRIX_LABELS.items() if matrix]
    for kind, groups in (("error", report["errors"]), ("warning", report["capture_warnings"])):
        for number, group in enumerate(groups):
            sets.append((f"{kind}-{number}", f"{kind.capitalize()}: {group['kind']}", group["questions"]))
    return {name: {"label": label, "keys": keys} for name, label, keys in sets}
