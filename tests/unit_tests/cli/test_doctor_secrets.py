import json
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main

TOKEN = "ghp_" + "a1B2" * 9


def ending_of(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ending:
        main(["doctor", "--secrets", *map(str, arguments)])
    return int(ending.value.code or 0)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "responses.jsonl").write_text(
        '{"question_id": "q1"}\n' + json.dumps({"question_id": "q2", "error": f"refused {TOKEN}"}) + "\n"
    )
    return folder


def test_findings_are_a_table_and_exit_1(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending_of(run) == 1
    printed = capsys.readouterr().out
    for part in ("responses.jsonl", "2", "q2", "GitHub token", "ghp_… (40 characters)", "Found: 1 secret in 1 file"):
        assert part in printed
    assert TOKEN not in printed


def test_json_has_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending_of(run, "--json") == 1
    assert json.loads(capsys.readouterr().out) == {
        "files": 1,
        "secrets": [
            {
                "file": str(run / "responses.jsonl"),
                "line": 2,
                "question_id": "q2",
                "kind": "GitHub token",
                "hint": "ghp_… (40 characters)",
            }
        ],
        "masked": [],
        "unread": {},
    }


def test_masked_findings_are_exit_1_once_and_then_0(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending_of(run, "--mask") == 1
    assert "Revoke these keys" in capsys.readouterr().out
    assert ending_of(run) == 0
    assert "No secret was found in 1 file" in capsys.readouterr().out
    lines = (run / "responses.jsonl").read_text().splitlines()
    assert json.loads(lines[1]) == {"question_id": "q2", "error": "refused ghp_***"}


def test_what_is_not_there_is_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ending_of(tmp_path / "away") == 2
    assert "no such folder or file" in capsys.readouterr().err


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
