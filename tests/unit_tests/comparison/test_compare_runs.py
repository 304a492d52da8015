import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import Comparison, compare_runs, score_responses
from graphrag_eval_lc.comparison import MetricComparison
from graphrag_eval_lc.errors import ComparisonError, OptionError, RunFolderError

Scored = Callable[..., list[dict[str, Any]]]
WORSE, BETTER = [0.0] * 6 + [1.0] * 2, [1.0] * 8
CUSTOM = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "Is it?"}}


def metric_of(comparison: Comparison, name: str = "steps_score", pair: int = 0) -> MetricComparison:
    metric = comparison.pairs[pair].metric(name)
    assert metric is not None
    return metric


def folder(path: Path, results: list[dict[str, Any]], **record: Any) -> Path:
    path.mkdir()
    path.joinpath("results.jsonl").write_text("".join(f"{json.dumps(result)}\n" for result in results))
    path.joinpath("run.json").write_text(json.dumps({"format_version": 1, **record}))
    return path


def test_means_and_difference_are_those_of_the_pairs(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*WORSE), scored(*BETTER)))
    assert (metric.mean_a, metric.mean_b, metric.difference) == (0.25, 1.0, 0.75)
    assert (metric.wins, metric.ties, metric.losses, metric.number_of_questions) == (6, 2, 0, 8)
    assert metric.interval is not None
    assert 0.25 < metric.interval.low < 0.75 < metric.interval.high <= 1
    assert (metric.verdict, metric.p_value) == ("better", 2 / 2**6)
    assert metric.sentence.startswith("B is better in steps_score: 0.250 → 1.000 (+0.750, 95 % interval +0.")


def test_comparison_the_other_way_round_is_its_mirror(scored: Scored) -> None:
    there = metric_of(compare_runs(scored(*WORSE), scored(*BETTER)))
    back = metric_of(compare_runs(scored(*BETTER), scored(*WORSE)))
    assert back.difference == -there.difference
    assert back.p_value == there.p_value
    assert there.interval is not None
    assert back.interval == pytest.approx((-there.interval.high, -there.interval.low))
    assert (back.wins, back.losses, back.verdict) == (0, 6, "worse")


def test_run_beside_itself_is_the_same(scored: Scored) -> None:
    comparison = compare_runs(scored(*WORSE), scored(*WORSE))
    metric = metric_of(comparison)
    assert (metric.p_value, metric.interval, metric.effect_size) == (1.0, (0.0, 0.0), None)
    assert metric.sentence == "steps_score is the same in A and B for each question."
    assert comparison.pairs[0].turned == ()


def test_small_difference_is_no_evidence_and_says_how_many_questions_it_takes(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*[0.5] * 12), scored(*[0.6, 0.4] * 5, 0.6, 0.6)))
    assert metric.verdict == "no evidence"
    assert metric.questions_needed is not None
    assert metric.questions_needed > 12
    assert metric.sentence.startswith("No evidence of a difference in steps_score: 0.500 → ")
    assert metric.sentence.endswith(
        f"; it would take about {metric.questions_needed:,} questions to see one of this size."
    )


def test_errors_count_as_0_and_are_counted(scored: Scored) -> None:
    comparison = compare_runs(scored(1.0, 1.0, None), scored(1.0, None, None))
    metric = metric_of(comparison)
    assert (metric.mean_a, metric.mean_b) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (comparison.pairs[0].errors_a, comparison.pairs[0].errors_b) == (1, 2)
    assert [run.number_of_errors for run in comparison.runs] == [1, 2]


def test_error_counts_in_a_judged_metric_that_only_the_other_run_has(scored: Scored) -> None:
    judged = [{**result, "answer_f1": 0.5} for result in scored(1.0, 1.0)]
    failed = [judged[0], *scored(1.0, None)[1:]]
    metric = metric_of(compare_runs(judged, failed), "answer_f1")
    assert (metric.mean_a, metric.mean_b, metric.left_out) == (0.5, 0.25, 0)


