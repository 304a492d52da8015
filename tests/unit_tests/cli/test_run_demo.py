"""The command `demo`."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyoxigraph")


@pytest.mark.full
def test_demo_runs_without_a_key_reuses_answers_and_can_rerun(
    tmp_path: Path, exit_code: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    first = None
    for more in ((), ("--overwrite",)):
        assert exit_code("demo", "--output", tmp_path, "--quiet", "--worst", "1", *more) == 0
        output = capsys.readouterr()
        assert "reused" not in output.out
        assert f"Written to {tmp_path}" in output.out
        assert output.err == ""
        record = json.loads((tmp_path / "run.json").read_text())
        assert record["label"] == "demo, rule-based planner"
        assert record["run_id"] != first
        first = record["run_id"]
    assert exit_code("demo", "--output", tmp_path) == 0
    err = capsys.readouterr().err
    assert re.match(r"0 asked, 48 reused from \d{4}-\d\d-\d\d \d\d:\d\d \(--overwrite asks again\)\n", err)
    (tmp_path / "run.json").write_text((tmp_path / "run.json").read_text().replace("(None)", "('openai:a')"))
    assert exit_code("demo", "--output", tmp_path) == 2  # it contains another model's answers
    named = set(re.findall(r"--[\w-]+", capsys.readouterr().err))
    assert {"--overwrite", "--force"} <= named
    assert exit_code("demo", "--output", tmp_path, "--force") == 0
