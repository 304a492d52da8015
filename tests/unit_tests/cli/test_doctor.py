import json
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_agent.py").write_text("def agent(question):\n    return 'Oslo'\n")
    (tmp_path / "qa.yaml").write_text("- template_id: t\n  questions: [{id: a, question_text: 'a?'}]\n")
    (tmp_path / "graphrag_eval.yaml").write_text(
        "run: {agent: 'my_agent.py:agent', dataset: qa.yaml, output: runs, max_concurrency: 2}\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def test_project_file_says_what_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor") == 0
    told = capsys.readouterr()
    assert "ok        agent     my_agent.py:agent takes a question's text\n" in told.out
    assert "ok        output    runs can be written to runs\n" in told.out
    assert told.err == "Using graphrag_eval.yaml.\n"


def test_errors_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor", "--agent", "absent.py:agent") == 1
    assert "1 error" in capsys.readouterr().out.splitlines()[-1]


def test_json_has_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("doctor", "--json", "--dataset", "absent.yaml") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["errors"] == 1
    [error] = [check for check in document["checks"] if check["level"] == "error"]
    assert error["area"] == "dataset"
    assert "there is no such file" in error["what"]


def test_terminal_obeys_nothing_of_what_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "qa.yaml").write_text('- template_id: t\n  questions: [{id: "a\\e[2J", question: "a?"}]\n')
    assert exit_code("doctor") == 1
    assert "\x1b" not in capsys.readouterr().out
