"""The plot of means: how good the agent is on each template, and how sure that is."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.frames.plots.canvas import BETTER, MOST_ROWS, NEUTRAL, label_of, more_rows, rows_axes
from graphrag_eval_lc.registry import metric_spec
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.stats import bootstrap_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_templates(
    values: Mapping[str, Sequence[float]], metric: str = MAIN_METRIC, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw a metric's mean for each template with its 95 % interval, the best on top.

    The intervals are bootstrapped over a template's questions; one question alone has none. The dashed line is the
    mean over all questions. Of more than 50 templates those with the worst means are drawn.

    Args:
        values: A number for each question, by template.
        metric: Its name.
        ax: Where to draw; new axes by default.

    Raises:
        MissingExtraError: matplotlib or scipy is not installed.
        OptionError: There is no number.
    """
    means = {template_id: fmean(group) for template_id, group in values.items() if group}
    if not means:
        raise OptionError(
            f"no question has the metric {metric}",
            key="metric",
            mend="Give a column of to_pandas() that has numbers.",
        )
    order = sorted(means, key=lambda name: means[name], reverse=not metric_spec(metric).lower_is_better)
    drawn = order[-MOST_ROWS:]
    ax = rows_axes([f"{label_of(name)} · {len(values[name])}" for name in drawn], ax)
    for place, name in enumerate(drawn):
        interval = bootstrap_interval([[value] for value in values[name]])
        if interval is not None:
            ax.plot(interval, [place, place], color=BETTER, linewidth=2, alpha=0.6, solid_capstyle="butt")
    ax.plot([means[name] for name in drawn], range(len(drawn)), "o", color=BETTER)
    ax.axvline(fmean(value for group in values.values() for value in group), color=NEUTRAL, linestyle="--", linewidth=1)
    ax.set_xlabel(f"mean {metric} with 95 % interval", parse_math=False)
    ax.set_ylabel("template · questions")
    ax.set_title(f"{metric} by template{more_rows(len(order) - len(drawn), 'templates')}", parse_math=False)
    return ax
