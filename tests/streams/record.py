"""Record the callback events of the handlers in some tests, and write them with the responses as a stream.

    python tests/streams/record.py NAME.jsonl [arguments of pytest]
    python tests/streams/record.py --compare [arguments of pytest]

Each handler becomes a scenario, including the handlers of nested blocks. If the replay of a scenario has different
responses than the run, it is not written and the reason is printed. `--compare` writes nothing: it compares the
responses with those of recorded scenarios of the same name.
"""

import contextvars
import functools
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import UUID

import pytest
from langchain_core.runnables.config import var_child_runnable_config

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.stream_files import EVENTS, FOLDER, Scenario, differences, read_scenarios, replay, without_times
from support.stream_values import Encoder

import graphrag_eval_lc
from graphrag_eval_lc import capture
from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_NOISE = (
    "batch_size",
    "color",
    "verbose",
    "llm_prefix",
    "observation_prefix",
    "input_str",
    "parent_run_id",
    "run_id",
    "metadata",
)
_MOST_EVENTS = 600
_SERIALIZED = ("name",)
_inside_callback: contextvars.ContextVar[bool] = contextvars.ContextVar("inside_callback", default=False)
_is_replay: contextvars.ContextVar[bool] = contextvars.ContextVar("is_replay", default=False)
_block: contextvars.ContextVar[Any] = contextvars.ContextVar("block", default=None)


class Recording:
    """The events of a handler and of nested blocks."""

    def __init__(self) -> None:
        self.handlers: list[GraphRAGEvalCallbackHandler] = []
        self.events: list[dict[str, Any]] = []
        self.problem: str | None = None
        self._lock = threading.RLock()
        self._encoder = Encoder()
        self._metadata: dict[UUID, dict[str, Any]] = {}
        self._numbers: dict[str, int] = {}
        self._streamed: set[UUID] = set()
        self._started = perf_counter()

    def add(self, handler: GraphRAGEvalCallbackHandler | None, event: dict[str, Any]) -> None:
        if handler is not None and (place := self.handlers.index(handler)):
            event["handler"] = place
        self.events.append(self._numbered(event))

    def callback(self, handler: GraphRAGEvalCallbackHandler, kind: str, args: Any, keywords: dict[str, Any]) -> None:
        """Add an event that LangChain sent."""
        with self._lock:
            if kind in ("interrupt", "resume"):
                self.add(handler, {"on": kind, "event": self._encoder.encode(args[0])})
                return
            given = dict(zip(EVENTS[kind], args, strict=False)) | keywords
            run_id = given["run_id"]
            if kind in ("llm_new_token", "stream_event") and not self._is_first_token(kind, run_id, given):
                return
            event: dict[str, Any] = {"on": kind, "run": self.number(run_id)}
            if kind.endswith("_start"):
                self._note_start(event, run_id, given)
            if kind == "tool_start" and given.get("inputs") is None:
                event["input_str"] = given["input_str"]
            for key, value in given.items():
                is_noise = key in _NOISE or (key in ("tags", "inputs") and kind.endswith(("_end", "_error")))
                if is_noise or key == "serialized" or (value is None and key not in (*EVENTS[kind], "run_type")):
                    continue
                if value or key != "tags":
                    event[key] = self._encoder.encode(value)
            event["ms"] = round((perf_counter() - self._started) * 1000, 1)
            if len(self.events) == _MOST_EVENTS:
                self.problem, self.events = "it is too long", self.events[:2]
            self.add(handler, event)

    def _note_start(self, event: dict[str, Any], run_id: UUID, given: dict[str, Any]) -> None:
        parent, caller = given.get("parent_run_id"), calling_run()
        event["parent"] = None if parent is None else self.number(parent)
        if caller != parent:
            event["caller"] = None if caller is None else self.number(caller)
        kept = {key: value for key, value in (given.get("serialized") or {}).items() if key in _SERIALIZED}
        if kept:
            event["serialized"] = self._encoder.encode(kept)
        mine, around = given.get("metadata") or {}, self._metadata.get(parent, {})
        self._metadata[run_id] = dict(mine)
        changed = {key: value for key, value in mine.items() if key not in around or around[key] != value}
        gone = dict.fromkeys(key for key in around if key not in mine)
        if changed or gone:
            event["metadata"] = self._encoder.encode(changed | gone)

    def _is_first_token(self, kind: str, run_id: UUID, given: dict[str, Any]) -> bool:
        chunk = getattr(given.get("chunk"), "message", None)
        says = given.get("token") or (chunk is not None and (chunk.content or getattr(chunk, "tool_call_chunks", 0)))
        if kind == "stream_event":
            says = given["event"].get("event") == "content-block-delta"
        is_first = bool(says) and run_id not in self._streamed
        if is_first:
            self._streamed.add(run_id)
        return is_first

    def started_block(self, handler: Any, around: Any, question_id: Any, options: dict[str, Any]) -> None:
        with self._lock:
            self.handlers.append(handler)
            event = {"on": "block_start", "handler": len(self.handlers) - 1, "question_id": question_id}
            event |= {"options": options, "caller": None if (run := calling_run()) is None else self.number(run)}
            self.events.append(event | ({} if around is None else {"inside": self.handlers.index(around)}))

    def ended_block(self, handler: Any, error: BaseException | None) -> None:
        with self._lock:
            place = self.handlers.index(handler)
            self.events.append({"on": "block_end", "handler": place, "error": self._encoder.encode(error)})

    def added_run(self, handler: Any, inputs: Any, output: Any, keywords: dict[str, Any]) -> None:
        with self._lock:
            given = {"inputs": inputs, "output": output, "keywords": keywords}
            self.add(handler, {"on": "add_run"} | {key: self._encoder.encode(item) for key, item in given.items()})

    def number(self, uuid: object) -> int:
        return self._numbers.setdefault(str(uuid), len(self._numbers) + 1)

    def _numbered(self, value: Any) -> Any:
        """Return a value with random ids replaced by small numbers."""
        text = json.dumps(value, ensure_ascii=False)
        return json.loads(_UUID.sub(lambda found: str(UUID(int=self.number(found[0]))), text))

    def scenario(self, name: str) -> Scenario:
        responses = [handler.responses() for handler in self.handlers]
        return Scenario("", {"scenario": name}, self.events, self._numbered(without_times(responses)))


