"""The commands `run` and `score` with judges: their options, what they show, and how they end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.judged_runs import REQUESTS, config_of, judged_dataset, judged_responses
from support.openai_stub import OpenAIStub

Command = Callable[..., int]
RUN = ("run", "judged.yaml", "--agent", "support.judged_runs:agent", "--output", "run", "--quiet")
SCORE = ("score", "judged.yaml", "judged.jsonl", "--output", "run")
PRICES = {"gpt-4o-mini": {"input": 1.0, "output": 10.0}}
OFF = "Judged metrics"


@pytest.fixture
def judged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the current folder, with a dataset and recorded responses that can be judged."""
    (tmp_path / "judged.yaml").write_text(yaml.safe_dump(judged_dataset(3)))
    (tmp_path / "judged.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in judged_responses(3)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def with_judges(judged_files: Path, judge: OpenAIStub) -> tuple[str, ...]:
    """Give the arguments for a config with judges."""
    (judged_files / "config.yaml").write_text(yaml.safe_dump(config_of(judge)))
    return ("--config", "config.yaml")


@pytest.fixture
def with_correctness(judged_files: Path, judge: OpenAIStub) -> tuple[str, ...]:
    """Give the arguments for a config that judges correctness, 0.002 USD for each question."""
    config = config_of(judge, judges={"metrics": ["answer_correctness"], "max_concurrency": 1}, prices=PRICES)
    config["llm"]["generation"]["max_tokens"] = 100
    (judged_files / "config.yaml").write_text(yaml.safe_dump(config))
    return ("--config", "config.yaml")


def results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("run/results.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("command", [RUN, SCORE])
def test_without_an_llm_section_nothing_is_said_of_judged_metrics(
    judged_files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert exit_code(*command) == 0
    output = capsys.readouterr()
    assert OFF not in output.out
    assert output.err == ""
    assert not Path("run/judge_cache.jsonl").exists()


@pytest.mark.parametrize("command", [RUN, SCORE])
def test_judged_metrics_and_their_costs_are_shown(
    with_judges: tuple[str, ...], exit_code: Command, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert exit_code(*command, *with_judges) == 0
    output = capsys.readouterr()
    assert OFF not in output.out
    assert output.err == ""
    shown = " ".join(output.out.split())
    assert "0.667" in shown
    assert "$0.0" in shown
    assert all(result["answer_f1"] == pytest.approx(2 / 3) for result in results())


@pytest.mark.full
def test_scoring_a_folder_again_asks_nothing_unless_told_to(
    with_judges: tuple[str, ...], exit_code: Command, judge: OpenAIStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert exit_code(*RUN, *with_judges) == 0
    assert len(judge.requests) == 3 * REQUESTS
    before = results()
    assert exit_code("score", "run", *with_judges) == 0
    assert len(judge.requests) == 3 * REQUESTS
    assert results() == before
    assert exit_code("score", "run", *with_judges, "--no-cache") == 0
    assert len(judge.requests) == 6 * REQUESTS


def test_run_without_the_cache_writes_none(with_judges: tuple[str, ...], exit_code: Command) -> None:
    assert exit_code(*RUN, *with_judges, "--no-cache") == 0
    assert not Path("run/judge_cache.jsonl").exists()


def test_run_ends_at_its_budget_of_money_and_says_how_to_go_on(
    with_correctness: tuple[str, ...], exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RUN, *with_correctness, "--max-cost", "0.003") == 1
    error = capsys.readouterr().err
    assert "The run was stopped: the budget of $0.0030 is spent" in error
    assert "To resume, with a larger --max-cost:\n  graphrag-eval-lc run" in error
    assert 0 < sum("answer_f1" in result for result in results()) < 3
    assert exit_code(*RUN, *with_correctness, "--max-cost", "1") == 0
    assert all("answer_f1" in result for result in results())


@pytest.mark.full
def test_scoring_at_its_budget_of_money_says_how_many_were_not_judged(
    with_correctness: tuple[str, ...], exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*SCORE, *with_correctness, "--max-cost", "0.001") == 1
    assert "2 samples were not judged." in capsys.readouterr().err
    assert sum("answer_f1" in result for result in results()) == 1
    assert exit_code("score", "run", *with_correctness, "--max-cost", "0.001") == 1
    assert "1 sample was not judged." in capsys.readouterr().err
    assert exit_code("score", "run", *with_correctness) == 0
    assert all("answer_f1" in result for result in results())


def test_dry_run_of_scoring_says_what_judges_would_ask(
    with_correctness: tuple[str, ...],
    judge: OpenAIStub,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(*SCORE, *with_correctness, "--dry-run") == 0
    told = capsys.readouterr().out
    assert told.startswith("The judges would send 3 requests: about ")
    assert " output tokens" in told
    assert judge.requests == []
    assert exit_code(*SCORE, "--dry-run") == 0
    assert capsys.readouterr().out == "No model judges, so judging costs nothing.\n"
    assert not Path("run").exists()


def test_model_that_refuses_everything_is_one_sentence_and_exit_code_1(
    judged_files: Path, judge: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["api_key"] = "wrong"
    del config["llm"]["embedding"]
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert exit_code(*SCORE, "--config", "config.yaml") == 1
    error = capsys.readouterr().err
    assert error.startswith("The judging was stopped: openai:gpt-4o-mini refused 3 requests in a row and is asked")
    assert "(check the API key); " in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", [RUN, SCORE])
def test_model_without_a_price_is_told_once(
    judged_files: Path,
    judge: OpenAIStub,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
    command: tuple[str, ...],
) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["model"] = "judges-own"
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert exit_code(*command, "--config", "config.yaml") == 0
    error = capsys.readouterr().err
    assert error.startswith("Warning: no price is known for judges-own")
    assert error.count("\n") == 1


def test_endpoint_that_is_gone_is_told_once_beside_the_scores(
    judged_files: Path, judge: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(judge)
    for model in config["llm"].values():
        model["base_url"] = "http://127.0.0.1:9/v1"
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert exit_code(*RUN, "--config", "config.yaml") == 0
    error = capsys.readouterr().err
    assert error.startswith("Warning: a judge or a metric failed in 3 of 3 results; the first is q")
    assert error.count("\n") == 1


def test_key_is_shown_nowhere(
    judged_files: Path, judge: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(judge)
    for model in config["llm"].values():
        model |= {"api_key": "plain-secret-9", "base_url": "http://127.0.0.1:9/v1"}
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert exit_code(*RUN, "--config", "config.yaml") == 0
    output = capsys.readouterr()
    assert "plain-secret-9" not in output.out + output.err
    assert "answer_correctness_error" in results()[0]


def test_environment_variable_that_is_not_set_is_told_before_the_agent_is_asked(
    judged_files: Path, judge: OpenAIStub, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of(judge)
    config["llm"]["generation"]["api_key"] = "${NOT_SET_ANYWHERE_KEY}"
    Path("config.yaml").write_text(yaml.safe_dump(config))
    assert exit_code(*RUN, "--config", "config.yaml") == 2
    error = capsys.readouterr().err
    assert "NOT_SET_ANYWHERE_KEY" in error
    assert "Traceback" not in error
    assert not Path("run/responses.jsonl").exists()
