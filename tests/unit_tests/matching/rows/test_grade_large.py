"""Grades of long and wide tables: which columns play which, and in bounded time."""

import random
from typing import Any

import pytest
from machine_speed import processor_seconds

from graphrag_eval_lc.matching.rows import SparqlResults, compare_sparql_results
from graphrag_eval_lc.matching.rows.results import TermColumn

Rows = list[list[str]]
INTEGER = ("literal", "http://www.w3.org/2001/XMLSchema#integer", None)


def as_results(rows: Rows, prefix: str, order: list[int] | None = None) -> SparqlResults:
    columns = list(zip(*rows, strict=True))
    order = list(range(len(columns))) if order is None else order
    shapes: list[Any] = [("uri", None, None), INTEGER]
    return SparqlResults(
        {f"{prefix}{at}": TermColumn(list(columns[at]), shapes[columns[at][0].isdigit()]) for at in order}, len(rows)
    )


def table(rows: int, width: int, rng: random.Random) -> Rows:
    """Give rows of an IRI and numbers, of which all columns have the same few."""
    return [[f"urn:{at}", *(str(rng.randrange(50)) for _ in range(width - 1))] for at in range(rows)]


def spoilt(rows: Rows, share: float, rng: random.Random) -> Rows:
    return [
        [f"9{at}" if rng.random() < share and place else cell for place, cell in enumerate(row)]
        for at, row in enumerate(rows)
    ]


@pytest.mark.full
@pytest.mark.parametrize("width", [6, 20])
def test_columns_of_the_same_contents_are_told_apart_by_their_rows(width: int) -> None:
    rng = random.Random(3)
    rows = table(200, width, rng)
    others = spoilt(rows, 0.1, rng)
    order = rng.sample(range(width), width)
    found = compare_sparql_results(as_results(rows, "c"), as_results(others, "d", order))
    right = sum(
        cell == other
        for row, spoilt_row in zip(rows, others, strict=True)
        for cell, other in zip(row, spoilt_row, strict=True)
    )
    assert found.grade == pytest.approx(right / (200 * width))


@pytest.mark.full
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_wide_rows_without_a_rare_cell_are_paired_by_several(share: float) -> None:
    rng = random.Random(4)
    rows = [row[1:] for row in table(150, 41, rng)]
    others = [[f"9{at}" if rng.random() < share else cell for cell in row] for at, row in enumerate(rows)]
    found = compare_sparql_results(as_results(rows, "c"), as_results(others, "c"))
    assert 0.8 * (1 - share) < found.grade < 1 - share + 0.05


def test_hundreds_of_columns_of_one_row_are_graded_at_once() -> None:
    cells = [f"urn:{at}" for at in range(300)]
    with processor_seconds(2):
        found = compare_sparql_results(as_results([cells], "c"), as_results([[*cells[:299][::-1], "urn:x"]], "d"))
        assert found.grade == pytest.approx(299 / 300)


@pytest.mark.full
@pytest.mark.parametrize(("rows", "width", "seconds"), [(100_000, 3, 15), (2_000, 60, 15), (30_000, 20, 30)])
@pytest.mark.parametrize("ordered", [False, True])
def test_long_tables_are_graded_in_bounded_time(rows: int, width: int, seconds: float, ordered: bool) -> None:
    rng = random.Random(5)
    mine = table(rows, width, rng)
    others = spoilt(mine, 0.2, rng)
    order = rng.sample(range(width), width)
    found = compare_sparql_results(as_results(mine, "c"), as_results(others, "d", order), ordered=ordered)
    with processor_seconds(seconds):
        assert found.grade == pytest.approx(1 - 0.2 * (width - 1) / width, abs=0.02)
