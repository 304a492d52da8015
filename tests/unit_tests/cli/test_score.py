"""The command `score`: recorded responses, and a run's folder once more in place."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., int]
SCORE = ("score", "qa.yaml", "responses.jsonl")


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]


def record() -> dict[str, Any]:
    return dict(json.loads(Path("run/run.json").read_text()))


def test_responses_are_scored_into_a_folder(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--label", "monday", "--href", "https://ci.example/1", "--tag", "a", "--tag", "b")
    assert exit_code(*SCORE, "--output", "run", *options) == 0
    assert "1.000" in capsys.readouterr().out
    assert [result.get("steps_score") for result in results()] == [1.0, None, None]
    assert {key: record()[key] for key in ("label", "href", "tags")} == {
        "label": "monday",
        "href": "https://ci.example/1",
        "tags": ["a", "b"],
    }


def test_folder_of_an_earlier_run_is_replaced_only_on_demand(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, "-o", "run") == 0
    assert exit_code(*SCORE, "-o", "run") == 2
    assert "pass --overwrite" in capsys.readouterr().err
    assert exit_code(*SCORE, "-o", "run", "--overwrite") == 0


def test_folder_of_a_run_is_scored_in_place(files: Path, exit_code: Command) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "--label", "night") == 0
    responses = Path("run/responses.jsonl").read_bytes()
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("reference_steps", "other_steps"))
    Path("config.yaml").write_text("aggregates: {errors: include}")
    assert exit_code("score", "run", "--config", "config.yaml") == 0
    assert ["steps_score" in result for result in results()] == [False, False, False]
    assert (record()["label"], record()["config"]["aggregates"]["errors"]) == ("night", "include")
    assert Path("run/responses.jsonl").read_bytes() == responses


def test_responses_may_be_those_of_a_run(files: Path, exit_code: Command) -> None:
    assert exit_code(*SCORE, "-o", "first") == 0
    assert exit_code("score", "qa.yaml", "first", "-o", "run") == 0
    assert [result.get("steps_score") for result in results()] == [1.0, None, None]


def test_folder_of_a_run_has_no_other_output(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, "-o", "run") == 0
    assert exit_code("score", "run", "-o", "elsewhere") == 2
    assert "run: the folder of a run is scored in place. Leave --output out" in capsys.readouterr().err


@pytest.mark.full
def test_folder_may_be_scored_with_another_dataset(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run") == 0
    Path("qa.yaml").rename("other.yaml")
    assert exit_code("score", "run") == 2
    assert "the dataset qa.yaml of this run is not there" in capsys.readouterr().err
    assert exit_code("score", "run", "--dataset", "other.yaml") == 0
    assert record()["dataset"]["path"] == "other.yaml"


def test_run_that_ended_early_is_scored_and_a_finding_and_not_told_to_go_on_with_this_command(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ("run", "qa.yaml", "-a", "agent.py:interrupted", "-o", "run", "-j", "1")
    assert exit_code(*run) == 130
    capsys.readouterr()
    assert exit_code("score", "run") == 1
    assert capsys.readouterr().err == "The run was stopped: Ctrl-C; 2 were not asked.\n"
    assert len(results()) == 1
    assert record()["stopped"]["left_out"] == 2


def test_what_is_to_be_known_is_told(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run") == 0
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("Where is", "Where lies"))
    capsys.readouterr()
    assert exit_code("score", "run") == 0
    assert capsys.readouterr().err == "Warning: 1 question with another text than was asked: q1\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["score", "qa.yaml"], "qa.yaml is not the folder of a run. Write: score DATASET RESPONSES --output DIR"),
        (["score", "absent"], "absent is not the folder of a run"),
        (["score", "."], "the folder holds no run"),
        (["score", "qa.yaml", "-o", "run"], "the responses are missing"),
        (["score", "qa.yaml", "responses.jsonl"], "there is no folder to write to. Add --output DIR."),
        (["score", ".", "--label", "x", "--overwrite"], "--label, --overwrite cannot be given with a run's folder"),
        (
            ["score", "qa.yaml", "responses.jsonl", "-o", "run", "--dataset", "qa.yaml"],
            "--dataset cannot be given with responses",
        ),
    ],
)
def test_wrong_usage_is_told(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
) -> None:
    (files / "responses.jsonl").rename(files / "elsewhere")
    assert exit_code(*arguments) == 2
    assert complaint in capsys.readouterr().err
    assert not Path("run").exists()


def test_measures_replace_those_of_the_config(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.yaml").write_text(
        "- template_id: find\n"
        "  questions:\n"
        "  - {id: q1, question_text: Which?, reference_steps: [[{name: retrieval, relevant_ids: [a, b]}]]}\n"
    )
    step = {"name": "search", "args": {}, "id": "c", "status": "success", "output": '[{"id": "b"}]'}
    Path("responses.jsonl").write_text(json.dumps({"question_id": "q1", "actual_steps": [step]}))
    Path("config.yaml").write_text("retrieval: {steps: [search], measures: [AP]}")
    assert exit_code(*SCORE, "-o", "run", "-c", "config.yaml", "--measures", "P@5, ndcg@10", "--measures", "RR") == 0
    shown = capsys.readouterr().out
    assert all(heading in shown for heading in ("P@5", "nDCG@10", "RR", "Missing"))
    assert "0.200" in shown
    assert record()["config"]["retrieval"]["measures"] == ["P@5", "ndcg@10", "RR"]
    keys = [key for key in results()[0]["actual_steps"][0] if key.startswith("retrieval_ids_")]
    assert keys == ["retrieval_ids_precision@5", "retrieval_ids_ndcg@10", "retrieval_ids_reciprocal_rank"]
    assert exit_code("score", "run", "--measures", "R") == 0
    assert results()[0]["actual_steps"][0]["retrieval_ids_recall"] == 0.5


def test_measure_that_does_not_exist_is_wrong_usage(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, "-o", "run", "--measures", "P@5,ndgc@10") == 2
    assert "there is no measure 'ndgc@10'. Did you mean nDCG" in capsys.readouterr().err
    assert not Path("run").exists()
    assert exit_code("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run", "--measures", "MAPP") == 2


# --- matchers and evaluators of one's own ----------------------------------------------------------------------------

CHECKS = """
from graphrag_eval_lc.matching import register_matcher


