import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.scored_runs import run_folder

from graphrag_eval_lc import RunComparison, compare_runs, score_responses
from graphrag_eval_lc.compare import MetricComparison
from graphrag_eval_lc.errors import ComparisonError, OptionError, RunFolderError
from graphrag_eval_lc.metrics.difference import MeanDifference

Scored = Callable[..., list[dict[str, Any]]]
WORSE, BETTER = [0.0] * 6 + [1.0] * 2, [1.0] * 8
CUSTOM = {"name": "tone", "inputs": ["actual_answer"], "instructions": "Judge.", "outputs": {"polite": "Is it?"}}


def metric_of(comparison: RunComparison, name: str = "steps_score", pair: int = 0) -> MetricComparison:
    metric = comparison.pairs[pair].metric(name)
    assert metric is not None
    return metric


def test_means_and_difference_are_over_pairs(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*WORSE), scored(*BETTER)))
    assert (metric.mean_a, metric.mean_b, metric.difference) == (0.25, 1.0, 0.75)
    assert (metric.wins, metric.ties, metric.losses, metric.number_of_questions) == (6, 2, 0, 8)
    assert metric.interval is not None
    assert 0 < metric.interval.low < 0.75 < metric.interval.high == 1
    assert metric.confidence == 0.95
    # By sign flips alone it would be 2 / 2**6: six better pairs and two equal ones are skewed.
    assert (metric.verdict, metric.p_value) == ("better", pytest.approx(0.0338, abs=1e-4))
    assert metric.sentence.startswith("B is better in steps_score: 0.250 → 1.000 (+0.750, 95 % interval +0.")


def test_swapped_comparison_is_the_mirror_image(scored: Scored) -> None:
    there = metric_of(compare_runs(scored(*WORSE), scored(*BETTER)))
    back = metric_of(compare_runs(scored(*BETTER), scored(*WORSE)))
    assert back.difference == -there.difference
    assert back.p_value == there.p_value
    assert there.interval is not None
    assert back.interval == pytest.approx((-there.interval.high, -there.interval.low))
    assert (back.wins, back.losses, back.verdict) == (0, 6, "worse")


def test_run_compared_with_itself_is_the_same(scored: Scored) -> None:
    comparison = compare_runs(scored(*WORSE), scored(*WORSE))
    metric = metric_of(comparison)
    assert (metric.p_value, metric.effect_size) == (1.0, None)
    # Eight equal questions are no proof that no other question would differ.
    assert metric.interval == pytest.approx((-0.2956, 0.2956), abs=1e-4)
    assert metric.sentence == "steps_score is the same in A and B for each question."
    assert comparison.pairs[0].flips == ()


def test_small_difference_is_no_evidence_and_reports_the_questions_needed(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*[0.5] * 12), scored(*[0.6, 0.4] * 5, 0.6, 0.6)))
    assert metric.verdict == "no evidence"
    assert metric.questions_needed is not None
    assert metric.questions_needed > 12
    assert metric.sentence.startswith("No evidence of a difference in steps_score: 0.500 → ")
    assert (metric.questions_needed_low, metric.questions_needed_high) == (20, None)
    assert metric.sentence.endswith(". To show a difference of this size, use at least 20 questions.")


def test_errors_count_as_0_and_are_counted(scored: Scored) -> None:
    comparison = compare_runs(scored(1.0, 1.0, None), scored(1.0, None, None))
    metric = metric_of(comparison)
    assert (metric.mean_a, metric.mean_b) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (comparison.pairs[0].errors_a, comparison.pairs[0].errors_b) == (1, 2)
    assert [run.number_of_errors for run in comparison.runs] == [1, 2]


def test_error_counts_in_a_judged_metric_of_the_other_run(scored: Scored) -> None:
    judged = [{**result, "answer_f1": 0.5} for result in scored(1.0, 1.0)]
    failed = [judged[0], *scored(1.0, None)[1:]]
    metric = metric_of(compare_runs(judged, failed), "answer_f1")
    assert (metric.mean_a, metric.mean_b, metric.left_out) == (0.5, 0.25, 0)


def test_completely_failed_run_is_compared_in_the_metrics_it_would_have(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(1.0, 1.0, answer_f1=0.5), scored(None, None)), "answer_f1")
    assert (metric.mean_a, metric.mean_b) == (0.5, 0.0)


