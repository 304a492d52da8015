from typing import Any

from support.uncertain_steps import look_call, reference, register_text_matcher, results_of

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.tables import Results


def result_of(*steps: dict[str, Any], groups: Any = None, **more: Any) -> dict[str, Any]:
    register_text_matcher()
    question = {"id": "q", "question_text": "?", "reference_steps": groups or [[reference()]]}
    dataset: Any = [{"template_id": "t", "questions": [question]}]
    return dict(run_evaluation(dataset, [{"question_id": "q", "actual_steps": list(steps), **more}])[0])  # type: ignore[typeddict-item]


def test_undecided_step_is_reported_counted_and_bounds_the_score() -> None:
    result = result_of(look_call("?"))
    assert (result["steps_score"], result["steps_score_upper"]) == (0.0, 1.0)
    assert result["steps_diagnosis"] == [
        [
            {
                "score": 0.0,
                "outcome": "undecided",
                "matched": False,
                "reason": "the search reached its bound",
                "nearest": "c-?",
            }
        ]
    ]
    assert result["steps_counts"] == {"extra": 0, "repeated": 0, "failed": 0, "undecided": 1, "outputs_cut": 0}


def test_truncated_output_is_noted_on_its_step_and_is_not_a_tool_error() -> None:
    result = result_of(look_call("o<cut>"))
    assert result["actual_steps"][0]["output_cut"] == "the output ends after 1 characters"
    assert "comparison_error" not in result["actual_steps"][0]
    assert (result["steps_counts"]["outputs_cut"], result["steps_counts"]["undecided"]) == (1, 1)


def test_values_of_an_earlier_evaluation_are_dropped() -> None:
    old = {"steps_score_upper": 0.9, "steps_counts": {"undecided": 7}}
    result = result_of(look_call("ok", output_cut="earlier"), **old)
    assert "steps_score_upper" not in result
    assert result["steps_counts"]["undecided"] == 0
    assert "output_cut" not in result["actual_steps"][0]


def test_key_of_the_question_named_like_a_count_is_kept() -> None:
    assert result_of(look_call("ok"), undecided="by the author")["undecided"] == "by the author"


def test_tables_have_columns_for_the_counts_and_the_bound() -> None:
    results = Results(results_of(t_1="ok", t_2="?", t_3="o<cut>", t_4="no"))  # type: ignore[arg-type]
    rows = results.table().rows
    assert [(row["steps_undecided"], row["steps_outputs_cut"]) for row in rows] == [(0, 0), (1, 0), (1, 1), (0, 0)]
    assert [row.get("steps_score_upper") for row in rows] == [None, 1.0, 1.0, None]
    shown = results._repr_html_()
    assert "0.750 if all undecided steps fitted" in shown
    assert "mean steps_undecided" not in shown
