"""Comparisons of the demo's agent: without mistakes, with all of them, and with an unavailable store."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from support.demo_runs import demo_run

from graphrag_eval_lc import BenchmarkRun, RunComparison, compare_runs
from graphrag_eval_lc.cli import main
from graphrag_eval_lc.compare import MetricComparison
from graphrag_eval_lc.demo import DATASET_PATH
from graphrag_eval_lc.demo.graph import KnowledgeGraph

pytestmark = pytest.mark.full

Runs = dict[str, BenchmarkRun]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("runs")

    def away(*arguments: object, **options: object) -> str:
        raise ConnectionError("the store is away")

    runs = {name: demo_run(folder / name, mistakes=0, label=name) for name in ("good", "same")}
    runs["erring"] = demo_run(folder / "erring", label="erring")
    with patch.object(KnowledgeGraph, "query", away):
        runs["broken"] = demo_run(folder / "broken", mistakes=0, label="broken")
    return runs


def metric_of(comparison: RunComparison, name: str = "steps_score", pair: int = 0) -> MetricComparison:
    metric = comparison.pairs[pair].metric(name)
    assert metric is not None
    return metric


def test_agent_mistakes_are_a_regression(runs: Runs) -> None:
    comparison = compare_runs(runs["good"], runs["erring"])
    metric = metric_of(comparison)
    scores = [[result["steps_score"] for result in runs[name].iter_results()] for name in ("good", "erring")]
    assert (metric.mean_a, metric.mean_b) == pytest.approx([sum(each) / len(each) for each in scores])
    assert (metric.verdict, metric.wins) == ("worse", 0)
    assert metric.losses == len(comparison.pairs[0].flips) == sum(a > b for a, b in zip(*scores, strict=True))
    assert comparison.pairs[0].flips[0].direction == "broken"
    assert all(question.b.reason and question.steps for question in comparison.pairs[0].flips)


def test_error_counts_as_0_in_judged_metrics(runs: Runs) -> None:
    comparison = compare_runs(runs["good"], runs["erring"])
    assert (comparison.pairs[0].errors_a, comparison.pairs[0].errors_b) == (0, 1)
    metric = metric_of(comparison, "answer_f1")
    values = [result.get("answer_f1", 0.0) for result in runs["erring"].iter_results() if "reference_answer" in result]
    assert metric.mean_b == pytest.approx(sum(values) / len(values))


def test_same_agent_twice_shows_no_difference(runs: Runs) -> None:
    metric = metric_of(compare_runs(runs["good"], runs["same"]))
    assert (metric.difference, metric.p_value, metric.verdict) == (0.0, 1.0, "no evidence")


def test_broken_tool_is_where_the_runs_diverge(runs: Runs) -> None:
    comparison = compare_runs(runs["good"], runs["erring"], runs["broken"], metrics=["steps_score"])
    assert [run.label for run in comparison.runs] == ["good", "erring", "broken"]
    assert metric_of(comparison, pair=1).verdict == "worse"
    outputs = [step.b.output for question in comparison.pairs[1].flips for step in question.steps if step.b]
    assert any("the store is away" in output for output in outputs)


def test_folders_compare_like_the_runs(runs: Runs) -> None:
    folders = [str(runs[name].output_dir) for name in ("good", "erring")]
    assert compare_runs(*folders).to_dict() == compare_runs(runs["good"], runs["erring"]).to_dict()


@pytest.mark.parametrize(("first", "second", "code"), [("good", "erring", 1), ("erring", "good", 0)])
def test_regression_fails_the_command(
    runs: Runs, first: str, second: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    folders = [str(runs[name].output_dir) for name in (first, second)]
    with pytest.raises(SystemExit) as caught:
        main(["compare", *folders, "--fail-on-regression", "--html", str(page)])
    assert (caught.value.code or 0) == code
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert f"B is {'worse' if code else 'better'} in steps_score" in capsys.readouterr().out


LOST = (
    "transformers_in_substation",
    "substations_in_bidding_zone",
    "generating_capacity_of_zone",
    "dc_link_between_zones",
    "voltages_of_ac_lines",
)


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def scored_without_steps(run: BenchmarkRun, folder: Path, is_lost: Callable[[dict[str, Any]], bool]) -> Path:
    """Re-score a run as if its agent had called no tool for some questions."""
    lost = {result["question_id"] for result in run.iter_results() if is_lost(result)}
    responses = [
        {**response, "actual_steps": []} if response["question_id"] in lost else response for response in run.responses
    ]
    recorded = folder / "responses.jsonl"
    recorded.write_text("".join(f"{json.dumps(response)}\n" for response in responses), encoding="utf-8")
    assert command("score", DATASET_PATH, recorded, "-o", folder / "run", "--no-report") == 0
    return folder / "run"


def test_five_completely_lost_templates_fail_the_command(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = scored_without_steps(runs["good"], tmp_path, lambda result: result["template_id"] in LOST)
    metric = metric_of(compare_runs(str(runs["good"].output_dir), lost))
    assert (metric.number_of_templates, metric.number_of_questions, metric.losses) == (11, 48, 20)
    assert command("compare", runs["good"].output_dir, lost, "--fail-on-regression") == 1
    assert "only 5 templates differ; with fewer than 6, no p-value is below 0.05" in capsys.readouterr().err


def test_one_lost_question_passes_and_the_deciding_gate_is_named(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = scored_without_steps(
        runs["good"], tmp_path, lambda result: result["question_id"] == "transformers_trondheim"
    )
    assert command("compare", runs["good"].output_dir, lost, "--fail-on-regression") == 0
    assert "B: steps_score 0.931 → 0.910, drop 0.021 ≤ 0.05" in capsys.readouterr().out
    assert command("compare", runs["good"].output_dir, lost, "--fail-on-regression", "--max-drop", "0.02") == 1
