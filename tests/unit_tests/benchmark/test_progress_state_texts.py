"""The values of a run in words."""

from dataclasses import replace

from graphrag_eval_lc.benchmark.progress_state import (
    RunSnapshot,
    amount_text,
    duration_text,
    message_of,
    progress_line,
    rate_text,
)
from graphrag_eval_lc.evaluation.events import RunEvent

RUN = RunSnapshot(total=2000, done=120, errors=1, in_flight=4, max_concurrency=8, limit=8, elapsed_sec=212.0)


def test_what_is_not_known_is_left_out() -> None:
    assert progress_line(RUN) == "120 of 2,000 done, 1 error, 4 in flight"


def test_a_lowered_limit_is_told() -> None:
    assert "4 in flight (limit 4)" in progress_line(replace(RUN, limit=4))


def test_tokens_that_are_known_in_part_are_at_least_so_many() -> None:
    assert "at least 5.0k tokens" in progress_line(replace(RUN, tokens=5000, tokens_unknown=2))


def test_a_run_that_stops_says_why() -> None:
    assert "stopping (max_tokens)" in progress_line(replace(RUN, stopping="max_tokens"))


def test_a_run_that_has_ended_says_how_long_it_took() -> None:
    ended = replace(RUN, done=2000, in_flight=0, seconds_left=0.0, elapsed_sec=3480.0, ended=True)
    assert progress_line(ended) == "2,000 of 2,000 done, 1 error, in 58 min"


def test_amounts_never_show_a_thousand_of_a_unit() -> None:
    assert [amount_text(number) for number in (0, 999, 1000, 999_949, 999_950, 999_999_999)] == [
        "0",
        "999",
        "1.0k",
        "999.9k",
        "1.0M",
        "1.0B",
    ]


def test_durations_and_rates_have_the_digits_that_they_are_worth() -> None:
    assert [duration_text(seconds) for seconds in (0.2, 89, 90, 5399, 5400, 172_800)] == [
        "1 s",
        "89 s",
        "2 min",
        "1 h 30 min",
        "1 h 30 min",
        "2 days 0 h",
    ]
    assert [rate_text(rate) for rate in (0.034, 9.94, 33.6)] == ["0.034", "9.9", "34"]


def test_warnings_and_the_reason_for_stopping_are_messages() -> None:
    assert message_of(RunEvent("warning", {"message": "The disk is full."})) == "Warning: The disk is full."
    assert message_of(RunEvent("run_stopping", {"reason": "interrupted", "message": "Stopping."})) == "Stopping."
    assert message_of(RunEvent("limit_changed", {"limit": 4, "reason": "429"})) is None