def test_run_in_which_all_failed_is_compared_in_what_it_would_have_had(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(1.0, 1.0, answer_f1=0.5), scored(None, None)), "answer_f1")
    assert (metric.mean_a, metric.mean_b) == (0.5, 0.0)


def test_question_without_the_metric_in_a_run_is_left_out_and_counted(scored: Scored) -> None:
    a, b = scored(1.0, 0.5, 0.0), scored(1.0, 1.0, 1.0)
    del b[2]["steps_score"]
    metric = metric_of(compare_runs(a, b))
    assert (metric.number_of_questions, metric.left_out, metric.mean_b) == (2, 1, 1.0)


def test_repeats_of_a_question_count_once(scored: Scored) -> None:
    repeated = [{**result, "repeat": repeat} for repeat in (1, 2) for result in scored(1.0, float(repeat - 1))]
    comparison = compare_runs(repeated, scored(1.0, 1.0))
    assert metric_of(comparison).mean_a == 0.75
    assert comparison.baseline.number_of_samples == 4
    assert comparison.pairs[0].number_of_questions == 2


def test_less_is_better_of_what_was_spent(scored: Scored) -> None:
    a, b = scored(*BETTER, total_tokens=100, agent_cost=0.5), scored(*BETTER, total_tokens=90, agent_cost=0.5)
    comparison = compare_runs(a, b)
    tokens = metric_of(comparison, "total_tokens")
    assert (tokens.difference, tokens.verdict, tokens.wins, tokens.unit) == (-10, "better", 8, "tokens")
    assert "100 → 90 (−10, 95 % interval −10 to −10" in tokens.sentence
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["steps_score", "total_tokens", "agent_cost"]


def test_p_values_are_adjusted_within_scores_and_within_what_was_spent(scored: Scored) -> None:
    a = scored(*WORSE, answer_f1=0.5, total_tokens=10)
    b = scored(*BETTER, answer_f1=0.5, total_tokens=9)
    comparison = compare_runs(a, b)
    score, tokens = metric_of(comparison), metric_of(comparison, "total_tokens")
    assert score.adjusted_p_value == 2 * score.p_value
    assert tokens.adjusted_p_value == tokens.p_value
    alone = metric_of(compare_runs(a, b, metrics=["steps_score"]))
    assert alone.adjusted_p_value == alone.p_value


def test_templates_are_taken_as_wholes(scored: Scored) -> None:
    templates = ["t1"] * 4 + ["t2"] * 4
    comparison = compare_runs(scored(*[0.0] * 8, templates=templates), scored(*BETTER, templates=templates))
    assert metric_of(comparison).p_value == 0.5
    assert comparison.warnings == ("There are 2 templates; with fewer than 6 no p-value is below 0.05.",)


@pytest.mark.parametrize(
    ("number", "beginning"),
    [(1, "All questions are of one template"), (9, "There are 9 templates; with fewer than 10")],
)
def test_few_templates_are_told(scored: Scored, number: int, beginning: str) -> None:
    run = scored(*[1.0] * 12, templates=[f"t{index % number}" for index in range(12)])
    (warning,) = compare_runs(run, run).warnings
    assert warning.startswith(beginning)


def test_each_further_run_is_compared_with_the_first(scored: Scored) -> None:
    comparison = compare_runs(scored(*WORSE), scored(*BETTER), scored(*WORSE), labels=["old", "new", "again"])
    assert [(run.letter, run.label) for run in comparison.runs] == [("A", "old"), ("B", "new"), ("C", "again")]
    assert [metric_of(comparison, pair=index).difference for index in (0, 1)] == [0.75, 0.0]
    assert metric_of(comparison, pair=1).sentence == "steps_score is the same in A and C for each question."


