"""Writing the comparison of runs as one HTML page."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare.gates import RegressionGate
from graphrag_eval_lc.compare.metric_comparison import (
    MetricComparison,
    change_text,
    failures_text,
    interval_text,
    p_text,
    p_values_note,
    value_text,
    verdict_text,
)
from graphrag_eval_lc.compare.run_comparison import PairComparison, RunComparison
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.report.formats import args_text, visible
from graphrag_eval_lc.report.formats import shown_value as output_text
from graphrag_eval_lc.report.page import render_page

_SCRIPTS = ("scroll_boxes.js", "comparison.js")

# Where a difference and its interval stand, in percent of the chart's width; 50 is no difference.
Place = dict[str, float | None]


def write_comparison(
    comparison: RunComparison, path: str | PathLike[str], gates: Sequence[RegressionGate] = ()
) -> Path:
    """Write a comparison as one HTML file that needs nothing else.

    Args:
        comparison: What ``compare_runs`` gave.
        path: The file; one that is there is replaced as a whole.
        gates: What ``RunComparison.regression_gates`` gave, to be shown too.

    Returns:
        The file's path.

    Raises:
        MissingExtraError: Jinja2 is not installed.
        RunFolderError: The file cannot be written.
    """
    target = Path(path)
    replace_file(target, [comparison_html(comparison, gates).encode("utf-8")])
    return target


def comparison_html(comparison: RunComparison, gates: Sequence[RegressionGate] = ()) -> str:
    """Return a comparison as the text of an HTML page.

    Args:
        comparison: What ``compare_runs`` gave.
        gates: What ``RunComparison.regression_gates`` gave, to be shown too.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    return render_page(
        "comparison.html.j2",
        _SCRIPTS,
        comparison=comparison,
        gates=gates,
        places={pair.run.letter: _places(pair.metrics) for pair in comparison.pairs},
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
        value_text=value_text,
        change_text=change_text,
        interval_text=interval_text,
        failures=failures_text(metric for pair in comparison.pairs for metric in pair.metrics),
        p_text=p_text,
        p_values_note=p_values_note,
        verdict_text=verdict_text,
        has_flips=lambda pair: _has_flips(pair, comparison.metric),
        args_text=_args_text,
        output_text=output_text,
    )


def _has_flips(pair: PairComparison, main: str | None) -> bool:
    """Return whether questions can have flipped: of what was spent nearly every one differs."""
    metric = None if main is None else pair.metric(main)
    return metric is not None and not metric.is_spent


def _args_text(text: str) -> str:
    """Return the arguments of a call line by line; as they are where they were cut."""
    try:
        return args_text(parse_json(text))
    except (ValueError, RecursionError):
        return visible(text)


def _places(metrics: Iterable[MetricComparison]) -> dict[str, Place | None]:
    """Place the differences of all scores on one scale, and those of what was spent, relative to A, on another."""
    places: dict[str, Place | None] = {}
    for is_spent in (False, True):
        family = [metric for metric in metrics if metric.is_spent is is_spent]
        widest = max((abs(value) for metric in family for value in _values(metric)), default=0.0)
        places.update({metric.metric: _place(metric, widest) for metric in family})
    return places


def _place(metric: MetricComparison, widest: float) -> Place | None:
    values = _values(metric)
    if not values or not widest:
        return None
    difference, *interval = (round(50 + 48 * value / widest, 2) for value in values)
    low, high = interval or (None, None)
    return {"difference": difference, "low": low, "high": high}


def _values(metric: MetricComparison) -> list[float]:
    """Return a difference and the ends of its interval; nothing where they are relative to nothing."""
    bounds = [metric.interval.low, metric.interval.high] if metric.interval else []
    values = [metric.difference, *bounds]
    if not metric.is_spent:
        return values
    return [value / metric.mean_a for value in values] if metric.mean_a else []