@register_matcher(name="lookup")
def match_ends(reference, actual):
    return float(reference["output"][-4:] == actual["output"][-4:])


def steps_taken(question, response):
    return len(response["actual_steps"])
"""
GIVEN = ("--plugin", "checks.py", "--evaluator", "checks.py:steps_taken")


@pytest.fixture
def checks(files: Path) -> None:
    """Put a module of matchers and evaluators into the current folder, and a response that only its matcher takes."""
    Path("checks.py").write_text(CHECKS)
    Path("responses.jsonl").write_text(Path("responses.jsonl").read_text().replace("urn:oslo", "http://x/oslo"))


def test_what_scored_a_run_is_given_again_or_dropped_on_demand(
    checks: None, exit_code: Command, capsys: pytest.CaptureFixture[str], forget_matchers: Callable[[], None]
) -> None:
    assert exit_code(*SCORE, "-o", "run", *GIVEN) == 0
    assert (results()[0]["steps_score"], results()[0]["steps_taken"]) == (1.0, 1)
    forget_matchers()
    before = {path.name: path.read_bytes() for path in Path("run").iterdir()}
    assert exit_code("score", "run", "--no-report") == 2
    error = capsys.readouterr().err
    assert (
        "the matcher for lookup (checks.py:match_ends) and the evaluator steps_taken (checks.py:steps_taken)" in error
    )
    assert "--plugin checks.py," in error
    assert "--evaluator checks.py:steps_taken (" in error
    assert "--drop-missing (drop_missing=True) to score without." in error
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == before
    assert exit_code("score", "run", *GIVEN) == 0
    assert (results()[0]["steps_score"], results()[0]["steps_taken"]) == (1.0, 1)
    forget_matchers()
    capsys.readouterr()
    assert exit_code("score", "run", "--drop-missing") == 0
    assert "Warning: scored without the matcher for lookup (checks.py:match_ends) and the" in capsys.readouterr().err
    assert "steps_taken" not in results()[0]
    assert exit_code("score", "run") == 0


def test_matcher_that_the_agents_module_registered_is_given_by_that_module(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], forget_matchers: Callable[[], None]
) -> None:
    Path("agent.py").write_text(f"{Path('agent.py').read_text()}\n{CHECKS}")
    run = ("run", "qa.yaml", "-a", "agent.py:sometimes", "-o", "run")
    assert exit_code(*run) == 0
    assert record()["matchers"] == [{"name": "lookup", "function": "agent.py:match_ends"}]
    forget_matchers()
    assert exit_code(*run, "--retry-errors") == 0  # the agent's module is loaded again
    forget_matchers()
    assert exit_code("score", "run") == 2
    assert "is missing now: the matcher for lookup (agent.py:match_ends); without it" in capsys.readouterr().err
    assert exit_code("score", "run", "--plugin", "agent.py") == 0


def test_dropping_is_for_the_folder_of_a_run(
    checks: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, "-o", "run", "--drop-missing") == 2
    assert "--drop-missing cannot be given with responses" in capsys.readouterr().err
    assert not Path("run").exists()


@pytest.mark.full
def test_processes_of_their_own_share_nothing_but_the_folder(checks: None) -> None:
    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from graphrag_eval_lc.cli import main; main()"
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    assert command(*SCORE, "-o", "run", *GIVEN).returncode == 0
    assert "the matcher for lookup" in command("score", "run").stderr
    assert results()[0]["steps_score"] == 1.0
    assert command("score", "run", *GIVEN).returncode == 0
    assert results()[0]["steps_score"] == 1.0
    assert command("score", "run", "--drop-missing").returncode == 0
    assert results()[0]["steps_score"] == 0.0


def deep(depth: int) -> str:
    return '{"a": [' * (depth // 2) + "1" + "]}" * (depth // 2)


def deep_files(reference: str, output: str, args: str = "{}") -> None:
    step = f'{{"name": "fetch", "args": {{}}, "output_media_type": "application/json", "output": {reference}}}'
    question = f'{{"id": "q", "question_text": "?", "reference_steps": [[{step}]]}}'
    Path("deep.json").write_text(f'[{{"template_id": "t", "questions": [{question}]}}]')
    taken = f'{{"name": "fetch", "args": {args}, "id": "c", "status": "success", "output": {output}}}'
    Path("deep.jsonl").write_text(f'{{"question_id": "q", "actual_answer": "", "actual_steps": [{taken}]}}\n')


@pytest.mark.full
def test_deep_texts_of_tools_are_scored_and_reported(files: Path, exit_code: Command) -> None:
    deep_files(json.dumps(deep(500)), json.dumps(deep(500).replace(" ", "")))
    assert exit_code("score", "deep.json", "deep.jsonl", "-o", "run") == 0
    assert [result["steps_score"] for result in results()] == [1.0]
    assert Path("run/report.html").exists()


@pytest.mark.parametrize(
    ("reference", "output", "args", "place"),
    [
        (json.dumps(deep(20_000)), '"[]"', "{}", "deep.json, line 1, question q"),
        (deep(100_000), '"[]"', "{}", "deep.json, line 1"),
        ('"[]"', deep(100_000), "{}", "deep.jsonl, line 1"),
        ('"[]"', '"[]"', deep(100_000), "deep.jsonl, line 1"),
    ],
)
def test_records_that_are_too_deep_themselves_are_one_clear_error(
    files: Path,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
    reference: str,
    output: str,
    args: str,
    place: str,
) -> None:
    deep_files(reference, output, args)
    assert exit_code("score", "deep.json", "deep.jsonl", "-o", "run") == 2
    message = " ".join(capsys.readouterr().err.split())
    assert place in message
    assert "nested too deeply" in message


@pytest.mark.full
@pytest.mark.full
@pytest.mark.parametrize("handler", ["strict", "surrogateescape"])
def test_half_a_character_in_an_output_is_escaped_where_it_is_shown(
    files: Path, monkeypatch: pytest.MonkeyPatch, handler: str
) -> None:
    step = {"name": "calc", "args": {}, "output": '{"a": 1}', "output_media_type": "application/json"}
    question = {"id": "q", "question_text": "How much?", "reference_steps": [[step]]}
    Path("halves.json").write_text(json.dumps([{"template_id": "t", "questions": [question]}]))
    actual = {"name": "calc", "args": {}, "id": "c", "status": "success", "output": "half \ud800 of it"}
    response = {"question_id": "q", "actual_answer": "1", "actual_steps": [actual]}
    Path("halves.jsonl").write_text(json.dumps(response) + "\n")
    main = "from graphrag_eval_lc.cli import main; main()"
    command = [sys.executable, "-c", main, "score", "halves.json", "halves.jsonl", "-o", "run"]
    monkeypatch.setenv("PYTHONIOENCODING", f"utf-8:{handler}")
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr.count(b"mistake")) == (0, 0)
    assert "half ⟨U+D800⟩ of it".encode() in done.stdout


def test_swapped_arguments_are_recognised(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("score", "responses.jsonl", "qa.yaml", "-o", "run") == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "Error: responses.jsonl: these are responses, not a reference dataset. Where both are given"
    )
    assert error.count("\n") == 1
    assert not Path("run").exists()


def test_question_in_place_of_question_text_is_recognised(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("qa.yaml").write_text(Path("qa.yaml").read_text().replace("question_text: Where", "question: Where"))
    assert exit_code(*SCORE, "-o", "run") == 2
    error = capsys.readouterr().err
    assert (
        "qa.yaml, line 3, question q1, key [0].questions[0].question_text: the key question_text is missing." in error
    )
    assert error.endswith("Rename question to question_text.\n")
