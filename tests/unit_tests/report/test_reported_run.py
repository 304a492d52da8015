import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import BenchmarkRun
from graphrag_eval_lc.errors import ComparisonError, RunFolderError
from graphrag_eval_lc.report.reported_run import reported_run

RESULT = {"question_id": "q", "template_id": "t", "status": "success"}


def folder_with(path: Path, record: Any = None) -> Path:
    (path / "results.jsonl").write_text(json.dumps(RESULT))
    if record is not None:
        (path / "run.json").write_text(json.dumps({"format_version": 2, **record}))
    return path


def test_folder_provides_results_and_the_contents_of_run_json(tmp_path: Path) -> None:
    config = {"steps": {"names": {"kg": "sparql_query"}}, "llm": {"generation": {"api_key": "***"}}}
    run = reported_run(folder_with(tmp_path, {"label": "monday", "config": config}))
    assert list(run.results) == [RESULT]
    assert (run.folder, run.record["label"], run.warnings) == (tmp_path, "monday", [])
    assert run.config.steps.names == {"kg": "sparql_query"}


def test_missing_run_json_is_a_warning(tmp_path: Path) -> None:
    assert "no run.json" in reported_run(folder_with(tmp_path)).warnings[0]


def test_unreadable_config_is_a_warning_and_means_defaults(tmp_path: Path) -> None:
    run = reported_run(folder_with(tmp_path, {"config": {"steps": {"scoring": "by_moon"}}}))
    assert run.config.steps.scoring == "last_group"
    assert "steps.scoring" in run.warnings[0]


def test_other_sources_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"results\.jsonl"):
        reported_run(tmp_path)
    with pytest.raises(RunFolderError):
        reported_run(tmp_path / "none")
    with pytest.raises(ComparisonError):
        reported_run(7)  # type: ignore[arg-type]
    with pytest.raises(RunFolderError, match="format 99"):
        reported_run(folder_with(tmp_path, {"format_version": 99}))


def test_run_in_memory_provides_warnings_and_custom_metrics() -> None:
    micro = {"steps_score": {"mean": 1.0}, "polite": {"mean": 0.5}, "tone_cost": {"mean": 0.1}, "steps": {}}
    results: Any = [RESULT]
    run = BenchmarkRun({"micro": micro}, results=results, warnings=["so"], stopped={"reason": "max_time"})
    source = reported_run(run)
    assert (source.folder, source.warnings, source.record) == (None, ["so"], {"stopped": {"reason": "max_time"}})
    assert "polite" in source.metrics().of_samples
    assert list(source.results) == [RESULT]


def test_list_of_results_is_a_run() -> None:
    assert list(reported_run([RESULT]).results) == [RESULT]
