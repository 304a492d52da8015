"""A server that speaks the OpenAI API over real HTTP, with scripted answers and every fault of an endpoint.

It supports chat completions (structured by json_schema, tools or json_object, streamed or not) and embeddings (floats
and base64). Tests use it as the fixture ``openai_stub``.
"""

import asyncio
import base64
import hashlib
import json
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class StubRequest:
    """A received request.

    Attributes:
        path: Such as ``/v1/chat/completions``, without the query.
        headers: By lower-case name.
        body: The JSON body.
    """

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def is_chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    @property
    def system(self) -> str:
        return self._text_of("system")

    @property
    def user(self) -> str:
        return self._text_of("user")

    @property
    def mode(self) -> str:
        """How structured output was requested: json_schema, tools, json_object or text."""
        if self.body.get("tools"):
            return "tools"
        return str(self.body.get("response_format", {}).get("type", "text"))

    @property
    def schema(self) -> Json | None:
        """The schema of the answer, if the request has one."""
        if self.mode == "tools":
            return dict(self.body["tools"][0]["function"]["parameters"])
        return self.body["response_format"]["json_schema"]["schema"] if self.mode == "json_schema" else None

    def _text_of(self, role: str) -> str:
        """Return the text of all messages with a role."""
        return "\n".join(_text(message) for message in self.body["messages"] if message["role"] == role)


def _text(message: Json) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@dataclass(frozen=True)
class Fault:
    """A fault of a single request.

    Attributes:
        status: The HTTP status.
        headers: Additional headers.
        body: Sent instead of the answer: a dict as JSON, a string as is. None: the answer.
        change: Applied to the answer before it is sent.
        delay_sec: Delay before anything is sent.
        is_reset: The connection is reset instead of an answer.
        is_cut: The connection ends after half of the body or stream.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: Json | list[Any] | str | None = None
    change: Callable[[Json], None] | None = None
    delay_sec: float = 0.0
    is_reset: bool = False
    is_cut: bool = False


def http_error(status: int, message: str = "", *, headers: dict[str, str] | None = None, **error: Any) -> Fault:
    """Return an HTTP error with OpenAI's body. ``error`` may have ``code``, ``param`` and ``type``."""
    message = message or HTTPStatus(status).phrase
    body = {"error": {"message": message, "type": "error", "param": None, "code": None, **error}}
    return Fault(status, headers or {}, body)


def rate_limit(**headers: str) -> Fault:
    """Return a 429 with headers as keywords: ``retry_after="1"``, ``retry_after_ms="20"``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_error(429, "Rate limit reached", headers=named, code="rate_limit_exceeded")


def used_up_quota() -> Fault:
    return http_error(429, "You exceeded your current quota", code="insufficient_quota")


def server_error(status: int = 500) -> Fault:
    return http_error(status)


def hanging(seconds: float = 30.0) -> Fault:
    """Delay the answer."""
    return Fault(delay_sec=seconds)


def connection_reset() -> Fault:
    return Fault(is_reset=True)


def cut_off() -> Fault:
    """End the connection after half of the body or stream."""
    return Fault(is_cut=True)


def broken_body(text: str = '{"id": "chatcmpl-1", "choices": [{"mess') -> Fault:
    """Return a 200 whose body is not JSON, or not the API's JSON."""
    return Fault(body=text)


def empty_choices() -> Fault:
    return Fault(change=lambda answer: answer.update(choices=[]))


def missing_usage() -> Fault:
    return Fault(change=lambda answer: answer.pop("usage"))


