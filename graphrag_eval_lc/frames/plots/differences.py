"""The plot of differences: how much better or worse each metric is, and how sure that is."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.frames.plots.canvas import BETTER, NEUTRAL, WORSE, label_of, rows_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {"better": BETTER, "worse": WORSE}


def plot_differences(rows: Iterable[Mapping[str, Any]], *, spent: bool = False, ax: "Axes | None" = None) -> "Axes":
    """Draw the difference of each metric from that of the baseline, with its 95 % interval: a forest plot.

    Blue is better, orange worse, grey no evidence of a difference, or too few templates that differ to tell. Beside a
    score of which less is better it is said.

    Args:
        rows: Those of a comparison's metrics.
        spent: Whether to draw what was spent, in percent of the baseline, in place of the scores.
        ax: Where to draw; new axes by default.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OptionError: There is nothing to draw.
    """
    kept = [row for row in rows if row["is_spent"] is spent and (row["mean_a"] or not spent)]
    if not kept:
        what = "what was spent" if spent else "a score"
        raise OptionError(f"the runs do not both have {what}", mend="Compare runs that were measured alike.")
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
    if any(map(_is_said, drawn)):
        side = f"{side} unless said otherwise"
    ax.set_xlabel(f"difference from A {unit} with 95 % interval; {side}")
    ax.set_title("Spent, beside the baseline" if spent else "Scores, beside the baseline")
    return ax


def _is_said(row: Mapping[str, Any]) -> bool:
    """Tell whether a metric differs from its kind in which way is better."""
    return bool(row["lower_is_better"] is not row["is_spent"])


def _name(row: Mapping[str, Any]) -> str:
    direction = "less is better" if row["lower_is_better"] else "more is better"
    return f"{label_of(row['metric'])}, {direction}" if _is_said(row) else label_of(row["metric"])
