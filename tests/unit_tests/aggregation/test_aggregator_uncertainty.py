from typing import Any

import pytest
from support.uncertain_steps import results_of

from graphrag_eval_lc import compute_aggregates
from graphrag_eval_lc.aggregation import RunValues
from graphrag_eval_lc.aggregation.notes import uncertainty_texts


def means(summary: dict[str, Any]) -> tuple[float, float | None]:
    return summary["steps_score"]["mean"], summary.get("steps_score_upper", {}).get("mean")


def test_counts_and_bounds_stand_by_template_and_over_all() -> None:
    aggregates = compute_aggregates(results_of(t_1="ok", t_2="?", u_1="no", u_2="o<cut>", v_1="ok"))
    by_template = aggregates["per_template"]
    assert {name: (each.get("undecided"), each.get("outputs_cut")) for name, each in by_template.items()} == {
        "t": (1, None),
        "u": (1, 1),
        "v": (None, None),
    }
    assert (aggregates["micro"]["undecided"], aggregates["micro"]["outputs_cut"]) == (2, 1)
    assert means(by_template["t"]) == (0.5, 1.0)
    assert means(by_template["u"]) == (0.0, 0.5)
    assert means(by_template["v"]) == (1.0, None)
    # Over the same questions as steps_score, those without doubts with their scores.
    assert means(aggregates["micro"]) == (0.4, 0.8)
    assert means(aggregates["macro"]) == (0.5, pytest.approx((1.0 + 0.5 + 1.0) / 3))


def test_all_three_are_absent_where_nothing_is_undecided() -> None:
    aggregates = compute_aggregates(results_of(t_1="ok", t_2="no"))
    for part in (aggregates["micro"], aggregates["macro"], aggregates["per_template"]["t"]):
        assert not {"undecided", "outputs_cut", "steps_score_upper"} & part.keys()


def test_results_that_do_not_count_them_have_no_counts() -> None:
    old: Any = [{"template_id": "t", "question_id": "q", "steps_score": 0.5, "steps_counts": {"extra": 1}}]
    micro = compute_aggregates(old)["micro"]
    assert not {"undecided", "outputs_cut", "steps_score_upper"} & micro.keys()


def test_failed_question_is_left_out_and_counts_as_0_where_errors_are_included() -> None:
    results = results_of(t_1="ok", t_2="?")
    results[1] |= {"status": "error", "error": "away"}
    left_out = compute_aggregates(results)["micro"]
    assert (left_out.get("undecided"), *means(left_out)) == (None, 1.0, None)
    included = compute_aggregates(results, {"aggregates": {"errors": "include"}})["micro"]
    assert (included["undecided"], *means(included)) == (1, 0.5, 0.5)


def test_repeats_count_each_and_an_undecided_one_does_not_pass() -> None:
    first, second = results_of(q="ok")[0], results_of(q="?")[0]
    aggregates = compute_aggregates([first | {"repeat": 1}, second | {"repeat": 2}])
    assert aggregates["micro"]["undecided"] == 1
    assert means(aggregates["micro"]) == (0.5, 1.0)
    repeats = aggregates["repeats"]
    assert (repeats["pass@k"]["1"], repeats["metrics"]["steps_score_upper"]["mean"]) == (0.5, 1.0)


def test_values_of_questions_have_the_bound_of_all_where_one_has_it() -> None:
    values = RunValues()
    for result in results_of(t_1="ok", t_2="?", t_3="no"):
        values.add(result)
    bounds = [question.score("steps_score_upper") for question in values.questions.values()]
    assert bounds == [1.0, 1.0, 0.0]
    assert values.mean_of_upper_bound("steps_score") == pytest.approx(2 / 3)
    assert values.mean_of_upper_bound("answer_f1") is None


def test_questions_without_doubts_bound_themselves_and_are_not_told_to_have_a_bound() -> None:
    values = RunValues()
    values.add({"template_id": "t", "question_id": "q", "steps_score": 0.5})
    assert values.questions["q"].score("steps_score_upper") == 0.5
    assert (list(values.measured()), values.has("steps_score_upper")) == (["steps_score"], True)
    assert values.mean_of_upper_bound("steps_score") is None


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((0, 0, 0.5, 0.5), []),
        ((1, 0, 0.5, 0.5), ["1 reference step is undecided and counts 0."]),
        (
            (0, 0, 0.5, 0.75),
            ["some comparisons are undecided and count 0: steps_score is between 0.500 and 0.750."],
        ),
        (
            (0, 2),
            [
                "2 outputs end before the end, and the rest is not known; raise the length limit of the tool, "
                "or of the capture (max_output_chars)."
            ],
        ),
    ],
)
def test_sentences_say_what_is_uncertain(numbers: Any, texts: list[str]) -> None:
    assert uncertainty_texts(*numbers) == texts
