"""Rendering pages: templates, styles and scripts become one HTML file that asks nothing of any server."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.report.formats import amount_text, figure_text, score_display, score_text, visible

if TYPE_CHECKING:
    import jinja2

_HEAD_SCRIPTS = ("theme.js",)  # before the first paint, so that a dark page does not flash
_REPORT_SCRIPTS = (
    "elements.js",
    "formats.js",
    "scroll_boxes.js",
    "sorting.js",
    "records.js",
    "timeline.js",
    "transcript.js",
    "steps.js",
    "details.js",
    "filters.js",
    "list.js",
    "report.js",
)
_STYLES = ("page.css", "tables.css", "details.css", "comparison.css", "print.css")
_MATRIX_LABELS = {
    "right_right": "Steps right, answer right",
    "right_wrong": "Steps right, answer wrong",
    "wrong_right": "Steps wrong, answer right",
    "wrong_wrong": "Steps wrong, answer wrong",
}


def render_report(context: Mapping[str, Any]) -> str:
    """Return the report of a run as one HTML page.

    Args:
        context: What the page shows, as ``report.data`` gives it; its texts are plain text.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    ranges = {score["metric"]: score["range"] for score in context["scores"]}
    displays = {metric: display for metric in ranges if (display := score_display(metric))}
    lists = {
        "templates": [template["id"] for template in context["templates"]],
        "metrics": context["score_metrics"],
        "ranges": ranges,
        "tools": context["tools"],
        "hasRepeats": context["has_repeats"],
        **({"displays": displays} if displays else {}),
    }
    return render_page(
        "report.html.j2",
        _REPORT_SCRIPTS,
        report=context,
        ranges=ranges,
        displays=displays,
        index_json=_inert_json(context["index_json"]),
        lists_json=_json_data(lists),
        sets_json=_json_data(_sets(context)),
    )


def render_page(template: str, scripts: Sequence[str], **context: Any) -> str:
    """Return a page, with its styles and scripts inside it.

    The page's content security policy lets run only the scripts that are given here, by their digests.

    Args:
        template: The name of its template.
        scripts: The names of the scripts that run at its end, in this order.
        context: What the template shows.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    environment = _environment()
    head_script, script = _joined(_HEAD_SCRIPTS), _joined(scripts)
    digests = " ".join(f"'sha256-{_digest(text)}'" for text in (head_script, script))
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {digests}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template(template).render(
        policy=policy,
        styles="\n".join(_source(name) for name in _STYLES),
        head_script=head_script,
        script=script,
        **context,
    )


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
    environment.filters |= {"score": score_text, "amount": amount_text, "figure": figure_text, "visible": visible}
    environment.globals["matrix_labels"] = _MATRIX_LABELS
    return environment


def _source(name: str) -> str:
    return files("graphrag_eval_lc.report").joinpath("templates", name).read_text(encoding="utf-8")


def _joined(names: Sequence[str]) -> str:
    """Return scripts as one, whose names no other script sees."""
    return "\n".join(["(() => {", '"use strict";', *(_source(name) for name in names), "})();"])


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _json_data(value: object) -> str:
    return _inert_json(json_text(value, is_compact=True))


def _inert_json(text: str) -> str:
    """Return JSON that cannot end the script element in which it stands."""
    return text.replace("<", "\\u003c")


def _sets(context: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sets of questions that one click shows, by the names that the template's buttons have."""
    sets: dict[str, dict[str, Any]] = {}
    for number, stage in enumerate((context["funnel"] or {"stages": ()})["stages"]):
        sets[f"funnel-{number}"] = {"label": f"Not passed: {stage['name']}", "keys": stage["fell_out"]}
    for cell, label in _MATRIX_LABELS.items():
        if context["matrix"] is not None:
            sets[f"matrix-{cell}"] = {"label": label, "keys": context["matrix"][cell]}
    for number, error in enumerate(context["errors"]):
        sets[f"error-{number}"] = {"label": f"Error: {error['kind']}", "keys": error["questions"]}
    for number, warning in enumerate(context["capture_warnings"]):
        sets[f"warning-{number}"] = {"label": f"Warning: {warning['kind']}", "keys": warning["questions"]}
    return sets