def test_question_without_the_metric_is_skipped_and_counted(scored: Scored) -> None:
    a, b = scored(1.0, 0.5, 0.0), scored(1.0, 1.0, 1.0)
    del b[2]["steps_score"]
    metric = metric_of(compare_runs(a, b))
    assert (metric.number_of_questions, metric.left_out, metric.mean_b) == (2, 1, 1.0)


def test_metrics_of_only_one_run_do_not_count_as_the_same(scored: Scored) -> None:
    a, b = scored(*[1.0] * 8), scored(*[1.0] * 7, None)
    for index in range(5):
        a[index]["answer_f1"] = 1.0
    for index in range(3):
        b[index]["answer_f1"] = 1.0
    b[3] |= {"status": "error", "error": "away"}
    metric = metric_of(compare_runs(a, b, metrics=["steps_score", "answer_f1"]), "answer_f1")
    assert (metric.number_of_questions, metric.left_out) == (4, 1)
    a[7]["answer_f1"] = 0.0
    a[3].pop("answer_f1")
    metric = metric_of(compare_runs(a, b, metrics=["steps_score", "answer_f1"]), "answer_f1")
    assert metric.sentence == "answer_f1 is the same in A and B for each of the 4 questions that have it (1 left out)."


def test_failed_question_is_skipped_if_the_other_run_answered_without_the_metric(scored: Scored) -> None:
    a, b = scored(1.0, None), scored(1.0, 1.0)
    a[0]["answer_f1"] = b[0]["answer_f1"] = 0.5
    a[1]["reference_answer"] = b[1]["reference_answer"] = "2"
    metric = metric_of(compare_runs(a, b), "answer_f1")
    assert (metric.number_of_questions, metric.left_out) == (1, 1)


def test_repeats_of_a_question_count_once(scored: Scored) -> None:
    repeated = [{**result, "repeat": repeat} for repeat in (1, 2) for result in scored(1.0, float(repeat - 1))]
    comparison = compare_runs(repeated, scored(1.0, 1.0))
    assert metric_of(comparison).mean_a == 0.75
    assert comparison.baseline.number_of_samples == 4
    assert comparison.pairs[0].number_of_questions == 2


def test_lower_usage_is_better(scored: Scored) -> None:
    a, b = scored(*BETTER, total_tokens=100, agent_cost=0.5), scored(*BETTER, total_tokens=90, agent_cost=0.5)
    comparison = compare_runs(a, b)
    tokens = metric_of(comparison, "total_tokens")
    assert (tokens.difference, tokens.verdict, tokens.wins, tokens.unit) == (-10, "better", 8, "tokens")
    assert "100 → 90 (−10, interval −13 to −7, adjusted p = 0.008" in tokens.sentence
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["steps_score", "total_tokens", "agent_cost"]


def test_p_values_are_adjusted_for_all_differing_metrics(scored: Scored) -> None:
    steps = [{"name": "retrieval", "retrieval_utilization": 0.5}]
    a = scored(*WORSE, answer_f1=0.5, answer_relevance=0.1, total_tokens=10, actual_steps=steps)
    more = [{"name": "retrieval", "retrieval_utilization": 0.6}]
    b = scored(*BETTER, answer_f1=0.5, answer_relevance=0.2, total_tokens=9, actual_steps=more)
    comparison = compare_runs(a, b)
    relevance, tokens = metric_of(comparison, "answer_relevance"), metric_of(comparison, "total_tokens")
    assert relevance.p_value == tokens.p_value == 2 / 2**8
    assert relevance.adjusted_p_value == tokens.adjusted_p_value == 4 * relevance.p_value
    assert not metric_of(comparison, "answer_f1").is_tested
    assert metric_of(comparison, "answer_f1").adjusted_p_value == 1.0


def test_main_metric_uses_its_unadjusted_p_value(scored: Scored) -> None:
    a, b = scored(*WORSE), scored(*BETTER)
    for index in range(8):
        a[index]["answer_f1"] = b[index]["answer_relevance"] = float(index > 5)
        b[index]["answer_f1"] = a[index]["answer_relevance"] = 1.0
    comparison = compare_runs(a, b)
    main, other = metric_of(comparison), metric_of(comparison, "answer_f1")
    assert main.p_value == other.p_value == pytest.approx(0.0338, abs=1e-4)
    assert main.adjusted_p_value == other.adjusted_p_value == 3 * main.p_value
    assert (main.verdict, other.verdict) == ("better", "no evidence")
    assert "+1.000, p = 0.034, 8 questions)" in main.sentence
    assert ", adjusted p = 0.102, 8 questions)" in other.sentence
    named = compare_runs(a, b, metrics=["answer_f1", "steps_score"])
    assert (metric_of(named, "answer_f1").verdict, metric_of(named).verdict) == ("better", "no evidence")


