"""The graph commands, as users call them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("rdflib")
pytest.importorskip("pyoxigraph")

from graphrag_eval_lc.cli.main import app
from graphrag_eval_lc.demo import GRAPH_PATH, TEMPLATES_PATH

GRAPH = ("--graph", str(GRAPH_PATH))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_dataset_is_generated_linted_and_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = call("dataset", "generate", str(TEMPLATES_PATH), *GRAPH, "-o", "qa.yaml", "--split", "value")
    assert made.exit_code == 0, made.output
    assert "29 questions of 7 templates" in made.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"qa.yaml", "qa-dev.yaml", "qa-test.yaml"}
    clean = call("dataset", "lint", "qa.yaml", *GRAPH, "--vocabulary", "vocabulary.json")
    assert (clean.exit_code, "29 queries checked against" in clean.stdout) == (0, True)
    assert call("dataset", "refresh", "qa.yaml", *GRAPH).exit_code == 0
    text = Path("qa.yaml").read_text(encoding="utf-8")
    wrong = text.replace("Conductor.length", "Conductor.lenght").replace('"1000"', '"999"')
    Path("qa.yaml").write_text(wrong, encoding="utf-8")
    found = call("dataset", "lint", "qa.yaml", "--vocabulary", "vocabulary.json", "--json")
    assert found.exit_code == 1
    problems = json.loads(found.stdout)["problems"]
    assert {problem["severity"] for problem in problems} == {"error"}
    assert "nearest: cim:Conductor.length" in problems[0]["what"]
    stale = call("dataset", "refresh", "qa.yaml", *GRAPH, "--write", "new.yaml")
    assert stale.exit_code == 1
    assert "2 stale, 3 empty." in stale.stdout
    assert '"999"' not in Path("new.yaml").read_text(encoding="utf-8")
    assert not list(tmp_path.glob("*.refresh.jsonl"))


def test_run_is_linted_with_syntax_checks_for_failed_queries_only(tmp_path: Path) -> None:
    unknown, broken = "SELECT ?x { ?x a <https://cim.ucaiug.io/ns#DCLine> }", "SELECT ?x { ?x a own:Line "
    sent = [("c1", unknown, "success"), ("c2", broken, "success"), ("c3", broken, None), ("c4", broken, "error")]
    steps = [
        {"name": "sparql_query", "id": name, "args": {"query": query}} | ({"status": status} if status else {})
        for name, query, status in sent
    ]
    line = json.dumps({"question_id": "q", "actual_steps": steps, "status": "success"})
    (tmp_path / "responses.jsonl").write_text(line + "\n", encoding="utf-8")
    found = call("dataset", "lint", str(tmp_path), *GRAPH)
    assert found.exit_code == 1
    assert re.search(r"responses.jsonl, line 1, question q, key c1: .*DCLine> is not a class", found.stdout)
    assert set(re.findall(r"key (c\d)", found.stdout)) == {"c1", "c4"}


CALLING = '''
import os
import httpx
from langchain_core.tools import tool

@tool
def sparql_query(query: str) -> str:
    """Ask the graph."""
    return httpx.post(os.environ["SPARQL_ENDPOINT"], data={"query": query}, trust_env=False).text

def agent(question: str) -> str:
    return sparql_query.invoke({"query": "SELECT ?kv { ?s <urn:grid#kv> ?kv }"})
'''
REPLAYED = '{"head": {"vars": ["kv"]}, "results": {"bindings": [{"kv": {"type": "literal", "value": "420"}}]}}'


@pytest.mark.full
def test_run_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "my_agent.py").write_text(CALLING, encoding="utf-8")
    question = {"id": "q", "question_text": "Q", "reference_steps": [[{"name": "sparql_query", "output": REPLAYED}]]}
    dataset = json.dumps([{"template_id": "t", "questions": [question]}])
    (tmp_path / "qa.json").write_text(dataset, encoding="utf-8")
    start = "import http.server,sys\n"
    answer = start + (
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        self.rfile.read(int(self.headers['Content-Length']))\n"
        f"        body = {REPLAYED!r}.encode()\n"
        "        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers()\n"
        "        self.wfile.write(body)\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), H)\n"
        "print(server.server_address[1], flush=True)\nserver.serve_forever()\n"
    )
    upstream = subprocess.Popen(
        [sys.executable, "-c", answer], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert upstream.stdout is not None
    url = f"http://127.0.0.1:{upstream.stdout.readline().strip()}/sparql"
    program = [sys.executable, "-m", "graphrag_eval_lc"]
    proxy = subprocess.Popen(
        [*program, "proxy", "--record", "calls.jsonl", "--endpoint", url],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert proxy.stdout is not None
    listening = re.search(r"http://\S+/sparql", proxy.stdout.readline())
    assert listening is not None
    run = [*program, "run", "qa.json", "--agent", "my_agent.py:agent", "--no-report", "-q"]
    recorded = subprocess.run(
        [*run, "-o", "recorded"], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**os.environ, "SPARQL_ENDPOINT": listening[0]},
    )  # fmt: skip
    assert "1.000" in recorded.stdout
    proxy.send_signal(signal.SIGINT)
    _, errors = proxy.communicate(timeout=30)
    assert (proxy.returncode, "1 call recorded" in errors) == (0, True)
    upstream.kill()
    upstream.communicate()
    with pytest.raises(httpx.HTTPError):
        httpx.get(url, trust_env=False)
    replayed = subprocess.run(
        [*run, "-o", "replayed", "--replay", "calls.jsonl"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert "1.000" in replayed.stdout
    assert "Proxy: 1 call replayed." in replayed.stderr
