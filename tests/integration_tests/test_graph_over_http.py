"""The graph behind an oxigraph server: vocabulary, refresh, generation, recording and replaying over real HTTP."""

import asyncio
import gzip
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

pytest.importorskip("rdflib")

from graphrag_eval_lc.demo import DATASET_PATH, GRAPH_PATH, TEMPLATES_PATH, VOCABULARY_PATH
from graphrag_eval_lc.graph.generate import generate_dataset, load_templates
from graphrag_eval_lc.graph.refresh import refresh_dataset
from graphrag_eval_lc.graph.replay import ReplayProxy
from graphrag_eval_lc.graph.sources import GraphSource
from graphrag_eval_lc.graph.vocabulary import load_vocabulary, read_vocabulary

BINARY = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(BINARY is None, reason="there is no oxigraph binary (pip install oxigraph)"),
]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = tmp_path_factory.mktemp("store")
    grid = store / "grid.ttl"
    grid.write_bytes(gzip.decompress(GRAPH_PATH.read_bytes()))
    subprocess.run(
        [str(BINARY), "load", "--location", str(store / "db"), "--file", str(grid)], check=True, capture_output=True
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(BINARY), "serve-read-only", "--location", str(store / "db"), "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/query"
    try:
        for _ in range(400):
            assert process.poll() is None
            try:
                httpx.get(url, params={"query": "ASK {}"}, trust_env=False)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield url
    finally:
        process.kill()
        process.wait()


async def test_vocabulary(endpoint: str) -> None:
    async with GraphSource(endpoint).open() as graph:
        assert (await read_vocabulary(graph)).digest == load_vocabulary(VOCABULARY_PATH).digest


def test_refresh_is_recorded_and_replayed(endpoint: str, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with ReplayProxy(calls, endpoint=endpoint) as proxy:
        recorded = asyncio.run(refresh_dataset(DATASET_PATH, GraphSource(proxy.url)))
        assert proxy.counts.recorded == 29
    assert recorded.is_current
    with ReplayProxy(calls, replays=True) as proxy:
        url = proxy.url.replace("/sparql", "/query")
        replayed = asyncio.run(refresh_dataset(DATASET_PATH, GraphSource(url)))
        assert (proxy.counts.replayed, proxy.counts.missing) == (29, {})
    assert [each.results for each in replayed.references] == [each.results for each in recorded.references]


def test_generated_dataset_is_that_of_the_file(endpoint: str) -> None:
    made = [
        asyncio.run(generate_dataset(load_templates(TEMPLATES_PATH), source, max_concurrency=8))
        for source in (GraphSource(endpoint), GraphSource(file=GRAPH_PATH))
    ]
    assert json.dumps(made[0].templates) == json.dumps(made[1].templates)
