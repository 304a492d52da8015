"""Spans of agents of other frameworks, taken from real output of their instrumentations."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.span_files import attributes, calls_in, span

from graphrag_eval_lc.traces.responses import responses_of
from graphrag_eval_lc.traces.whole_traces import AskedCall

QUESTION = "Which lines are there?"
LOOKUP = {"query": "OSLO", "k": 2}
ROWS = '[{"id":"d1","text":"OSLO"}]'
FAILED = {"code": "STATUS_CODE_ERROR"}


def exception(kind: str, message: str) -> list[dict[str, Any]]:
    return [{"name": "exception", "attributes": attributes({"exception.type": kind, "exception.message": message})}]


def steps_in(folder: Path, *spans: dict[str, Any], scope: str = "") -> list[tuple[Any, ...]]:
    """Return name, arguments, output and error of each step in the response."""
    (response,) = responses_of(calls_in(folder, *spans, scope=scope))
    return [(step["name"], step["args"], step.get("output"), step.get("error")) for step in response["actual_steps"]]


# --- pydantic-ai ---

PYDANTIC_MODEL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
    "gen_ai.output.messages": json.dumps(
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "text", "content": "Let me look."},
                    {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": LOOKUP},
                    {"type": "tool_call", "id": "c2", "name": "final_result", "arguments": {"total": 1}},
                ],
            }
        ]
    ),
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 10,
    "gen_ai.usage.details.cache_read_tokens": 40,
}


def pydantic_tool(**more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": json.dumps(LOOKUP),
        **more,
    }


def test_pydantic_ai_output_tool_is_not_a_requested_step(tmp_path: Path) -> None:
    (call,) = calls_in(tmp_path, span(0, PYDANTIC_MODEL), scope="pydantic-ai")
    assert call.asked == [AskedCall(id="c1", name="lookup", args=LOOKUP)]
    assert call.tokens == {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, "cached_input_tokens": 40}


@pytest.mark.parametrize("keys", [("tool_arguments", "tool_response"), ("gen_ai.tool.call.arguments",) * 2])
def test_pydantic_ai_tool_is_read_with_old_and_new_attributes(tmp_path: Path, keys: tuple[str, str]) -> None:
    args, result = keys if keys[0] != keys[1] else (keys[0], "gen_ai.tool.call.result")
    span_attributes = {
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.id": "c1",
        args: json.dumps(LOOKUP),
        result: ROWS,
    }
    (call,) = calls_in(tmp_path, span(0, span_attributes, name="running tool"))
    assert (call.kind, call.name, call.args, call.output, call.tool_call_id) == ("tool", "lookup", LOOKUP, ROWS, "c1")


@pytest.mark.parametrize("status", [{}, {"code": 1}, FAILED])
def test_pydantic_ai_model_retry_is_a_failed_call(tmp_path: Path, status: dict[str, Any]) -> None:
    retried = {"pydantic_ai.tool.retry.cause": "model_retry", "gen_ai.tool.call.result": "query must not be empty"}
    (call,) = calls_in(tmp_path, span(0, pydantic_tool(**retried), status=status))
    assert (call.error, call.output) == ("query must not be empty", None)


def test_pydantic_ai_model_retry_has_a_reason_in_older_versions_too(tmp_path: Path) -> None:
    events = exception("pydantic_ai.exceptions.ToolRetryError", "")
    span_attributes = {"gen_ai.tool.name": "lookup", "tool_arguments": "{}", "tool_response": "query must not be empty"}
    (call,) = calls_in(tmp_path, span(0, span_attributes, status=FAILED, events=events))
    assert call.error == "query must not be empty"


@pytest.mark.parametrize(
    "span_attributes",
    [
        {
            "pydantic_ai.all_messages": json.dumps(
                [
                    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
                    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "lookup"}]},
                    {"role": "user", "parts": [{"type": "tool_call_response", "id": "c1", "result": ROWS}]},
                    {"role": "assistant", "parts": [{"type": "text", "content": "1 line"}]},
                ]
            )
        },
        {
            "all_messages_events": json.dumps(
                [
                    {"content": QUESTION, "role": "user", "event.name": "gen_ai.user.message"},
                    {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "lookup"}}]},
                    {"content": ROWS, "role": "tool", "id": "c1", "name": "lookup"},
                    {"role": "assistant", "content": "1 line"},
                ]
            )
        },
    ],
)
def test_pydantic_ai_agent_has_question_and_answer(tmp_path: Path, span_attributes: dict[str, str]) -> None:
    metadata = {"agent_name": "power", "metadata": '{"question_id":"q1","release":"r2"}'}
    (call,) = calls_in(tmp_path, span(0, {**metadata, **span_attributes}, name="agent run"))
    assert (call.kind, call.name, call.question, call.answer) == ("agent", "power", QUESTION, "1 line")
    assert (call.question_id, call.metadata) == ("q1", {"release": "r2"})
    (call,) = calls_in(tmp_path, span(0, {**metadata, **span_attributes, "final_result": '{"total":1}'}))
    assert call.answer == '{"total": 1}'


def test_pydantic_ai_output_function_is_not_a_step(tmp_path: Path) -> None:
    span_attributes = pydantic_tool(**{"gen_ai.tool.name": "final_result", "gen_ai.tool.call.result": "42"})
    (call, _) = calls_in(tmp_path, span(0, span_attributes), span(1, PYDANTIC_MODEL), scope="pydantic-ai")
    assert (call.kind, call.answer, call.output) == ("other", "42", None)
    (call,) = calls_in(tmp_path, span(0, span_attributes), scope="somebody else's")
    assert call.kind == "tool"


def test_earlier_calls_in_a_models_events_are_ignored(tmp_path: Path) -> None:
    earlier = {"role": "assistant", "tool_calls": [{"id": "c0", "function": {"name": "now", "arguments": "{}"}}]}
    requested = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": json.dumps(LOOKUP)}}
    events = [
        {"event.name": "gen_ai.user.message", "role": "user", "content": QUESTION},
        {"event.name": "gen_ai.assistant.message", **earlier},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c0", "content": "12:00"},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "tool_calls": [requested]}},
    ]
    (call,) = calls_in(tmp_path, span(0, {"gen_ai.operation.name": "chat", "events": json.dumps(events)}))
    assert call.asked == [AskedCall(id="c1", name="lookup", args=LOOKUP)]
    assert call.question == QUESTION


# --- OpenAI's Agents SDK ---

AGENTS_MODEL = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "gpt-4o",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": QUESTION,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(LOOKUP),
    "llm.output_messages.0.message.tool_calls.1.tool_call.id": "c2",
    "llm.output_messages.0.message.tool_calls.1.tool_call.function.name": "now",
}


def test_openai_agents_tool_gets_the_models_call_id(tmp_path: Path) -> None:
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": json.dumps(LOOKUP)}
    now = {"openinference.span.kind": "TOOL", "tool.name": "now", "output.value": "12:00"}
    calls = calls_in(tmp_path, span(0, AGENTS_MODEL), span(1, {**tool, "output.value": ROWS}), span(2, now))
    assert [(call.tool_call_id, call.args) for call in calls[1:]] == [("c1", LOOKUP), ("c2", {})]


def logfire(template: str, **span_attributes: Any) -> dict[str, Any]:
    return {"logfire.msg_template": template, "gen_ai.system": "openai", **span_attributes}


def test_logfire_spans_of_openai_agents_are_read(tmp_path: Path) -> None:
    requested = [{"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": json.dumps(LOOKUP)}}]
    chat = "Chat completion with {gen_ai.request.model!r}"
    model = {"gen_ai.request.model": "gpt-4o", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
    question = json.dumps([{"content": QUESTION, "role": "user"}])
    error = json.dumps({"message": "Error running tool", "data": {"tool_name": "boom", "error": "no such thing"}})
    spans = [
        span(0, logfire("OpenAI Agents trace: {name}", name="wf", metadata='{"question_id":"q1"}')),
        span(1, logfire("Agent run: {name!r}", name="power"), parent=0),
        span(
            2,
            logfire(chat, **model, input=question, output=json.dumps([{"role": "assistant", "tool_calls": requested}])),
            parent=1,
        ),
        span(3, logfire("Function: {name}", name="lookup", input=json.dumps(LOOKUP), output=ROWS), parent=1),
        span(4, logfire("Function: {name}", name="boom", input='{"x": 1}', output="sorry", error=error), parent=1),
        span(5, logfire(chat, **model, input=question, output='[{"role":"assistant","content":"1 line"}]'), parent=1),
    ]
    (response,) = responses_of(calls_in(tmp_path, *spans, scope="logfire.openai_agents"))
    assert response["question_id"] == "q1"
    assert (response["question_text"], response["actual_answer"]) == (QUESTION, "1 line")
    assert response["total_tokens"] == 220
    assert [step["id"] for step in response["actual_steps"]] == ["c1", "0000000000000005"]
    assert steps_in(tmp_path, *spans) == [
        ("lookup", LOOKUP, ROWS, None),
        ("boom", {"x": 1}, None, "Error running tool: no such thing"),
    ]


# --- smolagents ---

SMOLAGENTS = "openinference.instrumentation.smolagents"


def smolagents_tool(name: str, output: str | None, *given: Any, **named: Any) -> dict[str, Any]:
    parameters = {"query": {"type": "string"}, "k": {"type": "integer", "nullable": True}}
    return {
        "openinference.span.kind": "TOOL",
        "tool.name": name,
        "tool.parameters": json.dumps(parameters if name == "lookup" else {"answer": {"type": "any"}}),
        "input.value": json.dumps({"args": given, "sanitize_inputs_outputs": True, "kwargs": named}),
        **({} if output is None else {"output.value": output}),
    }


def test_smolagents_final_answer_tool_is_the_answer_and_not_a_step(tmp_path: Path) -> None:
    task = {"task": QUESTION, "stream": False, "additional_args": "as a table"}
    spans = [
        span(
            0,
            {
                "openinference.span.kind": "AGENT",
                "input.value": json.dumps(task),
                "output.value": "1 line",
                "smolagents.task": "the task before this one",
            },
            name="CodeAgent.run",
        ),
        span(1, smolagents_tool("lookup", ROWS, "OSLO", k=2), parent=0, name="SimpleTool"),
        span(
            2,
            smolagents_tool("lookup", None, ""),
            parent=0,
            name="SimpleTool",
            status=FAILED,
            events=exception("ValueError", "empty query"),
        ),
        span(3, smolagents_tool("final_answer", "1 line", "1 line"), parent=0, name="FinalAnswerTool"),
    ]
    (response,) = responses_of(calls_in(tmp_path, *spans, scope=SMOLAGENTS))
    assert (response["question_text"], response["actual_answer"]) == (QUESTION, "1 line")
    assert steps_in(tmp_path, *spans, scope=SMOLAGENTS) == [
        ("lookup", LOOKUP, ROWS, None),
        ("lookup", {"query": ""}, None, "ValueError: empty query"),
    ]


def test_smolagents_agent_without_an_answer_has_none(tmp_path: Path) -> None:
    span_attributes = {"openinference.span.kind": "AGENT", "output.value": "None"}
    assert calls_in(tmp_path, span(0, {**span_attributes, "smolagents.max_steps": 3}))[0].answer is None
    assert calls_in(tmp_path, span(0, span_attributes))[0].answer == "None"


# --- LlamaIndex ---


def llama_model(messages: dict[str, Any], *, tokens: int | None = None) -> dict[str, Any]:
    counted = {} if tokens is None else {"llm.token_count.prompt": tokens, "llm.token_count.completion": 1}
    return {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o", **messages, **counted}


def test_llama_index_workflow_is_read(tmp_path: Path) -> None:
    blocks = [{"tool_call_id": "c1", "tool_name": "lookup", "tool_kwargs": LOOKUP}]
    requests = {"output.value": json.dumps({"message": {"role": "assistant", "blocks": blocks}})}
    answers = {"output.value": json.dumps({"message": {"role": "assistant", "blocks": [{"text": "1 line"}]}})}
    requested = {key: item for key, item in AGENTS_MODEL.items() if "tool_calls.1" not in key and "llm." in key}
    output = {
        "blocks": [{"text": "[{'id': 'd1', 'text': 'OSLO'}]"}],
        "tool_name": "lookup",
        "raw_input": {"args": [], "kwargs": LOOKUP},
        "raw_output": [{"id": "d1", "text": "OSLO"}],
        "is_error": False,
    }
    tool = {"openinference.span.kind": "TOOL", "tool.name": "lookup", "input.value": json.dumps({"kwargs": LOOKUP})}
    workflow = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"init_state": {}, "start_event": "AgentWorkflowStartEvent()"}),
        "output.value": "StopEvent(result=AgentOutput(response=ChatMessage(role=<MessageRole.ASSISTANT: 'assis...",
    }
    spans = [
        span(0, workflow, name="FunctionAgent.run"),
        span(1, llama_model({"output.value": "{}"}), parent=0, name="OpenAI._prepare_chat_with_tools"),
        span(2, llama_model(requests), parent=0, name="OpenAI.achat"),
        span(3, llama_model(requested, tokens=100), parent=2, name="OpenAI.achat"),
        span(4, {**tool, "output.value": json.dumps(output)}, parent=0, name="FunctionTool.acall"),
        span(5, llama_model(answers, tokens=200), parent=0, name="OpenAI.achat"),
    ]
    (response,) = responses_of(calls_in(tmp_path, *spans))
    assert (response["question_text"], response["actual_answer"]) == (QUESTION, "1 line")
    assert response["input_tokens"] == 300
    assert len(response["llm_calls"]) == 2
    assert "capture_warnings" not in response
    (step,) = response["actual_steps"]
    assert (step["id"], step["args"], json.loads(step["output"])) == ("c1", LOOKUP, output["raw_output"])


def test_failed_llama_index_tool_has_a_reason(tmp_path: Path) -> None:
    output = {"blocks": [{"text": "no such thing"}], "raw_output": "no such thing", "is_error": True}
    span_attributes = {"openinference.span.kind": "TOOL", "tool.name": "boom", "output.value": json.dumps(output)}
    (call,) = calls_in(tmp_path, span(0, span_attributes))
    assert call.error == "no such thing"
