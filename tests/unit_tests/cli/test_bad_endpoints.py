"""Endpoints that respond with errors, HTML, slow drips or redirects: one error each, and no data loss."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import yaml

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")

from graphrag_eval_lc.dataset import sparql_endpoint
from graphrag_eval_lc.graph.replay import ReplayProxy
from graphrag_eval_lc.retrying import RetryPolicy

HTML = "<html>The store is restarted</html>"
ANSWERS: dict[str, tuple[int, str, dict[str, str]]] = {
    "error": (500, "out of memory", {}),
    "html": (200, HTML, {"Content-Type": "text/html"}),
    "redirect": (302, "", {"Location": "http://elsewhere.invalid/sparql"}),
    "refused": (401, "who are you", {}),
    "drip": (200, " " * 60 + "{}", {}),
}
COMPLAINTS = {
    "error": "status 500: out of memory",
    "html": "no JSON (text/html): <html>The store is restarted</html>",
    "redirect": "redirects to another host, http://elsewhere.invalid",
    "refused": "status 401: who are you",
    "drip": "no results within 0.5 seconds",
}
Run = Callable[..., int]


@pytest.fixture
def server() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            name = self.path.strip("/")
            status, text, headers = ANSWERS[name]
            self.send_response(status)
            for key, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                for part in text if name == "drip" else [text]:
                    self.wfile.write(part.encode())
                    time.sleep(0.05 * (name == "drip"))

        def log_message(self, *_: object) -> None:
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.server_address[1]}"
    served.shutdown()
    served.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sparql_endpoint, "_RETRIES", RetryPolicy(first_wait=0))
    queries = [f"SELECT ?x {{ ?x <urn:p> {number} }}" for number in range(3)]
    steps = [[[{"name": "sparql_query", "args": {"query": query}, "output": "{}"}]] for query in queries]
    questions = [{"id": f"q{n}", "question_text": "Q", "reference_steps": each} for n, each in enumerate(steps)]
    Path("qa.yaml").write_text(yaml.safe_dump([{"template_id": "t", "questions": questions}]), encoding="utf-8")
    template = {"template_id": "t", "question_texts": ["Q {x}"], "values": queries[0], "reference_steps": steps[0]}
    Path("templates.yaml").write_text(yaml.safe_dump([template]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", ANSWERS)
def test_refresh(name: str, server: str, folder: Path, exit_code: Run, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("qa.yaml").read_bytes()
    options = ("--endpoint", f"{server}/{name}", "--timeout", "0.5", "--write", "qa.yaml")
    code = exit_code("dataset", "refresh", "qa.yaml", *options)
    output = capsys.readouterr()
    if name == "redirect":  # not specific to a query, so no other query is tried
        assert (code, output.err.count("Error:"), COMPLAINTS[name] in output.err) == (2, 1, True)
    else:
        failed = [line for line in output.out.splitlines() if ": failed: " in line]
        assert (code, len(failed)) == (1, 3)
        assert all(COMPLAINTS[name] in line for line in failed)
        assert "3 reference queries run against" in output.out
        assert "3 failed." in output.out
    assert Path("qa.yaml").read_bytes() == before


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "command",
    [("dataset", "generate", "templates.yaml", "-o", "made.yaml"), ("dataset", "lint", "qa.yaml", "--vocabulary", "v")],
    ids=["generate", "lint"],
)
def test_generate_and_lint(
    command: tuple[str, ...], name: str, server: str, folder: Path, exit_code: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    assert exit_code(*command, "--endpoint", f"{server}/{name}", "--timeout", "0.5") == 2
    output = capsys.readouterr()
    assert output.err.count("Error:") == 1
    assert COMPLAINTS[name] in output.err
    assert "Traceback" not in output.err
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("name", ANSWERS)
def test_proxy_records_and_replays_the_response(name: str, server: str, tmp_path: Path) -> None:
    calls, answers = tmp_path / "calls.jsonl", []
    for replays in (False, True):
        endpoint = None if replays else f"{server}/{name}"
        with ReplayProxy(calls, endpoint=endpoint, replays=replays) as proxy:
            url = httpx.URL(proxy.url).copy_with(path=f"/{name}")
            answers.append(httpx.post(url, data={"query": "ASK {}"}, trust_env=False, follow_redirects=False))
            assert proxy.counts.missing == {}
    assert [(each.status_code, each.text) for each in answers] == [ANSWERS[name][:2]] * 2
    assert answers[1].headers.get("Location") == ANSWERS[name][2].get("Location")
