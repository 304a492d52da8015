"""The time to compare many large results: in one process, and with workers of a Ray cluster.

Run it as ``python benchmarks/scoring_engine.py``. 2,000 recorded responses are scored, each with a result of 200 rows
and 4 columns that does not match its reference: first in one process, then with 1 and 2 workers of a Ray cluster on
this machine. Starting cluster and workers is shown separately: the time to score 2 responses. The CPU time of the main
process, the driver, is counted too; it reads, sends and writes everything. Without Ray its rows are skipped.
``--quick`` scores 400 responses. The exit code is 1 if two workers, on a machine with one processor for each and one
for the driver, are not at least 1.5 times as fast as one process.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import Any, NamedTuple

from graphrag_eval_lc import score_responses

RESPONSES, ROWS = 2_000, 200
COLUMNS = ("item", "name", "size", "day")
GAIN_GOAL = 1.5


def result(of: int, changed: int = -1) -> str:
    """Return a SPARQL result in which row ``changed`` differs."""
    rows = [
        {
            "item": {"type": "uri", "value": f"http://example.org/item/{of}/{row}"},
            "name": {"type": "literal", "value": f"Item {row * 7919 % 503}{' x' if row == changed else ''}"},
            "size": {
                "type": "literal",
                "value": f"{row * 31 % 97}.{row % 10}0",
                "datatype": "http://www.w3.org/2001/XMLSchema#decimal",
            },
            "day": {
                "type": "literal",
                "value": f"2026-0{row % 9 + 1}-1{row % 10}",
                "datatype": "http://www.w3.org/2001/XMLSchema#date",
            },
        }
        for row in range(ROWS)
    ]
    return json.dumps({"head": {"vars": list(COLUMNS)}, "results": {"bindings": rows}})


def step(of: int, changed: int = -1) -> dict[str, Any]:
    """Return a step with such a result."""
    media_type = "application/sparql-results+json"
    return {"name": "sparql_query", "output": result(of, changed), "output_media_type": media_type}


class Times(NamedTuple):
    """Wall time, and CPU time of this process, in seconds."""

    wall: float
    cpu: float


def measured(responses: int, **options: Any) -> Times:
    """Score a number of responses into a folder, and return the times."""
    questions = [
        {"id": f"q{each}", "question_text": f"{each}?", "reference_steps": [[step(each)]]} for each in range(responses)
    ]
    answers = {
        f"q{each}": {"question_id": f"q{each}", "actual_answer": "", "actual_steps": [step(each, ROWS // 2)]}
        for each in range(responses)
    }
    dataset: Any = [{"template_id": "t", "questions": questions}]
    given: Any = answers
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        run = score_responses(dataset, given, output_dir=folder, **options)
        times = Times(time.perf_counter() - wall, time.process_time() - cpu)
        assert run.aggregates["micro"]["steps_score"]["mean"] == 0, run.warnings
    return times


def main() -> int:
    """Print the table, and return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer responses")
    responses = 400 if parser.parse_args().quick else RESPONSES
    ways: dict[str, dict[str, Any]] = {"one process": {}}
    if find_spec("ray") is not None:
        ways |= {f"ray, workers: {number}": {"engine": "ray", "workers": number} for number in (1, 2)}
        measured(2, engine="ray", workers=1)  # so that no row includes the imports
    processors = os.cpu_count() or 1
    sys.stdout.write(f"{responses:,} responses, {ROWS} rows × {len(COLUMNS)} columns, {processors} processors\n")
    sys.stdout.write(f"{'':24}{'start':>9}{'scoring':>10}{'gain':>8}{'driver CPU a response':>24}\n")
    alone, is_met = 0.0, True
    for name, options in ways.items():
        start, whole = measured(2, **options), measured(responses, **options)
        scoring, cpu_ms = whole.wall - start.wall, 1000 * (whole.cpu - start.cpu) / responses
        alone = alone or scoring
        line = f"{name:24}{start.wall:7.1f} s{scoring:8.1f} s{alone / scoring:8.2f}{cpu_ms:21.2f} ms"
        if options.get("workers") == 2 and processors > 2:
            is_met = alone / scoring >= GAIN_GOAL
            line += "  goal met" if is_met else "  goal missed"
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
