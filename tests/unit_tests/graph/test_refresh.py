"""Re-running references: which are stale, and a dataset in which only the outputs change."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

pytest.importorskip("pyoxigraph")

from graphrag_eval_lc.errors import DatasetError, OptionError
from graphrag_eval_lc.graph.refresh import Refresh, refresh_dataset, refresh_summary
from graphrag_eval_lc.graph.sources import GraphSource

from .conftest import Endpoint, results

QUERY = "SELECT ?name ?kv { ?s <urn:grid#name> ?name ; <urn:grid#kv> ?kv } ORDER BY ?name"
NOW = ({"name": "Bergen", "kv": "300"}, {"name": "Oslo", "kv": "420"})


def dataset_of(tmp_path: Path, output: str, query: str = QUERY, **step: object) -> Path:
    steps = [[{"name": "sparql_query", "args": {"query": query}, "output": output} | step]]
    path = tmp_path / "qa.json"
    questions = [{"id": "q1", "question_text": "Which?", "reference_steps": steps}]
    path.write_text(json.dumps([{"template_id": "t", "questions": questions}]), encoding="utf-8")
    return path


def refreshed(dataset: Path, source: GraphSource, **options: object) -> Refresh:
    return asyncio.run(refresh_dataset(dataset, source, **options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("output", "query", "step", "outcome"),
    [
        (results(*NOW), QUERY, {}, ("same", "")),
        (results(*reversed(NOW)), QUERY, {}, ("same", "")),
        (results(*reversed(NOW)), QUERY, {"ordered": True}, ("stale", "order")),
        (results(NOW[0], {"name": "Oslo", "kv": "300"}), QUERY, {}, ("stale", "(Oslo, 300)")),
        (
            results(NOW[0], {"name": "Oslo", "kv": "300"}),
            QUERY,
            {"required_columns": ["name"]},
            ("stale", "(Oslo, 300)"),
        ),
        (results({"label": "Oslo", "kv": "420"}, names="label kv"), QUERY, {}, ("stale", "name new; label gone")),
        (results(*NOW, NOW[0]), QUERY, {}, ("stale", "1 of 3 rows is missing")),
        (results(*NOW), "SELECT ?name ?kv { ?s <urn:grid#gone> ?name , ?kv }", {}, ("empty", "there are no rows")),
        (results(), "SELECT ?name ?kv { ?s <urn:grid#gone> ?name , ?kv }", {}, ("same", "")),
        (results(), "SELECT ?name { ?s <urn:grid#gone> ?name }", {}, ("empty", "there are no rows")),
        (results(*NOW), "SELECT ?name { ?s <urn:grid#name ?name }", {}, ("failed", "error at 1:")),
        ('{"head":{},"boolean":true}', "ASK { ?s <urn:grid#kv> 420 }", {}, ("same", "")),
        ('{"head":{},"boolean":true}', "ASK { ?s <urn:grid#kv> 421 }", {}, ("stale", "")),
        ("no results", QUERY, {}, ("stale", "not JSON")),
    ],
)
def test_state(
    tmp_path: Path, grid: Path, output: str, query: str, step: dict[str, object], outcome: tuple[str, str]
) -> None:
    refresh = refreshed(dataset_of(tmp_path, output, query, **step), GraphSource(file=grid))
    (only,) = refresh.references
    assert only.state == outcome[0]
    assert outcome[1] in only.reason
    assert refresh.is_current is (outcome[0] == "same")
    assert ("all results are the same" in refresh_summary(refresh)) is refresh.is_current


YAML = f"""\
# A dataset.
- template_id: t   # of substations
  questions:
    - id: literal
      question_text: Which?
      reference_steps:
        - - name: sparql_query
            args: &args
              query: >-
                {QUERY}
            output: |-  # of last year
              {results({"name": "Oslo", "kv": "1"})}
            # a comment on columns
            required_columns: [name]
    - id: flow
      question_text: Which?
      reference_steps: [[{{name: sparql_query, args: *args, output: '{results()}'}}]]
    - id: mapping
      question_text: Which?
      reference_steps:
        - - output:
              head: {{vars: [name, kv]}}
              results:
                bindings: []
            args: *args
            name: sparql_query  # at the end
    - id: same
      question_text: Which?
      reference_steps:
        - - {{name: sparql_query, args: *args, output: '{results(*NOW)}', extra: kept}}
        - - {{name: autocomplete, output: untouched}}
