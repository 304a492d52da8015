"""Runs with metrics of a plugin that is not installed: their records define the direction, for these runs only."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphrag_eval_lc import compare_runs, compute_aggregates, register_metric, report_html, run_evaluation
from graphrag_eval_lc.benchmark.score_responses import score_responses
from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.compare import gate_results
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.registry import registered_only_here

DATASET: Any = [
    {"template_id": f"t{n}", "questions": [{"id": f"q{n}", "question_text": "?", "reference_steps": []}]}
    for n in range(8)
]
DETOUR = {"key": "detour", "title": "km too many", "unit": "km", "lower_is_better": True, "range": (0, 60)}


def detour(question: Any, response: Any) -> float | None:
    return float(response["actual_answer"]) if "actual_answer" in response else 60.0


def responses(length: float) -> Any:
    failed = {"question_id": "q7", "status": "error", "error": "it failed"}
    return [*({"question_id": f"q{n}", "actual_answer": str(length + n)} for n in range(7)), failed]


def folder(path: Path, length: float, **declared: Any) -> Path:
    with registered_only_here():
        register_metric(**{**DETOUR, **declared})(detour)
        score_responses(DATASET, responses(length), output_dir=path)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return folder(tmp_path / "short", 1), folder(tmp_path / "long", 20)


def declare(run: Path, **declared: Any) -> None:
    record = json.loads((run / "run.json").read_text())
    record["evaluators"][0]["declares"].update(declared)
    (run / "run.json").write_text(json.dumps(record))


def test_minimum_mean_is_rejected_if_the_record_declares_lower_is_better(runs: tuple[Path, Path]) -> None:
    with pytest.raises(OptionError, match="less is better for detour"):
        gate_results(runs[1], {"detour": 3})
    shown = CliRunner().invoke(app, ["compare", *map(str, runs), "--fail-under", "detour=3"])
    assert isinstance(shown.exception, OptionError)


def test_custom_usage_is_compared_after_built_in_metrics(tmp_path: Path) -> None:
    a, b = (folder(tmp_path / name, length, kind="spent") for name, length in (("a", 1), ("b", 20)))
    metric = compare_runs(a, b).pairs[0].metrics[-1]
    assert (metric.metric, metric.is_spent, metric.verdict, metric.wins) == ("detour", True, "worse", 0)
    with registered_only_here():
        register_metric(**{**DETOUR, "kind": "spent"})(detour)
        assert compare_runs(a, b).pairs[0].metrics[-1].metric == "detour"


def test_conflicting_declarations_have_a_warning(runs: tuple[Path, Path]) -> None:
    assert not [warning for warning in compare_runs(*runs).warnings if "declared" in warning]
    declare(runs[0], lower_is_better=False, title="other words")
    (warning,) = (each for each in compare_runs(*runs).warnings if "declared" in each)
    assert warning.startswith("detour was declared otherwise when A was scored (lower_is_better)")
    with registered_only_here():
        register_metric(**{**DETOUR, "range": (0, 100)})(detour)
        warnings = [each for each in compare_runs(*runs).warnings if "declared" in each]
    assert [each.partition(";")[0] for each in warnings] == [
        "detour was declared otherwise when A was scored (lower_is_better, range)",
        "detour was declared otherwise when B was scored (range)",
    ]


@pytest.mark.full
def test_reading_a_folder_does_not_affect_later_evaluations(runs: tuple[Path, Path]) -> None:
    def evaluated() -> Any:
        def evaluator(question: Any, response: Any) -> dict[str, float | None]:
            return {"detour": detour(question, response)}

        results = run_evaluation(DATASET, responses(1), evaluators=[evaluator])
        return compute_aggregates(results, {"aggregates": {"errors": "include"}})["micro"]["detour"]

    before = evaluated()
    comparison = compare_runs(*runs)
    assert "detour" in report_html(runs[0])
    assert evaluated() == before
    assert before["min"] == 0
    assert comparison.plot_questions("detour").get_title() == "0 better, 7 worse, 1 the same"


@pytest.mark.parametrize(
    "declared",
    [
        {"range": [0, float("inf")]},
        {"title": "\ud800", "unit": "\ud800"},
        {"title": "[/] <script>alert(1)</script>", "unit": "[/red]"},
        {"unit": ["km"], "kind": {}, "title": 3},
    ],
)
def test_recorded_declarations_are_data(runs: tuple[Path, Path], declared: dict[str, Any]) -> None:
    for run in runs:
        declare(run, **declared)
    shown = CliRunner().invoke(app, ["compare", *map(str, runs), "--metric", "detour"])
    assert (shown.exit_code, shown.exception) == (0, None)
    assert ("[/red]" in shown.output) is (declared.get("unit") == "[/red]")
    assert "<script>alert" not in report_html(runs[0])


def test_record_with_a_number_beyond_float_is_one_clear_error(runs: tuple[Path, Path]) -> None:
    declare(runs[0], range=[0, 10**400])
    with pytest.raises(RunFolderError, match="the record of the run cannot be read"):
        compare_runs(*runs)
