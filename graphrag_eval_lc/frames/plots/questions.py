"""The plot of questions: which of them are better in one run than in another, and by how much."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.frames.plots.canvas import BETTER, MOST_ROWS, NEUTRAL, WORSE, label_of, more_rows, rows_axes
from graphrag_eval_lc.registry import metric_spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_questions(
    rows: Iterable[Mapping[str, Any]], metric: str, *, lower_is_better: bool | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw each question's difference from the baseline as a bar, the largest gain on top.

    Questions without a difference are counted in the title only. Of more than 50 that differ those with the largest
    differences are drawn. Blue is better, orange worse.

    Args:
        rows: Those of a comparison's questions, of all metrics.
        metric: The metric that is drawn.
        lower_is_better: Whether less of it is better; None for what is declared here.
        ax: Where to draw; new axes by default.

    Raises:
        MissingExtraError: matplotlib is not installed.
        OptionError: No question has the metric in both runs.
    """
    compared = [row for row in rows if row["metric"] == metric]
    if not compared:
        raise OptionError(
            f"no question has the metric {metric} in both runs",
            key="metric",
            mend="Give a metric of to_pandas(), where all that were compared are.",
        )
    is_lower_better = metric_spec(metric).lower_is_better if lower_is_better is None else lower_is_better
    sign = -1 if is_lower_better else 1
    changed = [row for row in compared if row["difference"]]
    largest = sorted(changed, key=lambda row: abs(row["difference"]), reverse=True)[:MOST_ROWS]
    drawn = sorted(largest, key=lambda row: sign * row["difference"], reverse=True)
    has_several_runs = len({row["run"] for row in compared}) > 1
    names = [label_of(row["question_id"]) + (f" · {row['run']}" if has_several_runs else "") for row in drawn]
    ax = rows_axes(names, ax)
    gains = [sign * row["difference"] > 0 for row in drawn]
    colors = [BETTER if is_gain else WORSE for is_gain in gains]
    ax.barh(range(len(drawn)), [row["difference"] for row in drawn], color=colors, height=0.7)
    ax.axvline(0, color=NEUTRAL, linewidth=1)
    better = sum(sign * row["difference"] > 0 for row in changed)
    counts = f"{better:,} better, {len(changed) - better:,} worse, {len(compared) - len(changed):,} the same"
    ax.set_title(f"{counts}{more_rows(len(changed) - len(drawn), 'questions')}")
    ax.set_xlabel(f"difference in {metric} from A", parse_math=False)
    return ax
