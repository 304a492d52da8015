"""`run --redact`."""

import json
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main

TOKEN = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(("redact", "kept"), [("secrets", "refused ghp_***"), ("cleaning:clean", "clean")])
def test_redact_of_run_takes_secrets_or_a_function(
    redact: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cleaning.py").write_text("def clean(value):\n    return 'clean'\n")
    (tmp_path / "telling.py").write_text(
        "from langchain_core.tools import tool\n"
        f"@tool\ndef look_up(name: str) -> str:\n    '''Look up.'''\n    return 'refused {TOKEN}'\n"
        "def agent(question):\n    return look_up.invoke({'name': 'x'}) and 'done'\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("qa.json").write_text(json.dumps([{"template_id": "t", "questions": [{"id": "q", "question_text": "Q?"}]}]))
    with pytest.raises(SystemExit) as ending:
        main(["run", "qa.json", "--agent", "telling.py:agent", "--output", "run", "--redact", redact, "--no-report"])
    assert not ending.value.code
    (step,) = json.loads(Path("run/responses.jsonl").read_text())["actual_steps"]
    assert step["output"] == kept
    assert json.loads(Path("run/run.json").read_text())["capture"]["redact"] == redact
