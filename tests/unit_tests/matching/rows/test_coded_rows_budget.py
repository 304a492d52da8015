"""The bounds of a search: in steps, and in wall time for machines on which these take too long."""

from collections.abc import Iterator

import pytest

from graphrag_eval_lc.matching.rows.coded_rows import MAX_SEC, MAX_STEPS, Budget, SearchCutOff


def test_a_search_ends_at_its_bound_in_steps() -> None:
    budget = Budget(10, max_steps=1_000)
    budget.spend(1_000)
    with pytest.raises(SearchCutOff, match="cut off at its bound of 1,000 steps"):
        budget.spend(1)


@pytest.mark.parametrize("at_once", [1, 7, 99, 30_000])
def test_the_bound_does_not_depend_on_how_the_steps_are_counted(at_once: int) -> None:
    budget = Budget(10, max_steps=250_000)
    for _ in range(250_000 // at_once):
        budget.spend(at_once)
    assert budget.spent <= 250_000
    with pytest.raises(SearchCutOff):
        budget.spend(at_once)


def test_long_tables_get_a_larger_bound_in_steps_and_none_in_time() -> None:
    assert Budget(10).limit == MAX_STEPS
    assert Budget(10_000_000).limit > MAX_STEPS
    assert MAX_SEC == 60.0


def seconds(*times: float) -> Iterator[float]:
    yield from times
    while True:
        yield times[-1]


def test_a_search_that_takes_too_long_stops_and_says_that_the_machine_is_the_reason() -> None:
    clock = seconds(100.0, 159.0, 161.0)
    budget = Budget(10, clock=lambda: next(clock))
    budget.spend(200_000)
    with pytest.raises(SearchCutOff, match="stopped after 60 seconds of wall time; on another machine it may be decid"):
        budget.spend(200_000)


def test_the_clock_is_read_seldom() -> None:
    looks: list[int] = []

    def clock() -> float:
        looks.append(1)
        return 0.0

    budget = Budget(10, clock=clock)
    for _ in range(1_000_000):
        budget.spend(1)
    assert len(looks) <= 11
