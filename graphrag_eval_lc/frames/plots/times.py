"""The plot of times: how long questions take, by template."""

from collections.abc import Iterable
from statistics import median, quantiles
from typing import TYPE_CHECKING

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.frames.measures import measured
from graphrag_eval_lc.frames.plots.canvas import BETTER, MOST_ROWS, NEUTRAL, WORSE, label_of, more_rows, rows_axes
from graphrag_eval_lc.frames.table import Row
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_times(rows: Iterable[Row], *, ax: "Axes | None" = None) -> "Axes":
    """Draw how many seconds questions took, by template, the slowest on top; failed ones are included.

    A box holds the middle half of a template's questions, the line in it is the median. The vertical lines are
    median and 95th percentile of all questions. Of more than 50 templates the slowest are drawn.

    Args:
        rows: Those of ``questions_table``.
        ax: Where to draw; new axes by default.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OptionError: No time was measured.
    """
    seconds: dict[str, list[float]] = {}
    for row in rows:
        value = measured(row.get(ELAPSED_SEC))
        if value is not None:
            seconds.setdefault(row["template_id"], []).append(value)
    if not seconds:
        raise OptionError("no question has a time", key=ELAPSED_SEC, mend=f"Score responses that have {ELAPSED_SEC}.")
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