RECORDINGS: dict[int, Recording] = {}  # by the handler's id, which they keep


def calling_run() -> UUID | None:
    config = var_child_runnable_config.get()
    return None if config is None else getattr(config.get("callbacks"), "parent_run_id", None)


def _recorded(kind: str, callback: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(callback)
    def recorded(self: Any, *args: Any, **keywords: Any) -> Any:
        recording = RECORDINGS.get(id(self))
        if recording is None or recording.problem or _inside_callback.get():
            return callback(self, *args, **keywords)
        try:
            recording.callback(self, kind, args, keywords)
        except Exception as error:
            recording.problem = f"{kind}: {error!r:.200}"
        token = _inside_callback.set(True)  # the handler passes the event to the enclosing block's handler
        try:
            return callback(self, *args, **keywords)
        finally:
            _inside_callback.reset(token)

    return recorded


def _record_others() -> None:
    """Record new handlers, blocks, added runs, and clearing."""
    handler_class: Any = GraphRAGEvalCallbackHandler
    init, add_run, clear = (getattr(handler_class, name) for name in ("__init__", "add_run", "clear"))
    is_of_block: contextvars.ContextVar[bool] = contextvars.ContextVar("is_of_block", default=False)
    block = capture.capture_run

    def new_init(self: Any, **options: Any) -> None:
        init(self, **options)
        if is_of_block.get() or _is_replay.get():
            return
        recording = RECORDINGS[id(self)] = Recording()
        recording.handlers.append(self)
        recording.events.append({"on": "handler", "options": _options(recording, options)})

    def new_add_run(self: Any, inputs: Any, output: Any, **keywords: Any) -> None:
        if (recording := RECORDINGS.get(id(self))) is not None:
            recording.added_run(self, inputs, output, keywords)
        token = _inside_callback.set(True)
        try:
            add_run(self, inputs, output, **keywords)
        finally:
            _inside_callback.reset(token)

    def new_clear(self: Any) -> None:
        if (recording := RECORDINGS.get(id(self))) is not None:
            recording.add(self, {"on": "clear"})
        clear(self)

    @contextmanager
    def new_block(*, question_id: Any = None, **options: Any) -> Iterator[Any]:
        around = _block.get()
        recording = RECORDINGS.get(id(around)) or Recording()
        marker = is_of_block.set(True)
        manager = block(question_id=question_id, **options)
        try:
            handler = manager.__enter__()
        finally:
            is_of_block.reset(marker)
        RECORDINGS[id(handler)] = recording
        recording.started_block(handler, around, question_id, _options(recording, options))
        token, error = _block.set(handler), None
        try:
            yield handler
        except BaseException as problem:
            error = problem
            raise
        finally:
            try:
                _block.reset(token)
            except ValueError:
                recording.problem = "the block ended in another context"
            recording.ended_block(handler, error)
            manager.__exit__(None if error is None else type(error), error, None)

    handler_class.__init__, handler_class.add_run, handler_class.clear = new_init, new_add_run, new_clear
    for module in (graphrag_eval_lc, capture, sys.modules["graphrag_eval_lc.capture.handler"]):
        vars(module)["capture_run"] = new_block


def _options(recording: Recording, options: dict[str, Any]) -> dict[str, Any]:
    if callable(options.get("redact")):
        recording.problem = "its redact is a function"
    return {key: sorted(value) if isinstance(value, set) else value for key, value in options.items()}


class Recorder:
    """A pytest plugin that creates scenarios from the events of the handlers in each test."""

    def __init__(self) -> None:
        self.scenarios: list[Scenario] = []
        self.left_out: list[tuple[str, str]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        yield
        recordings = list({id(recording): recording for recording in RECORDINGS.values()}.values())
        RECORDINGS.clear()
        used = [recording for recording in recordings if len(recording.events) > 1 or recording.problem]
        for number, recording in enumerate(used):
            name = item.name.removeprefix("test_").replace("_", " ") + (f" ({number + 1})" if number else "")
            problem = recording.problem or self._keep(recording, name)
            if problem:
                self.left_out.append((name, problem))

    def _keep(self, recording: Recording, name: str) -> str | None:
        """Keep a scenario, or return why it cannot be replayed."""
        token = _is_replay.set(True)
        try:
            scenario = recording.scenario(name)
            scenario = Scenario("", scenario.header, *json.loads(json.dumps([scenario.events, scenario.expected])))
            found = list(differences(scenario.expected, replay(scenario)))
        except Exception as error:
            return f"{error!r:.300}"
        finally:
            _is_replay.reset(token)
        if not found:
            self.scenarios.append(scenario)
        return "; ".join(found)[:600]


def lines(scenario: Scenario) -> Iterator[str]:
    """Yield the lines of a scenario in its file."""
    for record in (scenario.header, *scenario.events, {"responses": scenario.expected}):
        line = json.dumps(record, ensure_ascii=False)
        yield line if line.isprintable() else json.dumps(record)  # lone surrogates cannot be encoded


def record(arguments: list[str]) -> Recorder:
    """Run tests with recording handlers."""
    for kind in (*EVENTS, "interrupt", "resume"):
        name = f"on_{kind}"
        setattr(GraphRAGEvalCallbackHandler, name, _recorded(kind, getattr(GraphRAGEvalCallbackHandler, name)))
    _record_others()
    recorder = Recorder()
    pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[recorder])
    return recorder


def compared(scenarios: list[Scenario]) -> Iterator[str]:
    """Yield a line for each difference from the recorded scenarios of the same name."""
    known = {each.header["scenario"]: each for path in FOLDER.glob("*.jsonl") for each in read_scenarios(path)}
    for scenario in scenarios:
        name = scenario.header["scenario"]
        if name in known:
            is_part = bool(known[name].header.get("given_keys_only"))
            found = differences(known[name].expected, scenario.expected, given_keys_only=is_part)
            yield from (f"{known[name].name}: {difference}" for difference in found)


if __name__ == "__main__":
    if len(sys.argv) < 2 or {"-h", "--help"}.intersection(sys.argv[1:]):
        print(__doc__)
        sys.exit(len(sys.argv) < 2)
    target, *given = sys.argv[1:]
    recorder = record(given)
    for name, reason in recorder.left_out:
        print(f"left out: {name}: {reason}")
    if target == "--compare":
        differing = list(compared(recorder.scenarios))
        print(*differing, sep="\n")
        sys.exit(f"{len(recorder.scenarios)} scenarios, {len(differing)} differences" if differing else 0)
    Path(target).write_text("".join(f"{line}\n" for each in recorder.scenarios for line in lines(each)), "utf-8")
    print(f"{len(recorder.scenarios)} scenarios in {target}")
