"""The declared direction of a metric, and its use everywhere that runs are compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from support.page_data import comparison_html

from graphrag_eval_lc import compare_runs, register_metric, run_evaluation
from graphrag_eval_lc.compare import MetricComparison, RunComparison, read_gates
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry import MetricSpec, metrics
from graphrag_eval_lc.tables import Results
from graphrag_eval_lc.tables.plots import plot_scores, plot_templates

FEW, MANY = [10.0] * 8, [12.0 + number for number in range(8)]
RIGHT, WRONG = [0.0] * 8, [0.5] * 4 + [1.0] * 4


def evaluated(key: str, values: Sequence[float]) -> Results:
    """Return results with an evaluator's numbers, one per template."""

    def evaluator(question: dict[str, Any], response: dict[str, Any]) -> dict[str, float]:
        return {key: float(response["actual_answer"])}

    templates: Any = [
        {"template_id": f"t{n}", "questions": [{"id": f"q{n}", "question_text": "?"}]} for n in range(len(values))
    ]
    responses: Any = [{"question_id": f"q{n}", "actual_answer": str(value)} for n, value in enumerate(values)]
    return run_evaluation(templates, responses, evaluators=[evaluator])


SAVED = evaluated("saved_sec", FEW), evaluated("saved_sec", MANY)
MADE_UP = evaluated("made_up", WRONG), evaluated("made_up", RIGHT)
FAR = evaluated("detour", FEW), evaluated("detour", MANY)


def declare(monkeypatch: pytest.MonkeyPatch, key: str, **declared: Any) -> None:
    registered = metrics.RegisteredMetric(MetricSpec(key=key, **declared), lambda question, response: None)
    monkeypatch.setitem(metrics.metrics_of_users, key, registered)


