from typing import Any

import pytest
from matplotlib.colors import to_hex

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.tables.plots import BETTER, NEUTRAL, WORSE, plot_differences


def row(metric: str, difference: float, **keys: Any) -> dict[str, Any]:
    defaults = {"run": "B", "is_spent": False, "mean_a": 0.5, "low": difference - 0.1, "high": difference + 0.1}
    defaults |= {"lower_is_better": keys.get("is_spent", False), "unit": "score"}
    return {"metric": metric, "difference": difference, "verdict": "no evidence", **defaults, **keys}


ROWS = [
    row("steps_score", 0.2, verdict="better"),
    row("answer_f1", -0.2, verdict="worse"),
    row("answer_recall", 0.01),
    row("total_tokens", -50, is_spent=True, mean_a=200.0, low=-100, high=20, verdict="better"),
    row("agent_cost", 0.0, is_spent=True, mean_a=0.0),
]


def test_scores_are_rows_with_interval_and_verdict() -> None:
    ax = plot_differences(ROWS)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["steps_score", "answer_f1", "answer_recall"]
    intervals, points = ax.get_lines()[:-1:2], ax.get_lines()[1:-1:2]
    assert [to_hex(line.get_color()) for line in intervals] == [BETTER, WORSE, NEUTRAL]
    assert [line.get_xdata()[0] for line in points] == [0.2, -0.2, 0.01]  # type: ignore[index]
    assert list(intervals[0].get_xdata()) == pytest.approx([0.1, 0.3])  # type: ignore[arg-type]


def test_spent_metric_is_in_percent_of_a_non_zero_baseline() -> None:
    ax = plot_differences(ROWS, spent=True)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["total_tokens"]
    assert list(ax.get_lines()[0].get_xdata()) == [-50.0, 10.0]  # type: ignore[arg-type]
    assert list(ax.get_lines()[1].get_xdata()) == [-25.0]  # type: ignore[arg-type]
    assert "less is better" in ax.get_xlabel()


def test_several_runs_are_grouped_by_metric() -> None:
    ax = plot_differences([*ROWS[:2], row("steps_score", 0.1, run="C")])
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "steps_score · B",
        "steps_score · C",
        "answer_f1 · B",
    ]


def test_difference_without_interval_is_a_point() -> None:
    assert len(plot_differences([row("steps_score", 0.1, low=None, high=None)]).get_lines()) == 2


def test_lower_is_better_scores_are_marked() -> None:
    detour = row("detour", -2.0, lower_is_better=True, unit="km", verdict="better")
    ax = plot_differences([ROWS[0], detour, {**detour, "run": "C"}])
    assert [label.get_text() for label in ax.get_yticklabels()][1:] == [
        "detour, less is better · B",
        "detour, less is better · C",
    ]
    assert "in the unit of each metric" in ax.get_xlabel()
    assert ax.get_xlabel().endswith("more is better unless said otherwise")
    assert plot_differences(ROWS).get_xlabel() == "difference from A in points with interval; more is better"


@pytest.mark.parametrize("spent", [False, True])
def test_nothing_to_draw_is_an_error(spent: bool) -> None:
    with pytest.raises(OptionError, match="the runs do not both have"):
        plot_differences([each for each in ROWS if each["is_spent"] is not spent], spent=spent)
