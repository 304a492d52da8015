"""The record of one call in a trace, whichever tracer wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

LATEST = datetime.max.replace(tzinfo=UTC).timestamp()
"""The end of time: a later start or end is a mistake."""

CallKind = Literal["agent", "model", "tool", "retriever", "other"]
"""What was called; ``agent`` is what answers a question, ``other`` what only holds calls together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call of a tool that a model asked for.

    Attributes:
        id: The id that the model chose for it; None if it is not recorded.
        name: The tool.
        args: Its arguments.
    """

    id: str | None
    name: str
    args: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One span of OpenTelemetry or one run of LangSmith.

    Attributes:
        trace_id: The trace that it belongs to.
        id: Its own id, unique in the trace.
        parent_id: The call in which it happened; None for the first one of a trace.
        kind: What was called.
        name: The tool, the model or the agent.
        started: When it began, in seconds since 1970.
        ended: When it ended; None if that was not recorded.
        error: Why it failed; None if it did not.
        args: The arguments of a tool, the query of a retriever.
        output: What a tool or a retriever returned.
        tool_call_id: The id by which a model asked for the tool.
        model: The model, if the tracer names one.
        tokens: ``input_tokens``, ``output_tokens``, ``total_tokens`` of a model, and further counts by their names.
        asked: The calls of tools that a model asked for.
        question: What was asked: of the first call the input's text, of a model the last message of a user.
        answer: The text that it returned, of a call that answers.
        question_id: The id of the question, if the metadata has it.
        metadata: What the user put into the trace: metadata, tags.
        source: What recorded it, such as ``openinference``; the same tool may be recorded by two of them.
    """

    trace_id: str
    id: str
    parent_id: str | None
    kind: CallKind
    name: str
    started: float
    ended: float | None = None
    error: str | None = None
    args: Any = None
    output: Any = None
    tool_call_id: str | None = None
    model: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    asked: Sequence[AskedCall] = ()
    question: str | None = None
    answer: str | None = None
    question_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
