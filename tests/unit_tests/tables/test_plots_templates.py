import pytest

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.metrics.intervals import mean_interval
from graphrag_eval_lc.tables.plots import plot_templates


def test_means_have_intervals_and_the_highest_is_on_top() -> None:
    ax = plot_templates({"low": [0.0, 1.0, 0.0], "high": [1.0, 0.5]})
    low, high = ax.get_lines()[1], ax.get_lines()[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["high · 2", "low · 3"]
    assert tuple(high.get_xdata()) == mean_interval([1.0, 0.5], [1, 2])[:2]  # type: ignore[arg-type, index]
    assert tuple(low.get_xdata()) == mean_interval([0.0, 1.0, 0.0], [1, 2, 3])[:2]  # type: ignore[arg-type, index]
    assert list(ax.get_lines()[2].get_xdata()) == [0.75, pytest.approx(1 / 3)]  # type: ignore[arg-type]


def test_line_is_the_mean_over_all_questions() -> None:
    ax = plot_templates({"a": [1.0, 1.0, 1.0], "b": [0.0]})
    assert list(ax.get_lines()[-1].get_xdata()) == [0.75, 0.75]  # type: ignore[arg-type]


def test_one_question_has_no_interval() -> None:
    assert len(plot_templates({"a": [1.0]}).get_lines()) == 2


def test_lowest_of_many_templates_are_drawn() -> None:
    ax = plot_templates({f"t{number}": [number] for number in range(60)})
    assert len(ax.get_yticklabels()) == 50
    assert "10 more templates left out" in ax.get_title()


@pytest.mark.parametrize("values", [{}, {"t": []}])
def test_nothing_to_draw_is_an_error(values: dict[str, list[float]]) -> None:
    with pytest.raises(OptionError, match="no question has the metric answer_f1"):
        plot_templates(values, "answer_f1")


def test_axis_of_a_score_is_limited_to_its_range() -> None:
    assert plot_templates({"low": [0.0, 1.0, 0.0], "high": [1.0, 0.5]}).get_xlim() == (0.0, 1.0)
    assert plot_templates({"a": [0.9], "b": [0.95]}, "steps_f1").get_xlim() == (0.0, 1.0)


def test_axis_of_a_spent_metric_starts_at_0() -> None:
    low, high = plot_templates({"a": [900.0, 1000.0], "b": [950.0]}, "total_tokens").get_xlim()
    assert low == 0.0
    assert high > 1000


def test_axis_includes_negative_values() -> None:
    low, _ = plot_templates({"a": [-0.5, 0.5], "b": [0.5]}, "gain").get_xlim()
    assert low < -0.5
