"""Gold results queried from an oxigraph server during the import of a dataset."""

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

from graphrag_eval_lc import load_dataset, run_evaluation, validate_dataset
from graphrag_eval_lc.dataset.importing import ImportOptions, imported
from graphrag_eval_lc.run_folder import write_data

BINARY = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(BINARY is None, reason="there is no oxigraph binary (pip install oxigraph)"),
]

GRAPH = '@prefix : <urn:grid/> . :oslo :name "Oslo"@no ; :load 12.5 . :bergen :name "Bergen"@no ; :load 7 .'
QUERIES = {
    "names": "SELECT ?s ?name { ?s <urn:grid/name> ?name }",
    "count": "SELECT (COUNT(*) AS ?n) { ?s <urn:grid/load> ?load }",
    "is it": "ASK { <urn:grid/oslo> <urn:grid/load> ?load }",
    "none": "SELECT ?s { ?s <urn:grid/absent> ?o }",
    "wrong": "SELECT ?s { ?s :name ?o }",
}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [str(BINARY), "serve", "--bind", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(trust_env=False) as client:
            for _ in range(400):
                assert process.poll() is None
                try:
                    stored = client.post(f"{url}/store?default", content=GRAPH, headers={"Content-Type": "text/turtle"})
                except httpx.TransportError:
                    time.sleep(0.05)
                else:
                    assert stored.is_success, stored.text
                    break
        yield f"{url}/query"
    finally:
        process.kill()
        process.wait()


def sources(folder: Path) -> list[Path]:
    """Return a table without results, and a QALD dataset with empty or missing gold results."""
    table, qald = folder / "table.csv", folder / "qald.json"
    table.write_text(
        "id,question,sparql\n" + "".join(f"{name},What of {name}?,{query}\n" for name, query in QUERIES.items())
    )
    texts = [{"language": "en", "string": "What?"}]
    questions = [
        {"id": name, "question": texts, "query": {"sparql": query}, "answers": [{"head": {}, "results": {}}]}
        for name, query in QUERIES.items()
    ]
    qald.write_text(json.dumps({"questions": questions}))
    return [table, qald]


@pytest.mark.parametrize("place", [0, 1])
def test_server_results_become_the_gold_results(tmp_path: Path, endpoint: str, place: int) -> None:
    source = sources(tmp_path)[place]
    found = imported(source, ImportOptions(endpoint=endpoint))
    write_data(tmp_path / "qa.yaml", found.templates)
    templates = load_dataset(tmp_path / "qa.yaml")
    assert validate_dataset(templates) == []
    questions = {question["id"]: question for template in templates for question in template["questions"]}
    assert [name for name, each in questions.items() if "reference_steps" in each] == ["names", "count", "is it"]
    [problem] = found.problems
    assert problem.question_id == "wrong"
    assert "status 400" in problem.what
    [empty] = [note for note in found.notes if note.startswith("The gold is empty")]
    assert "none" in empty
    responses = []
    with httpx.Client(trust_env=False) as client:
        for name in ("names", "count"):
            asked = client.get(endpoint, params={"query": QUERIES[name]}, headers={"Accept": "text/csv, */*;q=0.1"})
            step = {"name": "sparql_query", "args": {}, "id": "c", "status": "success", "output": asked.text}
            responses.append({"question_id": name, "actual_steps": [step]})
    scores = {each["question_id"]: each.get("steps_score") for each in run_evaluation(templates, responses)}
    assert [scores[name] for name in ("names", "count")] == [1.0, 1.0]
