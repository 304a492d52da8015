"""The command `run`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.config import GateConfig

Command = Callable[..., int]
RUN = ("run", "qa.yaml", "--output", "run", "--agent")


def record() -> dict[str, Any]:
    return dict(json.loads(Path("run/run.json").read_text()))


def answers() -> dict[str, str | None]:
    lines = Path("run/responses.jsonl").read_text().splitlines()
    return {line["question_id"]: line.get("actual_answer") for line in map(json.loads, lines)}


def test_agent_is_asked_and_the_scores_are_shown(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
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
        {
            "retrieval_documents": ["a", "b", "c"],
            "max_output_chars": 0,
            "keep_artifacts": False,
            "keep_messages": True,
        },
    ),
    "gates": (
        ["--fail-under", "who/steps_score=0.9", "--fail-over", "elapsed_sec.p95=30"],
        [
            GateConfig(metric="steps_score", template="who", under=0.9),
            GateConfig(metric="elapsed_sec.p95", over=30.0),
        ],
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


# Some options exclude others.
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


def test_quiet_shows_no_progress_but_the_result_and_the_problems(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RUN, "agent.py:sometimes", "--quiet") == 0
    output = capsys.readouterr()
    assert output.err == ""
    assert "Written to run" in output.out
    with Path("run/responses.jsonl").open("a") as file:
        file.write('{"question_id": "q1", "act')
    assert exit_code(*RUN, "agent.py:sometimes", "--quiet") == 0
    assert capsys.readouterr().err.startswith("Warning: ")


def test_log_file_has_what_happened(files: Path, exit_code: Command) -> None:
    assert exit_code(*RUN, "agent.py:graph", "--log-file", "log.jsonl") == 0
    kinds = [json.loads(line)["event"] for line in Path("log.jsonl").read_text().splitlines()]
    assert (kinds[0], kinds[-1]) == ("run_started", "run_ended")


# --- what is kept of the agent's steps -------------------------------------------------------------------------------

RETRIEVING_AGENT = """
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **kwargs):
        return self


class Documents(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document("Oslo is in NO1.", id="d1"), Document("Bergen is in NO5.", id="d2")]


def make():
    call = {"name": "search_docs", "args": {"query": "Oslo"}, "id": "c1"}
    script = iter([AIMessage("", tool_calls=[call]), AIMessage("In NO1.")])
    return create_agent(Model(messages=script), [create_retriever_tool(Documents(), "search_docs", "Find documents.")])


def clean(value):
    return value.replace("Oslo", "O.") if isinstance(value, str) else value
"""
RETRIEVAL_DATASET = """
- template_id: find
  questions:
  - {id: q1, question_text: Where is Oslo?, reference_steps: [[{name: retrieval, relevant_ids: [d1]}]]}
"""
RETRIEVE = (*RUN, "retriever.py:make", "--config", "config.yaml")


@pytest.fixture
def retrieving(files: Path) -> None:
    """Put an agent with one of LangChain's retriever tools into the current folder."""
    Path("retriever.py").write_text(RETRIEVING_AGENT)
    Path("qa.yaml").write_text(RETRIEVAL_DATASET)
    Path("config.yaml").write_text("steps: {names: {search_docs: retrieval}}")


def result() -> dict[str, Any]:
    return dict(json.loads(Path("run/results.jsonl").read_text()))


def test_retriever_tool_scores_0_and_the_reason_names_the_option_with_which_it_does_not(
    retrieving: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RETRIEVE) == 0
    assert result()["steps_score"] == 0.0
    assert "the output is not JSON: Oslo is in NO1. Bergen" in capsys.readouterr().out
    assert "run with --retrieval-documents TOOL (config: capture: " in result()["steps_diagnosis"][0][0]["reason"]
    assert exit_code(*RETRIEVE, "--retrieval-documents", "all") == 2
    assert "capture.retrieval_documents was false and is true" in capsys.readouterr().err
    assert exit_code(*RETRIEVE, "--retrieval-documents", "all", "--overwrite") == 0
    assert result()["steps_score"] == 1.0
    assert result()["actual_steps"][0]["retrieval_ids_precision"] == 0.5


