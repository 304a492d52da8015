"""Writing the comparison of runs as one HTML page."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare import metric_comparison
from graphrag_eval_lc.compare.gates import Gate, state_of
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, failures_text
from graphrag_eval_lc.compare.run_comparison import PairComparison, RunComparison
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.report.formats import args_text, shown_value, visible
from graphrag_eval_lc.report.page import render_page

_SCRIPTS = ("scroll_boxes.js", "comparison.js")

# A difference and the ends of its interval in percent of the chart's width; 50 is no difference.
Place = dict[str, float | None]


def write_comparison(comparison: RunComparison, path: str | PathLike[str], gates: Sequence[Gate] = ()) -> Path:
    """Write a comparison as one HTML file that needs nothing else.

    Args:
        comparison: What ``compare_runs`` returned.
        path: The file; an existing one is replaced as a whole.
        gates: Gates that are shown too, as ``RunComparison.gate_results`` and ``regression_gates`` return them.

    Returns:
        The file's path.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The file cannot be written.
    """
    target = Path(path)
    replace_file(target, [comparison_html(comparison, gates).encode("utf-8")])
    return target


def comparison_html(comparison: RunComparison, gates: Sequence[Gate] = ()) -> str:
    """Return a comparison as the text of an HTML page.

    Args:
        comparison: What ``compare_runs`` returned.
        gates: Gates that are shown too, as ``RunComparison.gate_results`` and ``regression_gates`` return them.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return render_page(
        "comparison.html.j2",
        _SCRIPTS,
        comparison=comparison,
        gates=gates,
        state_of=state_of,
        places={pair.run.letter: _places(pair.metrics) for pair in comparison.pairs},
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
        texts=metric_comparison,
        failures=failures_text(metric for pair in comparison.pairs for metric in pair.metrics),
        has_flips=lambda pair: _has_flips(pair, comparison.metric),
        args_text=_args_text,
        output_text=shown_value,
    )


def _has_flips(pair: PairComparison, main: str | None) -> bool:
    """Return whether flips are shown: not of what was spent, where nearly every question differs."""
    metric = None if main is None else pair.metric(main)
    return metric is not None and not metric.is_spent


def _args_text(text: str) -> str:
    """Return a call's arguments line by line; unchanged where they were cut and are no JSON any more."""
    try:
        return args_text(parse_json(text))
    except (ValueError, RecursionError):
        return visible(text)


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
    """Return a difference and its interval's ends, relative to A if spent; empty where A spent nothing."""
    values = [metric.difference, *(metric.interval or ())]
    if not metric.is_spent:
        return values
    return [value / metric.mean_a for value in values] if metric.mean_a else []
