from typing import Any

import pytest

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.tables.plots import plot_times


def rows(**seconds: list[float]) -> list[dict[str, Any]]:
    return [{"template_id": name, "elapsed_sec": value} for name, values in seconds.items() for value in values]


def test_slowest_template_is_on_top() -> None:
    ax = plot_times([*rows(fast=[1.0, 2.0], slow=[3.0, 5.0]), {"template_id": "unmeasured"}])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["slow", "fast"]


def test_median_and_p95_are_over_all_questions() -> None:
    legend = plot_times(rows(a=[1.0, 2.0], b=[3.0])).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["median 2 s", "p95 2.9 s"]


def test_single_time_is_median_and_p95() -> None:
    legend = plot_times(rows(a=[1.5])).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["median 1.5 s", "p95 1.5 s"]


def test_nothing_measured_is_an_error() -> None:
    with pytest.raises(OptionError, match="no question has a time"):
        plot_times([{"template_id": "t"}])
