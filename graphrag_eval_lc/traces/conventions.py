"""Which attribute of a span means what: a table for each convention.

The names of OpenTelemetry's GenAI conventions are still in development: add an entry here for a new one. If a row lists
several keys, the first one that a span has counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphrag_eval_lc.registry.metrics import INPUT_TOKENS, OUTPUT_TOKENS, TOTAL_TOKENS
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL
from graphrag_eval_lc.traces.whole_traces import CallKind

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """What the attributes of one convention are called.

    Attributes:
        name: Its name; the source of calls whose spans name no instrumentation.
        marks: Beginnings of keys that only this convention has.
        kinds: By key, what its values say of the kind of a call.
        tool: The tool's name.
        agent: The agent's name.
        model: The model's name.
        call_id: The id of the model's tool call.
        args: The arguments of a tool, the query of a retriever.
        output: What a tool or a retriever returned.
        asked: The messages to a model or an agent.
        answered: The messages or the text that a model or an agent returned.
        asked_messages: Beginnings of flattened keys of the messages to a model: ``beginning.0.role``.
        answered_messages: Likewise of those that it returned.
        documents: Beginnings of flattened keys of retrieved documents.
        parameters: The names of a tool's parameters, as the keys of a mapping.
        tokens: Counts of tokens by their names in responses.
        token_details: A mapping of counts, and its keys by their names in responses; those of a row are added, and
            ``input_*`` matches all keys that begin so.
        metadata: Mappings of what the user put into the trace.
        metadata_parts: Beginnings of keys with one part of it each.
        tags: Lists of tags.
        error: Why the call failed, in a span that may have ended well.
        failed: Keys that only failed calls have; why it failed is its output, which the model is shown.
    """

    name: str
    marks: Keys
    kinds: Mapping[str, Mapping[str, CallKind]] = field(default_factory=dict)
    tool: Keys = ()
    agent: Keys = ()
    model: Keys = ()
    call_id: Keys = ()
    args: Keys = ()
    output: Keys = ()
    asked: Keys = ()
    answered: Keys = ()
    asked_messages: Keys = ()
    answered_messages: Keys = ()
    documents: Keys = ()
    parameters: Keys = ()
    tokens: Mapping[str, Keys] = field(default_factory=dict)
    token_details: Mapping[str, Mapping[str, Keys]] = field(default_factory=dict)
    metadata: Keys = ()
    metadata_parts: Keys = ()
    tags: Keys = ()
    error: Keys = ()
    failed: Keys = ()


OPENINFERENCE = Convention(
    name="openinference",
    marks=("openinference.",),
    kinds={
        "openinference.span.kind": {
            "AGENT": "agent",
            "LLM": "model",
            "TOOL": "tool",
            "RETRIEVER": "retriever",
            "CHAIN": "other",
            "EMBEDDING": "other",
            "RERANKER": "other",
            "GUARDRAIL": "other",
            "EVALUATOR": "other",
            "PROMPT": "other",
            "DECISION": "other",
            "UNKNOWN": "other",
        }
    },
    tool=("tool.name", "tool_call.function.name"),
    agent=("agent.name", "graph.node.name"),
    model=("llm.response.model_name", "llm.model_name", "llm.request.model_name"),
    call_id=("tool_call.id", "tool.id"),
    args=("tool_call.function.arguments", "input.value"),
    output=("output.value",),
    asked=("input.value",),
    answered=("output.value",),
    asked_messages=("llm.input_messages",),
    answered_messages=("llm.output_messages",),
    documents=("retrieval.documents",),
    parameters=("tool.parameters",),
    tokens={
        INPUT_TOKENS: ("llm.token_count.prompt",),
        OUTPUT_TOKENS: ("llm.token_count.completion",),
        TOTAL_TOKENS: ("llm.token_count.total",),
        "cached_input_tokens": ("llm.token_count.prompt_details.cache_read",),
        "cache_write_input_tokens": ("llm.token_count.prompt_details.cache_write",),
        "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
    },
    metadata=("metadata",),
    tags=("tag.tags",),
)

LANGFUSE = Convention(
    name="langfuse",
    marks=("langfuse.",),
    kinds={
        "langfuse.observation.type": {
            "agent": "agent",
            "generation": "model",
            "tool": "tool",
            "retriever": "retriever",
            "span": "other",
            "chain": "other",
            "event": "other",
            "embedding": "other",
            "evaluator": "other",
            "guardrail": "other",
        }
    },
    model=("langfuse.observation.model.name",),
    call_id=("langfuse.observation.metadata.tool_call_id",),
    args=("langfuse.observation.input",),
    output=("langfuse.observation.output",),
    asked=("langfuse.observation.input", "langfuse.trace.input"),
    answered=("langfuse.observation.output", "langfuse.trace.output"),
    token_details={
        # Langfuse counts apart what others count as a part of the input or the output.
        "langfuse.observation.usage_details": {
            INPUT_TOKENS: ("input", "prompt_tokens", "input_*"),
            OUTPUT_TOKENS: ("output", "completion_tokens", "output_*"),
            TOTAL_TOKENS: ("total", "total_tokens"),
            "cached_input_tokens": ("input_cache_read", "input_cached_tokens"),
            "cache_write_input_tokens": ("input_cache_creation",),
            "reasoning_tokens": ("output_reasoning", "output_reasoning_tokens"),
        }
    },
    metadata=("langfuse.trace.metadata", "langfuse.observation.metadata"),
    metadata_parts=("langfuse.trace.metadata.", "langfuse.observation.metadata."),
    tags=("langfuse.trace.tags",),
    error=("langfuse.observation.status_message",),
)

TRACELOOP = Convention(
    name="traceloop",
    marks=("traceloop.",),
    kinds={
        "traceloop.span.kind": {"workflow": "agent", "agent": "agent", "tool": "tool", "task": "other"},
        "llm.request.type": {"chat": "model", "completion": "model", "rerank": "other", "embedding": "other"},
    },
    tool=("traceloop.entity.name",),
    agent=("traceloop.entity.name",),
    args=("traceloop.entity.input",),
    output=("traceloop.entity.output",),
    asked=("traceloop.entity.input",),
    answered=("traceloop.entity.output",),
    metadata_parts=("traceloop.association.properties.",),
)

PYDANTIC_AI = Convention(
    name="pydantic-ai",
    marks=("pydantic_ai.", "all_messages_events", "model_request_parameters", "tool_arguments"),
    agent=("agent_name",),
    args=("tool_arguments",),
    output=("tool_response",),
    asked=("pydantic_ai.all_messages", "all_messages_events"),
    answered=("final_result",),
    metadata=("metadata",),
    failed=("pydantic_ai.tool.retry.cause",),
)

# Logfire's spans of OpenAI's Agents SDK, which have the kind in the template of their name.
LOGFIRE = Convention(
    name="logfire",
    marks=("logfire.msg_template",),
    kinds={
        "logfire.msg_template": {
            "OpenAI Agents trace: {name}": "agent",
            "Agent run: {name!r}": "agent",
            "Chat completion with {gen_ai.request.model!r}": "model",
            "Responses API with {gen_ai.request.model!r}": "model",
            "Responses API": "model",
            "Function: {name}": "tool",
        }
    },
    tool=("name",),
    agent=("name",),
    args=("input",),
    output=("output",),
    asked=("input", "raw_input"),
    answered=("output",),
    metadata=("metadata",),
    error=("error",),
)

GEN_AI = Convention(
    name="gen_ai",
    marks=("gen_ai.",),
    kinds={
        "gen_ai.operation.name": {
            "chat": "model",
            "generate_content": "model",
            "text_completion": "model",
            "response": "model",
            "responses": "model",
            "execute_tool": "tool",
            "invoke_agent": "agent",
            "invoke_workflow": "agent",
            RETRIEVAL: "retriever",
            "vector_db_retrieve": "retriever",
            "create_agent": "other",
            "execute_task": "other",
            "embeddings": "other",
            "handoff": "other",
            "guardrail": "other",
        }
    },
    tool=("gen_ai.tool.name",),
    agent=("gen_ai.agent.name", "gen_ai.workflow.name"),
    model=("gen_ai.response.model", "gen_ai.request.model"),
    call_id=("gen_ai.tool.call.id",),
    args=("gen_ai.tool.call.arguments", "gen_ai.retrieval.query.text"),
    output=("gen_ai.tool.call.result", "gen_ai.retrieval.documents"),
    asked=("gen_ai.input.messages", "gen_ai.task.input", "events"),
    answered=("gen_ai.output.messages", "gen_ai.task.output", "events"),
    asked_messages=("gen_ai.prompt",),
    answered_messages=("gen_ai.completion",),
    tokens={
        INPUT_TOKENS: ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
        OUTPUT_TOKENS: ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        TOTAL_TOKENS: ("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
        "cached_input_tokens": (
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
        ),
        "cache_write_input_tokens": (
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens",
            "gen_ai.usage.details.cache_write_tokens",
        ),
        "reasoning_tokens": (
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.reasoning_tokens",
            "gen_ai.usage.details.reasoning_tokens",
        ),
    },
)

CONVENTIONS = (OPENINFERENCE, LANGFUSE, TRACELOOP, PYDANTIC_AI, LOGFIRE, GEN_AI)
"""In order of precedence: an exporter may add the keys of a later convention to its own."""

ANSWER_TOOLS: Mapping[str, Keys] = {
    "openinference.instrumentation.smolagents": ("final_answer",),
    "pydantic-ai": ("final_result",),
}
"""By instrumentation, the beginnings of the names of tools that are not steps: the agent answers by calling them."""