def test_needed_questions_use_the_significance_level_of_the_metric(scored: Scored) -> None:
    a = scored(*[0.5] * 12, answer_f1=0.5, total_tokens=10)
    b = scored(*[0.6, 0.4] * 5, 0.6, 0.6, total_tokens=9)
    for result in b:
        result["answer_f1"] = result["steps_score"]
    comparison = compare_runs(a, b)
    main, other = metric_of(comparison), metric_of(comparison, "answer_f1")
    difference = MeanDifference([[first["steps_score"] - 0.5] for first in b], scale=1)
    assert main.questions_needed == difference.questions_needed()
    assert other.questions_needed == difference.questions_needed(0.05 / 3)
    ends = (other.questions_needed_low, other.questions_needed_high)
    assert ends == difference.questions_needed_range(0.05 / 3) == (30, None)


def one_template_with(name: str, scored: Scored, *scores: float) -> list[dict[str, Any]]:
    """Return results of 12 templates; the first has an additional metric, in several questions."""
    templates = ["t0"] * len(scores) + [f"t{index}" for index in range(1, 12)]
    results = scored(*[1.0] * len(templates), templates=templates)
    for result, score in zip(results, scores, strict=False):
        result |= {name: score, "custom_metrics": [name]}
    return results


def test_metric_of_a_single_template_has_no_verdict(scored: Scored) -> None:
    a, b = (one_template_with("polite", scored, *[score] * 10) for score in (1.0, 0.0))
    comparison = compare_runs(a, b)
    metric = metric_of(comparison, "polite")
    assert (metric.number_of_templates, metric.number_of_questions, metric.difference) == (1, 10, -1.0)
    assert (metric.verdict, metric.p_value, metric.interval, metric.questions_needed) == ("no evidence", 1, None, None)
    assert metric.sentence.endswith(
        "10 questions). Only one template has it; with fewer than 6, no p-value is below 0.05."
    )
    assert comparison.warnings == ("polite is measured in one template only, so no conclusion is possible about it.",)


def test_metrics_of_a_single_template_are_reported_together(scored: Scored) -> None:
    runs = [one_template_with("polite", scored, score, score) for score in (1.0, 0.0)]
    for result in (*runs[0][:2], *runs[1][:2]):
        result["answer_f1"] = 0.5
    (warning,) = compare_runs(*runs).warnings
    assert (
        warning
        == "2 metrics, such as answer_f1, are measured in one template only, so no conclusion is possible about them."
    )


def test_questions_are_the_clusters_if_there_is_one_template(scored: Scored) -> None:
    runs = (scored(*[score] * 8, templates=["t"] * 8) for score in (0.0, 1.0))
    assert metric_of(compare_runs(*runs)).p_value == 2 / 2**8


def test_templates_are_resampled_as_a_whole(scored: Scored) -> None:
    templates = ["t1"] * 4 + ["t2"] * 4
    comparison = compare_runs(scored(*[0.0] * 8, templates=templates), scored(*BETTER, templates=templates))
    assert metric_of(comparison).p_value == 0.5
    assert comparison.warnings == ()
    assert [pair.doubt for pair in comparison.view().pairs] == [
        "With 2 templates no test can distinguish a difference from chance: "
        "with fewer than 6, no p-value is below 0.05."
    ]


@pytest.mark.parametrize(
    ("number", "beginning"),
    [(1, "All questions have one template"), (9, "There are 9 templates; with fewer than 10")],
)
def test_few_templates_are_reported(scored: Scored, number: int, beginning: str) -> None:
    run = scored(*[1.0] * 12, templates=[f"t{index % number}" for index in range(12)])
    (warning,) = compare_runs(run, run).warnings
    assert warning.startswith(beginning)


