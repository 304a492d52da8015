"""The plot of scores: for each template how many questions are right, partly right, wrong and failed."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from statistics import fmean
from typing import TYPE_CHECKING

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.frames.measures import measured
from graphrag_eval_lc.frames.plots.canvas import MOST_ROWS, label_of, more_rows, rows_axes
from graphrag_eval_lc.frames.table import Row
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.metrics import MAIN_METRIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAILED = "failed"
_SCORE_CLASSES = ("1", "0.5 to 1", "0 to 0.5", "0")
_SCORE_COLORS = ("#2c7bb6", "#abd9e9", "#fdae61", "#c2501a")
_RANGE_COLORS = ("#08519c", "#3182bd", "#6baed6", "#bdd7e7")
_FAILED_COLOR = "#4d4d4d"


def plot_scores(rows: Iterable[Row], metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how the values of a metric are distributed, by template, the best template on top.

    Scores from 0 to 1 are sorted into 1, at least 0.5, above 0, and 0; values of any other range into quarters of
    it; the best class stands first. Failed questions are a class of their own. Each repeat of a question counts. Of
    more than 50 templates the worst are drawn.

    Args:
        rows: Those of ``questions_table``.
        metric: The column.
        ax: Where to draw; new axes by default.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OptionError: No row has the metric.
    """
    spec = metric_spec(metric)
    values = _values_by_template(rows, metric)
    class_of, names, colors = _classes([value for group in values.values() for value in group if value is not None])
    classes = dict(zip(reversed(names) if spec.lower_is_better else names, colors, strict=True))
    order = sorted(values, key=lambda name: _mean(values[name], spec), reverse=not spec.lower_is_better)
    drawn = order[-MOST_ROWS:]
    counts = {name: Counter(_FAILED if value is None else class_of(value) for value in values[name]) for name in drawn}
    ax = rows_axes([label_of(name) for name in drawn], ax)
    left = [0] * len(drawn)
    for name, color in {**classes, _FAILED: _FAILED_COLOR}.items():
        widths = [counts[template][name] for template in drawn]
        if any(widths):
            hatch = "///" if name == _FAILED else None
            ax.barh(range(len(drawn)), widths, left=left, color=color, hatch=hatch, edgecolor="white", label=name)
            left = [start + width for start, width in zip(left, widths, strict=True)]
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("questions")
    ax.set_title(f"{metric} by template{more_rows(len(order) - len(drawn), 'templates')}", parse_math=False)
    ax.legend(title=metric, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


def _values_by_template(rows: Iterable[Row], metric: str) -> Mapping[str, list[float | None]]:
    """Give the values by template, None for each failed question; those of which nothing is known are left out."""
    values: dict[str, list[float | None]] = {}
    is_measured = False
    for row in rows:
        value = measured(row.get(metric))
        is_measured = is_measured or value is not None
        if row["status"] == "error" or value is not None:
            values.setdefault(row["template_id"], []).append(None if row["status"] == "error" else value)
    if not is_measured:
        raise OptionError(
            f"no question has the metric {metric}",
            key="metric",
            mend="Give a column of to_pandas() that has numbers.",
        )
    return values


def _mean(values: Iterable[float | None], metric: MetricSpec) -> float:
    """Give a mean by which templates are in order; where nothing is known of all that failed it is the worst."""
    counted = [metric.value_of_failure if value is None else value for value in values]
    known = [value for value in counted if value is not None]
    return fmean(known) if known else inf if metric.lower_is_better else -inf


def _class_of_score(value: float) -> str:
    return _SCORE_CLASSES[0 if value == 1 else 1 if value >= 0.5 else 2 if value > 0 else 3]


def _classes(values: list[float]) -> tuple[Callable[[float], str], Sequence[str], Sequence[str]]:
    """Give what tells a value's class, the classes, the highest first, and their colours, that of the best first."""
    if not values or 0 <= min(values) <= max(values) <= 1:
        return _class_of_score, _SCORE_CLASSES, _SCORE_COLORS
    low, step = min(values), (max(values) - min(values)) / 4 or 1.0
    names = [f"{low + number * step:,.6g} to {low + (number + 1) * step:,.6g}" for number in (3, 2, 1, 0)]
    return lambda value: names[3 - min(3, int((value - low) / step))], names, _RANGE_COLORS
