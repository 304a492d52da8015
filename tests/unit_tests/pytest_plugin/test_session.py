"""A pytest session in its own project: the tests, their texts, the run folder and the gates."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import NamedTuple

import pytest
from support.pytest_projects import run_in, write_project

from graphrag_eval_lc import compare_runs, load_run, score_run

FLAGS = (
    "--graphrag-output=runs/ci",
    "--graphrag-label=nightly",
    "--graphrag-fail-under=steps_score=0.9",
    "--graphrag-fail-under=where/steps_score=0.5",
    "--graphrag-fail-over=elapsed_sec.max=60",
    "--junitxml=junit.xml",
)


class FinishedSession(NamedTuple):
    """A finished session and its project."""

    folder: Path
    process: CompletedProcess[str]

    @property
    def stdout(self) -> str:
        return self.process.stdout

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    def cases(self) -> Iterator[tuple[str, ET.Element]]:
        for case in ET.parse(self.folder / "junit.xml").iter("testcase"):
            yield case.attrib["name"], case


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> FinishedSession:
    folder = write_project(tmp_path_factory.mktemp("session") / "project")
    return FinishedSession(folder, run_in(folder, *FLAGS))


def test_each_question_is_a_test_and_a_wrong_answer_fails(session: FinishedSession) -> None:
    assert session.process.returncode == 1
    assert "1 passed" in session.lines[-1]
    assert "2 failed" in session.lines[-1]
    assert "error" not in session.lines[-1]
    for name in ("where/bergen", "who/away"):
        assert f"FAILED test_agent.py::test_agent[{name}] - assert 0.0 >= 0.5" in session.stdout


def test_failure_shows_answer_scores_and_mismatched_steps(session: FinishedSession) -> None:
    start = session.lines.index("where/bergen: Where is BERGEN?")
    text = session.lines[start : start + 5]
    assert "graphrag" in session.lines[start - 1]
    assert text[1:3] == ["answer: In urn:BERGEN.", "steps_score: 0"]
    assert text[3].startswith("elapsed_sec: ")
    assert text[4] == "step lookup: mismatch: another text: urn:BERGEN instead of urn:NO5"


def test_agent_error_fails_the_test_with_its_text(session: FinishedSession) -> None:
    start = session.lines.index("who/away: Who is AWAY?")
    assert session.lines[start + 1] == "error: RuntimeError: no route to the graph"
    assert session.lines[start + 2] == "steps_score: 0"


def test_junit_has_scores_as_properties_and_the_failure_text(session: FinishedSession) -> None:
    cases = dict(session.cases())
    assert list(cases) == [f"test_agent[{each}]" for each in ("where/oslo", "where/bergen", "who/away")]
    scores = {}
    for name, case in cases.items():
        properties = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
        assert float(properties["elapsed_sec"]) > 0
        scores[name] = float(properties["steps_score"])
    assert list(scores.values()) == [1.0, 0.0, 0.0]
    failure = cases["test_agent[who/away]"].find("failure")
    assert failure is not None
    assert failure.text is not None
    assert "error: RuntimeError: no route to the graph" in failure.text


def test_summary_shows_the_gates_and_the_runs_folder(session: FinishedSession) -> None:
    start = next(number for number, line in enumerate(session.lines) if line.strip("= ") == "graphrag-eval-lc")
    assert session.lines[start + 1 : start + 5] == [
        "2 answered, 1 failed, steps_score 0.333 (answered: 0.500)",
        "Written to runs/ci, with report.html",
        "Gate failed: steps_score 0.333 < 0.9 (1 failed sample counts as 0).",
        "Gate passed: where/steps_score 0.500 ≥ 0.5.",
    ]
    assert session.lines[start + 5].startswith("Gate passed: elapsed_sec.max ")


def test_folder_is_a_run_folder(session: FinishedSession) -> None:
    folder = session.folder / "runs" / "ci"
    names = {path.name for path in folder.iterdir()}
    assert names - {".lock"} == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", "report.html"}
    record = json.loads((folder / "run.json").read_text())
    assert record["label"] == "nightly"
    assert record["dataset"]["path"] == str(session.folder / "qa.yaml")
    assert list(record["questions"]) == ["oslo", "bergen", "away"]
    assert "stopped" not in record
    assert "selection" not in record
    assert record["totals"]["number_of_samples"] == 3
    run = load_run(folder)
    assert [result["steps_score"] for result in run.results] == [1.0, 0.0, 0.0]
    assert run.response("oslo")["actual_steps"][0]["name"] == "lookup"


def test_run_can_be_compared_and_scored_again(session: FinishedSession) -> None:
    folder = session.folder / "runs" / "ci"
    before = load_run(folder).aggregates
    assert [run.number_of_questions for run in compare_runs(folder, folder).runs] == [3, 3]
    assert score_run(folder).aggregates == before


@pytest.mark.full
def test_folder_with_a_run_is_rejected_before_the_first_question(session: FinishedSession) -> None:
    second = run_in(session.folder, "--graphrag-output=runs/ci")
    assert second.returncode == 4
    folder = session.folder / "runs" / "ci"
    hint = "Give another folder; --graphrag-overwrite replaces that run, its answers included."
    assert second.stderr.strip() == f"ERROR: {folder}: the folder holds a run already. {hint}"
