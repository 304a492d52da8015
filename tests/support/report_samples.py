"""Results of a question about a graph, scored as in a run, for the report's tests."""

import io
import json
from typing import Any

from rich.console import Console, RenderableType

from graphrag_eval_lc import run_evaluation
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import load_config
from graphrag_eval_lc.view.samples import SeenSample, seen_samples

IRI = "urn:oslo"


def table(*values: str) -> str:
    """Return SPARQL results with one column of strings."""
    bindings = [{"name": {"type": "literal", "value": value}} for value in values]
    return json.dumps({"head": {"vars": ["name"]}, "results": {"bindings": bindings}})


def step(name: str, output: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a tool call. Without an output it failed."""
    ended = {"status": "success", "output": output} if output is not None else {"status": "error", "error": "away"}
    return {"name": name, "args": {}, "id": f"call_{name}", **ended, **more}


QUESTION = {
    "id": "q",
    "question_text": "Which transformers are in OSLO?",
    "reference_answer": "T1 and T2.",
    "reference_steps": [
        [{"name": "iri_discovery", "output": IRI}],
        [
            {
                "name": "sparql_query",
                "args": {"query": f"SELECT ?name {{ <{IRI}> ?p ?name }}"},
                "output": table("T1", "T2"),
                "output_media_type": "application/sparql-results+json",
            }
        ],
    ],
}


def result(*steps: dict[str, Any], config: Any = None, **more: Any) -> dict[str, Any]:
    """Return the question's result for these steps. Further keys come from a judge or a run."""
    dataset: Any = [{"template_id": "t", "questions": [QUESTION]}]
    response: Any = {"question_id": "q", "actual_answer": "T1.", "actual_steps": list(steps)}
    if "error" in more:
        response["error"] = more["error"]
    return {**run_evaluation(dataset, [response], config)[0], **more}


def sample(*steps: dict[str, Any], config: Any = None, **more: Any) -> SeenSample:
    """Return the sections of a report that show this result."""
    found = result(*steps, config=config, **more)
    return next(seen_samples([found], Metrics(load_config(config))))


def console_text(renderable: RenderableType, width: int = 140) -> str:
    """Return what a terminal shows."""
    shown = io.StringIO()
    Console(file=shown, width=width).print(renderable)
    return shown.getvalue()
