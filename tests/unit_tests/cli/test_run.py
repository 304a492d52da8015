"""The command `run`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import GateConfig

Command = Callable[..., int]
RUN = ("run", "qa.yaml", "--output", "run", "--agent")


def answers() -> dict[str, str | None]:
    lines = Path("run/responses.jsonl").read_text().splitlines()
    return {line["question_id"]: line.get("actual_answer") for line in map(json.loads, lines)}


def test_agent_is_run_and_scores_are_shown(files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*RUN, "agent.py:graph") == 0
    output = capsys.readouterr()
    assert "the agent did not call lookup nor any other tool" in " ".join(output.out.split())
    assert "Written to run: run.json, responses.jsonl, results.jsonl, aggregates.yaml" in output.out
    assert "Report: run/report.html\nTo open it: graphrag-eval-lc report run --open\n" in output.out
    assert exit_code("score", "run") == 0
    assert "To open it: graphrag-eval-lc report run --open\n" in capsys.readouterr().out
    assert exit_code("score", "run", "--no-report") == 0
    assert "To open it" not in capsys.readouterr().out
    assert answers() == dict.fromkeys(("q1", "q2", "q3"), "In NO1.")


# --- options ---------------------------------------------------------------------------------------------------------

OPTIONS: dict[str, tuple[list[str], Any]] = {
    "config": (["--config", "config.yaml"], Path("config.yaml")),
    "limit": (["--limit", "2"], 2),
    "isolate": (["--isolate"], True),
    "engine": (["--engine", "ray"], "ray"),
    "ray_address": (["--ray-address", "auto"], "auto"),
    "workers": (["--workers", "3"], 3),
    "template_ids": (["--template", "where", "--template", "who"], ["where", "who"]),
    "question_ids": (["--question", "q1", "--question", "q2"], ["q1", "q2"]),
    "sample": (["--sample", "2"], 2),
    "seed": (["--seed", "7"], 7),
    "shard": (["--shard", "3/16"], "3/16"),
    "max_concurrency": (["-j", "3"], 3),
    "requests_per_minute": (["--requests-per-minute", "30"], 30.0),
    "timeout": (["--timeout", "5"], 5.0),
    "max_retries": (["--max-retries", "0"], 0),
    "repeats": (["--repeats", "3"], 3),
    "input_fn": (["--input-fn", "agent.py:make_input"], "agent.py:make_input"),
    "answer_fn": (["--answer-fn", "agent.py:make_answer"], "agent.py:make_answer"),
    "agent_config": (
        ["--agent-config", '{"tags": ["a"]}', "--recursion-limit", "9"],
        {"tags": ["a"], "recursion_limit": 9},
    ),
    "agent_key_env": (["--agent-key-env", "MY_KEY"], "MY_KEY"),
    "max_failures": (["--max-failures", "5%"], "5%"),
    "max_tokens": (["--max-tokens", "1000"], 1000),
    "max_time": (["--max-time", "60"], 60.0),
    "max_cost": (["--max-cost", "0.5"], 0.5),
    "evaluators": (["--evaluator", "agent.py:a", "--evaluator", "agent.py:b"], ["agent.py:a", "agent.py:b"]),
    "capture": (
        [
            *("--retrieval-documents", "a, b", "--retrieval-documents", "c", "--max-output-chars", "0"),
            *("--no-artifacts", "--keep-messages"),
        ],
        {"retrieval_documents": ["a", "b", "c"], "max_output_chars": 0, "keep_artifacts": False, "keep_messages": True},
    ),
    "gates": (
        ["--fail-under", "who/steps_score=0.9", "--fail-over", "elapsed_sec.p95=30"],
        [GateConfig(metric="steps_score", template="who", under=0.9), GateConfig(metric="elapsed_sec.p95", over=30.0)],
    ),
    "baseline": (["--baseline", "main", "--fail-on-regression"], Path("main")),
    "max_drop": (["--max-drop", "0.1"], 0.1),
    "confirm": (["--confirm", "1"], 1),
    "judge_cache": (["--no-cache"], False),
    "open_files": (["--open-files"], True),
    "grace": (["--grace", "1"], 1.0),
    "retry_errors": (["--retry-errors"], True),
    "force": (["--force"], True),
    "keep_answers": (["--keep-answers"], True),
    "overwrite": (["--overwrite"], True),
    "label": (["--label", "night"], "night"),
    "href": (["--href", "https://ci.example/1"], "https://ci.example/1"),
    "tags": (["--tag", "a", "--tag", "b"], ["a", "b"]),
    "progress": (["--quiet"], "off"),
    "log_file": (["--log-file", "log.jsonl"], Path("log.jsonl")),
}


# Some options are mutually exclusive.
APART = {"isolate", "overwrite", "sample", "seed", "shard"}


def test_every_option_reaches_the_run(files: Path, exit_code: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphrag_eval_lc.benchmark.run_options import RunOptions

    (files / "config.yaml").write_text("steps: {scoring: last_group}\n")
    (files / "main").mkdir()
    (files / "main" / "results.jsonl").touch()
    given: dict[str, Any] = {}

    def run_benchmark(agent: Any, dataset: Any, **options: Any) -> Any:
        given.update(options, agent=agent, dataset=dataset)
        raise KeyboardInterrupt

    monkeypatch.setattr("graphrag_eval_lc.cli.outcome.run_benchmark", run_benchmark)
    reached: dict[str, Any] = {}
    for names in (OPTIONS.keys() - APART, APART):
        given.clear()
        arguments = [argument for name in names for argument in OPTIONS[name][0]]
        assert exit_code(*RUN, "agent.py:graph", *arguments) == 130
        assert {name: given[name] for name in names} == {name: OPTIONS[name][1] for name in names}
        reached |= given
    common = {"agent": "agent.py:graph", "dataset": Path("qa.yaml"), "output_dir": Path("run"), "report": False}
    assert common.items() <= reached.items()
    assert reached.keys() == {*OPTIONS, *common}
    only_in_python = {"retry_on", "on_response", "on_event", "llm", "embeddings"}
    assert RunOptions.model_fields.keys() - reached.keys() == only_in_python
