"""Compare the speed of SPARQL result matching with graphrag-eval's, on the same data, in one run.

Usage:
    python benchmarks/sparql_matching.py                      # everything; some minutes, nearly all of it graphrag-eval
    python benchmarks/sparql_matching.py --quick              # few shapes
    python benchmarks/sparql_matching.py --no-graphrag-eval   # this package alone
    python benchmarks/sparql_matching.py --venv build/ge      # keep graphrag-eval's environment for the next run

graphrag-eval 6.6.1 runs on Python 3.12: the script takes --python, else python3.12 on the PATH, else one that pyenv
has, else it asks uv for one. It installs graphrag-eval into an environment of its own (--venv, else a temporary
folder). Each of its comparisons runs in a process of its own that is ended after 20 s, shown as ">20 s"; with a star
it was not run, because fewer rows of the same shape took too long already.

The data: reference columns whose contents differ ("differ") or that hold the same three values ("three"), found
among actual columns with other names, in another order, with their rows shuffled. The actual results match, or two
cells of one column are swapped between two rows so that the contents of all columns stay the same ("swapped"), or
one cell has a value of its own ("changed"). Both sides get parsed JSON; reading its terms is part of the time.
At the end come shapes that are hard to search (see sparql_hard_shapes.py), with their outcome, steps and seconds.

The exit code is 1 if a goal is not met.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from _graphrag_eval_environment import graphrag_eval_python
from sparql_hard_shapes import MOST_SEC, print_measured

from graphrag_eval_lc.matching.rows import compare_sparql_results

CAP_SEC = 20.0
ROWS = (100, 1_000, 10_000, 100_000)
SHAPES = ((2, 2), (3, 5), (5, 8), (5, 10), (7, 9), (7, 12))
QUICK_ROWS = (100, 1_000)
QUICK_SHAPES = ((2, 2), (3, 5), (7, 9))
CONTENTS = ("differ", "three")
OUTCOMES = ("match", "swapped", "changed")
XSD = "http://www.w3.org/2001/XMLSchema#"

WORKER = """
import json, sys, time
from graphrag_eval.steps.sparql import compare_sparql_results
with open(sys.argv[1], encoding="utf-8") as file:
    case = json.load(file)
print("ready", flush=True)
start = time.perf_counter()
score = compare_sparql_results(case["reference"], case["actual"], case["required"])
seconds = time.perf_counter() - start
with open(sys.argv[2], "w", encoding="utf-8") as file:
    json.dump([seconds, score], file)