def test_capture_stands_in_the_config_and_the_command_line_goes_before_it(retrieving: None, exit_code: Command) -> None:
    Path("config.yaml").write_text(
        "steps: {names: {search_docs: retrieval}}\n"
        "capture: {retrieval_documents: [search_docs], redact: 'retriever.py:clean', max_output_chars: 5}\n"
    )
    assert exit_code(*RETRIEVE, "--max-output-chars", "1000") == 0
    assert result()["steps_score"] == 1.0
    assert result()["actual_steps"][0]["output"].startswith('[{"id": "d1", "text": "O. is in NO1."}')
    assert record()["capture"] == {
        "step_names": {},
        "retrieval_documents": ["search_docs"],
        "max_output_chars": 1000,
        "redact": "retriever.py:clean",
        "keep_artifacts": True,
        "keep_messages": False,
    }


def test_tool_that_nobody_calls_is_told(
    retrieving: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RETRIEVE, "--retrieval-documents", "search_dosc", "--quiet") == 0
    warning = "retrieval_documents names search_dosc, which no response calls; they call search_docs"
    assert warning in capsys.readouterr().err


# --- going on --------------------------------------------------------------------------------------------------------


# --- the end before its time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("question", "name", "code"), [("q1", "Ctrl-C", 130), ("q2", "SIGTERM", 143)])
def test_interrupted_run_writes_what_is_known_and_says_how_to_go_on(
    files: Path,
    exit_code: Command,
    capsys: pytest.CaptureFixture[str],
    question: str,
    name: str,
    code: int,
) -> None:
    arguments = (*RUN, "agent.py:interrupted", "-j", "1", "--question", question, "--repeats", "3")
    assert exit_code(*arguments) == code
    output = capsys.readouterr()
    assert f"The run was stopped: {name}; 2 were not asked. To resume:\n  graphrag-eval-lc run" in output.err
    assert "Written to run" in output.out
    assert record()["stopped"] == {"reason": "interrupted", "message": name, "left_out": 2}
    assert answers() == {question: "yes"}


def test_command_that_goes_on_is_printed_without_secrets(
    files: Path, exit_code: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = (*RUN, "agent.py:interrupted", "--question", "q1", "--repeats", "3", "-j", "1")
    arguments += ("--agent-config", '{"configurable": {"api_key": "sk-qwertz1234567890qwertz"}}')
    monkeypatch.setattr("sys.argv", ["graphrag-eval-lc", *arguments])
    assert exit_code(*arguments) == 130
    error = capsys.readouterr().err
    assert "To resume:\n  graphrag-eval-lc run" in error
    assert "--agent-config" in error
    assert "qwertz" not in error


def test_messages_are_kept_on_demand_and_scored_again_with_their_responses(
    retrieving: None, exit_code: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*RETRIEVE, "--keep-messages") == 0
    assert record()["capture"]["keep_messages"] is True
    kept = result()
    assert [message["role"] for message in kept["llm_messages"]] == ["user", "assistant", "tool", "assistant"]
    assert [call["input_messages"] for call in kept["llm_calls"]] == [[[0, 1]], [[0, 3]]]
    assert exit_code("score", "run", "--config", "config.yaml") == 0
    keys = ("llm_messages", "llm_calls", "run_id", "started_at", "tags", "metadata")
    assert {key: result()[key] for key in keys} == {key: kept[key] for key in keys}
    capsys.readouterr()
    assert exit_code(*RETRIEVE) == 2
    assert "capture.keep_messages was true and is false" in capsys.readouterr().err
    assert exit_code("validate", "qa.yaml", "--responses", "run/responses.jsonl") == 0


def test_config_keeps_messages_too(retrieving: None, exit_code: Command) -> None:
    Path("config.yaml").write_text(
        "capture: {keep_messages: true, redact: 'retriever.py:clean', max_output_chars: 10}\n"
    )
    assert exit_code(*RETRIEVE) == 0
    assert [message["content"] for message in result()["llm_messages"]] == ["Where is O", "", "O. is in N", "In NO1."]
    assert "2 of 4 messages were cut to 10 characters" in result()["capture_warnings"]
