"""Loading a large dataset compared with bare PyYAML, and scoring many responses compared with graphrag-eval.

Run it as ``python benchmarks/load_and_score.py``. It generates the data (5,000 questions; 10,000 responses of 4 steps
with 10 to 200 rows), loads and scores them, and scores the same files with graphrag-eval in a separate Python 3.12
environment in a temporary folder. Three columns are required, of five that the agent's queries return; the more extra
columns there are, the longer graphrag-eval tries (``--more-columns 0`` leaves just the three). ``--python`` names that
Python 3.12, ``--venv`` keeps its environment, ``--no-graphrag-eval`` skips it, ``--quick`` uses a tenth of the data.
The exit code is 1 if a goal is missed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from _graphrag_eval_environment import graphrag_eval_python

from graphrag_eval_lc import load_dataset, load_responses, run_evaluation
from graphrag_eval_lc.run_folder import yaml_text

MORE_COLUMNS = {
    "type": {"type": "uri", "value": "urn:cim:ACLineSegment"},
    "label": {"type": "literal", "value": "AC line"},
}
LOADING_GOAL = 1.25  # upper limit relative to bare PyYAML
SCORING_GOAL = 3.0  # at least this many times as fast as graphrag-eval

THEIR_SCORING = """
import asyncio, json, sys, time, yaml
from graphrag_eval import run_evaluation
dataset = yaml.load(open(sys.argv[1]), Loader=yaml.CSafeLoader)
responses = {}
for line in open(sys.argv[2]):
    response = json.loads(line)
    responses[response["question_id"]] = response
