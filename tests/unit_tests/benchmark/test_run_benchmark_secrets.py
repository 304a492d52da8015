"""Secrets in an agent's errors and tools never reach the run folder's files or the console."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from support.planted_secrets import LOOK_ALIKES, MORE_SECRETS, SECRETS, embeddings, leaks

from graphrag_eval_lc import run_benchmark
from graphrag_eval_lc.cli import main
from graphrag_eval_lc.report.run_report import write_report

ALL = (*SECRETS, *MORE_SECRETS)
BY_QUESTION = {f"q{number}": planted for number, planted in enumerate(ALL)}


def dataset(names: Any = BY_QUESTION) -> list[Any]:
    questions = [{"id": name, "question_text": f"Ask {name}"} for name in names]
    return [{"template_id": "t", "questions": questions}]


def raising(question: str) -> str:
    planted = BY_QUESTION[question.split()[-1]]
    raise RuntimeError("; ".join(text for _, text in embeddings(planted.text)))


PACKED = re.compile(r"(?<=>)\s*([A-Za-z0-9+/]{100,}={0,2})\s*(?=<)")


def texts_of(folder: Path) -> str:
    """Return the texts of all files; what the report packs is unpacked, as packed bytes may look like anything."""
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()]
    unpacked = [gzip.decompress(base64.b64decode(part)).decode() for text in texts for part in PACKED.findall(text)]
    return "\n".join([*(PACKED.sub("", text) for text in texts), *unpacked])


@pytest.mark.full
def test_secrets_in_agent_errors_reach_no_file_and_no_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("from test_run_benchmark_secrets_agent import raising\n")
    (tmp_path / "test_run_benchmark_secrets_agent.py").write_text(
        "from support.planted_secrets import MORE_SECRETS, SECRETS, embeddings\n"
        "ALL = (*SECRETS, *MORE_SECRETS)\n"
        "def raising(question):\n"
        "    text = ALL[int(question.split()[-1][1:])].text\n"
        "    raise RuntimeError('; '.join(text for _, text in embeddings(text)))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "qa.json").write_text(json.dumps(dataset()))
    run = tmp_path / "run"
    options = ["--output", str(run), "--max-failures", "1000", "--log-file", str(tmp_path / "run" / "log.jsonl")]
    with pytest.raises(SystemExit) as ending:
        main(["run", str(tmp_path / "qa.json"), "--agent", f"{agent}:raising", *options, "--worst", "100"])
    assert ending.value.code == 1
    printed = capsys.readouterr()
    recorded = texts_of(run)
    assert recorded.count('"status": "error"') + recorded.count('"status":"error"') >= len(ALL)
    for planted in ALL:
        assert leaks(planted, recorded) == [], planted.name
        assert leaks(planted, printed.out + printed.err) == [], planted.name
    with pytest.raises(SystemExit) as scanned:
        main(["doctor", "--secrets", str(run)])
    assert not scanned.value.code, capsys.readouterr().out


@tool(response_format="content_and_artifact")
def look_up(name: str) -> tuple[str, dict[str, Any]]:
    """Look something up."""
    planted = BY_QUESTION[name]
    return json.dumps({"given": planted.text, "kept": LOOK_ALIKES}), {"more": [planted.text], "kept": LOOK_ALIKES}


@tool
def fail(name: str) -> str:
    """Fail."""
    raise ValueError(f"refused {BY_QUESTION[name].text}")


def ask(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    if isinstance(last, HumanMessage):
        name = str(last.content).split()[-1]
        args = {"name": name, "note": BY_QUESTION[name].text}
        calls = [{"name": each, "args": args, "id": f"{each}-{name}"} for each in ("look_up", "fail")]
        return {"messages": [AIMessage("", tool_calls=calls)]}
    model = FakeListChatModel(responses=[f"The answer: {state['messages'][-2].content}"])
    return {"messages": [model.invoke(state["messages"])]}


def graph() -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode([look_up, fail], handle_tool_errors=True))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "ask")
    return builder.compile()


@pytest.mark.full
@pytest.mark.parametrize("from_config", [False, True])
def test_redact_secrets_masks_secrets_in_all_files_and_nothing_else(tmp_path: Path, from_config: bool) -> None:
    names = list(BY_QUESTION)[:: 3 if from_config else 1]
    given: dict[str, Any] = {"capture": {"redact": "secrets", "keep_messages": True}}
    options = {"config": given} if from_config else given
    run = run_benchmark(graph(), dataset(names), output_dir=tmp_path / "run", progress="off", **options)
    write_report(run)
    recorded = texts_of(tmp_path / "run")
    for name in names:
        assert leaks(BY_QUESTION[name], recorded) == [], BY_QUESTION[name].name
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["capture"]["redact"] == "secrets"
    for response in map(json.loads, (tmp_path / "run" / "responses.jsonl").read_text().splitlines()):
        looked_up, failed = response["actual_steps"]
        assert json.loads(looked_up["output"])["kept"] == list(LOOK_ALIKES)
        assert looked_up["artifact"]["kept"] == list(LOOK_ALIKES)
        assert looked_up["args"].keys() == {"name", "note"}
        assert "***" in failed["error"]
        assert "***" in response["actual_answer"]
        assert "***" in json.dumps(response["llm_messages"])
    # Resuming the same run calls no agent.
    run_benchmark(graph(), dataset(names), output_dir=tmp_path / "run", progress="off", **options)


@pytest.mark.full
def test_step_errors_are_always_masked(tmp_path: Path) -> None:
    run_benchmark(graph(), dataset(), output_dir=tmp_path / "run", progress="off")
    for response in map(json.loads, (tmp_path / "run" / "responses.jsonl").read_text().splitlines()):
        planted = BY_QUESTION[response["question_id"]]
        assert leaks(planted, response["actual_steps"][1]["error"]) == [], planted.name
        assert leaks(planted, response["actual_steps"][0]["output"]) != []
