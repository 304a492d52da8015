"""The live report of a running evaluation: a server on this machine only, at an address that nobody can guess."""

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.evaluation.events import RunEvent
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.report.page import render_report
from graphrag_eval_lc.report.reported_run import reported_run
from graphrag_eval_lc.report.run_report import report_data
from graphrag_eval_lc.run_folder import RESULTS_FILE, iter_results
from graphrag_eval_lc.run_folder.journal import COLLECTING

_HOST: Final = "127.0.0.1"
_PAUSE_SEC: Final = 1.0  # the shortest time between two pages
_SHARE: Final = 5  # at most one part in so many of the time goes into pages, so that the run is not slowed down
_ALIVE_SEC: Final = 10.0  # after so long without news, a line is sent to check that the browser is still connected
_LAST_PAGE_SEC: Final = 5.0


class _GrowingRun:
    """The results in a run's folder that are scored so far."""

    def __init__(self, folder: Path) -> None:
        self.output_dir = folder

    def iter_results(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order in which they were scored; once the run has ended, in dataset order."""
        path = self.output_dir / RESULTS_FILE
        try:
            with open_to_read(path.with_name(f"{path.name}{COLLECTING}")) as file:
                for line in file:
                    if not line.endswith(b"\n"):  # it is still being written
                        return
                    yield parse_json(line)
        except FileNotFoundError:
            if path.is_file():
                yield from iter_results(path)


class LiveReport(AbstractContextManager["LiveReport"]):
    """An observer of a run that shows its report to browsers on this machine during the run.

    Server-sent events notify a page of new results, and the page requests them. Viewers do not affect the run or its
    files. ``address`` contains a token that is made for this run.
    """

    def __init__(self, folder: Path) -> None:
        self._run = _GrowingRun(folder)
        self._token = secrets.token_urlsafe(24)
        self._news = threading.Condition()
        self._rendering = threading.Lock()
        self._page: tuple[tuple[int, bool], bytes] | None = None
        self._scored = self._total = self._watching = self._last_pages = 0
        self._pause = _PAUSE_SEC
        self._is_over = False
        self._server = ThreadingHTTPServer((_HOST, 0), self._handler())
        self._server.daemon_threads = True
        self.address = f"http://{_HOST}:{self._server.server_port}/{self._token}/"

    def __enter__(self) -> "LiveReport":
        threading.Thread(target=self._server.serve_forever, name="live report", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Let open pages receive the end of the run, then close the server."""
        with self._news:
            self._is_over = True
            self._news.notify_all()
            self._news.wait_for(lambda: self._last_pages >= self._watching, timeout=_LAST_PAGE_SEC)
        self._server.shutdown()
        self._server.server_close()

    def __call__(self, event: RunEvent) -> None:
        """Handle one event, from any thread."""
        if event.kind not in ("run_started", "result_scored"):
            return
        with self._news:
            self._total = event.fields.get("total", self._total)
            self._scored += event.kind == "result_scored"
            self._news.notify_all()

    def page(self) -> bytes:
        """Return the page with the results that are scored now."""
        with self._rendering:
            state = self._scored, self._is_over
            if self._page is None or self._page[0] != state:
                began = time.monotonic()
                with recorded_only_here():
                    html = "".join(render_report(report_data(reported_run(self._run)), is_live=True))
                self._page = state, html.encode()
                self._pause = max(_PAUSE_SEC, _SHARE * (time.monotonic() - began))
            return self._page[1]

    def events(self) -> Iterator[bytes]:
        """Yield a server-sent event each time that more is scored, until the run is over."""
        seen = -1
        while True:
            scored, total, is_over = self._state_after(seen)
            if is_over:
                yield _event("end", {"scored": scored, "total": total})
                return
            yield b": alive\n\n" if scored == seen else _event("more", {"scored": scored, "total": total})
            if scored != seen:
                seen = scored
                time.sleep(self._pause)

    def _state_after(self, seen: int) -> tuple[int, int, bool]:
        """Wait for news; return how many are scored, of how many, and whether the run is over."""
        with self._news:
            self._news.wait_for(lambda: self._is_over or self._scored != seen, timeout=_ALIVE_SEC)
            return self._scored, self._total, self._is_over

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        live = self

        class Handler(BaseHTTPRequestHandler):
            server_version, sys_version = "graphrag-eval-lc", ""

            def do_GET(self) -> None:
                # With another host name, a page elsewhere could make a browser read the report (DNS rebinding).
                host, port = self.headers.get("Host", ""), live._server.server_port
                token, _, name = self.path.removeprefix("/").partition("/")
                is_known = secrets.compare_digest(token.encode(), live._token.encode())
                if host not in (f"{_HOST}:{port}", f"localhost:{port}") or not is_known or name not in ("", "events"):
                    self.send_error(HTTPStatus.NOT_FOUND)
                    return
                with suppress(OSError):  # the browser is gone
                    live._answer_events(self) if name else live._answer_page(self)

            def log_message(self, format: str, *args: Any) -> None:
                """Print nothing: the terminal belongs to the run."""

        return Handler

    def _answer_page(self, request: BaseHTTPRequestHandler) -> None:
        is_last = self._is_over
        try:
            page = self.page()
        except (GraphRAGEvalError, OSError) as problem:  # such as a folder that was removed meanwhile
            request.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(problem))
            return
        _begin(request, "text/html; charset=utf-8", len(page))
        request.wfile.write(page)
        if is_last:
            with self._news:
                self._last_pages += 1
                self._news.notify_all()

    def _answer_events(self, request: BaseHTTPRequestHandler) -> None:
        _begin(request, "text/event-stream")
        with self._news:
            self._watching += 1
        has_left = True
        try:
            for event in self.events():
                request.wfile.write(event)
                request.wfile.flush()
            has_left = False
        finally:
            if has_left:
                with self._news:
                    self._watching -= 1
                    self._news.notify_all()


def _begin(request: BaseHTTPRequestHandler, media_type: str, length: int | None = None) -> None:
    request.send_response(HTTPStatus.OK)
    request.send_header("Content-Type", media_type)
    if length is not None:
        request.send_header("Content-Length", str(length))
    for name, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")):
        request.send_header(name, value)
    request.end_headers()


def _event(kind: str, data: dict[str, int]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
