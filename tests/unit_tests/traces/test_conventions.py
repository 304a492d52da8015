"""Spans in each convention, taken from real output of the instrumentations."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.span_files import calls_in, span

from graphrag_eval_lc.traces.conventions import CONVENTIONS
from graphrag_eval_lc.traces.whole_traces import AskedCall, TracedCall

QUERY = {"query": "OSLO", "result_class": "cim:Substation"}
ASKED = [AskedCall(id="call_1", name="autocomplete_search", args=QUERY)]
ROWS = '{"head": {"vars": ["iri"]}, "results": {"bindings": []}}'
QUESTION = "List the power transformers in the substation OSLO."


def constructor(class_name: str, /, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", class_name], "kwargs": kwargs}


def tool_message(content: str, status: str = "success") -> dict[str, Any]:
    return {
        "content": content,
        "type": "tool",
        "name": "autocomplete_search",
        "tool_call_id": "call_1",
        "status": status,
    }


# --- models ---

MODELS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.model_name": "planner",
        "llm.input_messages.0.message.role": "system",
        "llm.input_messages.0.message.content": "You answer.",
        "llm.input_messages.1.message.role": "user",
        "llm.input_messages.1.message.content": QUESTION,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call_1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "autocomplete_search",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(QUERY),
        "llm.token_count.prompt": 1587,
        "llm.token_count.completion": 18,
        "llm.token_count.total": 1605,
        "llm.token_count.prompt_details.cache_read": 1024,
    },
    "langfuse": {
        "langfuse.observation.type": "generation",
        "langfuse.observation.model.name": "planner",
        "langfuse.observation.input": json.dumps(
            [{"role": "system", "content": "You answer."}, {"role": "user", "content": QUESTION}]
        ),
        "langfuse.observation.output": json.dumps(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"name": "autocomplete_search", "args": QUERY, "id": "call_1", "type": "tool_call"}],
            }
        ),
        "langfuse.observation.usage_details": json.dumps(
            {"input": 563, "output": 18, "total": 1605, "input_cache_read": 1024, "input_priority": 5}
        ),
    },
    "traceloop": {
        "traceloop.workflow.name": "demo_agent",
        "traceloop.association.properties.ls_model_name": "planner",
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "unknown",
        "gen_ai.response.model": "unknown",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
        "gen_ai.output.messages": json.dumps(
            [
                {
                    "role": "assistant",
                    "parts": [{"type": "tool_call", "id": "call_1", "name": "autocomplete_search", "arguments": QUERY}],
                    "finish_reason": "",
                }
            ]
        ),
        "gen_ai.usage.input_tokens": 1587,
        "gen_ai.usage.output_tokens": 18,
        "gen_ai.usage.total_tokens": 1605,
        "gen_ai.usage.cache_read.input_tokens": 1024,
    },
    "older traceloop": {
        "traceloop.workflow.name": "demo_agent",
        "llm.request.type": "chat",
        "gen_ai.request.model": "planner",
        "gen_ai.prompt.0.role": "system",
        "gen_ai.prompt.0.content": "You answer.",
        "gen_ai.prompt.1.role": "user",
        "gen_ai.prompt.1.content": QUESTION,
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.tool_calls.0.id": "call_1",
        "gen_ai.completion.0.tool_calls.0.name": "autocomplete_search",
        "gen_ai.completion.0.tool_calls.0.arguments": json.dumps(QUERY),
        "gen_ai.usage.prompt_tokens": 1587,
        "gen_ai.usage.completion_tokens": 18,
        "llm.usage.total_tokens": 1605,
        "gen_ai.usage.cache_read_input_tokens": 1024,
    },
}


@pytest.mark.parametrize("convention", MODELS)
def test_model_span_has_question_tool_calls_and_tokens(tmp_path: Path, convention: str) -> None:
    (call,) = calls_in(tmp_path, span(0, MODELS[convention]))
    assert (call.kind, call.model, call.question) == ("model", "planner", QUESTION)
    assert call.asked == ASKED
    assert call.answer is None
    assert call.tokens == {
        "input_tokens": 1587,
        "output_tokens": 18,
        "total_tokens": 1605,
        "cached_input_tokens": 1024,
    }


ANSWERS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "It has 3.",
    },
    "openinference, in parts": {
        "openinference.span.kind": "LLM",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.contents.0.message_content.type": "reasoning",
        "llm.output_messages.0.message.contents.0.message_content.text": "I count them.",
        "llm.output_messages.0.message.contents.1.message_content.type": "text",
        "llm.output_messages.0.message.contents.1.message_content.text": "It has 3.",
    },
    "langfuse": {
        "langfuse.observation.type": "generation",
        "langfuse.observation.output": json.dumps({"role": "assistant", "content": "It has 3."}),
    },
    "gen_ai": {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "It has 3."}], "finish_reason": "stop"}]
        ),
    },
    "older traceloop": {
        "llm.request.type": "completion",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "It has 3.",
    },
}


@pytest.mark.parametrize("convention", ANSWERS)
def test_model_span_has_the_answer(tmp_path: Path, convention: str) -> None:
    (call,) = calls_in(tmp_path, span(0, ANSWERS[convention]))
    assert (call.kind, call.answer, call.asked) == ("model", "It has 3.", [])


# --- tools ---

IN_TRACELOOP = {"input_str": str(QUERY), "tags": ["demo"], "metadata": {"question_id": "q1"}, "inputs": QUERY}
KEYWORDS = {"color": "green", "name": None, "tool_call_id": "call_1"}


def tools(output: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the same tool call in every convention, with the fields of LangChain's message in the output."""
    return {
        "openinference": {
            "openinference.span.kind": "TOOL",
            "tool.name": "autocomplete_search",
            "input.value": json.dumps(QUERY),
            "input.mime_type": "application/json",
            "output.value": json.dumps({"type": "tool", "data": output}),
            "metadata": json.dumps({"question_id": "q1", "release": "r2", "langgraph_step": 2}),
        },
        "langfuse": {
            "langfuse.observation.type": "tool",
            "langfuse.observation.input": json.dumps(QUERY),
            "langfuse.observation.output": json.dumps(output),
            "langfuse.trace.metadata.question_id": '"q1"',
            "langfuse.trace.metadata.release": '"r2"',
            "langfuse.observation.metadata.tool_call_id": '"call_1"',
            "langfuse.observation.metadata.langgraph_step": "2",
        },
        "traceloop": {
            "traceloop.span.kind": "tool",
            "traceloop.entity.name": "autocomplete_search",
            "traceloop.entity.input": json.dumps({**IN_TRACELOOP, "kwargs": KEYWORDS}),
            "traceloop.entity.output": json.dumps({"output": constructor("ToolMessage", **output), "kwargs": {}}),
            "traceloop.association.properties.question_id": "q1",
            "traceloop.association.properties.release": "r2",
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "autocomplete_search",
        },
        "gen_ai": {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "autocomplete_search",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.arguments": json.dumps(QUERY),
            "gen_ai.tool.call.result": json.dumps(output),
            "question_id": "q1",
            "metadata": json.dumps({"release": "r2"}),
            "pydantic_ai.run.step": 1,
        },
    }


