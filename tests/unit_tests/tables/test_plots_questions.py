from typing import Any

import pytest
from matplotlib.colors import to_hex

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.tables.plots import BETTER, WORSE, plot_questions


def rows(metric: str, *differences: float, run: str = "B") -> list[dict[str, Any]]:
    return [
        {"run": run, "question_id": f"q{number}", "metric": metric, "difference": difference}
        for number, difference in enumerate(differences)
    ]


def test_changed_questions_are_bars_with_the_largest_gain_on_top() -> None:
    ax = plot_questions([*rows("steps_score", 0.0, -1.0, 0.5, 1.0), *rows("answer_f1", 1.0)], "steps_score")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q3", "q2", "q1"]
    assert [patch.get_width() for patch in ax.patches] == [1.0, 0.5, -1.0]  # type: ignore[attr-defined]
    assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [BETTER, BETTER, WORSE]
    assert ax.get_title() == "2 better, 1 worse, 1 the same"


def test_for_spent_metrics_a_decrease_is_a_gain() -> None:
    ax = plot_questions(rows("total_tokens", -10, 5), "total_tokens")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q0", "q1"]
    assert [to_hex(patch.get_facecolor()) for patch in ax.patches] == [BETTER, WORSE]


def test_largest_of_many_differences_are_drawn() -> None:
    ax = plot_questions(rows("steps_score", *(number / 100 for number in range(61))), "steps_score")
    assert len(ax.get_yticklabels()) == 50
    assert ax.get_title() == "60 better, 0 worse, 1 the same (10 more questions left out)"


def test_several_runs_are_distinguished() -> None:
    ax = plot_questions([*rows("steps_score", 1.0), *rows("steps_score", 0.5, run="C")], "steps_score")
    assert [label.get_text() for label in ax.get_yticklabels()] == ["q0 · B", "q0 · C"]


def test_plot_without_changes_is_drawn() -> None:
    assert plot_questions(rows("steps_score", 0.0, 0.0), "steps_score").get_title() == "0 better, 0 worse, 2 the same"


def test_metric_that_was_not_compared_is_an_error() -> None:
    with pytest.raises(OptionError, match="no question has the metric answer_f1 in both runs"):
        plot_questions(rows("steps_score", 1.0), "answer_f1")
