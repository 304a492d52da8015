"""The plugin's options, where they can be set, and sessions without them."""

import json
import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from support.pytest_projects import TEST, environment, run_in, write_project

from graphrag_eval_lc import list_runs, load_run

full = pytest.mark.full


def files_in(folder: Path) -> set[str]:
    skipped = ("__pycache__", ".pytest_cache")
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in paths if not set(path.parts) & set(skipped)}


@full
@pytest.mark.parametrize("arguments", [("-n2",), ("--collect-only", "--graphrag-output=run")])
def test_without_options_nothing_is_written_or_printed(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = write_project(tmp_path / "project")
    before = files_in(folder)
    ended = run_in(folder, *arguments)
    assert files_in(folder) == before
    assert "graphrag-eval-lc" not in ended.stdout.replace("----- graphrag -----", "")


@full
def test_gates_need_no_folder_and_fail_a_session_with_passing_tests(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project", TEST.replace(">= 0.5", ">= 0"))
    before = files_in(folder)
    ended = run_in(folder, "--graphrag-fail-under=steps_score=0.9", "-n2")
    assert "3 passed" in ended.stdout
    assert "Gate failed: steps_score 0.333 < 0.9" in ended.stdout
    assert ended.returncode == 1
    assert files_in(folder) == before
    assert run_in(folder, "--graphrag-fail-under=steps_score=0.3").returncode == 0


@full
def test_gate_on_an_unknown_template_is_an_error_before_the_first_question(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    ended = run_in(folder, "-n2", "--graphrag-output=run", "--graphrag-fail-under=whre/steps_score=0.9")
    assert ended.returncode == 4
    assert "ERROR: no dataset of this session has a template whre. Did you mean where?" in ended.stderr
    assert not (folder / "run").exists()


@full
def test_gate_without_results_fails_unless_no_question_was_selected(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project", TEST.replace("return make_agent()", 'pytest.skip("no key")'))
    (folder / "test_other.py").write_text("def test_other():\n    pass\n")
    skipped = run_in(folder, "--graphrag-output=run", "--graphrag-fail-under=steps_score=0.9")
    assert "Gate failed: test_agent asked no question, so that no gate could be checked." in skipped.stdout
    assert skipped.returncode == 1
    others = run_in(folder, "--graphrag-output=run", "--graphrag-fail-under=steps_score=0.9", "-k", "other")
    assert others.returncode == 0
    assert "No gate was checked, as no test of this session asks a question." in others.stdout
    assert not (folder / "run").exists()


@full
def test_ini_file_has_the_same_options_and_the_command_line_takes_precedence(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    (folder / "config.yaml").write_text("gates: [{metric: steps_score, under: 0.8}]\nsteps: {grading: graded}\n")
    ini = """\
        [pytest]
        graphrag_output = runs/ini
        graphrag_config = config.yaml
        graphrag_label = nightly
        graphrag_overwrite = true
        graphrag_fail_under =
            steps_score=0.9
            where/steps_score=0.1
        """
    (folder / "pytest.ini").write_text("\n".join(line[8:] for line in ini.splitlines()))
    (folder / "below").mkdir()
    for arguments, required in (
        ((), ("0.8", "0.9", "0.1")),
        (("--graphrag-fail-under=steps_score=0.2",), ("0.8", "0.2")),
    ):
        ended = run_in(folder / "below", "..", *arguments)
        gates = [line for line in ended.stdout.splitlines() if line.startswith("Gate ")]
        assert [line.split(" (")[0].rstrip(".").split(" ")[-1] for line in gates] == list(required)
    record = json.loads((folder / "runs" / "ini" / "run.json").read_text())
    assert (record["label"], record["config"]["steps"]["grading"]) == ("nightly", "graded")


SEVERAL = """\
import pytest
from graphrag_eval_lc import register_metric

QUESTIONS = [{"id": f"q{n}", "question_text": f"Q{n}?"} for n in range(2)]


@register_metric(key="saved_sec", unit="seconds")
def saved_sec(question, response):
    return 60.0


def tone(question, response):
    return {"tone": 0.25}


@pytest.mark.parametrize("model", ["gpt-4", "tö"])
@pytest.mark.graphrag_dataset([{"template_id": "ä", "questions": QUESTIONS}], evaluators=[tone])
def test_models(model, graphrag_ask):
    assert graphrag_ask(lambda question: model)["saved_sec"] == 60.0


@pytest.mark.graphrag_dataset("qa.yaml", templates=["where"], name="named")
class TestClass:
    def test_of_the_question_alone(self, graphrag_question):
        assert graphrag_question["template_id"] == "where"

    def test_late(self, graphrag_question, request):
        request.getfixturevalue("graphrag_ask")(lambda question: "late")

    @pytest.mark.anyio
    async def test_async(self, graphrag_aask):
        async def agent(question):
            return question

        assert (await graphrag_aask(agent, max_retries=0))["actual_answer"].startswith("Where is")

    def test_without_questions(self):
        pass


@pytest.mark.graphrag_dataset("qa.yaml", limit=1)
def test_spec(graphrag_ask):
    assert graphrag_ask("my_agent.py:make_agent")["steps_score"] == 1.0
    with pytest.raises(Exception, match="Did you mean timeout?"):
        graphrag_ask("my_agent.py:make_agent", timout=5)
"""


@full
def test_each_test_and_each_parameter_set_is_a_run_in_its_own_folder(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project", SEVERAL)
    single = run_in(folder, "-p", "anyio", "--graphrag-output=runs", "test_agent.py::test_spec")
    assert single.returncode == 0
    assert (folder / "runs" / "run.json").exists()
    gates = ("--graphrag-fail-over=elapsed_sec.max=60", "--graphrag-fail-under=ä/tone=0.3", "--graphrag-overwrite")
    ended = run_in(folder, "-n2", "-p", "anyio", "-k", "not trio", "--graphrag-output=runs", *gates)
    assert "12 passed" in ended.stdout, ended.stdout
    runs = {Path(run.path).name: load_run(run.path) for run in list_runs(folder / "runs")}
    assert set(runs) == {"test_models-gpt-4", "test_models-t_xf6", "named-asyncio", "named", "test_spec"}
    answers = [[result["actual_answer"] for result in run.results] for name, run in runs.items() if "models" in name]
    assert sorted(answers) == [["gpt-4", "gpt-4"], ["tö", "tö"]]
    assert runs["test_models-gpt-4"].aggregates["micro"]["saved_sec"]["mean"] == 60.0
    assert not (folder / "runs" / "run.json").exists()
    assert "Gate failed: test_models-gpt-4: ä/tone 0.250 < 0.3." in ended.stdout
    assert ended.returncode == 1


@full
@pytest.mark.skipif(not entry_points(group="pytest11", name="graphrag_eval_lc"), reason="needs the installed package")
def test_entry_point_loads_the_plugin(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    variables = {name: value for name, value in environment().items() if name[:4] not in ("PYTE", "PYTH")}

    def output_of(*arguments: str) -> str:
        session = [sys.executable, "-m", "pytest", *arguments]
        return subprocess.run(session, cwd=folder, env=variables, capture_output=True, text=True, check=False).stdout

    assert "graphrag-eval-lc: agents over knowledge graphs:" in output_of("--help")
    assert "@pytest.mark.graphrag_dataset(dataset, " in output_of("--markers")
    ended = output_of("-n2", "--strict-markers", "--graphrag-output=run")
    assert "2 failed, 1 passed" in ended
    assert "Written to run, with report.html" in ended


@full
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX")
def test_folder_is_private_unless_files_are_open(tmp_path: Path) -> None:
    folder = write_project(tmp_path / "project")
    before = os.umask(0o022)
    try:
        run_in(folder, "-n2", "--graphrag-output=runs/ci")
        run_in(folder, "--graphrag-output=runs/open", "--graphrag-open-files")
    finally:
        os.umask(before)
    for name, permissions in (("ci", {0}), ("open", {0o044, 0o055})):
        paths = [folder / "runs" / name, *(folder / "runs" / name).iterdir()]
        assert {path.name for path in paths} > {"run.json", "responses.jsonl", "results.jsonl", "report.html"}
        assert {path.stat().st_mode & 0o077 for path in paths} == permissions
