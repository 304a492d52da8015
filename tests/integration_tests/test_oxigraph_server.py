"""An oxigraph server over HTTP: results in every format equal those in JSON."""

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.matching.rows import SPARQL_RESULTS, compare_sparql_results, read_sparql_results

BINARY = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")

pytestmark = pytest.mark.skipif(BINARY is None, reason="there is no oxigraph binary (pip install oxigraph)")

GRAPH = r"""
@prefix : <urn:grid/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:oslo :name "Oslo, \"the\" capital"@no ; :load 12.50 ; :count 3 ; :share 1.5e-3 .
:oslo :since "2020-01-31T12:00:00Z"^^xsd:dateTime .
:bergen :name "Bergen\nby the sea\tand hills" ; :load 7 ; :day "2021-05-17"^^xsd:date ; :open true .
:tromsø :name "Tromsø \\ 北\U0001F600" ; :part [ :name "a part" ], [ :name "another, part" ] ; :note "" .
"""
SELECTS = {
    "texts": "SELECT ?s ?name { ?s <urn:grid/name> ?name }",
    "all": "SELECT ?s ?p ?o { ?s ?p ?o } ORDER BY ?s ?p",
    "numbers": """SELECT ?s ?load ?count ?share {
        ?s <urn:grid/load> ?load OPTIONAL { ?s <urn:grid/count> ?count ; <urn:grid/share> ?share } }""",
    "times": """SELECT ?s ?since ?day {
        ?s <urn:grid/load> ?x OPTIONAL { ?s <urn:grid/since> ?since } OPTIONAL { ?s <urn:grid/day> ?day } }""",
    "one column": "SELECT ?s { ?s <urn:grid/load> ?x }",
    "one column of texts": "SELECT ?name { ?s <urn:grid/name> ?name }",
    "blank nodes": "SELECT ?s ?part ?name { ?s <urn:grid/part> ?part . ?part <urn:grid/name> ?name }",
    "no rows": "SELECT ?s ?o { ?s <urn:grid/absent> ?o }",
}
MEDIA_TYPES = {
    "json": SPARQL_RESULTS,
    "xml": "application/sparql-results+xml",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
}


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.Client]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(BINARY), "serve", "--bind", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
            _wait_for(client, process)
            stored = client.post("/store?default", content=GRAPH.encode(), headers={"Content-Type": "text/turtle"})
            assert stored.status_code < 300, stored.text
            yield client
    finally:
        process.kill()
        process.wait()


def _wait_for(client: httpx.Client, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(400):
        assert process.poll() is None
        try:
            client.get("/")
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the server does not answer")


def answer(server: httpx.Client, query: str, format: str) -> str:
    response = server.get("/query", params={"query": query}, headers={"Accept": MEDIA_TYPES[format]})
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"].startswith(MEDIA_TYPES[format])
    return response.content.decode()


@pytest.mark.parametrize("format", ["json", "xml", "tsv"])
@pytest.mark.parametrize("name", SELECTS)
def test_select_in_a_typed_format_has_the_terms_of_the_json(server: httpx.Client, name: str, format: Any) -> None:
    reference, output = answer(server, SELECTS[name], "json"), answer(server, SELECTS[name], format)
    for found in (read_sparql_results(output), read_sparql_results(output, format=format)):
        compared = compare_sparql_results(reference, found, ignore_duplicates=False, strict=True)
        assert compared.score == 1.0, compared.reason


@pytest.mark.parametrize("name", SELECTS)
def test_select_in_csv_has_the_values_of_the_json(server: httpx.Client, name: str) -> None:
    reference, output = answer(server, SELECTS[name], "json"), answer(server, SELECTS[name], "csv")
    compared = compare_sparql_results(reference, read_sparql_results(output, format="csv"), ignore_duplicates=False)
    # In CSV, the note's empty string looks like an unbound cell.
    assert compared.score == (0.0 if name == "all" else 1.0), compared.reason


@pytest.mark.parametrize("name", [name for name in SELECTS if name not in ("all", "no rows")])
def test_csv_is_recognised_if_it_has_rows(server: httpx.Client, name: str) -> None:
    compared = compare_sparql_results(answer(server, SELECTS[name], "json"), answer(server, SELECTS[name], "csv"))
    assert compared.score == 1.0, compared.reason
    assert compared.reason.endswith("It was read from W3C CSV.")


@pytest.mark.parametrize("format", ["json", "xml"])
@pytest.mark.parametrize("iri", ["urn:grid/oslo", "urn:grid/paris"])
def test_ask_is_read_in_json_and_xml(server: httpx.Client, format: str, iri: str) -> None:
    found = read_sparql_results(answer(server, f"ASK {{ <{iri}> ?p ?o }}", format))
    assert found.boolean is iri.endswith("oslo")


@pytest.mark.parametrize("format", ["xml", "csv", "tsv"])
def test_truncated_answers_are_undecided_and_never_right(server: httpx.Client, format: str) -> None:
    reference, whole = answer(server, SELECTS["texts"], "json"), answer(server, SELECTS["texts"], format)
    step = {"name": "sparql_query", "output": reference, "output_media_type": SPARQL_RESULTS}
    for length in range(10, len(whole) - 2, 7):
        actual = {"name": "sparql_query", "id": "c1", "status": "success", "output": whole[:length]}
        kept = match_steps([[step]], [{**actual, "full_length": len(whole)}])
        assert kept.steps_score == 0.0
        assert "cut at" in kept.diagnosis[0][0].reason
        assert kept.unreadable == {}
