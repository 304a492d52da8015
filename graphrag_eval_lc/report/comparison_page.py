"""Writing the comparison of runs as one HTML page."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare import GateResult, metric_comparison
from graphrag_eval_lc.compare.comparison_view import ComparisonView, PairView
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, failures_text
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.report.compared_questions import ComparedList, compared_list
from graphrag_eval_lc.report.page import inert_json, relative_address, render_page
from graphrag_eval_lc.texts import one_line

_SCRIPTS = (
    "elements.js",
    "formats.js",
    "scroll_boxes.js",
    "sorting.js",
    "records.js",
    "address.js",
    "opened.js",
    "filtered_list.js",
    "queries.js",
    "rows.js",
    "comparison_details.js",
    "comparison_list.js",
    "comparison.js",
)
# So many templates are shown; of more those that differ most.
_MOST_TEMPLATES = 200
_LABEL = 60

# A difference and the ends of its interval in percent of the chart's width; 50 is no difference.
Place = dict[str, float | None]


def write_comparison(comparison: RunComparison, path: str | PathLike[str], gates: Sequence[GateResult] = ()) -> Path:
    """Write a comparison as one HTML file that needs nothing else.

    Where a run's folder has its ``report.html``, the page links to it, from each question to its place there.

    Args:
        comparison: What ``compare_runs`` returned.
        path: The file; an existing one is replaced as a whole.
        gates: Gates that are shown too, as ``RunComparison.gate_results`` returns them.

    Returns:
        The file's path.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The file cannot be written, or the results of a run are not there any more.
    """
    target = Path(path)
    view = comparison.view(gates)
    html = _page(view, _report_addresses(view, target.parent))
    replace_file(target, [html.encode("utf-8")])
    return target


def comparison_html(comparison: RunComparison, gates: Sequence[GateResult] = ()) -> str:
    """Return a comparison as the text of an HTML page, without links to the runs' reports.

    Args:
        comparison: What ``compare_runs`` returned.
        gates: Gates that are shown too, as ``RunComparison.gate_results`` returns them.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The results of a run are not there any more.
    """
    return _page(comparison.view(gates), {})


def _page(view: ComparisonView, reports: Mapping[str, str]) -> str:
    listed = compared_list(view)
    return render_page(
        "comparison.html.j2",
        _SCRIPTS,
        view=view,
        places={pair.letter: _places(pair.pair.metrics) for pair in view.pairs},
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
        texts=metric_comparison,
        failures=failures_text(metric for pair in view.pairs for metric in pair.pair.metrics),
        templates={pair.letter: shown for pair in view.pairs if (shown := _shown_templates(pair))},
        counts=listed.counts,
        reports=reports,
        chunks=listed.chunks,
        index_json=inert_json(json_text(listed.index, is_compact=True)),
        lists_json=inert_json(json_text(_lists(view, listed, reports), is_compact=True)),
    )


def _report_addresses(view: ComparisonView, folder: Path) -> dict[str, str]:
    """Return by letter the addresses of the existing reports, relative to the page's folder."""
    found = {}
    for run in view.runs:
        report = None if run.path is None else Path(run.path) / exporter(REPORT).file_name
        if report is not None and report.is_file():
            found[run.letter] = relative_address(report, folder)
    return found


def _lists(view: ComparisonView, listed: ComparedList, reports: Mapping[str, str]) -> dict[str, Any]:
    """Return what can be chosen in the list, and how its values are shown."""
    compared = [(pair.pair.run, pair.main) for pair in view.pairs if pair.main is not None]
    return {
        "runs": [{"letter": run.letter, "label": one_line(run.label, _LABEL)} for run, _ in compared],
        "templates": listed.templates,
        "unit": next((metric.unit for _, metric in compared), "score"),
        "reports": dict(reports),
    }


def _shown_templates(pair: PairView) -> dict[str, Any] | None:
    """Return the templates that are shown, of many those that differ most, and the places of their differences."""
    if pair.main is None:
        return None
    found = pair.templates
    most = sorted(found, key=lambda each: -abs(each.difference))[:_MOST_TEMPLATES]
    kept = {each.template_id for each in most}
    widest = max((abs(each.difference) for each in most), default=0.0)
    return {
        "rows": [each for each in found if each.template_id in kept],
        "left_out": len(found) - len(most),
        "metric": pair.main,
        "places": {each.template_id: _place([each.difference], widest) for each in most},
        "has_others": any(each.worse or each.better for each in found),
    }


def _places(metrics: Iterable[MetricComparison]) -> dict[str, Place | None]:
    """Place the differences of scores on one scale, and those of what was spent, relative to A, on another."""
    places: dict[str, Place | None] = {}
    for is_spent in (False, True):
        family = [metric for metric in metrics if metric.is_spent is is_spent]
        values = {metric.metric: _values(metric) for metric in family}
        widest = max((abs(value) for each in values.values() for value in each), default=0.0)
        places |= {name: _place(each, widest) for name, each in values.items()}
    return places


def _place(values: Sequence[float], widest: float) -> Place | None:
    if not values or not widest:
        return None
    difference, *interval = (round(50 + 48 * value / widest, 2) for value in values)
    low, high = interval or (None, None)
    return {"difference": difference, "low": low, "high": high}


def _values(metric: MetricComparison) -> list[float]:
    """Return a difference and its interval's ends, relative to A if spent; empty if A spent nothing."""
    values = [metric.difference, *(metric.interval or ())]
    if not metric.is_spent:
        return values
    return [value / metric.mean_a for value in values] if metric.mean_a else []
