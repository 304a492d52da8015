"""Gates in the Python API: validated before the run, and applied afterwards."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import BenchmarkRun, gate_results, run_benchmark, score_responses, score_run
from graphrag_eval_lc.errors import ConfigError, OptionError

DATASET: list[Any] = [
    {
        "template_id": template,
        "questions": [{"id": f"{template}-{index}", "question_text": "1 + 1?"} for index in (1, 2)],
    }
    for template in ("sums", "products")
]
GATES = {"gates": [{"metric": "is_two", "under": 0.9}, {"metric": "elapsed_sec", "over": 60}, {"max_lost": 0}]}


def is_two(question: Any, response: Any) -> float:
    return float(response["actual_answer"] == "2")


def asked(**options: Any) -> BenchmarkRun:
    return run_benchmark(lambda question: "2", DATASET, progress="off", evaluators=[is_two], **options)


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"gates": ["is_tow=1"]}, OptionError, r"unknown metric is_tow\. Did you mean is_two\?"),
        ({"gates": ["sum/is_two=1"]}, OptionError, r"the dataset has no template sum\. Did you mean sums\?"),
        ({"gates": [{"metric": "is_two", "undr": 1}]}, OptionError, r"unknown key .*undr\. Did you mean under\?"),
        ({"gates": [{"metric": "is_two", "max_drop": 0.1}]}, OptionError, "max_drop compares a run with a baseline"),
        ({"gates": 3}, OptionError, "3 is not a gate"),
        ({"gates": [3]}, OptionError, "3 is not a gate"),
        (
            {"config": {"gates": [{"metric": "is_tow", "under": 1}]}},
            ConfigError,
            r"key gates\.0\.metric: unknown metric",
        ),
        ({"config": {"gates": [{"max_drop": 5}]}}, ConfigError, r"key gates\.0\.max_drop: 5 is not a drop from 0 to 1"),
        ({"config": {"gates": [{"metric": "cost", "max_lost": 1}]}}, ConfigError, "cost has no best value, so"),
        ({"config": {"gates": [{"metric": "elapsed_sec.p95", "max_drop": 0.1}]}}, ConfigError, "names another stat"),
        ({"gates": ["steps_score=90"]}, OptionError, r"from 0 to 1, and 90 lies outside\. Write 90 % as 0\.9\."),
        ({"gates": ["elapsed_sec=-1"]}, OptionError, r"elapsed_sec goes from 0, and -1 lies outside\."),
        (
            {"config": {"gates": [{"metric": "sums/is_two", "under": 1}]}},
            ConfigError,
            r"unknown metric sums/is_two\. Write metric: is_two and template: sums\.",
        ),
    ],
)
def test_invalid_gate_is_reported_before_the_agent_is_called(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    questions: list[str] = []
    with pytest.raises(error, match=complaint):
        run_benchmark(
            questions.append, DATASET, progress="off", evaluators=[is_two], output_dir=tmp_path / "run", **options
        )
    assert questions == []
    assert not (tmp_path / "run").exists()


def test_run_knows_its_gates(tmp_path: Path) -> None:
    run = asked(config=GATES, gates=["sums/is_two=1", "elapsed_sec.max=60"], output_dir=tmp_path / "run")
    assert [gate.name for gate in run.gate_results()] == ["is_two", "elapsed_sec", "sums/is_two", "elapsed_sec.max"]
    assert all(gate.has_passed for gate in run.gate_results())
    assert [gate.condition for gate in run.gates] == ["under", "over", "max_lost", "under", "over"]
    (failed,) = run.gate_results(["products/elapsed_sec.sum=0"])
    assert (failed.has_passed, failed.name) == (False, "products/elapsed_sec.sum")


def test_run_folder_provides_the_gates_of_its_config(tmp_path: Path) -> None:
    asked(config=GATES, output_dir=tmp_path / "run")
    assert [gate.name for gate in gate_results(tmp_path / "run")] == ["is_two", "elapsed_sec"]
    run = BenchmarkRun({"micro": {}}, output_dir=tmp_path / "run")
    assert [gate.condition for gate in run.gates] == ["under", "over", "max_lost"]
    again = score_run(tmp_path / "run", dataset=DATASET, evaluators=[is_two], gates=["is_two=0.5"])
    assert [gate.bound for gate in again.gate_results()] == [0.9, 60, 0.5]


def test_recorded_responses_are_not_scored_if_a_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"unknown metric step_score\. Did you mean steps_score\?"):
        score_responses(DATASET, [], output_dir=tmp_path / "run", gates=["step_score=1"])
    assert not (tmp_path / "run").exists()


def test_gate_reports_a_metric_dropped_with_its_evaluator(tmp_path: Path) -> None:
    asked(config=GATES, output_dir=tmp_path / "run")
    run = score_run(tmp_path / "run", dataset=DATASET, drop_missing=True)
    assert str(run.gate_results()[0]) == "is_two was not measured (≥ 0.9 is required)"