def test_each_further_run_is_compared_with_the_first(scored: Scored) -> None:
    comparison = compare_runs(scored(*WORSE), scored(*BETTER), scored(*WORSE), labels=["old", "new", "again"])
    assert [(run.letter, run.label) for run in comparison.runs] == [("A", "old"), ("B", "new"), ("C", "again")]
    assert [metric_of(comparison, pair=index).difference for index in (0, 1)] == [0.75, 0.0]
    assert metric_of(comparison, pair=1).sentence == "steps_score is the same in A and C for each question."


def test_usage_is_the_main_metric_only_if_no_score_is_named(scored: Scored) -> None:
    a, b = scored(*BETTER, total_tokens=1), scored(*WORSE, total_tokens=100)
    assert compare_runs(a, b, metrics=["total_tokens", "steps_score"]).metric == "steps_score"
    spent = compare_runs(a, b, metrics=["total_tokens"])
    assert spent.metric == "total_tokens"
    assert spent.pairs[0].flips == ()


def test_named_metrics_are_compared_in_order_and_can_be_any_number(scored: Scored) -> None:
    a, b = scored(*WORSE, rank=2, elapsed_sec=1.0), scored(*BETTER, rank=3, elapsed_sec=2.0)
    comparison = compare_runs(a, b, metrics=["elapsed_sec", "rank"])
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["elapsed_sec", "rank"]
    assert comparison.metric == "rank"


def test_custom_evaluations_of_a_run_are_known_from_its_config(tmp_path: Path, scored: Scored) -> None:
    config = {"steps": {"names": {}}, "custom_evaluations": [CUSTOM]}
    a = run_folder(tmp_path / "a", scored(1.0, 1.0, polite=True, tone_cost=0.1), config=config)
    b = run_folder(tmp_path / "b", scored(1.0, 1.0, polite=False, tone_cost=0.1), config=config)
    comparison = compare_runs(a, b)
    assert [metric.metric for metric in comparison.pairs[0].metrics] == ["steps_score", "polite"]


def test_runs_may_be_folders_runs_in_memory_or_results(tmp_path: Path, scored: Scored) -> None:
    dataset: Any = [{"template_id": "t0", "questions": [{"id": "q0", "question_text": "What about 0?"}]}]
    in_memory = score_responses(dataset, {"q0": {"question_id": "q0", "actual_answer": "2", "elapsed_sec": 2.0}})
    written = run_folder(tmp_path / "monday", scored(1.0, elapsed_sec=1.0), label="main branch")
    comparison = compare_runs(written, in_memory, iter(scored(1.0, elapsed_sec=4.0)), str(written))
    assert [run.label for run in comparison.runs] == ["main branch", "B", "C", "main branch"]
    assert [metric_of(comparison, "elapsed_sec", pair).mean_b for pair in range(3)] == [2.0, 4.0, 1.0]
    assert comparison.baseline.path == str(written)


def test_different_datasets_are_reported_and_common_questions_compared(tmp_path: Path, scored: Scored) -> None:
    results = scored(*[0.5] * 11)
    results[1]["question_text"] = "What about the other one?"
    a = run_folder(tmp_path / "a", scored(*[1.0] * 12), dataset={"sha256": "1"})
    b = run_folder(tmp_path / "b", results, dataset={"sha256": "2"})
    comparison = compare_runs(a, b)
    assert comparison.pairs[0].number_of_questions == 11
    assert comparison.warnings == (
        "A and B were scored on different datasets: the 11 common questions are compared; 1 of A and 0 of B are left "
        "out.",
        "1 common question is with another text in B than in A.",
    )


def test_obstacles_to_a_fair_comparison_are_reported(tmp_path: Path, scored: Scored) -> None:
    stopped = {"reason": "interrupted", "message": "Ctrl-C", "left_out": 2}
    settings = [{"steps": {"scoring": scoring}, "sparql": {}} for scoring in ("last_group", "all_groups")]
    a = run_folder(tmp_path / "a", scored(*[1.0] * 10), config=settings[0], stopped=stopped)
    moved = scored(*[1.0] * 10, templates=["other", *(f"t{index}" for index in range(1, 10))], answer_f1=0.5)
    b = run_folder(tmp_path / "b", moved, config=settings[1])
    assert compare_runs(a, b).warnings == (
        "Run A ended before its time (Ctrl-C); 2 samples were not asked.",
        "1 common question is of another template in B than in A; A's templates are taken.",
        "A and B were scored with other settings (steps.scoring), so that steps_score may not be comparable.",
        "Only B has answer_f1; A has not, so that is not compared.",
    )


