"""LangSmith runs as calls, in the formats of its client, its exports and older versions."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.traces.langsmith import langsmith_calls
from graphrag_eval_lc.traces.reading import read_traces
from graphrag_eval_lc.traces.whole_traces import AskedCall, TracedCall


def run(run_type: str, **fields: Any) -> dict[str, Any]:
    times = {"start_time": "2026-01-31T12:00:00", "end_time": "2026-01-31T12:00:01.500000+00:00"}
    return {"id": "r", "run_type": run_type, "name": "n", "parent_run_id": "p", "trace_id": "t", **times, **fields}


def call(run_type: str, **fields: Any) -> TracedCall:
    (found,) = langsmith_calls(run(run_type, **fields))
    return found


AI = {"content": "", "type": "ai", "tool_calls": [{"name": "find", "args": {"q": 1}, "id": "c1", "type": "tool_call"}]}
USAGE = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def constructor(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def test_times_without_a_zone_are_utc() -> None:
    found = call("tool", inputs={})
    assert found.ended is not None
    assert found.ended - found.started == 1.5
    assert found.started == 1769860800.0


def test_run_without_a_start_is_rejected() -> None:
    with pytest.raises(ResponsesError, match="the run r of LangSmith has no start_time"):
        call("tool", start_time=None)


def test_other_records_are_rejected() -> None:
    with pytest.raises(ResponsesError, match="a run of LangSmith is an object with id and run_type, not 5"):
        list(langsmith_calls(5))


@pytest.mark.parametrize(
    "outputs",
    [
        {"generations": [[{"text": "", "message": {**AI, "usage_metadata": USAGE}}]]},
        {"generations": [[{"text": "", "message": constructor("AIMessage", **AI, usage_metadata=USAGE)}]]},
        {"generations": [{"text": "", "message": constructor("AIMessageChunk", **AI, usage_metadata=USAGE)}]},
        {"generations": [[{"message": AI}]], "llm_output": {"token_usage": USAGE}},
        {
            "choices": [
                {
                    "message": {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}}
                        ],
                    }
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        },
        {"message": {**AI, "usage_metadata": USAGE}},
        {"output": {**AI, "usage_metadata": USAGE}},
        {**AI, "usage_metadata": USAGE},
    ],
)
def test_tool_calls_and_tokens_are_found_in_every_format(outputs: Any) -> None:
    found = call("llm", outputs=outputs)
    assert found.kind == "model"
    assert list(found.asked) == [AskedCall(id="c1", name="find", args={"q": 1})]
    assert {key: found.tokens.get(key) for key in USAGE} == USAGE


def test_tokens_next_to_the_outputs_are_used_as_a_fallback() -> None:
    found = call("llm", outputs={"generations": [[{"text": "Os"}]]}, prompt_tokens=7, completion_tokens=3)
    assert found.tokens == {"input_tokens": 7, "output_tokens": 3}
    assert call("llm", outputs=None, prompt_tokens=0, error="x").tokens == {}


def test_model_name_comes_from_the_answer() -> None:
    message = {**AI, "response_metadata": {"model_name": "gpt-4o-2024-08-06"}}
    metadata = {"metadata": {"ls_model_name": "gpt-4o"}}
    assert call("llm", outputs={"message": message}, extra=metadata).model == "gpt-4o-2024-08-06"
    assert call("llm", outputs={"message": AI}, extra=metadata).model == "gpt-4o"
    assert call("llm", extra={"invocation_params": {"model": "m"}}).model == "m"


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("a text", "a text"),
        ({"content": "a text", "type": "tool", "tool_call_id": "c1", "status": "success"}, "a text"),
        (constructor("ToolMessage", content="a text", tool_call_id="c1", status="success"), "a text"),
        ({"rows": [1]}, '{"rows": [1]}'),
        ([1, "b"], '[1, "b"]'),
        (None, None),
    ],
)
def test_tool_output_is_the_same_text_as_the_handlers(output: Any, text: str | None) -> None:
    found = call("tool", inputs={"q": 1}, outputs={"output": output})
    assert (found.output, found.error, found.args) == (text, None, {"q": 1})


def test_outputs_without_the_usual_key_are_used_whole() -> None:
    assert call("tool", inputs={}, outputs={"rows": 1, "more": 2}).output == '{"rows": 1, "more": 2}'


def test_tool_message_with_an_error_status_is_an_error() -> None:
    message = {"content": "no such thing", "type": "tool", "tool_call_id": "c1", "status": "error"}
    found = call("tool", inputs={}, outputs={"output": message})
    assert (found.error, found.output, found.tool_call_id) == ("no such thing", None, "c1")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("ValueError('no')Traceback (most recent call last):\n  File …", "ValueError: no"),
        ('ValueError("it\'s, no", 3)', "ValueError: it's, no"),
        ("KeyError()", "KeyError"),
        ("CancelledError", "CancelledError"),
        ("it (almost) works", "it (almost) works"),
        ("", None),
        (None, None),
    ],
)
def test_error_is_the_same_text_as_the_handlers(error: str | None, text: str | None) -> None:
    assert call("tool", inputs={}, error=error).error == text


@pytest.mark.parametrize(
    ("inputs", "args"),
    [
        ({"q": 1}, {"q": 1}),
        ({"input": "{'q': 'it\\'s', 'k': None}"}, {"q": "it's", "k": None}),
        ({"input": '{"q": true}'}, {"q": True}),
        ({"input": "plain"}, {"input": "plain"}),
        ({"input": {"q": 1}}, {"q": 1}),
        ({"input": "{'a"}, {"input": "{'a"}),
        (None, {}),
    ],
)
def test_arguments_of_older_tracers_are_read(inputs: Any, args: Any) -> None:
    assert call("tool", inputs=inputs).args == args


def test_retrieved_documents_are_a_list_of_ids_and_texts() -> None:
    documents = [
        {"page_content": "a", "metadata": {"id": "d1"}, "type": "Document"},
        constructor("Document", page_content="b", id="d2"),
        {"page_content": "c", "metadata": {}},
    ]
    found = call("retriever", inputs={"query": "?"}, outputs={"documents": documents})
    assert found.output == '[{"id": "d1", "text": "a"}, {"id": "d2", "text": "b"}, {"text": "c"}]'
    assert found.args == {"query": "?"}


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (
            {"messages": [["user", "Why?"]]},
            {"messages": [{"type": "human", "content": "Why?"}, {**AI, "content": "So"}]},
        ),
        ({"messages": [constructor("HumanMessage", content="Why?", type="human")]}, {"output": "So"}),
        ({"question": "Why?"}, {"answer": "So"}),
        ({"input": "Why?"}, {"output": {"role": "assistant", "content": "So"}}),
        ({"text_of_a_function": "Why?"}, {"some_key": "So"}),
    ],
)
def test_root_run_has_question_and_answer(inputs: Any, outputs: Any) -> None:
    outputs = {
        key: [{**each, "tool_calls": []} for each in value] if key == "messages" else value
        for key, value in outputs.items()
    }
    found = call("chain", parent_run_id=None, inputs=inputs, outputs=outputs)
    assert (found.kind, found.question, found.answer) == ("agent", "Why?", "So")


def test_metadata_is_the_users() -> None:
    metadata = {"question_id": 7, "ls_provider": "x", "langgraph_step": 1, "lc_agent_name": "a", "team": "grid"}
    found = call("chain", parent_run_id=None, extra={"metadata": metadata}, tags=["nightly"])
    assert found.question_id == "7"
    assert found.metadata == {"team": "grid", "tags": ["nightly"]}


def test_nested_runs_belong_to_its_trace() -> None:
    inner = run("tool", id="inner", parent_run_id=None, trace_id=None, inputs={})
    outer = run("chain", parent_run_id=None, child_runs=[run("chain", id="node", child_runs=[inner], trace_id=None)])
    calls = list(langsmith_calls(outer))
    assert [(each.id, each.parent_id, each.trace_id) for each in calls] == [
        ("r", None, "t"),
        ("node", "r", "t"),
        ("inner", "node", "t"),
    ]


def test_runs_from_langchains_run_collector_are_read() -> None:
    @tool
    def find(q: str) -> str:
        """Find."""
        return f"{q}!"

    def agent(question: str) -> dict[str, Any]:
        tool_call = {"name": "find", "args": {"q": question}, "id": "c1", "type": "tool_call"}
        answer = find.invoke(tool_call)
        return {"messages": [HumanMessage(question), AIMessage("", tool_calls=[tool_call]), answer, AIMessage("Os")]}

    collector = RunCollectorCallbackHandler()
    RunnableLambda(agent).invoke("Where?", {"callbacks": [collector], "metadata": {"question_id": "q1"}})
    first, second = langsmith_calls(collector.traced_runs[0])
    assert (first.question, first.answer, first.question_id, first.kind) == ("Where?", "Os", "q1", "agent")
    assert (second.name, second.args, second.output, second.tool_call_id) == ("find", {"q": "Where?"}, "Where?!", "c1")


@pytest.mark.parametrize("time", [-1, float("nan"), "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_invalid_start_is_rejected_and_invalid_end_is_ignored(time: object) -> None:
    run = {"id": "1", "run_type": "chain", "name": "a", "extra": {"metadata": {"question_id": "q"}}}
    with pytest.raises(ResponsesError, match="has no start_time"):
        read_traces([{**run, "start_time": time}])
    (response,) = read_traces([{**run, "start_time": "2026-01-31T12:00:00", "end_time": time}])
    assert "elapsed_sec" not in response


def test_time_too_large_for_a_float_is_rejected() -> None:
    with pytest.raises(ResponsesError, match="has no start_time"):
        read_traces([{"id": "1", "run_type": "chain", "name": "a", "start_time": 10**400}])


def test_token_counts_too_large_for_a_float_are_tolerated() -> None:
    run = {
        "id": "1", "run_type": "llm", "name": "m", "start_time": "2026-01-31T12:00:00",
        "outputs": {"llm_output": {}, "usage_metadata": {"input_tokens": 10**400, "output_tokens": 1}},
        "extra": {"metadata": {"question_id": "q"}},
    }  # fmt: skip
    assert read_traces([run])[0]["question_id"] == "q"


def test_nested_values_and_non_string_keys_are_read() -> None:
    deep: Any = "end"
    for _ in range(400):
        deep = [{"a": deep}]
    assert call("tool", inputs={"x": deep}, outputs={"output": deep}).output is not None
    assert call("llm", outputs={"generations": [[{"text": "Os"}]], "llm_output": {1: 2, None: deep}}).tokens == {}
