from typing import Any

from graphrag_eval_lc.report.extremes import Extremes
from graphrag_eval_lc.report.samples import ReportedSample


def extremes_of(*results: Any) -> Extremes:
    extremes = Extremes()
    for at, result in enumerate(results):
        extremes.add(ReportedSample(f"q{at}", "t", result, {}, False), result.get("agent_cost"))
    return extremes


def test_the_ten_that_took_longest_come_in_order() -> None:
    slowest = extremes_of(*({"elapsed_sec": seconds} for seconds in (3, 9, *range(20, 40), 1))).slowest()
    assert [row["seconds"] for row in slowest] == list(range(39, 29, -1))


def test_of_equal_ones_the_first_stay() -> None:
    assert [row["key"] for row in extremes_of(*[{"elapsed_sec": 1}] * 12).slowest()] == [f"q{at}" for at in range(10)]


def test_the_dearest_are_by_cost_and_without_prices_by_tokens() -> None:
    priced = extremes_of({"agent_cost": 0.5, "total_tokens": 1}, {"agent_cost": 0.0, "total_tokens": 9})
    assert priced.dearest() == [{"key": "q0", "value": 0.5, "unit": "usd"}]
    free = extremes_of({"agent_cost": 0.0, "total_tokens": 9}, {})
    assert free.dearest() == [{"key": "q0", "value": 9, "unit": "tokens"}]
    assert extremes_of({}).slowest() == []
