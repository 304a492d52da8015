"""Speed of comparing SPARQL results: every comparison next to one reading of all cells, on the same data, in one run.

Usage:
    python benchmarks/sparql_matching.py                   # some minutes
    python benchmarks/sparql_matching.py --quick           # up to 10,000 rows
    python benchmarks/sparql_matching.py --graphrag-eval   # and graphrag-eval on the same matches, 20 s at most

The data: the reference requires 7 of 9 or 5 of 10 columns. The actual results have all columns under other names, in
another order, with their rows shuffled. Cells of a column differ ("high": IRIs, names, decimals and integers) or are
one of three values ("low"). The results match, or one row is wrong: two cells of a column are swapped between rows, so
that each column keeps its cells ("swapped"), a cell has a value of its own ("changed"), or a row is "missing" or
"extra". With 100,000 rows of 10 columns there are also near numbers, times and blank nodes ("near", "times", "blank"),
and finally tables that are hard to search (see sparql_hard_shapes.py).

"whole" is the whole comparison of parsed JSON: the verdict, and the reason if there is a mismatch. "reading" is a plain
loop that looks up type, value and datatype of every cell of both sides once. Both are the lowest CPU time of some
runs. The exit code is 1 if a verdict is wrong or a goal is missed.

graphrag-eval 6.6.1 runs on Python 3.12 (--python, else python3.12 on the PATH, else pyenv's, else uv's), in a separate
environment (--venv, else a temporary folder).
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from _graphrag_eval_environment import graphrag_eval_python
from sparql_hard_shapes import print_measured

from graphrag_eval_lc.matching import compare_sparql_results

ROWS = (1_000, 10_000, 100_000)
SHAPES = ((7, 9), (5, 10))  # required columns, of how many
OUTCOMES = ("match", "swapped", "changed", "missing", "extra")
READING_GOAL = 10.0  # upper limit relative to reading all cells once
SECONDS_GOAL = 5.0  # upper limit if decided
UNDECIDED_GOAL = 10.0  # upper limit until the search gives up
THEIR_CAP_SEC = 20.0
XSD = "http://www.w3.org/2001/XMLSchema#"

WORKER = """
import json, sys, time
from graphrag_eval.steps.sparql import compare_sparql_results
with open(sys.argv[1], encoding="utf-8") as file:
    reference, actual = json.load(file)
