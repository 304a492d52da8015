"""Runs that version 0.1.0 wrote: they open, are scored again, reported, compared and resumed, with the same scores."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml
from goldens.judgements import judgement
from openai_stub import OpenAIStub

from graphrag_eval_lc import BenchmarkRun, compare_runs
from graphrag_eval_lc.cli import main

FIXTURES = Path(__file__).parent.parent / "goldens" / "v0_1_0"
RUNS = ("first", "second", "stopped")

Command = Callable[..., int]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a copy of the fixtures, which is the current folder."""
    copied = copytree(FIXTURES, tmp_path / "runs")
    monkeypatch.chdir(copied)
    return copied


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIStub]:
    """Give the judge; requests to the address in the config, which no server has, come to it as to a proxy."""
    with OpenAIStub() as stub:
        stub.answer = judgement
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, stub.base_url.removesuffix("/v1"))
        monkeypatch.setenv("JUDGE_KEY", "none")
        yield stub


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Give what runs a command line and gives its exit code."""

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["graphrag-eval-lc", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    return run


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def aggregates(run: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((run / "aggregates.yaml").read_text(encoding="utf-8"))
    return loaded


NEWER = ("steps_recall", "steps_precision", "steps_f1", "steps_order")


REWORDED = {
    "did not call search_notes;": "did not call retrieval;",  # the agent's own tool is named
    " is matched by ": " is played by ",
    "Columns: `transformer` as `t`; ": "",
    ". 1 call failed: ": ".; 1 call failed: ",
    "no PREFIX line declares.": "no PREFIX line declares",
}
"""Words of reasons of today, and those of 0.1.0."""


def as_of_0_1_0(record: Any) -> Any:
    """Give results or aggregates without newer metrics, and what tells of undecided steps and cut outputs: of none."""
    if isinstance(record, list):
        return [as_of_0_1_0(each) for each in record]
    if not isinstance(record, dict):
        return record
    assert record.get("undecided", 0) == record.get("outputs_cut", 0) == 0
    if "matched" in record and "nearest" in record:
        assert record.get("outcome") == ("match" if record["score"] > 0 else "mismatch")
    added = (*NEWER, "undecided", "outputs_cut", *(("outcome",) if "matched" in record else ()))
    kept = {key: as_of_0_1_0(value) for key, value in record.items() if key not in added}
    for now, then in REWORDED.items() if "reason" in kept else ():
        kept["reason"] = kept["reason"].replace(now, then)
    return kept


@pytest.mark.parametrize("name", RUNS)
def test_a_run_opens(folder: Path, name: str) -> None:
    run = BenchmarkRun(aggregates(folder / name), output_dir=folder / name)
    assert [dict(result) for result in run.results] == records(folder / name / "results.jsonl")
    assert len(run.responses) == len(run.results)
    assert len(run.to_pandas()) == len(run.results)


@pytest.mark.full
@pytest.mark.parametrize("name", RUNS)
def test_scored_again_it_has_the_same_scores_and_asks_only_what_failed(
    folder: Path, command: Command, stub: OpenAIStub, name: str
) -> None:
    ended_early = name == "stopped"
    assert command("score", name, "--matchers", "agent.py", "--no-report") == ended_early
    expected = records(FIXTURES / name / "results.jsonl")
    assert as_of_0_1_0(records(folder / name / "results.jsonl")) == expected
    assert as_of_0_1_0(aggregates(folder / name)) == aggregates(FIXTURES / name)
    # An answer without the form that was asked for is asked twice, and never kept.
    failed = sum("answer_correctness_error" in result and result["status"] == "success" for result in expected)
    assert len(stub.requests) == 2 * failed
    assert all("BERGEN" in request.user for request in stub.requests)


def test_its_report_is_written(folder: Path, command: Command) -> None:
    assert command("report", "first") == 0
    html = (folder / "first" / "report.html").read_text(encoding="utf-8")
    assert "answer_f1" in html
    assert "transformers_bergen" in html


def test_its_runs_are_compared(folder: Path, command: Command) -> None:
    comparison = compare_runs("first", "second")
    means = {metric: comparison.pairs[0].metric(metric) for metric in ("steps_score", "total_tokens")}
    assert {name: (found.mean_a, found.mean_b) for name, found in means.items() if found} == {
        "steps_score": (0.5, 0.5625),
        "total_tokens": (pytest.approx(1136, abs=1), pytest.approx(1636, abs=1)),
    }
    assert command("compare", "first", "second", "--html", "comparison.html") == 0


@pytest.mark.full
def test_a_run_that_was_stopped_goes_on_with_what_is_missing(folder: Path, command: Command, stub: OpenAIStub) -> None:
    before = records(folder / "stopped" / "responses.jsonl")
    run = ("run", "dataset.yaml", "--agent", "agent.py:make_agent", "-o", "stopped", "-c", "config.yaml")
    assert command(*run, "--repeats", "2", "--no-report", "--quiet") == 0
    after = records(folder / "stopped" / "responses.jsonl")
    assert after[: len(before)] == before
    assert len(after) == 16
    # What was not judged before: a question that was not asked, and an answer of which the judgement failed.
    missing = ("FEDA", "4.5 MW", "BERGEN")
    assert [each.user for each in stub.chat_requests if not any(word in each.user for word in missing)] == []
    results = records(folder / "stopped" / "results.jsonl")
    assert len(results) == 16
    scores = {(result["question_id"], result.get("repeat", 1)): result.get("steps_score") for result in results}
    for question in records(FIXTURES / "first" / "results.jsonl"):
        for repeat in (1, 2):
            assert scores[question["question_id"], repeat] == question.get("steps_score")