"""

Row = tuple[int, ...]


class Shape(NamedTuple):
    """What one comparison is about, but for its number of rows."""

    required: int
    columns: int
    contents: str
    outcome: str


class Case(NamedTuple):
    """The data of one comparison."""

    reference: dict[str, Any]
    actual: dict[str, Any]


class Timing(NamedTuple):
    """The time of one comparison; no score where it was ended at the cap."""

    seconds: float
    score: float | None
    is_inferred: bool = False

    def __str__(self) -> str:
        if self.score is None:
            return f">{CAP_SEC:.0f} s{'*' if self.is_inferred else ' '}"
        return f"{self.seconds * 1_000:.1f}"


def term(contents: str, column: int, value: int) -> dict[str, str]:
    """Give a term; columns of differing contents are IRIs, names, decimals and integers in turn."""
    if value < 0:
        return {"type": "literal", "value": "changed"}
    if contents == "three":
        return {"type": "literal", "value": "abc"[value]}
    if column % 4 == 0:
        return {"type": "uri", "value": f"http://example.org/{column}/{value}"}
    if column % 4 == 1:
        return {"type": "literal", "value": f"name {column} {value % 1_000}"}
    if column % 4 == 2:
        return {"type": "literal", "value": f"{column}{value}.{value % 97:02}", "datatype": f"{XSD}decimal"}
    return {"type": "literal", "value": str(column * 10_000_000 + value), "datatype": f"{XSD}integer"}


def results(contents: str, names: list[str], columns: list[int], rows: list[Row]) -> dict[str, Any]:
    """Give some columns of rows as SPARQL results; no term is shared, as after reading JSON."""
    bindings = [
        {name: term(contents, column, row[column]) for name, column in zip(names, columns, strict=True)} for row in rows
    ]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def rows_of_three_values(count: int, shape: Shape, rng: random.Random) -> list[Row]:
    """Give rows of which the required columns take at most half of the combinations that there are."""
    combinations = list(product(range(3), repeat=shape.required))
    allowed: list[Row] = []
    while any(len({row[at] for row in allowed}) < 3 for at in range(shape.required)):
        allowed = rng.sample(combinations, (len(combinations) + 1) // 2)
    free = shape.columns - shape.required
    return [(*rng.choice(allowed), *rng.choices(range(3), k=free)) for _ in range(count)]


def swapped(rows: list[Row], required: int, rng: random.Random) -> list[Row]:
    """Swap two cells of a required column so that a row comes about that was not there."""
    known = {row[:required] for row in rows}
    while True:
        one, other, column = rng.randrange(len(rows)), rng.randrange(len(rows)), rng.randrange(required)
        changed = [*rows[one]]
        changed[column] = rows[other][column]
        if tuple(changed[:required]) not in known:
            counterpart = [*rows[other]]
            counterpart[column] = rows[one][column]
            return [
                tuple(changed) if at == one else tuple(counterpart) if at == other else row
                for at, row in enumerate(rows)
            ]


def case_of(shape: Shape, count: int) -> Case:
    """Give the data for a shape with a number of rows."""
    rng = random.Random(f"{shape.required} {shape.columns} {shape.contents} {count}")
    if shape.contents == "three":
        rows = rows_of_three_values(count, shape, rng)
    else:
        rows = [(at,) * shape.columns for at in range(count)]
    reference = results(shape.contents, [f"r{at}" for at in range(shape.required)], list(range(shape.required)), rows)
    rng.shuffle(rows)
    if shape.outcome == "swapped":
        rows = swapped(rows, shape.required, rng)
    if shape.outcome == "changed":
        rows[0] = (-1, *rows[0][1:])
    columns = rng.sample(range(shape.columns), shape.columns)
    return Case(reference, results(shape.contents, [f"a{at}" for at in range(shape.columns)], columns, rows))


def our_timing(case: Case) -> Timing:
    """Give the best of some runs; fast comparisons run more often."""
    best, total, runs, score = float("inf"), 0.0, 0, 0.0
    while runs < 2 or (total < 0.5 and runs < 20):
        start = time.perf_counter()
        score = compare_sparql_results(case.reference, case.actual).score
        seconds = time.perf_counter() - start
        best, total, runs = min(best, seconds), total + seconds, runs + 1
    return Timing(best, score)


def their_timing(case: Case, python: Path, folder: Path) -> Timing:
    """Give the time of graphrag-eval, in a process that is ended at the cap."""
    path, outcome = folder / "case.json", folder / "outcome.json"
    required = case.reference["head"]["vars"]
    path.write_text(json.dumps({**case._asdict(), "required": required}), encoding="utf-8")
    with subprocess.Popen([python, "-c", WORKER, path, outcome], stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            process.kill()
            raise SystemExit("graphrag-eval cannot be run: see the error above.")
        try:
            process.wait(timeout=CAP_SEC)
        except subprocess.TimeoutExpired:
            process.kill()
            return Timing(CAP_SEC, None)
    if process.returncode:
        raise SystemExit("graphrag-eval failed: see the error above.")
    return Timing(*json.loads(outcome.read_text(encoding="utf-8")))


def print_line(shape: Shape, count: int, ours: Timing, theirs: Timing | None) -> None:
    """Print one line of the table."""
    ratio = ""
    if theirs is not None:
        ratio = f"{'>' if theirs.score is None else ''}{theirs.seconds / ours.seconds:,.1f}"
    label = f"{count:>7,}  {shape.required} of {shape.columns:<3} {shape.contents:<7} {shape.outcome:<8}"
    print(f"{label} {ours!s:>10} {'' if theirs is None else theirs!s:>14} {ratio:>10}", flush=True)


def measured(
    rows: tuple[int, ...], shapes: tuple[tuple[int, int], ...], python: Path | None, folder: Path
) -> tuple[dict[tuple[Shape, int], float], int]:
    """Measure and print all cells; give our times and the number of scores of ours that are wrong."""
    print(f"{'rows':>7}  columns  content outcome      ours ms graphrag-eval ms      ratio")
    seconds: dict[tuple[Shape, int], float] = {}
    wrong = 0
    for shape in (Shape(*size, kind, outcome) for size in shapes for kind in CONTENTS for outcome in OUTCOMES):
        theirs: Timing | None = None
        for count in rows:
            case = case_of(shape, count)
            ours = our_timing(case)
            seconds[shape, count] = ours.seconds
            wrong += ours.score != float(shape.outcome == "match")
            if theirs is not None and theirs.score is None:
                theirs = theirs._replace(is_inferred=True)
            elif python is not None:
                theirs = their_timing(case, python, folder)
            print_line(shape, count, ours, theirs)
    return seconds, wrong


def goals(seconds: dict[tuple[Shape, int], float], wrong: int) -> Iterator[tuple[str, bool]]:
    """Give each goal with what was measured, and whether it is met."""

    def ours(count: int, required: int, columns: int, contents: str = "differ", outcome: str = "match") -> float:
        key = Shape(required, columns, contents, outcome), count
        if key not in seconds:
            seconds[key] = our_timing(case_of(*key)).seconds
        return seconds[key]

    yield f"every score is right ({wrong} are wrong)", wrong == 0
    small, large, medium = ours(1_000, 7, 9), ours(100_000, 5, 10), ours(10_000, 5, 10)
    yield f"1,000 rows, 7 of 9 columns in less than 50 ms ({small * 1_000:.1f} ms)", small < 0.05
    yield f"100,000 rows, 5 of 10 columns in less than 3 s ({large:.2f} s)", large < 3
    yield f"ten times the rows take at most 25 times as long ({large / medium:.1f} times)", large <= 25 * medium
    for count, required, columns, contents in (
        (1_000, 7, 9, "differ"),
        (100_000, 5, 10, "differ"),
        (1_000, 7, 9, "three"),
        (100_000, 5, 10, "three"),
    ):
        slower = ours(count, required, columns, contents, "swapped") / ours(count, required, columns, contents)
        what = f"{count:,} rows, {required} of {columns} columns, {contents}"
        yield f"{what}: not matching takes at most twice matching ({slower:.2f} times)", slower <= 2
    for outcome in OUTCOMES:
        times = ours(1_000, 7, 9, "three", outcome) / small
        yield f"three values a column, {outcome}: at most 40 times differing ones ({times:.2f} times)", times <= 40


def main() -> int:
    """Run the benchmark and give the exit code."""
    parser = argparse.ArgumentParser(description="Speed of SPARQL result matching beside graphrag-eval's.")
    parser.add_argument("--quick", action="store_true", help="few shapes")
    parser.add_argument("--no-graphrag-eval", action="store_true", help="measure this package alone")
    parser.add_argument("--python", help="a Python 3.12 for graphrag-eval")
    parser.add_argument("--venv", type=Path, help="folder of graphrag-eval's environment, made if it is not there")
    options = parser.parse_args()
    rows, shapes = (QUICK_ROWS, QUICK_SHAPES) if options.quick else (ROWS, SHAPES)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        python = None
        if not options.no_graphrag_eval:
            python = graphrag_eval_python(options.venv or folder / "venv", options.python)
        seconds, wrong = measured(rows, shapes, python, folder)
    slowest = print_measured()
    print("\nGoals")
    met = []
    is_quick = slowest < MOST_SEC
    hard_goal = f"every hard shape ends within {MOST_SEC:.0f} s of processor time ({slowest:.1f} s)", is_quick
    for goal, is_met in (*goals(seconds, wrong), hard_goal):
        print(f"  {'met    ' if is_met else 'NOT MET'}  {goal}", flush=True)
        met.append(is_met)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
