from typing import Any

from graphrag_eval_lc.report.reported_run import ReportedSample
from graphrag_eval_lc.report.spent import Extremes


def extremes_of(*results: Any) -> Extremes:
    extremes = Extremes()
    for at, result in enumerate(results):
        extremes.add(ReportedSample(f"k{at}", "t", {"question_id": f"q{at}", **result}, {}, {}, False))
    return extremes


def test_the_ten_that_took_longest_come_in_order() -> None:
    slowest = extremes_of(*({"elapsed_sec": seconds} for seconds in (3, 9, *range(20, 40), 1))).slowest()
    assert [row["seconds"] for row in slowest] == list(range(39, 29, -1))


def test_of_equal_ones_the_first_stay() -> None:
    assert [row["key"] for row in extremes_of(*[{"elapsed_sec": 1}] * 12).slowest()] == [f"k{at}" for at in range(10)]


def test_the_time_of_failed_attempts_counts() -> None:
    attempts = [{"elapsed_sec": 5.0}, {"error": "away"}]
    slowest = extremes_of({"elapsed_sec": 3.0}, {"elapsed_sec": 1.0, "failed_attempts": attempts}).slowest()
    assert [(row["key"], row["seconds"], row["failed_attempts"]) for row in slowest] == [("k1", 6.0, 2), ("k0", 3.0, 0)]


def test_of_a_question_asked_several_times_the_worst_sample_stands_there() -> None:
    samples = [{"question_id": "q", "elapsed_sec": seconds, "total_tokens": 10 - seconds} for seconds in (2, 5, 3)]
    extremes = extremes_of(*samples, {"elapsed_sec": 4})
    assert [(row["key"], row["seconds"]) for row in extremes.slowest()] == [("k1", 5), ("k3", 4)]
    assert [(row["key"], row["value"]) for row in extremes.dearest()] == [("k0", 8)]


def test_a_row_says_what_was_asked() -> None:
    extremes = extremes_of({"elapsed_sec": 1, "agent_cost": 0.5, "question_text": "Where?\n" + "x" * 1000})
    for row in (*extremes.slowest(), *extremes.dearest()):
        assert row["question"].startswith("Where? xx")
        assert len(row["question"]) == 161


def test_the_dearest_are_by_the_agents_cost_and_without_prices_by_tokens() -> None:
    def dearest(*results: Any) -> list[tuple[Any, ...]]:
        return [(row["key"], row["value"], row["unit"]) for row in extremes_of(*results).dearest()]

    judged = {"agent_cost": 0.1, "total_tokens": 9, "answer_correctness_cost": 5.0, "answer_f1": 1.0}
    assert dearest(judged, {"agent_cost": 0.5, "total_tokens": 1}, {}) == [("k1", 0.5, "usd"), ("k0", 0.1, "usd")]
    assert dearest({**judged, "agent_cost": 0.0}, {}) == [("k0", 9, "tokens")]
    assert extremes_of({}).slowest() == []


def test_of_many_questions_the_ten_worst_are_those_of_all() -> None:
    seconds = [(at * 7919) % 2003 for at in range(2_000)]
    slowest = extremes_of(*({"elapsed_sec": each} for each in seconds)).slowest()
    assert [row["seconds"] for row in slowest] == sorted(seconds, reverse=True)[:10]
