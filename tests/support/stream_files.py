"""Read recorded streams of callback events and replay them into a handler through its public methods."""

import contextlib
import contextvars
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler, capture_run
from support.stream_values import Decoder

FOLDER = Path(__file__).parents[1] / "streams"
EVENTS = {  # each callback's positional arguments
    "chain_start": ("serialized", "inputs"),
    "chain_end": ("outputs",),
    "chain_error": ("error",),
    "tool_start": ("serialized", "input_str"),
    "tool_end": ("output",),
    "tool_error": ("error",),
    "retriever_start": ("serialized", "query"),
    "retriever_end": ("documents",),
    "retriever_error": ("error",),
    "chat_model_start": ("serialized", "messages"),
    "llm_start": ("serialized", "prompts"),
    "llm_new_token": ("token",),
    "stream_event": ("event",),
    "llm_end": ("response",),
    "llm_error": ("error",),
}
_GRAPH_EVENTS = ("interrupt", "resume")  # LangGraph's, which receive a single object
_RUN_KEYS = ("on", "handler", "run", "parent", "caller", "metadata", "ms")
_TIMES = re.compile(r"(_sec|_at|_timestamp)$")
_TAKEN_AS_IS = ("args", "metadata", "artifact", "llm_messages", "llm_tools")


@dataclass
class Scenario:
    """The events that a handler, and the handlers of nested blocks, received.

    Attributes:
        file: The name of its file.
        header: Its name, the handler's options, and notes.
        events: The events, in order.
        expected: The responses of each handler.
    """

    file: str
    header: dict[str, Any]
    events: list[dict[str, Any]]
    expected: list[list[dict[str, Any]]]

    @property
    def name(self) -> str:
        return f"{self.file}::{self.header['scenario']}"


def read_scenarios(path: Path) -> Iterator[Scenario]:
    """Yield the scenarios of a file."""
    header: dict[str, Any] = {}
    events: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "scenario" in record:
            header, events = record, []
        elif "responses" in record:
            yield Scenario(path.name, header, events, record["responses"])
        else:
            events.append(record)


def replay(scenario: Scenario) -> list[list[dict[str, Any]]]:
    """Replay a scenario and return each handler's responses, without their times."""
    player = _Player()
    for event in scenario.events:
        player.play(event)
    return [without_times(handler.responses()) for handler in player.handlers]


class _Player:
    """Replays events to handlers. Runs that are open at the end stay open, as in an abandoned run."""

    def __init__(self) -> None:
        self.handlers: list[GraphRAGEvalCallbackHandler] = []
        self._blocks: dict[int, tuple[contextvars.Context, contextlib.ExitStack]] = {}
        self._metadata: dict[int, dict[str, Any]] = {}
        self._decoder = Decoder()

    def play(self, event: dict[str, Any]) -> None:
        kind = event["on"]
        if kind == "handler":
            self.handlers.append(GraphRAGEvalCallbackHandler(**event["options"]))
        elif kind == "block_start":
            self._start_block(event)
        elif kind == "block_end":
            context, stack = self._blocks[event["handler"]]
            error = self._decoder.decode(event["error"])
            context.run(stack.__exit__, None if error is None else type(error), error, None)
        else:
            handler = self.handlers[event.get("handler", 0)]
            getattr(self, f"_{kind}", self._event)(handler, event)

    def _start_block(self, event: dict[str, Any]) -> None:
        around = event.get("inside")
        context = contextvars.copy_context() if around is None else self._blocks[around][0].copy()
        stack = contextlib.ExitStack()
        block = capture_run(question_id=event["question_id"], **event["options"])
        context.run(var_child_runnable_config.set, _config_of(event.get("caller")))
        self.handlers.append(context.run(stack.enter_context, block))
        self._blocks[event["handler"]] = context, stack

    def _clear(self, handler: GraphRAGEvalCallbackHandler, event: dict[str, Any]) -> None:
        handler.clear()

    def _add_run(self, handler: GraphRAGEvalCallbackHandler, event: dict[str, Any]) -> None:
        inputs, output, keywords = (self._decoder.decode(event[key]) for key in ("inputs", "output", "keywords"))
        handler.add_run(inputs, output, **keywords)

    def _event(self, handler: GraphRAGEvalCallbackHandler, event: dict[str, Any]) -> None:
        kind = event["on"]
        given = {key: self._decoder.decode(value) for key, value in event.items() if key not in _RUN_KEYS}
        callback = getattr(handler, f"on_{kind}")
        if kind in _GRAPH_EVENTS:
            callback(given["event"])
            return
        if kind.endswith("_start"):
            given["parent_run_id"] = _uuid(event.get("parent"))
            given["metadata"] = self._metadata_of(event)
            given.setdefault("tags", [])
            given.setdefault("serialized", None)
        if kind == "tool_start":
            given.setdefault("input_str", str(given.get("inputs")))
        arguments = [given.pop(name) for name in EVENTS[kind]]
        context = contextvars.copy_context()
        context.run(var_child_runnable_config.set, _config_of(event.get("caller", event.get("parent"))))
        context.run(lambda: callback(*arguments, run_id=_uuid(event["run"]), **given))

    def _metadata_of(self, event: dict[str, Any]) -> dict[str, Any]:
        """Return a run's metadata: its parent's, updated with the event's (null removes a key)."""
        metadata = dict(self._metadata.get(event.get("parent", 0), {}))
        for key, value in event.get("metadata", {}).items():
            if value is None:
                metadata.pop(key, None)
            else:
                metadata[key] = self._decoder.decode(value)
        self._metadata[event["run"]] = metadata
        return metadata


def _uuid(number: int | None) -> UUID | None:
    return None if number is None else UUID(int=number)


def _config_of(caller: int | None) -> Any:
    """Return the LangChain config for code that a run calls."""
    return None if caller is None else {"callbacks": SimpleNamespace(parent_run_id=_uuid(caller))}


def without_times(value: Any) -> Any:
    """Return responses as plain JSON, with durations and times of day replaced by `<time>`."""
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "<time>" if _TIMES.search(key) else item if key in _TAKEN_AS_IS else without_times(item)
        for key, item in value.items()
    }


def differences(expected: Any, actual: Any, place: str = "", *, given_keys_only: bool = False) -> Iterator[str]:
    """Yield a line for each key whose value differs.

    Args:
        expected: The expected value.
        actual: The actual value.
        place: The path of the key.
        given_keys_only: Allow additional keys. A key whose expected value is null must be missing.
    """
    down = partial(differences, given_keys_only=given_keys_only)
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected | actual:
            where = f"{place}.{key}" if place else str(key)
            if key not in actual:
                if not given_keys_only or expected[key] is not None:
                    yield f"{where}: missing, expected {_short(expected[key])}"
            elif key in expected:
                yield from down(expected[key], actual[key], where)
            elif not given_keys_only:
                yield f"{where}: not expected: {_short(actual[key])}"
    elif isinstance(expected, list) and isinstance(actual, list):
        for number, (left, right) in enumerate(zip(expected, actual, strict=False)):
            yield from down(left, right, f"{place}[{number}]")
        if len(expected) != len(actual):
            more, fewer = (expected, "missing") if len(expected) > len(actual) else (actual, "not expected")
            for number in range(min(len(expected), len(actual)), len(more)):
                yield f"{place}[{number}]: {fewer}: {_short(more[number])}"
    elif expected != actual or type(expected) is not type(actual):
        yield f"{place}: expected {_short(expected)}, is {_short(actual)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"
