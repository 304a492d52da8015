"""How matching scales with the number of steps: 30 reference steps by 100 actual steps, and ten times as many of both.

Run it as ``python benchmarks/many_steps.py``; it takes half a minute. All reference steps are in one group, so each is
compared with every actual step to find the best assignment. For comparison the same is measured with a tenth of both,
which is a hundredth of the pairs, and for retrieval a greedy match in the same run: each reference step in turn gets
the best free step, by ``recall_at_k`` of parsed ids. CPU time is measured. ``--quick`` uses a third of the steps. The
exit code is 1 if a goal is missed.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from graphrag_eval_lc.matching import match_steps
from graphrag_eval_lc.metrics import recall_at_k

REFERENCE_STEPS, ACTUAL_STEPS, SMALLER = 300, 1_000, 10
SECONDS_GOAL = 5.0
GROWTH_GOAL = 3.0  # upper limit relative to the growth in pairs
RELEVANT, FOUND = 20, 3

Step = dict[str, Any]


class Kind(NamedTuple):
    """A kind of step: its name, media type, outputs, and share of the steps."""

    title: str
    name: str
    media_type: str | None
    output: Callable[[random.Random], str]
    share: float = 1.0


def documents(random_: random.Random) -> str:
    """Return ten of five hundred documents."""
    return json.dumps([{"id": f"doc-{random_.randrange(500)}", "text": "x" * 50} for _ in range(10)])


def table(random_: random.Random) -> str:
    """Return SPARQL results with ten rows and three columns."""
    names = ["line", "from", "to"]
    rows = [{name: {"type": "uri", "value": f"urn:{random_.randrange(50)}"} for name in names} for _ in range(10)]
    return json.dumps({"head": {"vars": names}, "results": {"bindings": rows}})


def value(random_: random.Random) -> str:
    """Return JSON whose first 200 items are the same."""
    return json.dumps([0] * 200 + [random_.randrange(5_000)])


def text(random_: random.Random) -> str:
    """Return one of two hundred long texts."""
    return f"{'x' * 500} {random_.randrange(200)}"


def same_documents(_: random.Random) -> str:
    """Return the same documents every time."""
    return json.dumps([{"id": f"doc-{number}"} for number in range(RELEVANT)])


KINDS = (
    Kind("retrieval, scores differ", "retrieval", None, documents),
    Kind("retrieval, all scores are 0.15", "retrieval", None, same_documents),
    Kind("JSON", "fetch", "application/json", value),
    Kind("text", "answer", None, text),
    Kind("SPARQL, a tenth of the pairs", "sparql_query", "application/sparql-results+json", table, 10**-0.5),
)


def steps_of(kind: Kind, references: int, actual: int) -> tuple[list[Step], list[Step]]:
    """Return the reference steps and the actual steps."""
    random_ = random.Random(7)
    media_type = {} if kind.media_type is None else {"output_media_type": kind.media_type}
    wanted: list[Step] = [
        {"name": kind.name, "args": {}, "output": kind.output(random_), **media_type} for _ in range(references)
    ]
    taken: list[Step] = [
        {"name": kind.name, "args": {"number": number}, "id": str(number), "status": "success"}
        | {"output": kind.output(random_)}
        for number in range(actual)
    ]
    if kind.output is same_documents:
        for step in taken:
            step["output"] = json.dumps(json.loads(step["output"])[:FOUND])
    return wanted, taken


def matching(kind: Kind, references: int, actual: int) -> tuple[float, float]:
    """Return the seconds for matching with its diagnosis, and the score."""
    wanted, taken = steps_of(kind, round(references * kind.share), round(actual * kind.share))
    started = time.process_time()
    match = match_steps([wanted], taken)
    _ = match.diagnosis, match.extra
    return time.process_time() - started, match.steps_score or 0.0


def greedy_walk(kind: Kind, references: int, actual: int) -> tuple[float, float]:
    """Return the seconds and the score of a greedy match: each reference step gets the best free step."""
    ids = [
        [[document["id"] for document in json.loads(step["output"])] for step in steps]
        for steps in steps_of(kind, references, actual)
    ]
    started = time.process_time()
    free = set(range(actual))
    total = 0.0
    for relevant in ids[0]:
        score, best = max((recall_at_k(relevant, ids[1][number]), number) for number in free)
        free.remove(best)
        total += score
    return time.process_time() - started, total / references


def verdict(goal: str, measured: str, is_met: bool) -> bool:
    """Print a goal and the measured value."""
    print(f"  goal, {goal}: {measured}, {'met' if is_met else 'NOT MET'}", flush=True)
    return is_met


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="take a third of the steps")
    options = parser.parse_args()
    part = 3 if options.quick else 1
    references, actual = REFERENCE_STEPS // part, ACTUAL_STEPS // part
    is_met = True
    for kind in KINDS:
        few = min(matching(kind, references // SMALLER, actual // SMALLER)[0] for _ in range(5))
        many, score = matching(kind, references, actual)
        print(f"{kind.title}, {round(references * kind.share)} by {round(actual * kind.share):,}: score {score:.4f}")
        is_met &= verdict(f"less than {SECONDS_GOAL:g} s", f"{many:.2f} s", many < SECONDS_GOAL)
        growth = many / few / SMALLER**2
        goal = f"at most {GROWTH_GOAL:g} times the growth of the pairs"
        is_met &= verdict(goal, f"{growth:.2f} times", growth <= GROWTH_GOAL)
        if kind.output is same_documents:
            is_met &= verdict("the mean of equal scores is that score", f"{score}", score == FOUND / RELEVANT)
        if kind.name == "retrieval":
            seconds, greedy = greedy_walk(kind, references, actual)
            print(f"  a greedy walk: {seconds:.2f} s, score {greedy:.4f}")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