@pytest.fixture(params=[False, True], ids=["undeclared", "less is better"])
def less_is_better(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Declare `saved_sec` as a lower-is-better metric, or leave it undeclared."""
    if request.param:
        declare(monkeypatch, "saved_sec", unit="seconds", lower_is_better=True, range=(0.0, None))
    return bool(request.param)


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a score from 0 to 1 whose best value is 0."""
    declare(monkeypatch, "made_up", lower_is_better=True)


def compared(runs: tuple[Results, Results], **options: Any) -> tuple[RunComparison, MetricComparison]:
    comparison = compare_runs(*runs, **options)
    return comparison, comparison.pairs[0].metrics[-1]


def row_names(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def test_verdict_wins_and_sentence_follow_the_declaration(less_is_better: bool) -> None:
    comparison, metric = compared(SAVED, metrics=["saved_sec"])
    which, counts = ("worse", (0, 8)) if less_is_better else ("better", (8, 0))
    assert (metric.verdict, metric.lower_is_better, metric.is_spent) == (which, less_is_better, False)
    assert ((metric.wins, metric.losses), (metric.templates_better, metric.templates_worse)) == (counts, counts)
    assert f"B is {which} in saved_sec: 10.00 → 15.50 (+5.50" in str(comparison)


def test_rows_and_csv_show_the_direction(less_is_better: bool, tmp_path: Path) -> None:
    comparison, metric = compared(SAVED)
    row = next(row for row in comparison.rows() if row["metric"] == "saved_sec")
    assert (row["verdict"], row["lower_is_better"]) == (metric.verdict, less_is_better)
    text = comparison.to_csv(tmp_path / "metrics.csv").read_text()
    assert f"saved_sec,seconds,True,False,{less_is_better}," in text


def test_page_shows_the_direction(less_is_better: bool) -> None:
    html = comparison_html(compared(SAVED)[0])
    assert ("Higher is better unless said otherwise" in html) is less_is_better
    assert ("(less is better)" in html) is less_is_better


def test_questions_plot_follows_the_declaration(less_is_better: bool) -> None:
    axes = compared(SAVED)[0].plot_questions("saved_sec", ax=Figure().subplots())
    assert axes.get_title() == ("0 better, 8 worse, 0 the same" if less_is_better else "8 better, 0 worse, 0 the same")
    assert row_names(axes)[0] == ("q0" if less_is_better else "q7")


def test_differences_plot_labels_the_direction(less_is_better: bool) -> None:
    axes = compared(SAVED, metrics=["saved_sec"])[0].plot_differences(ax=Figure().subplots())
    assert row_names(axes) == ["saved_sec, less is better" if less_is_better else "saved_sec"]
    assert axes.get_xlabel().endswith(
        "; more is better unless said otherwise" if less_is_better else "; more is better"
    )


def test_best_template_is_at_the_top_of_plots(less_is_better: bool) -> None:
    best, worst = ("t0", "t7") if less_is_better else ("t7", "t0")
    scores = plot_scores(SAVED[1].table().rows, "saved_sec", ax=Figure().subplots())
    assert (row_names(scores)[0], row_names(scores)[-1]) == (best, worst)
    means = plot_templates({f"t{n}": [value] for n, value in enumerate(MANY)}, "saved_sec", ax=Figure().subplots())
    assert (row_names(means)[0], row_names(means)[-1]) == (f"{best} · 1", f"{worst} · 1")


def test_worst_of_many_templates_are_drawn(less_is_better: bool) -> None:
    many = {f"t{number}": [float(number)] for number in range(60)}
    rows = [{"template_id": name, "status": "success", "saved_sec": value} for name, (value,) in many.items()]
    for axes in (
        plot_scores(rows, "saved_sec", ax=Figure().subplots()),
        plot_templates(many, "saved_sec", ax=Figure().subplots()),
    ):
        assert row_names(axes)[-1].split()[0] == ("t59" if less_is_better else "t0")
        assert len(row_names(axes)) == 50


def test_flips_follow_the_declaration(less_is_better: bool) -> None:
    flips = compared(SAVED, metrics=["saved_sec"])[0].pairs[0].flips
    assert {question.direction for question in flips} == {"worse" if less_is_better else "better"}


def test_regression_follows_the_declaration(less_is_better: bool) -> None:
    (gate,) = compared(SAVED, metrics=["saved_sec"])[0].gate_results("--fail-on-regression")
    assert (gate.has_passed, gate.value) == (not less_is_better, pytest.approx(0.55 if less_is_better else -0.55))
    few = SAVED[0][:4], SAVED[1][:4]
    (gate,) = compare_runs(*few, metrics=["saved_sec"]).gate_results([{"regression": 0.1}])
    assert gate.has_passed is not less_is_better
    assert "the effect decided" in gate.sentence


def test_minimum_mean_requires_that_higher_is_better(less_is_better: bool) -> None:
    if not less_is_better:
        assert [gate.under for gate in read_gates({"saved_sec": 5})] == [5.0]
        return
    with pytest.raises(OptionError, match="less is better for saved_sec") as problem:
        read_gates({"saved_sec": 5})
    assert str(problem.value).endswith("Bound it from above: --fail-over saved_sec=5.")


def test_evaluator_number_is_a_score_whatever_its_name(less_is_better: bool) -> None:
    assert "mean saved_sec" in SAVED[0]._repr_html_()


@pytest.mark.usefixtures("made_up")
def test_lower_is_better_score_is_right_at_its_minimum() -> None:
    comparison, metric = compared(MADE_UP, metrics=["made_up"])
    assert (metric.verdict, metric.is_proportion, metric.is_spent) == ("better", True, False)
    assert {question.direction for question in comparison.pairs[0].flips} == {"fixed"}
    (back,) = compare_runs(*reversed(MADE_UP), metrics=["made_up"]).pairs
    assert {question.direction for question in back.flips} == {"broken"}


@pytest.mark.usefixtures("made_up")
def test_repeat_with_the_highest_value_is_shown_if_lower_is_better() -> None:
    repeated = [
        {**result, "repeat": repeat, "made_up": value, "made_up_reason": f"reason {repeat}"}
        for result in MADE_UP[0]
        for repeat, value in ((1, 0.0), (2, 0.5))
    ]
    (pair,) = compare_runs(repeated, MADE_UP[1], metrics=["made_up"]).pairs
    assert (pair.flips[0].a.repeat, pair.flips[0].a.score, pair.flips[0].a.reason) == (2, 0.5, "reason 2")
    assert pair.flips[0].b.reason == ""


@pytest.mark.usefixtures("made_up")
def test_drop_of_a_lower_is_better_score_is_in_points() -> None:
    (gate,) = compare_runs(
        evaluated("made_up", [0.0, 0.1, 0.0]), evaluated("made_up", [0.0, 0.4, 0.0]), metrics=["made_up"]
    ).gate_results([{"regression": 0.05}])
    assert gate.value == pytest.approx(0.1)
    assert str(gate).startswith("B: made_up 0.033 → 0.133, rise 0.100 > 0.05")


@pytest.mark.usefixtures("made_up")
def test_score_classes_begin_with_the_best() -> None:
    rows = [{"template_id": "t", "status": "success", "made_up": value} for value in (0.0, 0.25, 1.0)]
    axes = plot_scores([*rows, {"template_id": "u", "status": "error"}], "made_up", ax=Figure().subplots())
    assert [bars.get_label() for bars in axes.containers] == ["0", "0 to 0.5", "1", "failed"]
    assert row_names(axes) == ["t", "u"]


def test_score_of_a_wider_range_is_not_a_proportion(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compared(MADE_UP, metrics=["made_up"])[1].is_proportion
    declare(monkeypatch, "made_up", range=(0.0, 10.0))
    assert not compared(MADE_UP, metrics=["made_up"])[1].is_proportion


def test_custom_unit_follows_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, "detour", unit="km", lower_is_better=True, range=(0.0, None))
    comparison, metric = compared(FAR, metrics=["detour"])
    assert metric.unit == "km"
    assert "B is worse in detour: 10.0 km → 15.5 km (+5.50 km, 95 % interval" in str(comparison)


def test_custom_usage_metric_is_compared_as_usage() -> None:
    register_metric(key="detour", kind="spent", unit="km")(lambda question, response: None)
    comparison, metric = compared(FAR)
    assert (metric.metric, metric.is_spent, metric.verdict) == ("detour", True, "worse")
    assert comparison.metric != "detour"


@pytest.mark.parametrize(
    ("metric", "is_spent"),
    [("retrieval_missing", False), ("elapsed_sec", True), ("tone_cost", True)],
)
def test_lower_is_better_for_missing_items_and_usage(metric: str, is_spent: bool) -> None:
    a, b = (
        [{"template_id": f"t{n}", "question_id": f"q{n}", metric: number + n} for n in range(8)] for number in (3, 2)
    )
    comparison = compare_runs(a, b, metrics=[metric])
    (compared_metric,) = comparison.pairs[0].metrics
    assert (compared_metric.verdict, compared_metric.is_spent) == ("better", is_spent)
    assert comparison.plot_questions(ax=Figure().subplots()).get_title() == "8 better, 0 worse, 0 the same"
    with pytest.raises(OptionError, match="less is better"):
        comparison.gate_results({metric: 1})
