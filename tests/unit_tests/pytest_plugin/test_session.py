"""A session of pytest in a project of its own: the tests, their texts, the run's folder, the gates."""

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


class Ended(NamedTuple):
    """A session that ended, and its project."""

    folder: Path
    process: CompletedProcess[str]

    @property
    def told(self) -> str:
        return self.process.stdout

    @property
    def lines(self) -> list[str]:
        return self.told.splitlines()

    def cases(self) -> Iterator[tuple[str, ET.Element]]:
        for case in ET.parse(self.folder / "junit.xml").iter("testcase"):
            yield case.attrib["name"], case


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    folder = write_project(tmp_path_factory.mktemp("session") / "project")
    return Ended(folder, run_in(folder, *FLAGS))


def test_each_question_is_a_test_and_a_wrong_answer_is_a_failure(ended: Ended) -> None:
    assert ended.process.returncode == 1
    assert "1 passed" in ended.lines[-1]
    assert "2 failed" in ended.lines[-1]
    assert "error" not in ended.lines[-1]
    for name in ("where/bergen", "who/away"):
        assert f"FAILED test_agent.py::test_agent[{name}] - assert 0.0 >= 0.5" in ended.told


def test_a_failure_tells_answer_scores_and_the_steps_that_do_not_fit(ended: Ended) -> None:
    start = ended.lines.index("where/bergen: Where is BERGEN?")
    text = ended.lines[start : start + 5]
    assert "graphrag" in ended.lines[start - 1]
    assert text[1:3] == ["answer: In urn:BERGEN.", "steps_score: 0"]
    assert text[3].startswith("elapsed_sec: ")
    assert text[4] == "step lookup: mismatch: another text: urn:BERGEN instead of urn:NO5"


def test_an_agent_that_fails_fails_the_test_with_its_error(ended: Ended) -> None:
    start = ended.lines.index("who/away: Who is AWAY?")
    assert ended.lines[start + 1] == "error: RuntimeError: no route to the graph"
    assert ended.lines[start + 2] == "steps_score: 0"


def test_junit_has_each_score_as_a_property_and_the_text_of_the_failure(ended: Ended) -> None:
    cases = dict(ended.cases())
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


def test_the_summary_tells_the_gates_and_where_the_run_is(ended: Ended) -> None:
    start = next(number for number, line in enumerate(ended.lines) if line.strip("= ") == "graphrag-eval-lc")
    assert ended.lines[start + 1 : start + 5] == [
        "2 answered, 1 failed, steps_score 0.333 (answered: 0.500)",
        "Written to runs/ci, with report.html",
        "Gate failed: steps_score 0.333 < 0.9 (1 failed sample counts as 0).",
        "Gate passed: where/steps_score 0.500 ≥ 0.5.",
    ]
    assert ended.lines[start + 5].startswith("Gate passed: elapsed_sec.max ")


def test_the_folder_is_that_of_a_run(ended: Ended) -> None:
    folder = ended.folder / "runs" / "ci"
    names = {path.name for path in folder.iterdir()}
    assert names - {".lock"} == {"run.json", "responses.jsonl", "results.jsonl", "aggregates.yaml", "report.html"}
    record = json.loads((folder / "run.json").read_text())
    assert record["label"] == "nightly"
    assert record["dataset"]["path"] == str(ended.folder / "qa.yaml")
    assert list(record["questions"]) == ["oslo", "bergen", "away"]
    assert "stopped" not in record
    assert "selection" not in record
    assert record["totals"]["number_of_samples"] == 3
    run = load_run(folder)
    assert [result["steps_score"] for result in run.results] == [1.0, 0.0, 0.0]
    assert run.response("oslo")["actual_steps"][0]["name"] == "lookup"


def test_the_run_can_be_compared_and_scored_again(ended: Ended) -> None:
    folder = ended.folder / "runs" / "ci"
    before = load_run(folder).aggregates
    assert [run.number_of_questions for run in compare_runs(folder, folder).runs] == [3, 3]
    assert score_run(folder).aggregates == before


@pytest.mark.full
def test_a_folder_with_a_run_is_refused_before_anything_is_asked(ended: Ended) -> None:
    again = run_in(ended.folder, "--graphrag-output=runs/ci")
    assert again.returncode == 4
    folder = ended.folder / "runs" / "ci"
    hint = "Give another folder; --graphrag-overwrite replaces that run, its answers included."
    assert again.stderr.strip() == f"ERROR: {folder}: the folder holds a run already. {hint}"