start = time.process_time()
compare_sparql_results(reference, actual, reference["head"]["vars"])
print(time.process_time() - start)
"""

Row = tuple[int, ...]


def term(contents: str, column: int, value: int) -> dict[str, str]:
    """Return a term; columns of high cardinality alternate between IRIs, names, decimals and integers."""
    if value < 0:
        return {"type": "literal", "value": "changed"}
    if contents == "low":
        return {"type": "literal", "value": "abc"[value]}
    if contents == "blank" and column in {1, 3}:  # the same node in both columns of a row
        return {"type": "bnode", "value": f"b{value}"}
    if contents in {"near", "off"}:
        text = f"{column}{value}.25{'' if contents == 'near' else '0000001'}"
        return {"type": "literal", "value": text, "datatype": f"{XSD}double"}
    if contents == "times":
        text = f"{1900 + value // 365 % 200}-{value % 12 + 1:02}-{value % 28 + 1:02}T{column:02}:{value % 60:02}:00Z"
        return {"type": "literal", "value": text, "datatype": f"{XSD}dateTime"}
    if column % 4 == 0:
        return {"type": "uri", "value": f"http://example.org/{column}/{value}"}
    if column % 4 == 1:
        return {"type": "literal", "value": f"name {column} {value % 1_000}"}
    if column % 4 == 2:
        return {"type": "literal", "value": f"{column}{value}.{value % 97:02}", "datatype": f"{XSD}decimal"}
    return {"type": "literal", "value": str(column * 10_000_000 + value), "datatype": f"{XSD}integer"}


def results(contents: str, prefix: str, columns: list[int], rows: list[Row]) -> dict[str, Any]:
    """Return some columns of rows as SPARQL results; terms are not shared, as after parsing JSON."""
    names = [(column, f"{prefix}{at}") for at, column in enumerate(columns)]
    bindings = [{name: term(contents, column, row[column]) for column, name in names} for row in rows]
    return {"head": {"vars": [name for _, name in names]}, "results": {"bindings": bindings}}


def with_one_wrong(rows: list[Row], required: int, outcome: str, rng: random.Random) -> list[Row]:
    """Return rows of which one is wrong in the required columns; rows are sets, so all its copies are missing."""
    first, known = rows[0], {row[:required] for row in rows}
    if outcome == "missing":
        return [row for row in rows if row[:required] != first[:required]]
    if outcome == "extra":
        return [*rows, (-1, *first[1:])]
    if outcome == "changed":
        return [(-1, *first[1:]), *rows[1:]]
    while outcome == "swapped":
        at, column = rng.randrange(1, len(rows)), rng.randrange(required)
        changed, counterpart = [*first], [*rows[at]]
        changed[column], counterpart[column] = counterpart[column], changed[column]
        if tuple(changed[:required]) not in known:
            return [tuple(changed), *rows[1:at], tuple(counterpart), *rows[at + 1 :]]
    return rows


def cases(required: int, columns: int, contents: str, count: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield each outcome with the two results."""
    rng = random.Random(f"{required} {columns} {contents} {count}")
    rows: list[Row] = [(at,) * columns for at in range(count)]
    if contents == "low":  # half of the combinations of the required columns
        allowed = rng.sample([*product(range(3), repeat=required)], 3**required // 2)
        rows = [(*rng.choice(allowed), *rng.choices(range(3), k=columns - required)) for _ in range(count)]
    reference = results(contents, "r", list(range(required)), rows)
    rng.shuffle(rows)
    order = rng.sample(range(columns), columns)
    for outcome in OUTCOMES:
        actual = with_one_wrong(rows, required, outcome, rng)
        yield outcome, reference, results("off" if contents == "near" else contents, "a", order, actual)


def read_all(*sides: dict[str, Any]) -> None:
    """Look up type, value and datatype of every cell once."""
    for side in sides:
        for binding in side["results"]["bindings"]:
            for cell in binding.values():
                _ = cell["type"], cell["value"], cell.get("datatype")


def least_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the lowest CPU time of some runs and their result; fast work runs more often."""
    times: list[float] = []
    found = None
    while not times or (sum(times) < 1 and len(times) < 10):
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    return min(times), found


def their_seconds(reference: Any, actual: Any, python: Path, folder: Path) -> str:
    """Return graphrag-eval's time, in a process that is killed at the time limit."""
    path = folder / "case.json"
    path.write_text(json.dumps([reference, actual]), encoding="utf-8")
    command = [str(python), "-c", WORKER, str(path)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=THEIR_CAP_SEC)
    except subprocess.TimeoutExpired:
        return f"graphrag-eval over {THEIR_CAP_SEC:.0f} s"
    return f"graphrag-eval {float(done.stdout) * 1_000:,.1f} ms"


def measure(*shape: Any, label: str, python: Path | None, folder: Path) -> tuple[float, float, int]:
    """Print each outcome of a shape; return the highest ratio, the slowest verdict in seconds, and the wrong ones."""
    worst, slowest, wrong = 0.0, 0.0, 0
    for outcome, reference, actual in cases(*shape):

        def compare(reference: Any = reference, actual: Any = actual) -> str:
            comparison = compare_sparql_results(reference, actual)
            return comparison.outcome if comparison.reason else ""

        reading, _ = least_seconds(lambda: read_all(reference, actual))  # noqa: B023
        seconds, verdict = least_seconds(compare)
        theirs = "" if python is None or outcome != "match" else their_seconds(reference, actual, python, folder)
        times = f"{seconds * 1_000:>10.1f} {reading * 1_000:>10.1f} {seconds / reading:>6.1f}"
        print(f"{label} {outcome:<8} {verdict:<10} {times}  {theirs}", flush=True)
        worst, slowest = max(worst, seconds / reading), max(slowest, seconds * (verdict != "undecided"))
        wrong += verdict not in {"undecided", "match" if outcome == "match" else "mismatch"}
    return worst, slowest, wrong


def main() -> int:
    """Run the benchmark and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="leave out the tables of 100,000 rows")
    parser.add_argument("--graphrag-eval", action="store_true", help="measure graphrag-eval as well")
    parser.add_argument("--python", help="a Python 3.12 for graphrag-eval")
    parser.add_argument("--venv", type=Path, help="folder of graphrag-eval's environment, made if it does not exist")
    options = parser.parse_args()
    plain = [(*shape, kind, count) for count in ROWS for shape in SHAPES for kind in ("high", "low")]
    if options.graphrag_eval:  # small enough for graphrag-eval
        plain = [(2, 2, "high", 1_000), (3, 5, "high", 1_000), (7, 9, "high", 100), *plain]
    shapes = [*plain, *((*SHAPES[-1], kind, ROWS[-1]) for kind in ("near", "times", "blank"))]
    found: dict[bool, list[tuple[float, float, int]]] = {True: [], False: []}
    print(f"{'rows':>7}  columns  content row      verdict      whole ms reading ms  times")
    with tempfile.TemporaryDirectory() as name:
        python = None
        if options.graphrag_eval:
            python = graphrag_eval_python(options.venv or Path(name) / "venv", options.python)
        for shape in shapes:
            required, columns, contents, count = shape
            if count < ROWS[-1] or not options.quick:
                label = f"{count:>7,}  {required} of {columns:<3} {contents:<7}"
                is_goal = shape in plain and count >= ROWS[0]
                found[is_goal].append(measure(*shape, label=label, python=python, folder=Path(name)))
    every = found[True] + found[False]
    hard = print_measured()
    worst, slowest = max(each[0] for each in found[True]), max(each[1] for each in every)
    decided = max((slowest, *(each.seconds for each in hard if each.outcome != "undecided")))
    undecided = max((0.0, *(each.seconds for each in hard if each.outcome == "undecided")))
    goals = {
        f"every verdict is right ({sum(each[2] for each in every)} are wrong)": all(not each[2] for each in every),
        f"plain tables: at most {READING_GOAL:g} readings of all cells ({worst:.1f})": worst <= READING_GOAL,
        f"what is decided: at most {SECONDS_GOAL:g} s ({decided:.2f} s)": decided <= SECONDS_GOAL,
        f"what is undecided: at most {UNDECIDED_GOAL:g} s ({undecided:.2f} s)": undecided <= UNDECIDED_GOAL,
    }
    print("\nGoals", *(f"{'met    ' if met else 'NOT MET'}  {goal}" for goal, met in goals.items()), sep="\n  ")
    return 0 if all(goals.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
