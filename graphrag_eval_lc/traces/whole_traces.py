"""The calls of a trace go in; each call once, completed by what other spans say of it, comes out."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_eval_lc.registry.metrics import OUTPUT_TOKENS
from graphrag_eval_lc.texts import counted
from graphrag_eval_lc.traces.traced_calls import AskedCall, TracedCall
from graphrag_eval_lc.traces.values import parsed

_NEEDS = ("tool", "model", "retriever")
_PREFERRED_SHARE = 0.5  # of the shorter call's time, in which both must have run


class WholeTraces:
    """Completes traces, and keeps what is to be known of them for messages."""

    def __init__(self) -> None:
        self._doubled: Counter[tuple[str, str]] = Counter()
        self._first_doubled: dict[tuple[str, str], str] = {}

    def completed(self, calls: Sequence[TracedCall]) -> list[TracedCall]:
        """Return the calls of one trace with all that is known of each, each call once."""
        return self._once(list(_with_asked_args(_without_shells(calls))))

    def warnings(self) -> Iterator[str]:
        """Yield what is to be known of the traces that were completed."""
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
        partners: dict[str, str] = {}  # by the id of what is left out, what stands for it
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
    for call in calls:
        if call.source != left or call.kind not in _NEEDS or call.id in taken:
            continue
        found = next((other for other in free if _are_one(other, call)), None)
        if found is not None:
            free.remove(found)
            yield call.id, found.id


def _are_one(one: TracedCall, other: TracedCall) -> bool:
    """Return whether two calls of different sources are the same one: what was called, with what, and when."""
    if one.kind != other.kind or not _overlap(one, other):
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


def _overlap(one: TracedCall, other: TracedCall) -> bool:
    if one.ended is None or other.ended is None:
        return abs(one.started - other.started) < 1
    shared = min(one.ended, other.ended) - max(one.started, other.started)
    return shared >= _PREFERRED_SHARE * min(one.ended - one.started, other.ended - other.started)


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
    """Yield the calls, tools with the arguments of the model's call where their own span lacks them."""
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
    """What models asked for up to now, by the ids and names of the calls."""

    def __init__(self) -> None:
        # With None for the source, that of any.
        self._last: dict[tuple[str, str, str | None], AskedCall] = {}
        self._left: dict[tuple[str, str], list[AskedCall]] = {}

    def add(self, model: TracedCall) -> None:
        """Note what a model asked for."""
        for each in model.asked:
            if each.id is not None:
                self._last[each.name, each.id, None] = self._last[each.name, each.id, model.source] = each
            self._left.setdefault((each.name, model.source), []).append(each)

    def of(self, call: TracedCall) -> AskedCall | None:
        """Return what a model asked for last with a tool's id, preferably in the words of the tool's own source.

        Of a call without an id, it is the first one left with its name and its arguments, else with its name.
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
