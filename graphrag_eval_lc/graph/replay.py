"""A proxy between an agent and its SPARQL endpoint that records the endpoint's answers, or replays them.

Replayed calls make a run cheap, fast and reproducible. SQLite and Bolt do not use HTTP, so they are not recorded.
"""

import base64
import hashlib
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import httpx

from graphrag_eval_lc.errors import OptionError, RunFolderError, warn
from graphrag_eval_lc.files.writing import AppendFile, json_line
from graphrag_eval_lc.matching.rows.row_steps import JSON_MEDIA_TYPE
from graphrag_eval_lc.texts import counted, shortened

NOT_RECORDED = 504
"""The status of a call that was not recorded, with the header ``X-Replay: not recorded``."""

_QUERY_PARAMETERS = ("query", "update")
_KEPT_REQUEST_HEADERS = ("accept", "authorization", "content-type", "user-agent")
_KEPT_RESPONSE_HEADERS = ("content-type", "retry-after", "location")
# Texts, IRIs and comments of SPARQL; white space outside them has no meaning. An unclosed quote is none of
# these: the rest of its line stays as it is, so that it never begins a text in the folded query.
_OPAQUE = re.compile(
    r'("""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|["\'][^\n]*\n?)|#[^\n]*'
)
_CHANGING = re.compile(r"\b(NOW|RAND|UUID|STRUUID)\s*\(|\b(SERVICE)\b", re.IGNORECASE)
_LARGEST_BODY = 100_000_000


def folded_query(query: str) -> str:
    r"""Return a query with white space outside texts and IRIs as one blank, and without comments.

    Example:
        >>> folded_query('SELECT  ?x # all\n{ ?x <urn:p>   "a  b" }')
        'SELECT ?x { ?x <urn:p> "a  b" }'
    """
    folded, end = "", 0
    for found in (*_OPAQUE.finditer(query), None):
        between = re.sub(r"\s+", " ", query[end : None if found is None else found.start()])
        folded += between.removeprefix(" ") if folded.endswith(" ") else between
        if found is not None:
            folded += found[1] or ("" if folded.endswith(" ") else " ")
            end = found.end()
    return folded.strip()


@dataclass(frozen=True, slots=True)
class Call:
    """A request in a normal form, by which its recorded answer is found.

    Attributes:
        method: GET or POST.
        path: The path of the URL.
        parameters: All parameters but the query, sorted.
        accept: The media types that the client wants.
        query: The query or update with its white space folded; a digest of a body that is neither.
    """

    method: str
    path: str
    parameters: tuple[tuple[str, str], ...]
    accept: str
    query: str

    @property
    def key(self) -> str:
        """A digest of the call."""
        return hashlib.sha256(repr(self).encode()).hexdigest()


def call_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> Call:
    """Return the normal form of a request, by which its recorded answer is found.

    Example:
        >>> one = call_of("GET", "/sparql?query=ASK%20%7B%7D", {"Accept": "*/*"}, b"")
        >>> other = call_of("GET", "/sparql?query=ASK++%7B%7D", {"Accept": "*/*"}, b"")
        >>> one.key == other.key, one.query
        (True, 'ASK {}')
    """
    url = urlsplit(target)
    parameters = parse_qsl(url.query, keep_blank_values=True)
    headers = httpx.Headers(headers)
    media_type = headers.get("Content-Type", "").split(";")[0].strip().lower()
    query = ""
    if media_type == "application/x-www-form-urlencoded":
        parameters += parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    elif media_type in ("application/sparql-query", "application/sparql-update"):
        query = body.decode("utf-8", "replace")
    elif body:
        query = f"sha256:{hashlib.sha256(body).hexdigest()}"
    query = query or "\n".join(value for name, value in parameters if name in _QUERY_PARAMETERS)
    others = tuple(sorted(each for each in parameters if each[0] not in _QUERY_PARAMETERS))
    return Call(method, url.path, others, headers.get("Accept", ""), folded_query(query))


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class ReplayCounts:
    """What a proxy did.

    Attributes:
        replayed: Calls that were answered as recorded.
        recorded: Calls that were sent on and recorded.
        missing: Queries that were not recorded, with how often they were sent.
        unreached: Calls for which the endpoint could not be reached.
    """

    replayed: int = 0
    recorded: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    unreached: int = 0

    def __str__(self) -> str:
        parts = [counted(self.replayed, "call replayed", "calls replayed")] if self.replayed else []
        parts += [counted(self.recorded, "call recorded", "calls recorded")] if self.recorded else []
        parts += (
            [counted(self.missing.total(), "call was not recorded", "calls were not recorded")] if self.missing else []
        )
        parts += [counted(self.unreached, "call", "calls") + " without an answer"] if self.unreached else []
        return ", ".join(parts) or "no calls"


