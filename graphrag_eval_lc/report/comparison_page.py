"""Writing the comparison of runs as one HTML page."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare import GateResult, metric_comparison
from graphrag_eval_lc.compare.comparison_view import ComparisonView, PairView
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, failures_text
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.report.compared_questions import TURNS, ComparedQuestions
from graphrag_eval_lc.report.page import COMPARISON_SCRIPTS, inert_json, relative_address, render_page
from graphrag_eval_lc.texts import one_line

_MOST_TEMPLATES: Final = 200  # if there are more, those that differ most are shown
_LABEL: Final = 60

# A difference and the ends of its interval, in percent of the chart's width; 50 means no difference.
Place = dict[str, float | None]


def write_comparison(comparison: RunComparison, path: str | PathLike[str], gates: Sequence[GateResult] = ()) -> Path:
    """Write a comparison and the results of its gates as one self-contained HTML file.

    If a run's folder has a ``report.html``, the page links to it, and each question to its entry there.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The file cannot be written, or the results of a run no longer exist.
    """
    target, view = Path(path), comparison.view(gates)
    reports = {}  # the addresses of existing reports, relative to the page's folder
    for run in view.runs:
        report = None if run.path is None else Path(run.path) / exporter(REPORT).file_name
        if report is not None and report.is_file():
            reports[run.letter] = relative_address(report, target.parent)
    replace_file(target, [_page(view, reports).encode("utf-8")])
    return target


def comparison_html(comparison: RunComparison, gates: Sequence[GateResult] = ()) -> str:
    """Return a comparison as the text of an HTML page, without links to the runs' reports; see ``write_comparison``."""
    return _page(comparison.view(gates), {})


def _page(view: ComparisonView, reports: Mapping[str, str]) -> str:
    compared = ComparedQuestions(view)
    metrics = [(pair.pair.run, pair.main) for pair in view.pairs if pair.main is not None]
    lists = {
        "runs": [{"letter": run.letter, "label": one_line(run.label, _LABEL)} for run, _ in metrics],
        "templates": list(dict.fromkeys(question["t"] for question in compared.questions)),
        "unit": next((metric.unit for _, metric in metrics), "score"),
        "reports": dict(reports),
    }
    index = {"questions": compared.questions, "pairs": compared.pairs}
    return render_page(
        "comparison.html.j2",
        COMPARISON_SCRIPTS,
        view=view,
        places={pair.letter: _places(pair.pair.metrics) for pair in view.pairs},
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
        texts=metric_comparison,
        failures=failures_text(metric for pair in view.pairs for metric in pair.pair.metrics),
        templates={pair.letter: shown for pair in view.pairs if (shown := _shown_templates(pair))},
        counts={letter: Counter(TURNS[row["w"]] for row in rows) for letter, rows in compared.pairs.items()},
        reports=reports,
        chunks=compared.chunks,
        index_json=inert_json(json_text(index, is_compact=True)),
        lists_json=inert_json(json_text(lists, is_compact=True)),
    )


def _shown_templates(pair: PairView) -> dict[str, Any] | None:
    """Return the templates to show (if there are many, those that differ most) and where to draw their differences."""
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
    """Place differences of scores on one scale, and differences of spending, relative to A, on another."""
    places: dict[str, Place | None] = {}
    for is_spent in (False, True):
        values = {}
        for metric in metrics:
            if metric.is_spent is is_spent:
                scale = metric.mean_a if is_spent else 1.0
                ends = [metric.difference, *(metric.interval or ())]
                values[metric.metric] = [end / scale for end in ends] if scale else []
        widest = max((abs(value) for each in values.values() for value in each), default=0.0)
        places |= {name: _place(each, widest) for name, each in values.items()}
    return places


def _place(values: Sequence[float], widest: float) -> Place | None:
    if not values or not widest:
        return None
    difference, *interval = (round(50 + 48 * value / widest, 2) for value in values)
    low, high = interval or (None, None)
    return {"difference": difference, "low": low, "high": high}