@pytest.mark.parametrize("convention", tools({}))
def test_tool_span_has_arguments_output_and_call_id(tmp_path: Path, convention: str) -> None:
    attributes = tools(tool_message(ROWS))[convention]
    (call,) = calls_in(tmp_path, span(0, attributes, name="autocomplete_search"))
    assert (call.kind, call.name, call.args, call.output) == ("tool", "autocomplete_search", QUERY, ROWS)
    assert (call.tool_call_id, call.error) == ("call_1", None)
    assert (call.question_id, call.metadata) == ("q1", {"release": "r2"})


@pytest.mark.parametrize("convention", tools({}))
def test_tool_with_an_error_message_has_failed_whatever_the_spans_status(tmp_path: Path, convention: str) -> None:
    attributes = tools(tool_message("no prefix", "error"))[convention]
    (call,) = calls_in(tmp_path, span(0, attributes, name="autocomplete_search", status={"code": 1}))
    assert (call.error, call.output) == ("no prefix", None)


def test_langfuse_has_the_error_in_a_separate_attribute(tmp_path: Path) -> None:
    attributes = {
        "langfuse.observation.type": "tool",
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "boom",
    }
    assert calls_in(tmp_path, span(0, attributes))[0].error == "boom"


def test_tool_message_in_a_commands_update_is_the_output(tmp_path: Path) -> None:
    command = [{"graph": None, "update": {"messages": [tool_message("12 lines")]}, "goto": []}]
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "find", "output.value": json.dumps(command)}
    (call,) = calls_in(tmp_path, span(0, attributes))
    assert (call.output, call.tool_call_id) == ("12 lines", "call_1")


@pytest.mark.parametrize("output", ['{"output": 12}', '[{"output": "a"}]', '{"tool_call_id": 3}', "text", '"output"'])
def test_output_that_only_looks_wrapped_is_unchanged(tmp_path: Path, output: str) -> None:
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "find", "output.value": output}
    (call,) = calls_in(tmp_path, span(0, attributes))
    assert call.output == (12 if output == '{"output": 12}' else output)


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        ("{'query': 'OSLO'}", {"query": "OSLO"}),
        ('{"args": ["OSLO"], "kwargs": {"k": 2}}', {"query": "OSLO", "k": 2}),
        ('{"args": ["OSLO", 2, 3], "kwargs": {}}', {"query": "OSLO", "k": 2, "args": [3]}),
        ('{"kwargs": {"query": "OSLO"}}', {"query": "OSLO"}),
        ('{"input_str": "OSLO", "kwargs": {}}', {"input": "OSLO"}),
        ('{"args": "a", "b": 1}', {"args": "a", "b": 1}),
        ("OSLO", {"input": "OSLO"}),
    ],
)
def test_wrappers_around_arguments_are_removed(tmp_path: Path, raw: str, args: dict[str, Any]) -> None:
    attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "find",
        "input.value": raw,
        "tool.parameters": json.dumps({"query": {"type": "string"}, "k": {"type": "integer"}}),
    }
    (call,) = calls_in(tmp_path, span(0, attributes))
    assert call.args == args


