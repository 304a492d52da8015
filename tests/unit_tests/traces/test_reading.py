"""Reading traces as responses, from files and from runs in Python."""

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc import read_traces, run_evaluation
from graphrag_eval_lc.errors import GraphRAGEvalWarning, ResponsesError

DATASET: list[Any] = [
    {
        "template_id": "t",
        "questions": [
            {
                "id": f"q{number}",
                "question_text": f"What is {number}?",
                "reference_steps": [[{"name": "find", "output": str(number)}]],
            }
            for number in (1, 2)
        ],
    }
]


def run(number: int, **fields: Any) -> list[dict[str, Any]]:
    """Return LangSmith runs of an agent that looks up a number."""
    time = f"2026-01-31T12:00:0{number}"
    root = {
        "id": f"a{number}",
        "trace_id": f"a{number}",
        "parent_run_id": None,
        "run_type": "chain",
        "name": "agent",
        "start_time": time,
        "end_time": time,
        "inputs": {"messages": [{"role": "user", "content": f"What is {number}?"}]},
        "outputs": {"answer": str(number)},
        **fields,
    }
    tool = {
        "id": f"s{number}",
        "trace_id": f"a{number}",
        "parent_run_id": f"a{number}",
        "run_type": "tool",
        "name": "find",
        "start_time": time,
        "end_time": time,
        "inputs": {"n": number},
        "outputs": {"output": str(number)},
    }
    return [root, tool]


def span(trace: int, number: int, parent: int | None, attributes: dict[str, str]) -> dict[str, Any]:
    """Return an OTLP/JSON span."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        **({} if parent is None else {"parentSpanId": f"{parent:016x}"}),
        "name": "span",
        "startTimeUnixNano": str(1_769_860_800_000_000_000 + trace * 10**9 + number),
        "endTimeUnixNano": str(1_769_860_801_000_000_000 + trace * 10**9),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
    }


def otlp(number: int) -> list[dict[str, Any]]:
    """Return OpenInference spans of the same agent."""
    agent = {
        "openinference.span.kind": "AGENT",
        "input.value": f"What is {number}?",
        "output.value": str(number),
    }
    tool = {
        "openinference.span.kind": "TOOL",
        "tool.name": "find",
        "input.value": json.dumps({"n": number}),
        "output.value": str(number),
    }
    return [span(number, 1, None, agent), span(number, 2, 1, tool)]


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def written(path: Path, content: Any) -> Path:
    lines = content if path.suffix == ".jsonl" else [content]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


@pytest.mark.parametrize("form", ["runs", "list of runs", "spans", "lines of spans"])
def test_file_format_is_detected(tmp_path: Path, form: str) -> None:
    content: dict[str, tuple[str, Any]] = {
        "runs": ("t.jsonl", [*run(1), *run(2)]),
        "list of runs": ("t.json", [*run(2), *run(1)]),
        "spans": ("t.json", request(*otlp(1), *otlp(2))),
        "lines of spans": ("t.jsonl", [request(otlp(2)[1], otlp(1)[0]), request(otlp(1)[1]), request(otlp(2)[0])]),
    }
    name, value = content[form]
    responses = read_traces(written(tmp_path / name, value), DATASET)
    assert [response["question_id"] for response in responses] == ["q1", "q2"]
    assert [response["actual_steps"][0]["args"] for response in responses] == [{"n": 1}, {"n": 2}]
    assert [result["steps_score"] for result in run_evaluation(DATASET, responses)] == [1.0, 1.0]


def test_runs_in_python_are_read() -> None:
    assert [response["actual_answer"] for response in read_traces([*run(2), *run(1)], DATASET)] == ["1", "2"]


def test_nested_model_runs_are_one_call_in_python_and_in_files(tmp_path: Path) -> None:
    root, tool = run(1)
    outer = {**root, "id": "m1", "parent_run_id": "a1", "run_type": "llm", "outputs": None}
    inner = {**outer, "id": "m2", "parent_run_id": "m1", "prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}
    runs = [root, outer, inner, tool]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    assert read_traces(runs, DATASET) == read_traces(tmp_path / "runs.json", DATASET)
    assert [call["total_tokens"] for call in read_traces(runs, DATASET)[0]["llm_calls"]] == [5]


def test_second_trace_of_a_question_is_a_repeat() -> None:
    repeated = [{**each, "trace_id": "x"} for each in run(1)]
    repeated = [{**each, "id": f"x{each['id']}", "start_time": "2026-01-31T13:00:00"} for each in repeated]
    repeated[1]["parent_run_id"] = repeated[0]["id"]
    responses: list[Any] = read_traces([*repeated, *run(1)], DATASET)
    assert [(each["question_id"], each.get("repeat")) for each in responses] == [("q1", None), ("q1", 2)]


def test_traces_of_other_questions_are_left_out_with_a_warning() -> None:
    with pytest.warns(GraphRAGEvalWarning, match="1 trace is of no question of the dataset and left out: “What is 3"):
        assert len(read_traces([*run(1), *run(3)], DATASET)) == 1


def test_traces_without_a_known_question_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ResponsesError, match=r"none of 1 trace answers a question that is known: 1 trace is of no"):
        read_traces(run(3), DATASET)
    with pytest.raises(ResponsesError, match="1 trace tells no question id and is left out; a dataset"):
        read_traces(run(1))
    with pytest.raises(ResponsesError, match="found no traces"):
        read_traces([], DATASET)
    with pytest.raises(ResponsesError, match=r"t\.json: found no traces"):
        read_traces(written(tmp_path / "t.json", []), DATASET)


def test_ids_in_the_metadata_need_no_dataset() -> None:
    named = run(1, extra={"metadata": {"question_id": "mine"}})
    assert [response["question_id"] for response in read_traces(named)] == ["mine"]
