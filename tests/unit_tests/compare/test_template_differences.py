"""Differences between two runs by template."""

from math import isclose
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.compare import compare_runs
from graphrag_eval_lc.compare.comparison_view import TemplateDifference, template_differences

Scores = list[tuple[str, float, float]]


def found(scores: Scores, metric: str = "steps_score", **more: Any) -> tuple[Any, list[TemplateDifference]]:
    runs = [
        [
            {"question_id": f"q{n}", "template_id": each[0], "question_text": f"{n}?", metric: each[1 + side], **more}
            for n, each in enumerate(scores)
        ]
        for side in (0, 1)
    ]
    (pair,) = compare_runs(*runs, metrics=[metric]).pairs
    compared = pair.metric(metric)
    assert compared is not None
    return compared, template_differences(pair, compared)


def test_largest_drop_comes_first_with_lost_and_fixed_questions() -> None:
    _, rows = found(
        [
            ("up", 0.0, 1.0),
            ("up", 0.25, 0.5),
            ("same", 1.0, 1.0),
            ("down", 1.0, 0.0),
            ("down", 0.5, 0.25),
            ("down", 1, 1),
        ]
    )
    assert [row.template_id for row in rows] == ["down", "same", "up"]
    assert [(row.broken, row.fixed, row.worse, row.better) for row in rows] == [
        (1, 0, 1, 0),
        (0, 0, 0, 0),
        (0, 1, 0, 1),
    ]
    assert [row.number_of_questions for row in rows] == [3, 1, 2]
    assert [round(row.difference, 3) for row in rows] == [-0.417, 0.0, 0.625]


def test_higher_usage_is_a_drop_without_lost_questions() -> None:
    _, rows = found([("less", 100, 50), ("more", 100, 200)], "total_tokens")
    assert [(row.template_id, row.difference, row.broken, row.worse) for row in rows] == [
        ("more", 100, 0, 0),
        ("less", -50, 0, 0),
    ]


def test_means_that_differ_by_rounding_are_the_same() -> None:
    _, rows = found([("t", 0.1, 0.3), ("t", 0.2, 0.1), ("t", 0.3, 0.2)])
    assert [row.difference for row in rows] == [0.0]
    assert (rows[0].worse, rows[0].better) == (2, 1)


score = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(st.sampled_from("abcd"), score, score), min_size=1, max_size=30))
def test_templates_add_up_to_the_total(scores: Scores) -> None:
    metric, rows = found(scores)
    number = sum(row.number_of_questions for row in rows)
    assert number == metric.number_of_questions
    assert isclose(
        sum(row.difference * row.number_of_questions for row in rows) / number, metric.difference, abs_tol=1e-9
    )
    assert sum(row.broken + row.worse for row in rows) == metric.losses
    assert sum(row.fixed + row.better for row in rows) == metric.wins
    differences = [row.difference for row in rows]
    assert differences == sorted(differences)