class ReplayProxy:
    """A server on this machine's loopback address; a context manager.

    Args:
        calls: The file of recorded calls, in JSON Lines.
        endpoint: The endpoint that calls are sent on to; None to answer only what is recorded.
        replays: Whether calls are answered as recorded if they are; if not, each is sent on and recorded.
        port: The port; 0 for any that is free.

    Raises:
        OptionError: There is nothing to replay and no endpoint, or the endpoint is not a URL of HTTP.
        RunFolderError: The file cannot be read or written, or is not one of recorded calls.

    Attributes:
        counts: What it has done so far.
    """

    def __init__(self, calls: Path, *, endpoint: str | None = None, replays: bool = False, port: int = 0) -> None:
        if endpoint is None and not replays:
            raise OptionError("no endpoint to record is given", hint="Add --endpoint URL.")
        self._base = None if endpoint is None else httpx.URL(endpoint)
        if self._base is not None and (self._base.scheme not in ("http", "https") or not self._base.host):
            raise OptionError(f"the endpoint {shortened(str(endpoint), 80)} is not a URL of HTTP")
        self.counts = ReplayCounts()
        self._answers = _recorded(calls) if replays else {}
        self._next: defaultdict[str, int] = defaultdict(int)
        self._replays = replays
        self._warned: set[str] = set()
        self._lock = threading.Lock()
        self._file = None if self._base is None else AppendFile(calls, empty=not replays, is_private=False)
        self._client = httpx.Client(timeout=600, follow_redirects=False, trust_env=False)
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        except OSError as problem:
            raise OptionError(
                f"port {port} cannot be used: {problem.strerror}", hint="Give another --port."
            ) from problem
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def url(self) -> str:
        """The URL to use in place of the endpoint's; it has the same path."""
        path = "/sparql" if self._base is None else self._base.path
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._client.close()
        if self._file is not None:
            self._file.close()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> _Answer:
        """Return the answer to a request, recorded or of the endpoint."""
        call = call_of(method, target, headers, body)
        if self._replays and (answer := self._recorded_answer(call)) is not None:
            return answer
        if self._base is None:
            with self._lock:
                self.counts.missing[call.query] += 1
            what = {"error": "this call was not recorded", "query": call.query}
            return _Answer(NOT_RECORDED, {"X-Replay": "not recorded", "Content-Type": JSON_MEDIA_TYPE}, _json(what))
        changing = {(each[0] or each[1]).upper() for each in _CHANGING.findall(_OPAQUE.sub(" ", call.query))}
        for name in sorted(changing - self._warned):
            self._warned.add(name)
            warn(f"a query uses {name}, whose results change from call to call; replayed, they stay the same")
        kept = {name: value for name, value in headers.items() if name.lower() in _KEPT_REQUEST_HEADERS}
        parameters = "&".join(filter(None, (self._base.query.decode(), urlsplit(target).query)))
        url = self._base.copy_with(path=urlsplit(target).path, query=parameters.encode() or None)
        try:
            response = self._client.request(method, url, headers=kept, content=body or None)
        except httpx.HTTPError as problem:
            with self._lock:
                self.counts.unreached += 1
            what = {"error": f"the endpoint does not answer: {problem or type(problem).__name__}"}
            return _Answer(502, {"X-Replay": "endpoint unreached", "Content-Type": JSON_MEDIA_TYPE}, _json(what))
        own = {name: response.headers[name] for name in _KEPT_RESPONSE_HEADERS if name in response.headers}
        answer = _Answer(response.status_code, own, response.content)
        self._record(call, answer)
        return answer

    def _recorded_answer(self, call: Call) -> _Answer | None:
        """Return the next recorded answer to a call; after the last one, always the last."""
        with self._lock:
            answers = self._answers.get(call.key)
            if not answers:
                return None
            at = min(self._next[call.key], len(answers) - 1)
            self._next[call.key] += 1
            self.counts.replayed += 1
            return answers[at]

    def _record(self, call: Call, answer: _Answer) -> None:
        try:
            body = {"body": answer.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(answer.body).decode()}
        record = {
            "key": call.key,
            "method": call.method,
            "path": call.path,
            "parameters": [list(each) for each in call.parameters],
            "accept": call.accept,
            "query": call.query,
            "status": answer.status,
            "headers": dict(answer.headers),
            **body,
        }
        with self._lock:
            self.counts.recorded += 1
            if self._file is not None:
                self._file.append(json_line(record))
            if self._replays:
                self._answers.setdefault(call.key, []).append(answer)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_call(self) -> None:
                size = self.headers.get("Content-Length") or "0"
                if not size.isdecimal() or int(size) > _LARGEST_BODY or self.headers.get("Transfer-Encoding"):
                    self.send_error(HTTPStatus.LENGTH_REQUIRED)
                    return
                headers = httpx.Headers(self.headers.items())
                answer = proxy.answer(self.command, self.path, headers, self.rfile.read(int(size)))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_HEAD = do_OPTIONS = handle_call  # noqa: N815 - named by the standard library

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _recorded(calls: Path) -> dict[str, list[_Answer]]:
    """Read the recorded answers, in order, by the key of their call; a last line that was cut off is left out."""
    answers: dict[str, list[_Answer]] = {}
    try:
        lines = calls.read_bytes().split(b"\n")
    except OSError as problem:
        hint = "Record calls first: graphrag-eval-lc proxy --record FILE --endpoint URL."
        raise RunFolderError(f"it cannot be read: {problem.strerror}", path=calls, hint=hint) from problem
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            body = base64.b64decode(record["body_base64"]) if "body_base64" in record else record["body"].encode()
            answer = _Answer(int(record["status"]), dict(record["headers"]), body)
            answers.setdefault(record["key"], []).append(answer)
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            if number == len(lines):
                break
            hint = "Remove the line, or record the calls again."
            raise RunFolderError("it is not a recorded call", path=calls, line=number, hint=hint) from problem
    return answers
