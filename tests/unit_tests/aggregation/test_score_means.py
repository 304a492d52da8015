"""The means that people are shown: over all questions, and over the answered ones."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.score_means import ScoreMean, ScoreValues, mean_text, score_values

REFERENCE = [[{"name": "lookup", "output": "1"}]]


def values_of(*results: Any) -> dict[str, ScoreValues]:
    numbers = RunValues()
    for at, result in enumerate(results):
        numbers.add({"question_id": f"q{at}", "template_id": "t", "reference_steps": REFERENCE, **result})
    return score_values(numbers)


def test_failed_question_counts_as_0_in_the_first_mean_alone() -> None:
    values = values_of({"steps_score": 1.0}, {"steps_score": 0.5}, {"error": "away"})
    assert values["steps_score"].mean() == ScoreMean(0.5, 0.75)


def test_each_template_counts_once_in_the_mean_of_templates() -> None:
    values = values_of(
        {"steps_score": 1.0}, {"steps_score": 1.0}, {"steps_score": 0.0, "template_id": "other"}, {"error": "away"}
    )
    assert values["steps_score"].mean_of_templates() == ScoreMean((2 / 3 + 0) / 2, 0.5)
    assert values["steps_score"].of_template("other").mean() == ScoreMean(0.0, 0.0)
    assert values["steps_score"].of_template("absent").mean() == ScoreMean(None, None)


def test_spent_numbers_and_upper_bounds_are_no_scores_of_their_own() -> None:
    values = values_of({"steps_score": 0.5, "steps_score_upper": 1.0, "total_tokens": 5})
    assert list(values) == ["steps_score"]
    assert list(values["steps_score"].upper["t"]) == [1.0]


@given(st.lists(st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=12))
def test_first_mean_is_never_above_that_of_the_answered(scores: list[float | None]) -> None:
    found = values_of(*({"error": "away"} if score is None else {"steps_score": score} for score in scores))
    if "steps_score" in found:
        every, answered = found["steps_score"].mean()
        known = [score for score in scores if score is not None]
        assert every is not None
        assert answered is not None
        assert abs(every * len(scores) - sum(known)) < 1e-9
        assert every <= answered + 1e-12


def test_both_means_are_told_where_they_differ() -> None:
    assert mean_text(ScoreMean(0.0, None)) == "0.000 (answered: –)"
    assert mean_text(ScoreMean(0.5, 0.5)) == "0.500"