"""


def test_only_outputs_change_in_yaml(tmp_path: Path, grid: Path) -> None:
    path = tmp_path / "qa.yaml"
    path.write_text(YAML, encoding="utf-8")
    refresh = refreshed(path, GraphSource(file=grid))
    assert [(each.reference.question_id, each.state) for each in refresh.references] == [
        ("literal", "stale"),
        ("flow", "stale"),
        ("mapping", "stale"),
        ("same", "same"),
    ]
    assert refresh.references[0].reference.line == 11
    assert refresh.without_query == 1
    text = refresh.new_text()
    unchanged = (
        "# A dataset.",
        "# of substations",
        "&args",
        "*args",
        "# a comment on columns",
        "# at the end",
        "extra: kept",
    )
    assert all(each in text for each in unchanged)
    steps = [question["reference_steps"][0][0] for question in yaml.safe_load(text)[0]["questions"]]
    assert all(json.loads(step["output"]) == json.loads(results(*NOW)) for step in steps)
    assert set(steps[0]["output_source"]) == {"endpoint", "date", "sha256"}
    assert "output_source" not in steps[3]
    # Once written, nothing is stale and nothing changes.
    path.write_text(text, encoding="utf-8")
    second = refreshed(path, GraphSource(file=grid))
    assert second.is_current
    assert second.new_text() == text


def test_existing_output_source_is_replaced(tmp_path: Path, grid: Path) -> None:
    path = dataset_of(tmp_path, results(), output_source={"endpoint": "old", "date": "2020-01-01", "sha256": "0"})
    (question,) = json.loads(refreshed(path, GraphSource(file=grid)).new_text())[0]["questions"]
    assert question["reference_steps"][0][0]["output_source"]["endpoint"] == str(grid)


@pytest.mark.parametrize(
    "dataset", ["template_id: t", "- 5", "- questions: [7]", "- questions: [{id: q, reference_steps: 5}]", "- []"]
)
def test_malformed_datasets_do_not_crash(tmp_path: Path, grid: Path, dataset: str) -> None:
    path = tmp_path / "qa.yaml"
    path.write_text(dataset, encoding="utf-8")
    if dataset.startswith("-"):
        assert refreshed(path, GraphSource(file=grid)).references == ()
    else:
        with pytest.raises(DatasetError, match="not a list of templates"):
            refreshed(path, GraphSource(file=grid))


def test_reference_without_an_output_is_reported_but_unchanged(tmp_path: Path, grid: Path) -> None:
    path = dataset_of(tmp_path, results())
    text = path.read_text(encoding="utf-8").replace('"output":', '"expected":')
    path.write_text(text, encoding="utf-8")
    refresh = refreshed(path, GraphSource(file=grid))
    assert refresh.number("stale") == 1
    assert refresh.new_text() == text


def test_shared_output_is_rejected(tmp_path: Path, grid: Path) -> None:
    path = tmp_path / "qa.yaml"
    shared = f"&shared '{results()}'"
    path.write_text(
        "- template_id: t\n  questions:\n  - id: q\n    question_text: Q\n    reference_steps:\n"
        f"    - - {{name: sparql_query, args: {{query: '{QUERY}'}}, output: {shared}}}\n"
        "    - - {name: other, output: *shared}\n",
        encoding="utf-8",
    )
    with pytest.raises(DatasetError, match="without changing other values"):
        refreshed(path, GraphSource(file=grid)).new_text()


def test_endpoint_is_retried_and_a_failure_affects_one_reference(tmp_path: Path, endpoint: Endpoint) -> None:
    tries = iter([(503, "busy")])
    endpoint.fails = lambda query: next(tries, None)
    refresh = refreshed(dataset_of(tmp_path, results(*NOW)), GraphSource(endpoint.url))
    assert refresh.is_current
    assert len(endpoint.queries) == 2
    for status, text in ((500, "<html>out of memory</html>"), (401, "who are you"), (200, "<html>")):
        endpoint.fails = lambda _, found=(status, text): found  # type: ignore[misc]
        (only,) = refreshed(dataset_of(tmp_path, results(*NOW)), GraphSource(endpoint.url)).references
        assert only.state == "failed"
        assert text[:6] in only.reason


def test_graph_or_endpoint_is_required(tmp_path: Path) -> None:
    dataset = dataset_of(tmp_path, results())
    with pytest.raises(OptionError, match="no graph is named"):
        refreshed(dataset, GraphSource())
    with pytest.raises(DatasetError, match="cannot be reached"):
        refreshed(dataset, GraphSource("http://127.0.0.1:9/sparql"))


KILLED = """
import asyncio, sys
from pathlib import Path
from graphrag_eval_lc.graph.refresh import refresh_dataset
from graphrag_eval_lc.graph.sources import GraphSource
asyncio.run(refresh_dataset(Path(sys.argv[1]), GraphSource(sys.argv[2]), state=Path(sys.argv[3]), max_concurrency=1))
"""


@pytest.mark.full
def test_killed_refresh_resumes(tmp_path: Path, endpoint: Endpoint) -> None:
    queries = [f"SELECT ?name ?kv {{ ?s <urn:grid#name> ?name ; <urn:grid#kv> ?kv }} LIMIT {n}" for n in range(1, 21)]
    steps = [{"name": "sparql_query", "args": {"query": query}, "output": results()} for query in queries]
    questions = [{"id": str(n), "question_text": "Q", "reference_steps": [[step]]} for n, step in enumerate(steps)]
    dataset, state = tmp_path / "qa.json", tmp_path / "state.jsonl"
    dataset.write_text(json.dumps([{"template_id": "t", "questions": questions}]), encoding="utf-8")
    endpoint.fails = lambda _: time.sleep(0.05)  # type: ignore[func-returns-value]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(dataset), endpoint.url, str(state)])
    while len(endpoint.queries) < 5:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = len(endpoint.queries)
    with state.open("ab") as file:
        file.write(b'{"key": "cut off')
    refresh = refreshed(dataset, GraphSource(endpoint.url), state=state)
    assert refresh.number("stale") == 20
    sent = len(endpoint.queries) - before
    assert 20 - before <= sent <= 21 - before + 1
    assert refreshed(dataset, GraphSource(endpoint.url), state=state).number("stale") == 20
    assert len(endpoint.queries) == before + sent
