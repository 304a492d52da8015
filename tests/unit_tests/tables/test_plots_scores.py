from typing import Any

import pytest
from matplotlib.axes import Axes

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.tables.plots import plot_scores


def row(template_id: str, score: float | None, status: str = "success") -> dict[str, Any]:
    return {"template_id": template_id, "status": status, **({} if score is None else {"steps_score": score})}


def widths(ax: Axes) -> dict[str, list[float]]:
    """Return, for each class, the number of questions per template."""
    return {str(bars.get_label()): [bar.get_width() for bar in bars] for bars in ax.containers}


def templates(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_questions_are_counted_by_class_with_the_best_template_on_top() -> None:
    rows = [
        *(row("bad", score) for score in (0.0, 0.25, 1.0)),
        row("bad", 0.75, "error"),
        *(row("good", score) for score in (0.5, 1.0)),
    ]
    ax = plot_scores(rows)
    assert templates(ax) == ["good", "bad"]
    assert widths(ax) == {"1": [1, 1], "0.5 to 1": [1, 0], "0 to 0.5": [0, 1], "0": [0, 1], "failed": [0, 1]}


def test_failed_questions_are_counted_but_unmeasured_ones_are_not() -> None:
    ax = plot_scores([row("t", 1.0), row("t", None, "error"), row("t", None), row("u", None)])
    assert widths(ax) == {"1": [1], "failed": [1]}


def test_template_with_only_failures_is_drawn() -> None:
    ax = plot_scores([row("fine", 1.0), row("lost", None, "error")])
    assert templates(ax) == ["fine", "lost"]


def test_plot_of_failures_only_is_drawn() -> None:
    assert widths(plot_scores([row("t", 0.0, "error")])) == {"failed": [1]}


def test_values_outside_0_to_1_are_binned_into_quarters_of_their_range() -> None:
    ax = plot_scores([row("t", value) for value in (1, 2, 3, 5, 5)])
    assert widths(ax) == {"4 to 5": [2], "3 to 4": [1], "2 to 3": [1], "1 to 2": [1]}


def test_equal_values_above_1_are_one_class() -> None:
    assert list(widths(plot_scores([row("t", 7), row("t", 7)])).values()) == [[2]]


def test_worst_of_many_templates_are_drawn() -> None:
    ax = plot_scores([row(f"t{number}", number / 100) for number in range(60)])
    assert (templates(ax)[0], templates(ax)[-1], len(templates(ax))) == ("t49", "t0", 50)
    assert "10 more templates left out" in ax.get_title()


def test_unmeasured_metric_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"no question has the metric answer_f1\. Give a column"):
        plot_scores([row("t", 1.0)], "answer_f1")
