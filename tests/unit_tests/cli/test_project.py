import json
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


def run_json(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "run.json").read_text())
    return found


def test_run_needs_no_option_where_the_project_file_has_them(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run") == 0
    [folder] = (project / "runs").iterdir()
    assert run_json(folder)["agent"] == "my_agent.py:agent"
    assert "Using graphrag_eval.yaml.\n" in capsys.readouterr().err


def test_each_run_has_a_folder_of_its_own(project: Path) -> None:
    for _ in range(3):
        assert exit_code("run", "-q", "--no-report") == 0
    assert len(list((project / "runs").iterdir())) == 3


def test_options_override_the_project_file(project: Path) -> None:
    add(project, "  max_concurrency: 2", "  label: from the file")
    assert exit_code("run", "--label", "given", "--output", "elsewhere", "--question", "b") == 0
    record = run_json(project / "elsewhere")
    assert record["label"] == "given"
    limits = record["limits"]
    assert isinstance(limits, dict)
    assert limits["max_concurrency"] == 2


def test_the_project_file_may_say_how_a_baseline_is_confirmed_for_runs_that_have_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(project, "  confirm: 1", "  max_drop: 0.1")
    assert exit_code("run", "--output", "first") == 0
    assert "\nseconds are means\n" in capsys.readouterr().out  # no score is a column
    assert exit_code("run", "--output", "second", "--baseline", "first", "--fail-on-regression") == 3
    assert "Gate not checked: " in capsys.readouterr().err
    add(project, "  baseline: first", "  fail_on_regression: true")
    assert exit_code("run", "--output", "shard", "--shard", "1/2") == 0  # which leaves all of the gate out
    (project / "graphrag_eval.yaml").write_text(PROJECT)
    for option, value in (("--confirm", "1"), ("--max-drop", "0.1")):
        assert exit_code("run", "--output", "third", option, value) == 2
        assert f"{option} needs --baseline: " in capsys.readouterr().err


def test_another_config_has_another_section_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "other.yaml").write_text(PROJECT.replace("output: runs", "output: others"))
    assert exit_code("run", "-c", "other.yaml") == 0
    assert not (project / "runs").exists()
    assert len(list((project / "others").iterdir())) == 1
    assert "Using" not in capsys.readouterr().err


def test_options_are_named_as_on_the_command_line(project: Path) -> None:
    add(project, "  template: letters", "  tag: [one, two]", "  agent-config: {configurable: {user: eval}}")
    assert exit_code("run", "-o", "run") == 0
    record = run_json(project / "run")
    assert record["tags"] == ["one", "two"]
    assert record["agent_config"] == {"configurable": {"user": "eval"}}


def test_validate_takes_dataset_and_config(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("validate") == 0
    assert "No problems found." in capsys.readouterr().out


def test_gates_of_the_project_file_are_checked(project: Path) -> None:
    add(project, "gates: [{metric: elapsed_sec, over: 0}]")
    assert exit_code("run") == 1


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "max_concurency: 2",
            "line 6, key run.max_concurency: there is no option 'max_concurency' of run. Did you mean max_concurrency?",
        ),
        ("max_concurrency: many", "line 6, key run.max_concurrency: 'many' is not allowed here."),
        ("overwrite: true", "line 6, key run.overwrite: there is no option 'overwrite' of run."),
    ],
)
def test_mistakes_are_told_with_their_line(
    project: Path, line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add(project, f"  {line}")
    assert exit_code("run") == 2
    assert f"Error: graphrag_eval.yaml, {told}" in capsys.readouterr().err


def test_section_that_is_no_mapping_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "graphrag_eval.yaml").write_text("run: my_agent.py:agent\n")
    assert exit_code("run") == 2
    assert "graphrag_eval.yaml, line 1, key run: it is no mapping." in capsys.readouterr().err


def test_without_a_folder_to_write_to_the_hint_names_both_ways(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "graphrag_eval.yaml").write_text(PROJECT.replace("  output: runs\n", ""))
    assert exit_code("run") == 2
    told = "there is no folder to write to. Add --output DIR, or run: {output: runs} to the config."
    assert told in capsys.readouterr().err


def test_run_that_ended_early_says_in_which_folder_to_go_on(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["graphrag-eval-lc", "run", "--max-failures", "1"])
    (project / "my_agent.py").write_text("def agent(question):\n    raise ValueError(question)\n")
    add(project, "  max_concurrency: 1")
    assert exit_code("run", "--max-failures", "0") == 1
    [folder] = (project / "runs").iterdir()
    assert f"graphrag-eval-lc run --max-failures 1 --output runs/{folder.name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "file", "words"),
    [
        (["run"], None, ["there is no graphrag_eval.yaml here", "graphrag-eval-lc init --agent my_agent.py:agent"]),
        (["run", "qa.yaml"], None, ["no agent is named. Add --agent", "which graphrag-eval-lc init writes"]),
        (["run", "-a", "a.py:b"], None, ["no dataset is named", "run: {dataset: questions.yaml}"]),
        (["run"], "run: {agent: a.py:b}", ["no dataset is named", "questions.yaml} to graphrag_eval.yaml."]),
        (["run"], "run: {dataset: a.yaml}", ["no agent is named", "my_agent.py:agent} to graphrag_eval.yaml."]),
        (["validate"], None, ["no dataset is named", "graphrag-eval-lc init"]),
    ],
)
def test_what_a_project_lacks_is_named_with_both_ways_to_add_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    file: str | None,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if file is not None:
        Path("graphrag_eval.yaml").write_text(file)
    assert exit_code(*arguments) == 2
    told = capsys.readouterr().err
    assert [word for word in words if word not in told] == []


@pytest.mark.parametrize("command", ["run", "validate"])
def test_help_marks_nothing_as_required_that_the_project_file_can_name(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert exit_code(command, "--help") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", "").split())
    assert "required" not in shown
    assert "by default that of graphrag_eval.yaml" in shown


def test_demo_and_files_of_other_folders_are_left_alone(
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