def test_different_matchers_and_captures_are_reported_if_both_runs_record_them(tmp_path: Path, scored: Scored) -> None:
    captures: list[Any] = [{"retrieval_documents": each, "keep_artifacts": each} for each in (True, False)]
    own: list[Any] = [{"name": "count", "function": "a:b"}, {"media_type": "text/x", "function": "a:c"}]
    a = run_folder(tmp_path / "a", scored(*[1.0] * 10), matchers=own, capture=captures[0])
    b = run_folder(
        tmp_path / "b", scored(*[1.0] * 10), matchers=[{"name": "count", "function": "z"}], capture=captures[1]
    )
    assert compare_runs(a, b).warnings == (
        "A and B were recorded with other options of the capture (retrieval_documents), so that steps_score may not "
        "be comparable.",
        "The steps of A and B were compared by other matchers (text/x), so that steps_score may not be comparable.",
    )
    assert compare_runs(a, run_folder(tmp_path / "c", scored(*[1.0] * 10))).warnings == ()


def test_runs_without_a_common_question_are_rejected(scored: Scored) -> None:
    other = [{**result, "question_id": "other"} for result in scored(1.0)]
    with pytest.raises(ComparisonError, match="runs A and B have no question in common"):
        compare_runs(scored(1.0), other)


def test_different_questions_with_the_same_ids_are_reported(scored: Scored) -> None:
    a, b = scored(*[1.0] * 12), scored(*[1.0] * 12)
    for result in b[:5]:
        result["question_text"] = "Who won?"
    b[5]["question_text"] = " What  about 5?"
    del b[6]["question_text"]
    assert compare_runs(a, b).warnings == ("5 common questions are with another text in B than in A.",)
    for result in b:
        result["question_text"] = "Who won?"
    with pytest.raises(ComparisonError, match="no question in common: under the same ids they have other texts"):
        compare_runs(a, b)


@pytest.mark.parametrize(
    "broken",
    [
        {"actual_steps": [1, None]},
        {"actual_steps": "search"},
        {"reference_steps": [2]},
        {"reference_steps": {"a": 1}},
        {"steps_diagnosis": [["x"]]},
    ],
)
def test_steps_of_the_wrong_type_are_reported(tmp_path: Path, scored: Scored, broken: dict[str, Any]) -> None:
    run = run_folder(tmp_path / "run", [*scored(1.0), {**scored(1.0)[0], "question_id": "q1", **broken}])
    complaint = rf"results.jsonl, line 2, question q1, key {next(iter(broken))}: a result with steps of the wrong type"
    with pytest.raises(RunFolderError, match=complaint):
        compare_runs(run, run)
    results = [{**scored(1.0)[0], **broken}]
    with pytest.raises(ComparisonError, match=complaint.partition("line 2, ")[2].replace("q1", "q0")):
        compare_runs(results, results)


@pytest.mark.parametrize("record", [{"dataset": ["x"]}, {"dataset": "x"}, {"questions": [1]}, {"label": 7}])
def test_invalid_run_json_is_rejected(tmp_path: Path, scored: Scored, record: dict[str, Any]) -> None:
    run = run_folder(tmp_path / "run", scored(*[1.0] * 10), **record)
    with pytest.raises(RunFolderError, match=f"key {next(iter(record))}.*the record of the run cannot be read"):
        compare_runs(run, run)


def test_broken_run_json_is_not_overwritten(tmp_path: Path, scored: Scored) -> None:
    run = run_folder(tmp_path / "run", scored(1.0))
    run.joinpath("run.json").write_text("{")
    with pytest.raises(RunFolderError, match=r"the record of the run cannot be read\. Fix the file, or give another"):
        compare_runs(run, run)


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
def test_incomparable_runs_are_rejected(runs: Any, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ComparisonError, match=complaint):
        compare_runs(*runs, **options)


def test_invalid_folders_are_reported(tmp_path: Path, scored: Scored) -> None:
    (tmp_path / "file").touch()
    for name, complaint in (
        ("absent", "the folder does not exist"),
        ("file", "this is a file"),
        (".", "holds no results.jsonl"),
    ):
        with pytest.raises(RunFolderError, match=complaint):
            compare_runs(tmp_path / name, scored(1.0))


def test_number_of_labels_equals_number_of_runs(scored: Scored) -> None:
    for labels in (["one"], "ab"):
        with pytest.raises(OptionError, match="1 labels for 2 runs"):
            compare_runs(scored(1.0), scored(1.0), labels=labels)