def test_regressions_are_those_of_the_main_metric(scored: Scored) -> None:
    a, b = scored(*BETTER, total_tokens=1), scored(*WORSE, total_tokens=100)
    assert compare_runs(b, a).regressions() == []
    assert [metric.metric for metric in compare_runs(a, b).regressions()] == ["steps_score"]
    assert compare_runs(a, b, metrics=["total_tokens"]).regressions() == []


def test_named_metrics_are_compared_in_their_order_and_any_number_can_be_one(scored: Scored) -> None:
    a, b = scored(*WORSE, rank=2, elapsed_sec=1.0), scored(*BETTER, rank=3, elapsed_sec=2.0)
    comparison = compare_runs(a, b, metrics=["elapsed_sec", "rank"])
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["elapsed_sec", "rank"]
    assert comparison.metric == "rank"


def test_custom_evaluations_of_a_run_are_known_from_its_config(tmp_path: Path, scored: Scored) -> None:
    config = {"steps": {"names": {}}, "custom_evaluations": [CUSTOM]}
    a = folder(tmp_path / "a", scored(1.0, 1.0, polite=True, tone_cost=0.1), config=config)
    b = folder(tmp_path / "b", scored(1.0, 1.0, polite=False, tone_cost=0.1), config=config)
    comparison = compare_runs(a, b)
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["steps_score", "polite"]


def test_runs_may_be_folders_runs_in_memory_or_results(tmp_path: Path, scored: Scored) -> None:
    dataset: Any = [{"template_id": "t0", "questions": [{"id": "q0", "question_text": "1 + 1?"}]}]
    in_memory = score_responses(dataset, {"q0": {"question_id": "q0", "actual_answer": "2", "elapsed_sec": 2.0}})
    written = folder(tmp_path / "monday", scored(1.0, elapsed_sec=1.0), label="main branch")
    comparison = compare_runs(written, in_memory, iter(scored(1.0, elapsed_sec=4.0)), str(written))
    assert [run.label for run in comparison.runs] == ["main branch", "B", "C", "main branch"]
    assert [metric_of(comparison, "elapsed_sec", pair).mean_b for pair in range(3)] == [2.0, 4.0, 1.0]
    assert comparison.baseline.path == str(written)


def test_different_datasets_are_told_and_only_common_questions_compared(tmp_path: Path, scored: Scored) -> None:
    a = folder(tmp_path / "a", scored(*[1.0] * 12), dataset={"sha256": "1"}, questions={"q0": "x", "q1": "y"})
    b = folder(tmp_path / "b", scored(*[0.5] * 11), dataset={"sha256": "2"}, questions={"q0": "x", "q1": "z"})
    comparison = compare_runs(a, b)
    assert comparison.pairs[0].number_of_questions == 11
    assert comparison.warnings == (
        "A and B were scored on different datasets: the 11 common questions are compared; 1 of A and 0 of B are left "
        "out.",
        "1 common question is with another text in B than in A.",
    )


def test_what_makes_runs_hard_to_compare_is_told(tmp_path: Path, scored: Scored) -> None:
    stopped = {"reason": "interrupted", "message": "Ctrl-C", "left_out": 2}
    settings = [{"steps": {"scoring": scoring}, "sparql": {}} for scoring in ("last_group", "all_groups")]
    a = folder(tmp_path / "a", scored(*[1.0] * 10), config=settings[0], stopped=stopped)
    moved = scored(*[1.0] * 10, templates=["other", *(f"t{index}" for index in range(1, 10))], answer_f1=0.5)
    b = folder(tmp_path / "b", moved, config=settings[1])
    assert compare_runs(a, b).warnings == (
        "Run A ended before its time (Ctrl-C); 2 samples were not asked.",
        "1 common question is of another template in B than in A; A's templates are taken.",
        "A and B were scored with other settings (steps), so that their scores may not be comparable.",
        "Only B has answer_f1; A has not, so that is not compared.",
    )