def finish_reason(reason: str) -> Fault:
    """End answers with ``length`` or ``content_filter``, and truncate their text."""

    def change(answer: Json) -> None:
        for choice in answer["choices"]:
            choice["finish_reason"] = reason
            content = choice["message"]["content"]
            choice["message"]["content"] = content and content[: len(content) // 2]

    return Fault(change=change)


def refusal(text: str = "I cannot help with that.") -> Fault:
    def change(answer: Json) -> None:
        for choice in answer["choices"]:
            choice["message"] = {"role": "assistant", "content": None, "refusal": text}

    return Fault(change=change)


def embeddings_count(count: int) -> Fault:
    """Return this number of embeddings for any input."""
    return Fault(change=lambda answer: answer.update(data=(answer["data"] * (count + 1))[:count]))


Answer = Json | list[Any] | str


class OpenAIStub:
    """The server; a context manager. All attributes can be changed while it runs.

    Attributes:
        requests: All requests, in order.
        answers: The next answers, one per choice, used before ``answer``: strings as they are, everything else as JSON.
        answer: Returns the answer to a request; by default the smallest one that its schema allows.
        embed: Returns the vector of a text; by default 8 numbers derived from the text.
        chat_faults: The faults of the next chat requests, one each. None: no fault.
        embedding_faults: The faults of the next embeddings requests.
        fault_of: Returns the fault of a chat request if ``chat_faults`` is empty; by default none.
        lacks: Features that the endpoint rejects with a 400: ``json_schema``, ``tools``, ``json_object``, ``n``,
            ``temperature``, ``max_tokens``, ``base64``. Or ignores: ``all_choices`` (one choice for any ``n``),
            ``usage``, ``base64_silently`` (always floats).
        usage: The tokens of each chat request.
        embedding_usage: The tokens of each embeddings request.
        latency_sec: The duration of each request.
        most_in_flight: The highest number of concurrent requests.
    """

    def __init__(self) -> None:
        self.requests: list[StubRequest] = []
        self.answers: deque[Answer] = deque()
        self.answer: Callable[[StubRequest], Answer] = _least_answer
        self.embed: Callable[[str], list[float]] = _vector_of
        self.chat_faults: deque[Fault | None] = deque()
        self.embedding_faults: deque[Fault | None] = deque()
        self.fault_of: Callable[[StubRequest], Fault | None] = lambda request: None
        self.lacks: set[str] = set()
        self.usage: Json = {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "total_tokens": 1100,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
        self.embedding_usage: Json = {"prompt_tokens": 50, "total_tokens": 50}
        self.latency_sec = 0.0
        self.most_in_flight = 0
        self._in_flight = 0
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="openai-stub", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def chat_requests(self) -> list[StubRequest]:
        return [request for request in self.requests if request.is_chat]

    @property
    def embedding_requests(self) -> list[StubRequest]:
        return [request for request in self.requests if not request.is_chat]

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(10)

    # --- serving ---

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        self._connections: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=1024)
        self._port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        await self._stopped.wait()
        server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=5)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            while await self._answer_next(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _answer_next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request and return whether the connection stays open."""
        request = await _request_from(reader)
        self.requests.append(request)
        faults = self.chat_faults if request.is_chat else self.embedding_faults
        fault = (faults.popleft() if faults else self.fault_of(request) if request.is_chat else None) or Fault()
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            await asyncio.sleep(self.latency_sec + fault.delay_sec)
        finally:
            self._in_flight -= 1
        if fault.is_reset:
            return False
        fault = fault if fault.body is not None or fault.status != 200 else self._refusal_of(request) or fault
        if request.body.get("stream") and fault.body is None and fault.status == 200:
            return await self._send_stream(writer, request, fault)
        answer = self._answer_to(request, fault) if fault.body is None else fault.body
        return await _send(writer, fault, answer)

    def _answer_to(self, request: StubRequest, fault: Fault) -> Json:
        answer = self._completion(request) if request.is_chat else self._embeddings(request)
        if "usage" in self.lacks:
            del answer["usage"]
        if fault.change:
            fault.change(answer)
        return answer

    # --- what the endpoint rejects ---

    def _refusal_of(self, request: StubRequest) -> Fault | None:
        body = request.body
        if request.headers.get("authorization") == "Bearer wrong":
            return http_error(401, "Incorrect API key provided: wrong", code="invalid_api_key")
        if not request.is_chat:
            if "base64" in self.lacks and body.get("encoding_format") == "base64":
                return http_error(400, "encoding_format base64 is not supported", param="encoding_format")
            return None
        if body.get("n", 1) > 1 and "n" in self.lacks:
            return http_error(400, "'n' : number must be at most 1", param="n")
        if "temperature" in body and "temperature" in self.lacks:
            message = "Unsupported value: 'temperature' does not support 0.0 with this model."
            return http_error(400, message, param="temperature", code="unsupported_value")
        if "max_tokens" in body and "max_tokens" in self.lacks:
            message = "Unsupported parameter: 'max_tokens' is not supported with this model. "
            return http_error(400, message + "Use 'max_completion_tokens' instead.", param="max_tokens")
        return self._refusal_of_form(request)

    def _refusal_of_form(self, request: StubRequest) -> Fault | None:
        if request.mode in self.lacks:
            if request.mode == "tools":
                return http_error(400, "This model does not support tools")
            message = f"Invalid parameter: 'response_format' of type '{request.mode}' is not supported with this model."
            return http_error(400, message, param="response_format")
        if request.mode == "json_object" and "json" not in (request.system + request.user).lower():
            return http_error(400, "'messages' must contain the word 'json' in some form", param="messages")
        if request.mode == "json_schema" and request.body["response_format"]["json_schema"].get("strict"):
            problem = _problem_of_strict(request.schema or {}, "()")
            if problem:
                return http_error(400, f"Invalid schema for response_format: {problem}", param="response_format")
        return None

    # --- answers ---

    def _next_answer(self, request: StubRequest) -> str:
        answer = self.answers.popleft() if self.answers else self.answer(request)
        return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

    def _completion(self, request: StubRequest) -> Json:
        count = 1 if "all_choices" in self.lacks else request.body.get("n") or 1
        return {
            "id": "chatcmpl-stub",
            "object": "chat.completion",
            "created": 1,
            "model": request.body["model"],
            "choices": [self._choice(request, index) for index in range(count)],
            "usage": dict(self.usage),
        }

    def _choice(self, request: StubRequest, index: int) -> Json:
        text = self._next_answer(request)
        message: Json = {"role": "assistant", "content": text, "refusal": None}
        reason = "stop"
        if request.mode == "tools":
            function = {"name": request.body["tools"][0]["function"]["name"], "arguments": text}
            call = {"id": f"call_{index}", "type": "function", "function": function}
            message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        return {"index": index, "message": message, "finish_reason": reason, "logprobs": None}

    def _embeddings(self, request: StubRequest) -> Json:
        texts = request.body["input"]
        vectors = [self.embed(text) for text in ([texts] if isinstance(texts, str) else texts)]
        is_base64 = request.body.get("encoding_format") == "base64" and "base64_silently" not in self.lacks
        return {
            "object": "list",
            "model": request.body["model"],
            "data": [
                {"object": "embedding", "index": index, "embedding": _base64(vector) if is_base64 else vector}
                for index, vector in enumerate(vectors)
            ],
            "usage": dict(self.embedding_usage),
        }

    async def _send_stream(self, writer: asyncio.StreamWriter, request: StubRequest, fault: Fault) -> bool:
        answer = self._answer_to(request, fault)
        wants_usage = request.body.get("stream_options", {}).get("include_usage")
        events = [*_chunks_of(answer, bool(wants_usage)), "[DONE]"]
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head.encode())
        for event in events[: len(events) // 2] if fault.is_cut else events:
            data = f"data: {event}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        if fault.is_cut:
            await writer.drain()
            await asyncio.sleep(0.02)
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _request_from(reader: asyncio.StreamReader) -> StubRequest:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return StubRequest(lines[0].split(" ")[1].partition("?")[0], headers, json.loads(content or b"{}"))


async def _send(writer: asyncio.StreamWriter, fault: Fault, answer: Json | list[Any] | str) -> bool:
    content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
    headers = {"content-type": "application/json", "content-length": str(len(content)), **fault.headers}
    lines = [f"HTTP/1.1 {fault.status} Stub", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    writer.write("\r\n".join(lines).encode() + (content[: len(content) // 2] if fault.is_cut else content))
    await writer.drain()
    if fault.is_cut:
        await asyncio.sleep(0.02)
    return not fault.is_cut


def _chunks_of(answer: Json, wants_usage: bool) -> Iterator[str]:
    """Return a completion as the JSON chunks of a stream."""
    head = {"id": answer["id"], "object": "chat.completion.chunk", "created": 1, "model": answer["model"]}
    for choice in answer["choices"]:
        for delta in (*_deltas_of(choice["message"]), {}):
            reason = choice["finish_reason"] if not delta else None
            part = {"index": choice["index"], "delta": delta, "finish_reason": reason}
            yield json.dumps({**head, "choices": [part], **({"usage": None} if wants_usage else {})})
    if wants_usage and "usage" in answer:
        yield json.dumps({**head, "choices": [], "usage": answer["usage"]})


def _deltas_of(message: Json) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    if message.get("refusal"):
        yield {"refusal": message["refusal"]}
    text = message.get("content") or ""
    for start in range(0, len(text), 7):
        yield {"content": text[start : start + 7]}
    for index, call in enumerate(message.get("tool_calls", [])):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        function = {"name": name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": function}]}
        for start in range(0, len(arguments), 7):
            yield {"tool_calls": [{"index": index, "function": {"arguments": arguments[start : start + 7]}}]}


# --- schemas and vectors ---------------------------------------------------------------------------------------------


def _problem_of_strict(schema: Json, place: str) -> str | None:
    """Return what OpenAI rejects about a strict schema: objects must be closed, and all keys required."""
    properties = schema.get("properties", {})
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={place}, 'additionalProperties' is required to be supplied and to be false."
        if sorted(schema.get("required", [])) != sorted(properties):
            return f"In context={place}, 'required' is required to be an array including every key in properties."
    inner = [*properties.items(), *schema.get("$defs", {}).items()]
    inner += [("items", schema["items"])] if "items" in schema else []
    inner += [("anyOf", variant) for variant in schema.get("anyOf", [])]
    problems = (_problem_of_strict(part, f"{place}.{name}") for name, part in inner)
    return next((problem for problem in problems if problem), None)


def _least_answer(request: StubRequest) -> Answer:
    schema = request.schema
    return {} if schema is None else _least_value(schema, schema)


def _least_value(schema: Json, root: Json) -> Any:
    """Return the smallest value for a schema: the first of an enum, an empty list, 0, false or a short text."""
    if "$ref" in schema:
        return _least_value(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if "anyOf" in schema:
        return _least_value(schema["anyOf"][0], root)
    if schema.get("type") == "object":
        return {name: _least_value(part, root) for name, part in schema.get("properties", {}).items()}
    if schema.get("type") == "array":
        return [_least_value(schema["items"], root)] * schema.get("minItems", 0)
    return {"string": "text", "integer": 0, "number": 0.0, "boolean": False}.get(schema.get("type", "null"))


def _vector_of(text: str) -> list[float]:
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