# --- agents and retrievers ---

STATE = [["user", QUESTION]]
AI = {"content": "It has 3.", "type": "ai", "tool_calls": []}
HUMAN = {"content": QUESTION, "type": "human"}
AGENTS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "AGENT",
        "input.value": json.dumps({"messages": STATE}),
        "output.value": json.dumps({"messages": [{"type": "human", "data": HUMAN}, {"type": "ai", "data": AI}]}),
    },
    "openinference, a graph that is not called an agent": {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"question": QUESTION}),
        "output.value": json.dumps({"answer": "It has 3."}),
    },
    "langfuse": {
        "langfuse.observation.type": "agent",
        "langfuse.observation.input": json.dumps({"messages": STATE}),
        "langfuse.observation.output": json.dumps({"messages": [HUMAN, AI]}),
    },
    "langfuse, a function": {
        "langfuse.observation.type": "span",
        "langfuse.observation.input": json.dumps({"args": [QUESTION], "kwargs": {}}),
        "langfuse.observation.output": "It has 3.",
    },
    "traceloop": {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": json.dumps({"inputs": {"messages": STATE}, "tags": [], "kwargs": {}}),
        "traceloop.entity.output": json.dumps(
            {"outputs": {"messages": [constructor("HumanMessage", **HUMAN), constructor("AIMessage", **AI)]}}
        ),
    },
    "traceloop, a function": {
        "traceloop.span.kind": "workflow",
        "traceloop.entity.input": json.dumps({"args": [], "kwargs": {"asked": QUESTION}}),
        "traceloop.entity.output": json.dumps({"outputs": {"answer": "It has 3."}}),
    },
    "gen_ai": {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": QUESTION}]}]),
        "gen_ai.output.messages": json.dumps(
            [{"role": "assistant", "parts": [{"type": "text", "content": "It has 3."}]}]
        ),
    },
}


@pytest.mark.parametrize("convention", AGENTS)
def test_agent_span_has_question_and_answer(tmp_path: Path, convention: str) -> None:
    (call,) = calls_in(tmp_path, span(0, AGENTS[convention]))
    assert (call.kind, call.question, call.answer) == ("agent", QUESTION, "It has 3.")


def test_tags_are_metadata(tmp_path: Path) -> None:
    traceloop = {**AGENTS["traceloop"], "traceloop.entity.input": json.dumps({"inputs": {}, "tags": ["demo"]})}
    langfuse = {**AGENTS["langfuse"], "langfuse.trace.tags": ["demo"]}
    for attributes in (traceloop, langfuse, {**AGENTS["openinference"], "tag.tags": ["demo"]}):
        assert calls_in(tmp_path, span(0, attributes))[0].metadata == {"tags": ["demo"]}


RETRIEVERS: dict[str, dict[str, Any]] = {
    "openinference": {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "OSLO",
        "retrieval.documents.0.document.content": "Oslo is a zone.",
        "retrieval.documents.0.document.metadata": '{"id": "d1"}',
        "retrieval.documents.1.document.content": "No id.",
    },
    "langfuse": {
        "langfuse.observation.type": "retriever",
        "langfuse.observation.input": "OSLO",
        "langfuse.observation.output": json.dumps(
            [{"page_content": "Oslo is a zone.", "id": "d1"}, {"page_content": "No id.", "metadata": {}}]
        ),
    },
    "gen_ai": {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.query.text": "OSLO",
        "gen_ai.retrieval.documents": json.dumps([{"id": "d1", "content": "Oslo is a zone."}, {"content": "No id."}]),
    },
}


@pytest.mark.parametrize("convention", RETRIEVERS)
def test_retriever_span_has_its_documents(tmp_path: Path, convention: str) -> None:
    (call,) = calls_in(tmp_path, span(0, RETRIEVERS[convention]))
    assert call.kind == "retriever"
    assert call.args in ("OSLO", {"input": "OSLO"})
    assert call.output == [{"id": "d1", "text": "Oslo is a zone."}, {"text": "No id."}]


def test_keys_of_the_conventions_are_unique() -> None:
    kinds = [key for convention in CONVENTIONS for key in convention.kinds]
    tokens = [key for convention in CONVENTIONS for keys in convention.tokens.values() for key in keys]
    assert len(set(kinds)) == len(kinds)
    assert len(set(tokens)) == len(tokens)


def test_span_of_no_convention_is_kept_as_a_parent(tmp_path: Path) -> None:
    call: TracedCall
    call, _ = calls_in(tmp_path, span(0, {"http.route": "/"}, name="GET /"), span(1, MODELS["langfuse"], parent=0))
    assert (call.kind, call.name) == ("other", "GET /")
