"""Comparisons and gates with undecided steps."""

from typing import Any

import pytest
from support.page_data import compared_rows, comparison_html
from support.uncertain_steps import results_of

from graphrag_eval_lc import compare_runs
from graphrag_eval_lc.cli.compare import print_comparison
from graphrag_eval_lc.compare import gate_results
from graphrag_eval_lc.compare.run_comparison import RunComparison
from graphrag_eval_lc.errors import OptionError


def compared(metrics: list[str] | None = None, **outputs: tuple[str, str]) -> RunComparison:
    sides: list[Any] = [results_of(**{name: pair[side] for name, pair in outputs.items()}) for side in (0, 1)]
    return compare_runs(*sides, metrics=metrics)


def test_question_with_undecided_steps_flips_by_score_and_is_marked() -> None:
    comparison = compared(t_1=("ok", "?"), t_2=("o<cut>", "ok"), t_3=("ok", "no"))
    flips = {flip.question_id: (flip.direction, flip.is_undecided) for flip in comparison.pairs[0].flips}
    assert flips == {"t_1": ("broken", True), "t_2": ("fixed", True), "t_3": ("broken", False)}
    marked = {flip.question_id: (flip.a.is_undecided, flip.b.is_undecided) for flip in comparison.pairs[0].flips}
    assert marked == {"t_1": (False, True), "t_2": (True, False), "t_3": (False, False)}


def test_each_run_with_undecided_steps_has_a_warning() -> None:
    comparison = compared(t_1=("ok", "?"), t_2=("ok", "no"))
    texts = [text for text in comparison.warnings if "undecided" in text]
    assert texts == [
        "B has undecided steps, which count 0: its steps_score is between 0.000 and 0.500; if a question that has "
        "some changed, that is marked as undecided."
    ]
    assert not [text for text in compared(t_1=("ok", "no")).warnings if "undecided" in text]


def test_upper_bound_is_a_metric_only_if_it_is_named() -> None:
    outputs = {"t_1": ("ok", "?"), "t_2": ("ok", "no")}
    metrics = [metric.metric for metric in compared(**outputs).pairs[0].metrics]
    assert metrics == ["steps_score", "steps_recall", "steps_precision", "steps_f1", "steps_order"]
    assert not [text for text in compared(**outputs).warnings if "steps_score_upper" in text]
    named = compared(["steps_score_upper"], **outputs).pairs[0].metric("steps_score_upper")
    assert named is not None
    # A has no undecided steps, so its score counts.
    assert (named.mean_a, named.mean_b, named.number_of_questions) == (1.0, 0.5, 2)
    (flip,) = compared(["steps_score_upper"], **outputs).pairs[0].flips
    assert (flip.question_id, flip.a.score, flip.b.score) == ("t_2", 1.0, 0.0)


def test_terminal_and_page_mark_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    comparison = compared(t_1=("ok", "?"), t_2=("ok", "no"))
    monkeypatch.setenv("COLUMNS", "150")
    print_comparison(comparison.view(), show=5)
    assert capsys.readouterr().out.count("(undecided)") == 1
    rows = {row["k"]: row for row in compared_rows(comparison_html(comparison))}
    assert [name for name, row in rows.items() if "u" in row] == ["t_1"]
    assert [side.get("undecided") for side in rows["t_1"]["detail"]["sides"]] == [None, True]


def test_upper_bound_can_be_required_if_nothing_is_undecided() -> None:
    results: Any = results_of(t_1="ok", t_2="no")
    (gate,) = gate_results(results, {"steps_score_upper": 0.5})
    assert (gate.has_passed, gate.value) == (True, 0.5)


@pytest.mark.parametrize("count", ["undecided", "outputs_cut"])
def test_counts_cannot_be_required(count: str) -> None:
    with pytest.raises(OptionError, match=f"less is better for {count}"):
        gate_results([], {count: 0.0})


def test_old_results_have_no_undecided_steps() -> None:
    old: Any = [{"template_id": "t", "question_id": "q", "steps_score": score} for score in (1.0, 0.0)]
    comparison = compare_runs(old[:1], old[1:])
    assert [flip.is_undecided for flip in comparison.pairs[0].flips] == [False]
