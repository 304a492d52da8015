"""The calls of traces go in, in any order; they come out trace by trace, completed from other spans."""

import dataclasses
import pickle
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.traces.values import parsed

LATEST = datetime.max.replace(tzinfo=UTC).timestamp()
"""The end of time: a later start or end is a mistake."""

CallKind = Literal["agent", "model", "tool", "retriever", "other"]
"""What was called; ``agent`` answers a question, ``other`` only groups calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A tool call that a model requested.

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
        tool_call_id: The id of the model's tool call.
        model: The model, if the tracer names one.
        tokens: ``input_tokens``, ``output_tokens``, ``total_tokens`` of a model, and further counts by their names.
        asked: The tool calls that a model requested.
        question: The question: the input's text of the first call, or a model's last user message.
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


_NEEDS = ("tool", "model", "retriever")
_PREFERRED_SHARE = 0.5
"""Calls that ran at the same time for this share of the shorter one are paired first.

Both surround the same call, but a busy machine may pause between the two, at its start and at its end.
"""


class WholeTraces:
    """Completes traces, and collects warnings about them."""

    def __init__(self) -> None:
        self._doubled: Counter[tuple[str, str]] = Counter()
        self._first_doubled: dict[tuple[str, str], str] = {}

    def completed(self, calls: Sequence[TracedCall]) -> list[TracedCall]:
        """Return the calls of one trace, each once, completed with all that is known about it."""
        return self._once(list(_with_asked_args(_without_shells(calls))))

    def warnings(self) -> Iterator[str]:
        """Yield warnings about the traces that were completed."""
        for (kept, left), traces in self._doubled.items():
            yield (
                f"{counted(traces, 'trace')} (the first is {self._first_doubled[kept, left]}) with calls that two "
                f"instrumentations recorded both: those of {kept} are kept, those of {left} left out"
            )

    def _once(self, calls: list[TracedCall]) -> list[TracedCall]:
        """Leave out what a second instrumentation recorded of the same calls."""
        sources = Counter(call.source for call in calls if call.kind in _NEEDS)
        if len(sources) < 2:
            return calls
        tools = Counter(call.source for call in calls if call.kind == "tool")
        ranked = sorted(sources, key=lambda source: (-tools[source], -sources[source]))
        partners: dict[str, str] = {}  # by the id of a call that is left out, the id of the call that replaces it
        for rank, source in enumerate(ranked[1:], 1):
            for kept_source in ranked[:rank]:
                pairs = dict(_pairs(calls, kept_source, source, partners))
                partners.update(pairs)
                if pairs:
                    self._doubled[kept_source, source] += 1
                    self._first_doubled.setdefault((kept_source, source), calls[0].trace_id)
        return [
            replace(call, parent_id=partners[call.parent_id]) if call.parent_id in partners else call
            for call in calls
            if call.id not in partners
        ]


def _pairs(calls: Sequence[TracedCall], kept: str, left: str, taken: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the ids of calls of one source, each with that of the same call as the other source recorded it."""
    free = [call for call in calls if call.source == kept and call.kind in _NEEDS and call.id not in taken]
    single = [call for call in calls if call.source == left and call.kind in _NEEDS and call.id not in taken]
    for least in (_PREFERRED_SHARE, 0.0):
        for call in list(single):
            found = next((other for other in free if _shared(other, call) > least and _are_one(other, call)), None)
            if found is not None:
                free.remove(found)
                single.remove(call)
                yield call.id, found.id


def _are_one(one: TracedCall, other: TracedCall) -> bool:
    """Return whether two calls of different sources may be the same one, by what was called, and with what."""
    if one.kind != other.kind:
        return False
    if one.kind == "model":  # their names differ: of a class, or of the provider's model
        return (
            not one.tokens
            or not other.tokens
            or dict(one.tokens).items() >= dict(other.tokens).items()
            or (one.tokens.get(OUTPUT_TOKENS) == other.tokens.get(OUTPUT_TOKENS))
        )
    if one.tool_call_id and other.tool_call_id and one.tool_call_id != other.tool_call_id:
        return False
    return one.name == other.name and (one.args == other.args or not one.args or not other.args)


def _shared(one: TracedCall, other: TracedCall) -> float:
    """Return the share of the shorter call's time in which both ran; 0 to 1."""
    if one.ended is None or other.ended is None:
        return float(abs(one.started - other.started) < 1)
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    shorter = min(one.ended - one.started, other.ended - other.started)
    return max(0.0, shared / shorter) if shorter > 0 else float(shared >= 0)


def _without_shells(calls: Sequence[TracedCall]) -> Iterator[TracedCall]:
    """Yield the calls, models of the kind ``other`` if the one inside them has the tokens."""
    by_id = {call.id: call for call in calls}
    shells: set[str] = set()
    for call in calls:
        outer = by_id.get(call.parent_id or "")
        if call.kind == "model" and call.tokens and outer is not None and outer.kind == "model" and not outer.tokens:
            shells.add(outer.id)
    for call in calls:
        yield replace(call, kind="other") if call.id in shells else call


