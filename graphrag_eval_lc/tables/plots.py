"""Plots of scores, times and differences; each is drawn into given or new axes, which it returns.

Each raises MissingExtraError if matplotlib is not installed, and OptionError if there is nothing to draw.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import inf
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.metrics.intervals import mean_interval
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, MAIN_METRIC
from graphrag_eval_lc.tables.table import Row, measured, value_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["plot_differences", "plot_questions", "plot_scores", "plot_templates", "plot_times", "plot_trend"]


# A picture of more rows cannot be read.
MOST_ROWS = 50

BETTER, WORSE, NEUTRAL = "#2c7bb6", "#c2501a", "#666666"

_LONGEST_LABEL = 40


def rows_axes(labels: Sequence[str], ax: "Axes | None") -> "Axes":
    """Return axes with a row for each label, the first on top; new axes are as high as the rows need."""
    if ax is None:
        try:
            from matplotlib.pyplot import subplots
        except ModuleNotFoundError as problem:
            raise MissingExtraError("A plot", "notebook", "matplotlib") from problem
        ax = subplots(figsize=(8, 1.3 + 0.3 * len(labels)), layout="constrained")[1]
    # A dollar sign must not begin a formula.
    ax.set_yticks(range(len(labels)), labels=list(labels), parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", alpha=0.3)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def label_of(text: str) -> str:
    """Return a text as a row's label: on one line, shortened in the middle, without hidden characters."""
    visible = "".join(character if character.isprintable() else "�" for character in text)
    half = _LONGEST_LABEL // 2
    return visible if len(visible) <= _LONGEST_LABEL else f"{visible[: half - 1]}…{visible[-half:]}"


def more_rows(left_out: int, noun: str) -> str:
    """Return the end of a title that says how many rows were left out; empty if none were."""
    return f" ({left_out:,} more {noun} left out)" if left_out else ""


_FAILED = "failed"
_SCORE_CLASSES = ("1", "0.5 to 1", "0 to 0.5", "0")
_SCORE_COLORS = ("#2c7bb6", "#abd9e9", "#fdae61", "#c2501a")
_RANGE_COLORS = ("#08519c", "#3182bd", "#6baed6", "#bdd7e7")
_FAILED_COLOR = "#4d4d4d"


