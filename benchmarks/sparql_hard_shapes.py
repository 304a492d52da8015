"""Tables that are hard to compare, for ``sparql_matching.py``: which are decided, and in how many seconds.

Most take almost no time. Undecided ones stop at the limit of the search.
"""

import random
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.matching import compare_sparql_results

Rows = list[tuple[int, ...]]
Pair = tuple[dict[str, Any], dict[str, Any]]

_FLOAT: Final = "http://www.w3.org/2001/XMLSchema#float"


class Found(NamedTuple):
    """The outcome of one comparison, with its reason and closeness, and its CPU seconds."""

    outcome: str
    seconds: float


def as_results(rows: Rows, kind: str, prefix: str) -> dict[str, Any]:
    """Return rows as results: of strings, of blank nodes, or of floats of which only close ones are equal."""

    def term(value: int) -> dict[str, str]:
        if kind == "near":
            return {"type": "literal", "value": f"{1_000 + value * 0.004:.3f}", "datatype": _FLOAT}
        return {"type": "bnode", "value": f"b{value}"} if kind == "blank" else {"type": "literal", "value": str(value)}

    names = [f"{prefix}{at}" for at in range(len(rows[0]))]
    bindings = [{name: term(value) for name, value in zip(names, row, strict=True)} for row in rows]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


def some_columns(required: int, columns: int, rows: int, values: int, *, swap: bool, kind: str = "text") -> Pair:
    """Return a random table and some of its columns; in one of them two cells are swapped."""
    rng = random.Random(f"{required} {columns} {rows} {values}")
    others = [tuple(rng.randrange(values) for _ in range(columns)) for _ in range(rows)]
    chosen = rng.sample(range(columns), required)
    mine = [[row[at] for at in chosen] for row in others]
    if swap:
        _swap(mine)
    rng.shuffle(others)
    return as_results([tuple(row) for row in mine], kind, "r"), as_results(others, kind, "a")


def free_columns(required: int, columns: int, rows: int, actual_rows: int, *, swap: bool) -> Pair:
    """Return rows to which the actual results add random cells, so that each occurs many times."""
    rng = random.Random(f"{required} {columns} {rows}")
    mine = [[rng.randrange(2) for _ in range(required)] for _ in range(rows)]
    copies = [*mine, *rng.choices(mine, k=actual_rows - rows)]
    others = [(*row, *(rng.randrange(2) for _ in range(columns - required))) for row in copies]
    if swap:
        _swap(mine)
    rng.shuffle(others)
    return as_results([tuple(row) for row in mine], "text", "r"), as_results(others, "text", "a")


def _swap(rows: list[list[int]]) -> None:
    unlike = next(row for row in rows if row[0] != rows[0][0])
    rows[0][0], unlike[0] = unlike[0], rows[0][0]


def circles(count: int, size: int) -> Pair:
    """Return one circle of blank nodes and two of half the size, repeated ``count`` times."""
    half = size // 2
    mine: Rows = [(at * size + one, at * size + (one + 1) % size) for at in range(count) for one in range(size)]
    others: Rows = [(at * half + one, at * half + (one + 1) % half) for at in range(2 * count) for one in range(half)]
    return as_results(mine, "blank", "r"), as_results(others, "blank", "a")


def overlapping(required: int, columns: int) -> Pair:
    """Return columns that each mark one row; two of the required ones mark the same row."""
    others = [tuple(int(at == row) for at in range(columns)) for row in range(columns)]
    mine = [list(row[:required]) for row in others]
    mine[required - 1][required - 1], mine[required - 2][required - 1] = 0, 1
    return as_results([tuple(row) for row in mine], "text", "r"), as_results(others, "text", "a")


SHAPES: Final[dict[str, Callable[[], Pair]]] = {
    "25 of 50 columns of two values, 12 rows, match": lambda: some_columns(25, 50, 12, 2, swap=False),
    "25 of 50 columns of two values, 12 rows, swapped": lambda: some_columns(25, 50, 12, 2, swap=True),
    "500 of 1,000 columns of two values, 12 rows, swapped": lambda: some_columns(500, 1_000, 12, 2, swap=True),
    "10 of 50 columns, 8 of 200 rows, match": lambda: free_columns(10, 50, 8, 200, swap=False),
    "10 of 50 columns, 8 of 200 rows, swapped": lambda: free_columns(10, 50, 8, 200, swap=True),
    "12 of 60 columns, 40 of 2,000 rows, swapped": lambda: free_columns(12, 60, 40, 2_000, swap=True),
    "25 of 50 columns of blank nodes, 12 rows, match": lambda: some_columns(25, 50, 12, 12, swap=False, kind="blank"),
    "25 of 50 columns of blank nodes, 12 rows, swapped": lambda: some_columns(25, 50, 12, 6, swap=True, kind="blank"),
    "500 circles of 6 blank nodes or 1,000 of 3": lambda: circles(500, 6),
    "25 of 50 columns of near numbers, swapped": lambda: some_columns(25, 50, 12, 40, swap=True, kind="near"),
    "40 of 80 columns of dense near numbers, swapped": lambda: some_columns(40, 80, 40, 6, swap=True, kind="near"),
    "20 of 40 columns that mark a row each": lambda: overlapping(20, 40),
}


def print_measured() -> list[Found]:
    """Compare each hard shape, and print a line with its outcome, reason and closeness."""
    print(f"\n{'hard shapes':<54} {'outcome':<10} {'seconds':>8}")
    measured = []
    for shape, case in SHAPES.items():
        reference, actual = case()
        start = time.process_time()
        comparison = compare_sparql_results(reference, actual)
        _ = comparison.reason, comparison.closeness
        found = Found(comparison.outcome, time.process_time() - start)
        print(f"{shape:<54} {found.outcome:<10} {found.seconds:>8.2f}", flush=True)
        measured.append(found)
    return measured
