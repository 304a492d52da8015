"""The plots of a comparison and its one-line summary."""

from typing import Any

import pytest
from matplotlib.figure import Figure

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.compare import RunComparison
from graphrag_eval_lc.errors import OptionError


def results(*scores: float) -> list[dict[str, Any]]:
    return [
        {
            "template_id": f"t{number}",
            "question_id": f"q{number}",
            "status": "success",
            "steps_score": score,
            "total_tokens": 10,
        }
        for number, score in enumerate(scores)
    ]


@pytest.fixture(scope="module")
def comparison() -> RunComparison:
    return compare_runs(results(0, 0, 0, 1), results(1, 1, 0, 0), labels=["before", "after"])


def test_differences_are_of_scores_or_usage(comparison: RunComparison) -> None:
    for spent, metric in ((False, "steps_score"), (True, "total_tokens")):
        ax = comparison.plot_differences(spent=spent, ax=Figure().subplots())
        assert [label.get_text() for label in ax.get_yticklabels()] == [metric]


def test_questions_plot_uses_the_first_score_by_default(comparison: RunComparison) -> None:
    ax = comparison.plot_questions(ax=Figure().subplots())
    assert ax.get_title() == "2 better, 1 worse, 1 the same"
    assert "steps_score" in ax.get_xlabel()
    ax = comparison.plot_questions("total_tokens", ax=Figure().subplots())
    assert ax.get_title() == "0 better, 0 worse, 4 the same"


def test_metric_that_was_not_compared_is_reported(comparison: RunComparison) -> None:
    with pytest.raises(OptionError, match="no question has the metric answer_f1"):
        comparison.plot_questions("answer_f1", ax=Figure().subplots())


def test_summary_names_the_runs(comparison: RunComparison) -> None:
    assert repr(comparison) == "<RunComparison of before with after (4 questions)>"
