from pathlib import Path

import pytest

from graphrag_eval_lc.cli import main

AGENT = "def agent(question):\n    return question.upper()\n"
QUESTIONS = """
- template_id: letters
  questions:
  - {id: a, question_text: "a?", reference_steps: []}
  - {id: b, question_text: "b?", reference_steps: []}
"""
PROJECT = """
run:
  agent: my_agent.py:agent
  dataset: questions.yaml
  output: runs
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"my_agent.py": AGENT, "questions.yaml": QUESTIONS, "graphrag_eval.yaml": PROJECT}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    code = ending.value.code
    assert code is None or isinstance(code, int)
    return code or 0


def add(folder: Path, *lines: str) -> None:
    file = folder / "graphrag_eval.yaml"
    file.write_text(file.read_text() + "".join(f"{line}\n" for line in lines))


def test_each_run_has_a_separate_folder(project: Path) -> None:
    for _ in range(3):
        assert exit_code("run", "-q", "--no-report") == 0
    assert len(list((project / "runs").iterdir())) == 3


def test_run_that_ended_early_names_the_folder_to_resume(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["graphrag-eval-lc", "run", "--max-failures", "1"])
    (project / "my_agent.py").write_text("def agent(question):\n    raise ValueError(question)\n")
    add(project, "  max_concurrency: 1")
    assert exit_code("run", "--max-failures", "0") == 1
    [folder] = (project / "runs").iterdir()
    assert f"graphrag-eval-lc run --max-failures 1 --output runs/{folder.name}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "validate"])
def test_help_does_not_require_options_of_the_project_file(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert exit_code(command, "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert "required" not in shown
    assert "by default the one that graphrag_eval.yaml names" in shown


def test_demo_and_other_folders_ignore_the_project_file(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    below = project / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert exit_code("run", "../questions.yaml", "-a", "../my_agent.py:agent", "-o", "run") == 0
    assert "Using" not in capsys.readouterr().err


def test_python_reads_the_project_file_as_a_config(project: Path) -> None:
    from graphrag_eval_lc import run_benchmark

    run = run_benchmark(str.upper, "questions.yaml", config="graphrag_eval.yaml", progress=False)
    assert len(run.results) == 2
