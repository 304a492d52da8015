"""Merged shards have the same results, aggregates and responses, key by key, as a run in one process."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.demo_runs import demo_run

from graphrag_eval_lc import BenchmarkRun, compare_runs, load_run, merge_runs

# Different in every run: times, and the ids of runs and attempts.
_OF_RUN = {
    "attempt_id", "elapsed_sec", "execution_timestamp", "run_id", "run_ids",
    "started_at", "thread_id",
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value without times and run ids."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in _OF_RUN}
    return [plain(each) for each in value] if isinstance(value, list) else value


def lines_of(path: Path) -> dict[tuple[str, int], Any]:
    records = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {(record["question_id"], record.get("repeat", 1)): plain(record) for record in records}


def assert_equal(merged: BenchmarkRun, whole: BenchmarkRun) -> None:
    assert merged.output_dir is not None
    assert whole.output_dir is not None
    for name in ("responses.jsonl", "results.jsonl"):
        assert lines_of(merged.output_dir / name) == lines_of(whole.output_dir / name)
    order = [[result["question_id"] for result in run.results] for run in (merged, whole)]
    assert order[0] == order[1]
    assert plain(merged.aggregates) == plain(whole.aggregates)
    records = [json.loads((run.output_dir / "run.json").read_bytes()) for run in (merged, whole) if run.output_dir]
    different = {"run_id", "times", "merged", "totals"}
    assert {key: value for key, value in records[0].items() if key not in different} == {
        key: value for key, value in records[1].items() if key not in different
    }


@pytest.mark.full
@pytest.mark.parametrize(("shards", "repeats"), [(8, 1), (3, 2)])
def test_merged_shards_equal_a_run_in_one_process(tmp_path: Path, shards: int, repeats: int) -> None:
    whole = demo_run(tmp_path / "whole", repeats=repeats, label="night", max_tokens=10_000_000)
    folders = [tmp_path / f"night-{number}-of-{shards}" for number in range(1, shards + 1)]
    for number, folder in enumerate(folders, start=1):
        demo_run(folder, repeats=repeats, label="night", max_tokens=10_000_000, shard=f"{number}/{shards}")
    merged = merge_runs(folders[::-1], output_dir=tmp_path / "merged")
    assert merged.stopped is None
    assert merged.warnings == []
    assert_equal(merged, whole)
    assert plain(load_run(tmp_path / "merged").aggregates) == plain(whole.aggregates)
    comparison = compare_runs(tmp_path / "whole", tmp_path / "merged")
    assert not any("settings" in warning for warning in comparison.warnings)
    halves = [
        merge_runs(folders[:2], output_dir=tmp_path / "half"),
        merge_runs([*folders[1:], tmp_path / "half"], output_dir=tmp_path / "again"),
    ]
    assert halves[0].stopped is not None
    assert_equal(halves[1], whole)
