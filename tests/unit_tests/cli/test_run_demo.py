"""The command `demo`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyoxigraph")


@pytest.mark.full
def test_demo_runs_without_a_key_and_replaces_its_folder(
    tmp_path: Path, exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = None
    for _ in range(2):
        assert exit_code("demo", "--output", tmp_path, "--quiet", "--worst", "1") == 0
        output = capsys.readouterr()
        assert f"Written to {tmp_path}" in output.out
        assert output.err == ""
        record = json.loads((tmp_path / "run.json").read_text())
        assert record["label"] == "demo, rule-based planner"
        assert record["run_id"] != first
        first = record["run_id"]
