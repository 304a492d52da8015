"""Graphs behind real servers: vocabulary, lint, refresh, generation, recording and replay over HTTP."""

import asyncio
import gzip
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

pytest.importorskip("rdflib")

from graphrag_eval_lc.demo import DATASET_PATH, GRAPH_PATH, TEMPLATES_PATH, VOCABULARY_PATH
from graphrag_eval_lc.graph.generate import generate_dataset, load_templates
from graphrag_eval_lc.graph.lint_files import lint_dataset
from graphrag_eval_lc.graph.refresh import refresh_dataset
from graphrag_eval_lc.graph.replay import ReplayProxy
from graphrag_eval_lc.graph.sources import GraphSource
from graphrag_eval_lc.graph.vocabulary import load_vocabulary, read_vocabulary
from graphrag_eval_lc.matching.rows import compare_sparql_results

pytestmark = pytest.mark.full

VIRTUOSO_INI = """
[Database]
DatabaseFile = {folder}/virtuoso.db
ErrorLogFile = {folder}/virtuoso.log
LockFile = {folder}/virtuoso.lck
TransactionFile = {folder}/virtuoso.trx
[TempDatabase]
DatabaseFile = {folder}/temp.db
TransactionFile = {folder}/temp.trx
[Parameters]
ServerPort = 127.0.0.1:{sql_port}
DirsAllowed = /
[HTTPServer]
ServerPort = 127.0.0.1:{port}
ServerRoot = {folder}
[SPARQL]
ResultSetMaxRows = 10000
"""


def binary(name: str, package: str) -> str:
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} ({package})")
    return found


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(command: list[str], url: str, folder: Path) -> Iterator[None]:
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            assert process.poll() is None
            try:
                httpx.get(url, params={"query": "ASK {}"}, trust_env=False)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield
    finally:
        process.kill()
        process.wait()


@contextmanager
def oxigraph(grid: Path, folder: Path) -> Iterator[str]:
    server = binary("oxigraph", "pip install oxigraph")
    store = ["--location", str(folder / "db")]
    subprocess.run([server, "load", *store, "--file", str(grid)], check=True, capture_output=True)
    address = f"127.0.0.1:{free_port()}"
    with serving([server, "serve-read-only", *store, "--bind", address], f"http://{address}/query", folder):
        yield f"http://{address}/query"


@contextmanager
def virtuoso(grid: Path, folder: Path) -> Iterator[str]:
    server, client = binary("virtuoso-t", "Debian: virtuoso-opensource-7"), binary("isql-vt", "virtuoso-opensource-7")
    port, sql_port = free_port(), free_port()
    ini = VIRTUOSO_INI.format(folder=folder, port=port, sql_port=sql_port)
    (folder / "virtuoso.ini").write_text(ini, encoding="utf-8")
    url = f"http://127.0.0.1:{port}/sparql"
    with serving([server, "+foreground", "+configfile", "virtuoso.ini"], url, folder):
        load = f"exec=DB.DBA.TTLP_MT (file_to_string_output ('{grid}'), '', 'urn:grid')"
        subprocess.run([client, f"127.0.0.1:{sql_port}", "dba", "dba", load], check=True, capture_output=True)
        yield url


SERVERS: dict[str, Callable[[Path, Path], object]] = {"oxigraph": oxigraph, "virtuoso": virtuoso}


@pytest.fixture(scope="module", params=SERVERS)
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp(request.param)
    grid = folder / "grid.ttl"
    grid.write_bytes(gzip.decompress(GRAPH_PATH.read_bytes()))
    with SERVERS[request.param](grid, folder) as url:  # type: ignore[attr-defined]
        yield url


async def test_vocabulary(endpoint: str) -> None:
    async with GraphSource(endpoint).open() as graph:
        found = await read_vocabulary(graph)
    assert found.complete
    for part in ("classes", "properties", "uses"):
        terms = [  # Virtuoso has additional classes, and triples about RDF's properties
            {name: each for name, each in getattr(vocabulary, part).items() if name.startswith("https://cim")}
            for vocabulary in (load_vocabulary(VOCABULARY_PATH), found)
        ]
        assert terms[0] == terms[1] != {}
    assert lint_dataset(DATASET_PATH, found, prefixes={}) == (29, [])


def test_refresh_is_recorded_and_replayed(endpoint: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with ReplayProxy(calls, endpoint=endpoint) as proxy:
        recorded = asyncio.run(refresh_dataset(DATASET_PATH, GraphSource(proxy.url)))
        assert proxy.counts.recorded == 29
    assert recorded.is_current
    with ReplayProxy(calls, replays=True) as proxy:
        url = proxy.url.replace("/sparql", httpx.URL(endpoint).path)
        replayed = asyncio.run(refresh_dataset(DATASET_PATH, GraphSource(url)))
        assert (proxy.counts.replayed, proxy.counts.missing) == (29, {})
    assert [each.results for each in replayed.references] == [each.results for each in recorded.references]


def test_generated_dataset_equals_that_of_the_file(endpoint: str) -> None:
    made = [
        asyncio.run(generate_dataset(load_templates(TEMPLATES_PATH), source, max_concurrency=8)).templates
        for source in (GraphSource(endpoint), GraphSource(file=GRAPH_PATH))
    ]
    outputs: list[list[str]] = []
    for templates in made:
        steps = [
            step
            for template in templates
            for question in template["questions"]
            for group in question["reference_steps"]
            for step in group
            if step["name"] == "sparql_query"
        ]
        outputs.append([step.pop("output") for step in steps])
    assert json.dumps(made[0]) == json.dumps(made[1])
    # Stores have several spellings for the same results, such as typed-literal.
    pairs = zip(*outputs, strict=True)
    assert all(compare_sparql_results(one, other, strict=True, ordered=True).score == 1 for one, other in pairs)