def test_empty_metrics_are_rejected(scored: Scored) -> None:
    with pytest.raises(OptionError, match=r"no metric is named\. Name one, or leave metrics out"):
        compare_runs(scored(1.0), scored(1.0), metrics=[])


def test_unknown_kinds_of_rows_are_rejected(tmp_path: Path, scored: Scored) -> None:
    comparison = compare_runs(scored(1.0), scored(1.0))
    kind: Any = "nope"
    for rows in (comparison.rows, comparison.to_pandas, lambda kind: comparison.to_csv(tmp_path / "rows.csv", kind)):
        with pytest.raises(OptionError, match=r"unknown kind of frame 'nope'\. Give metrics, questions\."):
            rows(kind)
    assert not (tmp_path / "rows.csv").exists()


def test_text_names_the_metrics_that_are_adjusted_together(scored: Scored) -> None:
    a = scored(*WORSE, steps_f1=0.5, steps_recall=0.5, elapsed_sec=2.0)
    b = scored(*BETTER, steps_f1=1.0, steps_recall=1.0, elapsed_sec=1.0)
    assert (
        "steps_recall, steps_f1 are adjusted separately, as parts of steps_score. The interval of "
        in compare_runs(a, b)._repr_html_()
    )
    by_f1 = compare_runs(a, b, metrics=["steps_f1", "steps_recall"])
    assert "steps_recall is adjusted separately, as a part of steps_score. The interval of " in by_f1._repr_html_()


def test_comparison_is_deterministic(scored: Scored) -> None:
    a, b = scored(*[0.1 * (index % 7) for index in range(40)]), scored(*[0.1 * (index % 5) for index in range(40)])
    assert compare_runs(a, b).to_dict() == compare_runs(a, b).to_dict()


def test_comparison_is_available_as_dict_frame_csv_and_text(tmp_path: Path, scored: Scored) -> None:
    a, b = scored(*WORSE, elapsed_sec=2.0), scored(*BETTER, elapsed_sec=1.0)
    comparison = compare_runs(a, b, labels=["<old>", "new"])
    assert json.loads(json.dumps(comparison.to_dict()))["pairs"][0]["metrics"][0]["metric"] == "steps_score"
    frame = comparison.to_pandas()
    assert list(frame["metric"]) == ["steps_score", "elapsed_sec"]
    assert frame["high"].notna().all()
    assert len(comparison.to_pandas("questions")) == 16
    with comparison.to_csv(tmp_path / "metrics.csv").open(newline="") as file:
        assert [row["mean_a"] for row in csv.DictReader(file)] == ["0.25", "2.0"]
    assert str(comparison).splitlines()[:3] == [
        "B is better: steps_score 0.250 → 1.000; 0 broken, 6 fixed.",
        "A: <old>",
        "B: new",
    ]
    html = comparison._repr_html_()
    assert "&lt;old&gt;" in html
    assert ">B is better</td>" in html
    assert re.search(r">steps_score</td><td[^>]*>8</td>", html)
    assert "steps_score is the main metric, so its p-value is not adjusted. All other p-values are adjusted" in html
    assert ", 8 questions)." in str(comparison)


def test_large_difference_over_few_templates_is_undecided_with_a_reason(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*[0.0] * 5), scored(*[1.0] * 4, 0.9)))
    assert (metric.p_value, metric.verdict, metric.can_tell) == (2 / 2**5, "no evidence", False)
    assert metric.questions_needed is None
    assert metric.sentence.startswith("Cannot tell whether B is better in steps_score: 0.000 → 0.980 (+0.980")
    assert metric.sentence.endswith(
        "p = 0.062, 5 questions). Only 5 templates differ; with fewer than 6, no p-value is below 0.05."
    )


def test_rows_and_tables_have_the_same_verdict(scored: Scored, tmp_path: Path) -> None:
    low = scored(*[0.0] * 5, tokens=3)
    comparison = compare_runs(low, scored(*[1.0] * 4, 0.9, tokens=3), metrics=["steps_score", "tokens"])
    assert [row["verdict"] for row in comparison.rows()] == ["cannot tell", "the same"]
    assert list(comparison.to_pandas()["verdict"]) == ["cannot tell", "the same"]
    assert ",cannot tell," in comparison.to_csv(tmp_path / "metrics.csv").read_text()
    small = compare_runs(scored(*[0.0, 1.0] * 6), scored(*[1.0, 0.0] * 6))
    assert [row["verdict"] for row in small.rows()] == ["no evidence"]