started = time.process_time()
results = asyncio.run(run_evaluation(dataset, responses))
print(json.dumps([time.process_time() - started, sum(result["steps_score"] for result in results)]))
"""


def select(random_: random.Random, rows: int) -> dict[str, Any]:
    """Return SPARQL results with an IRI, a name and a number in each row."""
    number = "http://www.w3.org/2001/XMLSchema#decimal"
    bindings = [
        {
            "line": {"type": "uri", "value": f"urn:uuid:{random_.getrandbits(128):032x}"},
            "name": {"type": "literal", "value": f"LINE {random_.randrange(10_000)}"},
            "length": {"type": "literal", "datatype": number, "value": f"{random_.uniform(1, 300):.2f}"},
        }
        for _ in range(rows)
    ]
    return {"head": {"vars": ["line", "name", "length"]}, "results": {"bindings": bindings}}


def question(random_: random.Random, identifier: str) -> dict[str, Any]:
    """Return a question whose last step has 10 to 200 rows."""
    rows = select(random_, random_.randint(10, 200))
    iri = f"urn:uuid:{random_.getrandbits(128):032x}"
    return {
        "id": identifier,
        "question_text": f"Which lines are connected to substation {identifier}?",
        "reference_steps": [
            [{"name": "iri_discovery", "args": {"query": identifier}, "output": iri, "output_media_type": "text/uri"}],
            [
                {
                    "name": "sparql_query",
                    "args": {"query": f"SELECT ?line ?name ?length WHERE {{ ?line :from <{iri}> }}"},
                    "output": json.dumps(rows),
                    "output_media_type": "application/sparql-results+json",
                    "required_columns": ["line", "name", "length"],
                }
            ],
        ],
    }


def as_agents_write(random_: random.Random, results: dict[str, Any], more_columns: int) -> dict[str, Any]:
    """Return the same rows shuffled, with other column names and some extra columns."""
    names = {"name": "lineName", "line": "l", "length": "km"}
    more = dict(list(MORE_COLUMNS.items())[:more_columns])
    bindings = [{names[name]: term for name, term in row.items()} | more for row in results["results"]["bindings"]]
    random_.shuffle(bindings)
    return {"head": {"vars": [*names.values(), *more]}, "results": {"bindings": bindings}}


def response(random_: random.Random, asked: dict[str, Any], more_columns: int) -> dict[str, Any]:
    """Return a response of four steps: a search, a failed query, a wrong one, and in three of four cases a right one.

    The agent's queries have other column names, and some extra columns.
    """
    reference = json.loads(asked["reference_steps"][1][0]["output"])
    iri = asked["reference_steps"][0][0]["output"]
    found = {"head": {"vars": ["iri"]}, "results": {"bindings": [{"iri": {"type": "uri", "value": iri}}]}}
    right = as_agents_write(random_, reference, more_columns)
    if random_.random() < 0.25:
        right["results"]["bindings"].pop()
    wrong = as_agents_write(random_, select(random_, random_.randint(10, 200)), more_columns)
    outputs = [("autocomplete_search", found), ("sparql_query", None), ("sparql_query", wrong), ("sparql_query", right)]
    steps = [
        {"name": name, "args": {"query": f"query {number}"}, "id": f"call_{number}", "status": "success"}
        | ({"output": json.dumps(output, indent=1)} if output else {"status": "error", "error": "malformed query"})
        for number, (name, output) in enumerate(outputs)
    ]
    for step in steps:
        step.setdefault("output", "")  # graphrag-eval also reads it for failed steps
    return {"question_id": asked["id"], "actual_answer": "…", "actual_steps": steps, "elapsed_sec": 1.0}


def write_data(folder: Path, questions: int, more_columns: int) -> tuple[Path, Path]:
    """Write dataset and responses, and return their paths."""
    random_ = random.Random(7)
    asked = [question(random_, f"q{number}") for number in range(questions)]
    size = max(1, questions // 50)
    templates = [
        {"template_id": f"t{start}", "questions": asked[start : start + size]} for start in range(0, questions, size)
    ]
    dataset, responses = folder / f"qa-{questions}.yaml", folder / f"responses-{questions}.jsonl"
    dataset.write_text(yaml_text(templates), encoding="utf-8")
    with responses.open("w", encoding="utf-8") as file:
        for each in asked:
            file.write(json.dumps(response(random_, each, more_columns)) + "\n")
    return dataset, responses


def cpu_seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    """Return the lowest CPU time of a few repeats."""
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def measure_loading(dataset: Path) -> bool:
    """Print how long loading takes, and return whether the goal is met."""

    def bare() -> Any:
        return yaml.load(dataset.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)

    theirs, ours = cpu_seconds(bare, 3), cpu_seconds(lambda: load_dataset(dataset), 3)
    print(
        f"Loading {dataset.stat().st_size / 1e6:.0f} MB of YAML: load_dataset {ours:.2f} s, bare PyYAML {theirs:.2f} s"
    )
    return verdict(f"loading at most {LOADING_GOAL} times bare PyYAML", ours / theirs, ours / theirs <= LOADING_GOAL)


def measure_scoring(dataset: Path, responses: Path, python: Path | None) -> bool:
    """Print how long scoring takes, and return whether the goal is met."""
    templates, recorded = load_dataset(dataset), load_responses(responses)
    scores: list[float] = []
    ours = cpu_seconds(
        lambda: scores.append(sum(result["steps_score"] for result in run_evaluation(templates, recorded)))
    )
    print(
        f"Scoring {len(recorded)} responses ({responses.stat().st_size / 1e6:.0f} MB): {ours:.2f} s, sum {scores[0]:g}"
    )
    if python is None:
        return True
    command = [str(python), "-c", THEIR_SCORING, str(dataset), str(responses)]
    theirs, their_sum = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(f"graphrag-eval: {theirs:.2f} s, sum {their_sum:g} (all groups; the diagnosis is ours alone)")
    return verdict(f"scoring at least {SCORING_GOAL} times as fast", theirs / ours, theirs / ours >= SCORING_GOAL)


def verdict(goal: str, ratio: float, is_met: bool) -> bool:
    """Print a goal with its ratio."""
    print(f"  goal, {goal}: {ratio:.2f} times, {'met' if is_met else 'NOT MET'}")
    return is_met


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", help="a Python 3.12")
    parser.add_argument("--venv", type=Path, help="where graphrag-eval's environment is made and kept")
    parser.add_argument("--no-graphrag-eval", action="store_true", help="do not run graphrag-eval")
    parser.add_argument(
        "--more-columns", type=int, default=2, choices=range(3), help="columns that no reference asks for (default: 2)"
    )
    parser.add_argument("--quick", action="store_true", help="take a tenth of the data")
    options = parser.parse_args()
    scale = 10 if options.quick else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = None
        if not options.no_graphrag_eval:
            python = graphrag_eval_python(options.venv or folder / "venv", options.python)
        loading, _ = write_data(folder, 5_000 // scale, options.more_columns)
        is_met = measure_loading(loading)
        is_met &= measure_scoring(*write_data(folder, 10_000 // scale, options.more_columns), python)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
