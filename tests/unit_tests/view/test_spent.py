from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.registry.custom_metrics import note_recorded, recorded_only_here
from graphrag_eval_lc.view import run_view
from graphrag_eval_lc.view.samples import seen_samples
from graphrag_eval_lc.view.scores import Extremes, Spent, SpentLine


def spent_by(*results: Any) -> Spent:
    spent = Spent(EvaluationConfig())
    with_ids = [{"question_id": str(at), "template_id": "t", **result} for at, result in enumerate(results)]
    for sample in seen_samples(with_ids, Metrics(EvaluationConfig())):
        spent.add(sample)
    return spent


def lines_of(*results: Any) -> Sequence[SpentLine]:
    spent = spent_by(*results)
    return spent.lines(spent.totals.summary())


def test_totals_include_failed_attempts_but_means_are_per_sample() -> None:
    attempt = {"elapsed_sec": 10.0, "total_tokens": 5}
    time, tokens = lines_of(
        {"elapsed_sec": 1.0, "total_tokens": 10}, {"elapsed_sec": 3.0, "total_tokens": 30, "failed_attempts": [attempt]}
    )
    assert (time.name, time.unit, time.total, time.mean, time.median) == ("Time", "seconds", 14, 2, 2)
    assert (tokens.total, tokens.p95, tokens.samples, tokens.note) == (45, 29, 2, None)


def test_partially_measured_total_has_a_note() -> None:
    (line,) = lines_of({"total_tokens": 10}, {})
    assert (line.total, line.samples) == (10, 1)
    assert line.note == "1 sample is not measured in full, so the total is of the rest"


def test_note_mentions_failed_attempts_in_totals() -> None:
    def note_on(*results: Any) -> str:
        return run_view(
            [{"question_id": str(at), "template_id": "t", **each} for at, each in enumerate(results)]
        ).spent_note

    assert note_on({"total_tokens": 5}, {}) == ""
    assert note_on({"failed_attempts": [{}]}) == "totals include 1 failed attempt"
    assert note_on({"failed_attempts": [{}]}, {"failed_attempts": [{}, {}]}) == "totals include 3 failed attempts"


def test_cost_of_a_template_is_the_agents() -> None:
    judged = {"answer_correctness_cost": 0.25, "answer_f1": 1.0}
    assert spent_by({"agent_cost": 0.5, **judged}, judged).means("t")["agent_cost"] == 0.5
    assert "agent_cost" not in spent_by(judged).means("t")


def test_means_of_a_template_use_known_values() -> None:
    means = spent_by({"total_tokens": 10}, {"elapsed_sec": 2.0}).means("t")
    assert means == {"total_tokens": 10, "elapsed_sec": 2.0}


def test_recorded_declaration_is_enough_for_a_spent_metric() -> None:
    declared = {"title": "energy", "kind": "spent", "unit": "kWh", "lower_is_better": True, "range": [0, None]}
    with recorded_only_here():
        note_recorded([("energy", declared)])
        (line,) = lines_of({"energy": 2.0, "custom_metrics": ["energy"]}, {"energy": 4.0})
    assert (line.name, line.unit, line.total) == ("energy", "kWh", 6.0)


def extremes_of(*results: Any) -> Extremes:
    extremes = Extremes()
    with_ids = [{"question_id": f"q{at}", **result} for at, result in enumerate(results)]
    for at, sample in enumerate(seen_samples(with_ids, Metrics(EvaluationConfig()))):
        extremes.add(replace(sample, key=f"k{at}"))
    return extremes


def test_ten_slowest_questions_are_in_order() -> None:
    slowest = extremes_of(*({"elapsed_sec": seconds} for seconds in (3, 9, *range(20, 40), 1))).most("seconds")
    assert [row.value for row in slowest] == list(range(39, 29, -1))


def test_ties_keep_the_first() -> None:
    assert [row.key for row in extremes_of(*[{"elapsed_sec": 1}] * 12).most("seconds")] == [
        f"k{at}" for at in range(10)
    ]


def test_time_of_failed_attempts_counts() -> None:
    attempts = [{"elapsed_sec": 5.0}, {"error": "away"}]
    slowest = extremes_of({"elapsed_sec": 3.0}, {"elapsed_sec": 1.0, "failed_attempts": attempts}).most("seconds")
    assert [(row.key, row.value, row.failed_attempts) for row in slowest] == [("k1", 6.0, 2), ("k0", 3.0, 0)]


def test_question_with_repeats_is_listed_with_its_worst_sample() -> None:
    samples = [{"question_id": "q", "elapsed_sec": seconds, "total_tokens": 10 - seconds} for seconds in (2, 5, 3)]
    extremes = extremes_of(*samples, {"elapsed_sec": 4})
    assert [(row.key, row.value) for row in extremes.most("seconds")] == [("k1", 5), ("k3", 4)]
    assert [(row.key, row.value) for row in extremes.most("tokens")] == [("k0", 8)]


def test_row_has_the_question_text() -> None:
    extremes = extremes_of({"elapsed_sec": 1, "agent_cost": 0.5, "question_text": "Where?\n" + "x" * 1000})
    for row in (*extremes.most("seconds"), *extremes.most("usd")):
        assert row.question.startswith("Where? xx")
        assert len(row.question) == 161


def test_most_expensive_are_by_agent_cost_or_by_tokens_without_prices() -> None:
    def most(*results: Any) -> list[tuple[Any, ...]]:
        with_ids = [{"question_id": f"q{at}", **result} for at, result in enumerate(results)]
        return [(row.key, row.value, row.unit) for row in run_view(with_ids).most_expensive]

    judged = {"agent_cost": 0.1, "total_tokens": 9, "answer_correctness_cost": 5.0, "answer_f1": 1.0}
    assert most(judged, {"agent_cost": 0.5, "total_tokens": 1}, {}) == [("q1", 0.5, "usd"), ("q0", 0.1, "usd")]
    assert most({**judged, "agent_cost": 0.0}, {}) == [("q0", 9, "tokens")]
    assert extremes_of({}).most("seconds") == ()


def test_ten_worst_of_many_questions_are_correct() -> None:
    seconds = [(at * 7919) % 2003 for at in range(2_000)]
    slowest = extremes_of(*({"elapsed_sec": each} for each in seconds)).most("seconds")
    assert [row.value for row in slowest] == sorted(seconds, reverse=True)[:10]