def test_runs_without_a_common_question_are_refused(scored: Scored) -> None:
    other = [{**result, "question_id": "other"} for result in scored(1.0)]
    with pytest.raises(ComparisonError, match="runs A and B have no question in common"):
        compare_runs(scored(1.0), other)


@pytest.mark.parametrize(
    ("runs", "options", "complaint"),
    [
        (([], []), {}, "run A has no results"),
        (([{"question_id": "q"}], [{"question_id": "q"}]), {}, "have no metric in common"),
        (([{"steps_score": 1.0}], []), {}, "a result without question_id"),
        ((7, []), {}, "a run cannot be read from int"),
        (({}, []), {}, "a run cannot be read from dict"),
        (([{"question_id": "q", "steps_score": 1}],) * 2, {"metrics": ["f1"]}, "no result has the metric f1. Those"),
    ],
)
def test_what_cannot_be_compared_is_told(runs: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ComparisonError, match=complaint):
        compare_runs(*runs, **options)


def test_folders_that_are_none_are_told(tmp_path: Path, scored: Scored) -> None:
    (tmp_path / "file").touch()
    for name, complaint in (("absent", "no such folder"), ("file", "this is a file"), (".", "holds no results.jsonl")):
        with pytest.raises(RunFolderError, match=complaint):
            compare_runs(tmp_path / name, scored(1.0))


def test_labels_are_as_many_as_runs(scored: Scored) -> None:
    with pytest.raises(OptionError, match="1 labels for 2 runs"):
        compare_runs(scored(1.0), scored(1.0), labels=["one"])


def test_comparison_is_the_same_each_time(scored: Scored) -> None:
    a, b = scored(*[0.1 * (index % 7) for index in range(40)]), scored(*[0.1 * (index % 5) for index in range(40)])
    assert compare_runs(a, b).to_dict() == compare_runs(a, b).to_dict()


def test_comparison_can_be_had_as_dict_frame_csv_and_text(tmp_path: Path, scored: Scored) -> None:
    a, b = scored(*WORSE, elapsed_sec=2.0), scored(*BETTER, elapsed_sec=1.0)
    comparison = compare_runs(a, b, labels=["<old>", "new"])
    assert json.loads(json.dumps(comparison.to_dict()))["pairs"][0]["metrics"][0]["metric"] == "steps_score"
    frame = comparison.to_pandas()
    assert list(frame["metric"]) == ["steps_score", "elapsed_sec"]
    assert frame["high"].notna().all()
    assert len(comparison.to_pandas("questions")) == 16
    with comparison.to_csv(tmp_path / "metrics.csv").open(newline="") as file:
        assert [row["mean_a"] for row in csv.DictReader(file)] == ["0.25", "2.0"]
    assert str(comparison).splitlines()[:2] == ["A: <old>", "B: new"]
    html = comparison._repr_html_()
    assert "&lt;old&gt;" in html
    assert "<td>B is better</td>" in html


def test_large_difference_over_few_templates_is_no_evidence_and_says_why(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*[0.0] * 5), scored(*[1.0] * 4, 0.9)))
    assert (metric.p_value, metric.verdict) == (2 / 2**5, "no evidence")
    assert metric.sentence.endswith("adjusted p = 0.062); more templates, or fewer metrics, would tell.")


def test_question_that_failed_in_both_runs_counts_and_is_not_left_out(scored: Scored) -> None:
    failed = {"status": "error", "error": "away", "reference_steps": [[{"name": "lookup"}]]}
    metric = metric_of(compare_runs([*scored(*WORSE), failing(failed)], [*scored(*BETTER), failing(failed)]))
    assert (metric.number_of_questions, metric.left_out) == (len(WORSE) + 1, 0)


def failing(keys: dict[str, Any]) -> dict[str, Any]:
    return {"template_id": "failing", "question_id": "failing", "question_text": "Why?", **keys}