def test_large_difference_in_few_of_many_templates_is_undecided(scored: Scored) -> None:
    a, b = scored(*[1.0] * 11, total_tokens=10), scored(*[0.0] * 5, *[1.0] * 6, total_tokens=10)
    b[0]["total_tokens"] = 50
    comparison = compare_runs(a, b)
    main, tokens = metric_of(comparison), metric_of(comparison, "total_tokens")
    assert (main.templates_better, main.templates_worse, main.can_tell) == (0, 5, False)
    assert main.sentence.startswith("Cannot tell whether B is worse in steps_score: 1.000 → 0.545 (−0.455")
    assert ". Only 5 templates differ; with fewer than 6, no p-value is below 0.05" in main.sentence
    assert (tokens.templates_better, tokens.templates_worse, tokens.can_tell) == (0, 1, False)
    assert tokens.sentence.startswith("Cannot tell whether B is worse in total_tokens: 10 → 14 (+4")
    assert ". Only 1 template differs; with" in tokens.sentence
    assert ">cannot tell</td>" in comparison._repr_html_()
    assert "too few templates differ. With fewer than 6, no p-value is below 0.05." in comparison._repr_html_()
    assert [row["can_tell"] for row in comparison.rows()] == [False, False]


def test_large_difference_in_few_templates_against_a_small_opposite_one_is_undecided(scored: Scored) -> None:
    metric = metric_of(compare_runs(scored(*[1.0] * 5, *[0.5] * 6), scored(*[0.0] * 5, 0.75, *[0.5] * 5)))
    assert (metric.templates_better, metric.templates_worse, metric.p_value) == (1, 5, 2 / 2**5)
    assert ". Only 5 templates are worse; with fewer than 6, no p-value is below 0.05" in metric.sentence


def test_differences_that_cancel_out_within_templates_are_undecided(scored: Scored) -> None:
    templates = ["t1", "t1", "t2", "t2"]
    metric = metric_of(compare_runs(*(scored(*each * 2, templates=templates) for each in ((0.0, 1.0), (1.0, 0.0)))))
    assert metric.sentence.startswith("Cannot tell whether B differs in steps_score: 0.500 → 0.500 (0.000")
    assert ". No template's mean differs; with fewer than 6, no" in metric.sentence


def test_undecided_difference_suggests_how_to_decide_it(scored: Scored) -> None:
    a, b = scored(*[0.0] * 6, 1.0, answer_f1=0.0), scored(*[1.0] * 6, 0.0, answer_f1=0.0)
    for result in b[:6]:
        result["answer_f1"] = 1.0
    comparison = compare_runs(a, b)
    assert metric_of(comparison).can_tell
    assert metric_of(comparison).sentence.startswith("No evidence of a difference in steps_score: 0.143 → 0.857")
    assert metric_of(comparison, "answer_f1").sentence.endswith(
        ". To show a difference of this size, use up to 20 questions."
    )


def test_large_difference_in_few_templates_asks_for_more_templates(scored: Scored) -> None:
    templates = [f"t{index % 6}" for index in range(60)]
    a, b = (scored(*[1.0] * 60, templates=templates, answer_f1=score, total_tokens=score) for score in (0.0, 1.0))
    metric = metric_of(compare_runs(a, b), "answer_f1")
    assert (metric.p_value, metric.adjusted_p_value, metric.can_tell) == (2 / 2**6, 4 / 2**6, True)
    assert metric.sentence.endswith(
        "adjusted p = 0.062, 60 questions). To show a difference of this size, use more templates, or fewer metrics."
    )


def test_question_that_failed_in_both_runs_counts(scored: Scored) -> None:
    failed = {"status": "error", "error": "away", "reference_steps": [[{"name": "lookup"}]]}
    metric = metric_of(compare_runs([*scored(*WORSE), failing(failed)], [*scored(*BETTER), failing(failed)]))
    assert (metric.number_of_questions, metric.left_out) == (len(WORSE) + 1, 0)


def failing(keys: dict[str, Any]) -> dict[str, Any]:
    return {"template_id": "failing", "question_id": "failing", "question_text": "Why?", **keys}
