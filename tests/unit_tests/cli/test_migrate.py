import json
from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main

DATASET = """
- template_id: t
  questions:
    - id: q
      question_text: Two?
      reference_steps:
        - - {name: lookup, args: {}, output: '1'}
        - - {name: lookup, args: {}, output: '2'}
"""
RESPONSE = {"question_id": "q", "actual_steps": [{"id": "s", "name": "lookup", "status": "success", "output": "2"}]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "qa.yaml").write_text(DATASET)
    (tmp_path / "responses.jsonl").write_text(json.dumps(RESPONSE) + "\n")
    (tmp_path / "results.yaml").write_text("- {question_id: q, steps_score: 0.5}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ending:
        main(["migrate", "--dataset", "qa.yaml", "--responses", "responses.jsonl", *arguments])
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def test_settings_are_shown_and_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--published", "results.yaml", "-o", "moved") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 1 published figure is equal with the settings of graphrag-eval 6."
    assert f"Written: {Path('moved/graphrag_eval.yaml')}" in lines
    assert "scoring: all_groups" in (folder / "moved" / "graphrag_eval.yaml").read_text()


def test_differences_end_with_1_and_stand_below_the_verdict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "results.yaml").write_text("- {question_id: q, steps_score: 0.25}\n")
    assert exit_code("--published", "results.yaml") == 1
    assert (
        "  q, steps_score: published 0.25, here 0.5. Reference step 1.1 (lookup) has no match here:"
        in capsys.readouterr().out
    )


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--published", "results.yaml", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["settings"] == {"steps": {"scoring": "all_groups"}, "aggregates": {"errors": "include"}}
    assert document["compared"] == 1
    assert document["differences"] == document["files"] == []


@pytest.mark.parametrize(
    ("published", "code", "said"),
    [
        ("scores: 1\n", 2, "neither results nor aggregates"),
        ("- {question_id: other, steps_score: 1.0}\n", 3, "none of the 1 published question"),
    ],
)
def test_what_cannot_be_compared_is_one_error(
    folder: Path, capsys: pytest.CaptureFixture[str], published: str, code: int, said: str
) -> None:
    (folder / "results.yaml").write_text(published)
    assert exit_code("--published", "results.yaml", "-o", "moved") == code
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1
    assert not (folder / "moved").exists()


def test_terminal_obeys_nothing_of_what_is_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "results.yaml").write_text(
        '- {question_id: "q\\e[2J", steps_score: 0.25}\n- {question_id: q, steps_score: 0.5}\n'
    )
    assert exit_code("--published", "results.yaml") == 1
    shown = capsys.readouterr().out
    assert "q" in shown
    assert "\x1b" not in shown


def test_warnings_are_one_line_each_on_standard_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (folder / "responses.jsonl").open("a") as file:
        file.write('{"question_id": "unknown", "actual_answer": "-"}\n')
    assert exit_code("--published", "results.yaml") == 0
    [warning] = capsys.readouterr().err.splitlines()
    assert warning.startswith("Warning: 1 response is to a question that the dataset does not have")