def plot_scores(rows: Iterable[Row], metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
    """Draw how the values of a metric are distributed, by template, the best template on top.

    Scores from 0 to 1 fall into the classes 1, at least 0.5, above 0, and 0; values of another range into its
    quarters; the best class comes first. Failed questions are a separate class. Each repeat of a question counts.
    Of more than 50 templates the worst are drawn.
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
    """Return the values by template: None for a failed question, nothing for an answered one without the metric."""
    values: dict[str, list[float | None]] = {}
    is_measured = False
    for row in rows:
        value = value_in(row, metric)
        is_measured = is_measured or value is not None
        if row["status"] == "error" or value is not None:
            values.setdefault(row["template_id"], []).append(None if row["status"] == "error" else value)
    if not is_measured:
        raise _no_values(metric)
    return values


def _no_values(metric: str) -> OptionError:
    hint = "Give a column of to_pandas() that has numbers."
    return OptionError(f"no question has the metric {metric}", key="metric", hint=hint)


def _mean(values: Iterable[float | None], metric: MetricSpec) -> float:
    """Return the mean by which templates are sorted; the worst possible if all failed and failures do not count."""
    counted = [metric.value_of_failure if value is None else value for value in values]
    known = [value for value in counted if value is not None]
    return fmean(known) if known else inf if metric.lower_is_better else -inf


def _classes(values: list[float]) -> tuple[Callable[[float], str], Sequence[str], Sequence[str]]:
    """Return a function from value to class, the classes from highest to lowest, and the colours from best to worst."""
    if not values or 0 <= min(values) <= max(values) <= 1:
        return (
            lambda value: _SCORE_CLASSES[0 if value == 1 else 1 if value >= 0.5 else 2 if value > 0 else 3],
            _SCORE_CLASSES,
            _SCORE_COLORS,
        )
    low, step = min(values), (max(values) - min(values)) / 4 or 1.0
    names = [f"{low + number * step:,.6g} to {low + (number + 1) * step:,.6g}" for number in (3, 2, 1, 0)]
    return lambda value: names[3 - min(3, int((value - low) / step))], names, _RANGE_COLORS


def plot_templates(
    values: Mapping[str, Sequence[float]], metric: str = MAIN_METRIC, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw a metric's mean for each template with its 95 % interval, the best on top.

    The intervals are over a template's questions (``stats.mean_interval``); a single question has none. The dashed
    line is the mean over all questions. Of more than 50 templates those with the worst means are drawn.
    """
    means = {template_id: fmean(group) for template_id, group in values.items() if group}
    if not means:
        raise _no_values(metric)
    spec, every = metric_spec(metric), [value for group in values.values() for value in group]
    order = sorted(means, key=lambda name: means[name], reverse=not spec.lower_is_better)
    drawn = order[-MOST_ROWS:]
    ax = rows_axes([f"{label_of(name)} · {len(values[name])}" for name in drawn], ax)
    for place, name in enumerate(drawn):
        interval = mean_interval(values[name], range(len(values[name])), bounds=spec.bounds_of(values[name]))
        if interval is not None:
            _draw_interval(ax, place, interval.low, interval.high, solid_capstyle="butt")
    # Do not clip a point at the end of the axis.
    ax.plot([means[name] for name in drawn], range(len(drawn)), "o", color=BETTER, clip_on=False)
    ax.axvline(fmean(every), color=NEUTRAL, linestyle="--", linewidth=1)
    _limit_to_range(ax, spec, every)
    ax.set_xlabel(f"mean {metric} with 95 % interval", parse_math=False)
    ax.set_ylabel("template · questions")
    ax.set_title(f"{metric} by template{more_rows(len(order) - len(drawn), 'templates')}", parse_math=False)
    return ax


def plot_trend(rows: Sequence[Row], metric: str = MAIN_METRIC, *, ax: "Axes | None" = None) -> "Axes":
    """Draw a score's means over runs with their 95 % intervals, the first run on top."""
    drawn = [row for row in rows if row["metric"] == metric][-MOST_ROWS:]
    if not drawn:
        raise _no_values(metric)
    means = [float(row["mean"]) for row in drawn]
    ax = rows_axes([label_of(str(row["label"])) for row in drawn], ax)
    for place, row in enumerate(drawn):
        if "low" in row and "high" in row:
            _draw_interval(ax, place, row["low"], row["high"])
    ax.plot(means, range(len(drawn)), "o-", color=BETTER, linewidth=0.8, clip_on=False)
    _limit_to_range(ax, metric_spec(metric), means)
    ax.set_xlabel(f"mean {metric} with 95 % interval", parse_math=False)
    ax.set_ylabel("run")
    ax.set_title(f"{metric} from run to run", parse_math=False)
    return ax


def _draw_interval(ax: "Axes", place: int, low: float, high: float, **style: Any) -> None:
    ax.plot([low, high], [place, place], color=BETTER, linewidth=2, alpha=0.6, clip_on=False, **style)


def _limit_to_range(ax: "Axes", spec: MetricSpec, values: Collection[float]) -> None:
    """Begin the axis at the least possible value, such as 0, and end it at the greatest, if one is known.

    The axis shows the usual range if all values lie in it, else the whole range.
    """
    for low, high in filter(None, (spec.usual_range, spec.range)):
        if (low is None or low <= min(values)) and (high is None or max(values) <= high):
            if low is not None:
                ax.set_xlim(left=low)
            if high is not None:
                ax.set_xlim(right=high)
            return


def plot_times(rows: Iterable[Row], *, ax: "Axes | None" = None) -> "Axes":
    """Draw how many seconds questions took, by template, the slowest on top; failed questions are included.

    A box holds the middle half of a template's questions, the line in it is the median. The vertical lines are the
    median and the 95th percentile of all questions. Of more than 50 templates the slowest are drawn.
    """
    seconds: dict[str, list[float]] = {}
    for row in rows:
        value = measured(row.get(ELAPSED_SEC))
        if value is not None:
            seconds.setdefault(row["template_id"], []).append(value)
    if not seconds:
        raise OptionError("no question has a time", key=ELAPSED_SEC, hint=f"Score responses that have {ELAPSED_SEC}.")
    order = sorted(seconds, key=lambda name: median(seconds[name]), reverse=True)
    drawn = order[:MOST_ROWS]
    ax = rows_axes([label_of(name) for name in drawn], ax)
    ax.boxplot(
        [seconds[name] for name in drawn],
        positions=range(len(drawn)),
        orientation="horizontal",
        widths=0.6,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": "#abd9e9", "edgecolor": BETTER},
        medianprops={"color": BETTER, "linewidth": 2},
        flierprops={"marker": ".", "markeredgecolor": NEUTRAL},
    )
    times = [value for group in seconds.values() for value in group]
    p95 = quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    ax.axvline(median(times), color=NEUTRAL, linestyle="--", linewidth=1, label=f"median {median(times):.3g} s")
    ax.axvline(p95, color=WORSE, linestyle=":", linewidth=1.5, label=f"p95 {p95:.3g} s")
    ax.set_xlim(left=0)
    ax.set_xlabel("seconds")
    ax.set_title(f"Time by template{more_rows(len(order) - len(drawn), 'templates')}")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return ax


_COLORS = {"better": BETTER, "worse": WORSE}


def plot_differences(rows: Iterable[Mapping[str, Any]], *, spent: bool = False, ax: "Axes | None" = None) -> "Axes":
    """Draw each metric's difference from the baseline with its interval: a forest plot.

    Blue is better, orange worse; grey means no evidence of a difference, or too few templates that differ. A
    label marks scores for which lower is better.
    """
    kept = [row for row in rows if row["is_spent"] is spent and (row["mean_a"] or not spent)]
    if not kept:
        what = "what was spent" if spent else "a score"
        raise OptionError(f"the runs do not both have {what}", hint="Compare runs that were measured alike.")
    has_several_runs = len({row["run"] for row in kept}) > 1
    drawn = sorted(kept, key=lambda row: [other["metric"] for other in kept].index(row["metric"]))
    ax = rows_axes([_name(row) + (f" · {row['run']}" if has_several_runs else "") for row in drawn], ax)
    for place, row in enumerate(drawn):
        scale = 100 / row["mean_a"] if spent else 1.0
        color = _COLORS.get(row["verdict"], NEUTRAL)
        if row["low"] is not None:
            ax.plot([row["low"] * scale, row["high"] * scale], [place, place], color=color, linewidth=2)
        ax.plot(row["difference"] * scale, place, "o", color=color)
    ax.axvline(0, color=NEUTRAL, linestyle="--", linewidth=1)
    in_points = "in points" if all(row["unit"] == "score" for row in drawn) else "in the unit of each metric"
    unit, side = ("in % of A", "less is better") if spent else (in_points, "more is better")
    if any(map(_is_direction_shown, drawn)):
        side = f"{side} unless said otherwise"
    ax.set_xlabel(f"difference from A {unit} with interval; {side}")
    ax.set_title("Spent, compared with the baseline" if spent else "Scores, compared with the baseline")
    return ax


def _is_direction_shown(row: Mapping[str, Any]) -> bool:
    """Return whether a label says which way is better: other than for most scores, or for what else is spent."""
    return bool(row["lower_is_better"] is not row["is_spent"])


def _name(row: Mapping[str, Any]) -> str:
    direction = "less is better" if row["lower_is_better"] else "more is better"
    return f"{label_of(row['metric'])}, {direction}" if _is_direction_shown(row) else label_of(row["metric"])


def plot_questions(
    rows: Iterable[Mapping[str, Any]], metric: str, *, lower_is_better: bool | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw each question's difference from the baseline as a bar, the largest gain on top.

    The title counts the questions without a difference, too. Of more than 50 that differ those with the largest
    differences are drawn. Blue is better, orange worse.
    """
    compared = [row for row in rows if row["metric"] == metric]
    if not compared:
        raise OptionError(
            f"no question has the metric {metric} in both runs",
            key="metric",
            hint="Give a metric of to_pandas(), which has all metrics that were compared.",
        )
    is_lower_better = metric_spec(metric).lower_is_better if lower_is_better is None else lower_is_better
    sign = -1 if is_lower_better else 1
    changed = [row for row in compared if row["difference"]]
    largest = sorted(changed, key=lambda row: abs(row["difference"]), reverse=True)[:MOST_ROWS]
    drawn = sorted(largest, key=lambda row: sign * row["difference"], reverse=True)
    has_several_runs = len({row["run"] for row in compared}) > 1
    names = [label_of(row["question_id"]) + (f" · {row['run']}" if has_several_runs else "") for row in drawn]
    ax = rows_axes(names, ax)
    colors = [BETTER if sign * row["difference"] > 0 else WORSE for row in drawn]
    ax.barh(range(len(drawn)), [row["difference"] for row in drawn], color=colors, height=0.7)
    ax.axvline(0, color=NEUTRAL, linewidth=1)
    better = sum(sign * row["difference"] > 0 for row in changed)
    counts = f"{better:,} better, {len(changed) - better:,} worse, {len(compared) - len(changed):,} the same"
    ax.set_title(f"{counts}{more_rows(len(changed) - len(drawn), 'questions')}")
    ax.set_xlabel(f"difference in {metric} from A", parse_math=False)
    return ax