def _with_asked_args(calls: Iterable[TracedCall]) -> Iterator[TracedCall]:
    """Yield the calls; a tool whose span lacks arguments gets those of the model's request."""
    asked = _AskedCalls()
    for call in calls:
        if call.kind == "model":
            asked.add(call)
        if call.kind != "tool":
            yield call
            continue
        match = asked.of(call)
        if match is None:
            yield call if isinstance(call.args, Mapping) else replace(call, args=_mapping(call.args))
            continue
        yield replace(
            call,
            args=match.args if _is_lacking(call.args, match.args) else _mapping(call.args),
            tool_call_id=call.tool_call_id or match.id,
        )


class _AskedCalls:
    """What models have requested so far, by the ids and names of the calls."""

    def __init__(self) -> None:
        # With None as the source, the last request from any source.
        self._last: dict[tuple[str, str, str | None], AskedCall] = {}
        self._left: dict[tuple[str, str], list[AskedCall]] = {}

    def add(self, model: TracedCall) -> None:
        """Record what a model requested."""
        for each in model.asked:
            if each.id is not None:
                self._last[each.name, each.id, None] = self._last[each.name, each.id, model.source] = each
            self._left.setdefault((each.name, model.source), []).append(each)

    def of(self, call: TracedCall) -> AskedCall | None:
        """Return the last request with a tool call's id, preferably as the tool's own source recorded it.

        For a call without an id, it is the first unused one with its name and arguments, else with its name.
        """
        if call.tool_call_id is not None:
            keys = ((call.name, call.tool_call_id, source) for source in (call.source, None))
            return next((self._last[key] for key in keys if key in self._last), None)
        left = self._left.get((call.name, call.source), [])
        alike = next((place for place, each in enumerate(left) if each.args == call.args), 0)
        return left.pop(alike) if left else None


def _is_lacking(args: Any, asked: Any) -> bool:
    """Return whether a span has no arguments by name: none, or the value of the only one, as of OpenInference."""
    if not isinstance(args, Mapping):
        return isinstance(asked, Mapping)
    if not isinstance(asked, Mapping) or len(asked) != 1:
        return False
    (value,) = asked.values()
    return isinstance(value, str) and parsed(value) == args


def _mapping(args: Any) -> Any:
    """Return arguments by name, a bare value as ``input``, as LangChain names it."""
    if args is None:
        return {}
    return args if isinstance(args, Mapping) else {"input": args}


_CACHE_KIB = 32 * 1024


class Spool:
    """Stores calls in any order, and returns them trace by trace.

    They are held in a temporary SQLite database. It moves to the folder for temporary files when it outgrows its cache,
    and is deleted when the spool is closed.

    Example:
        >>> with Spool() as spool:
        ...     for trace, started in (("b", 3.0), ("a", 1.0), ("b", 2.0)):
        ...         spool.add(
        ...             TracedCall(
        ...                 trace_id=trace, id=str(started), parent_id=None, kind="tool", name="search", started=started
        ...             )
        ...         )
        ...     print([[call.id for call in calls] for calls in spool.traces()])
        [['1.0'], ['2.0', '3.0']]
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._run("PRAGMA journal_mode = OFF")
        self._run("PRAGMA synchronous = OFF")
        self._run("CREATE TABLE calls (trace BLOB, started REAL, call BLOB)")
        self._run("BEGIN")

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, call: TracedCall) -> None:
        """Keep a call.

        Raises:
            ResponsesError: The disk is full.
        """
        try:
            kept = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        except RecursionError:  # deeply nested values are kept as JSON
            kept = pickle.dumps(_flat(call), pickle.HIGHEST_PROTOCOL)
        self._run("INSERT INTO calls VALUES (?, ?, ?)", _key(call.trace_id), call.started, kept)

    def traces(self) -> Iterator[list[TracedCall]]:
        """Yield the calls of each trace in the order of their starts; the trace that began first comes first."""
        self._run("CREATE INDEX by_trace ON calls (trace, started)")
        for (trace,) in self._run("SELECT trace FROM calls GROUP BY trace ORDER BY min(started), min(rowid)"):
            found = self._run("SELECT call FROM calls WHERE trace = ? ORDER BY started, rowid", trace)
            yield [pickle.loads(kept) for (kept,) in found]  # safe: this process wrote the data itself

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as problem:
            raise ResponsesError(
                f"the traces cannot be put together: {problem}",
                hint="Free space in the folder for temporary files, or name another one in TMPDIR.",
            ) from problem


def _key(trace_id: str) -> bytes:
    """Return an id as bytes, because SQLite rejects texts with lone surrogates."""
    return trace_id.encode("utf-8", "surrogatepass")


def _flat(call: TracedCall) -> TracedCall:
    """Return a call whose nested values are JSON texts."""
    return dataclasses.replace(
        call,
        args=json_text(call.args),
        output=json_text(call.output),
        metadata={key: json_text(value) for key, value in call.metadata.items()},
        asked=[dataclasses.replace(asked, args=json_text(asked.args)) for asked in call.asked],
    )
