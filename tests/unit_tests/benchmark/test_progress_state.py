"""How a run stands, counted from its events."""

import threading
from typing import Any

import pytest

from graphrag_eval_lc.benchmark.progress_state import RunState
from graphrag_eval_lc.evaluation.events import EventKind, RunEvent


class Run:
    """A run on a clock that the test moves."""

    def __init__(self, total: int = 100, done: int = 0, errors: int = 0, max_concurrency: int = 2) -> None:
        self.now = 1000.0
        self.state = RunState(lambda: self.now)
        self.tell("run_started", total=total, done=done, errors=errors, max_concurrency=max_concurrency)

    def tell(self, kind: EventKind, **fields: Any) -> None:
        self.state(RunEvent(kind, fields))

    def start(self, question_id: str, attempt: int = 1, repeat: int | None = None) -> None:
        self.tell("attempt_started", question_id=question_id, repeat=repeat, attempt=attempt)

    def end(self, question_id: str = "q", status: str = "success", tokens: int | None = 10) -> None:
        self.tell("response_ended", question_id=question_id, repeat=None, status=status, total_tokens=tokens)


def test_nothing_is_known_before_the_run_started() -> None:
    snapshot = RunState().snapshot()
    assert (snapshot.total, snapshot.done, snapshot.in_flight) == (0, 0, 0)
    assert snapshot.elapsed_sec is snapshot.limit is snapshot.tokens is snapshot.seconds_left is None
    assert not snapshot.ended


def test_what_an_earlier_session_did_counts_as_done_but_not_in_the_rate() -> None:
    run = Run(total=100, done=40, errors=3)
    assert run.state.snapshot().per_minute is None
    run.now += 30
    run.end()
    snapshot = run.state.snapshot()
    assert (snapshot.done, snapshot.errors) == (41, 3)
    assert snapshot.per_minute == pytest.approx(2)


def test_a_response_with_an_error_is_done_and_an_error() -> None:
    run = Run()
    run.end(status="error")
    assert (run.state.snapshot().done, run.state.snapshot().errors) == (1, 1)


def test_a_sample_is_in_flight_from_its_first_attempt_until_its_response() -> None:
    run = Run()
    run.start("a")
    run.start("a", repeat=2)
    run.tell("attempt_failed", question_id="a", repeat=None, attempt=1, error="away", retry_in_sec=1.5)
    run.start("a", attempt=2)
    assert (run.state.snapshot().in_flight, run.state.snapshot().retries) == (2, 1)
    run.end("a")
    assert run.state.snapshot().in_flight == 1


def test_an_attempt_that_is_not_tried_again_is_no_retry() -> None:
    run = Run()
    run.tell("attempt_failed", question_id="a", repeat=None, attempt=1, error="away", retry_in_sec=None)
    assert run.state.snapshot().retries == 0


def test_tokens_are_none_while_unknown_and_tell_how_many_responses_are_silent() -> None:
    run = Run()
    run.end(tokens=None)
    assert run.state.snapshot().tokens is None
    run.end(tokens=0)
    run.end(tokens=7)
    assert (run.state.snapshot().tokens, run.state.snapshot().tokens_unknown) == (7, 1)


def test_steps_score_is_the_mean_of_what_has_one() -> None:
    run = Run()
    for score in (None, 1.0, 0.5):
        run.tell("result_scored", question_id="q", repeat=None, steps_score=score)
    assert run.state.snapshot().steps_score == 0.75


def test_the_limit_follows_its_changes() -> None:
    run = Run(max_concurrency=8)
    run.tell("limit_changed", limit=4, reason="429")
    assert (run.state.snapshot().limit, run.state.snapshot().max_concurrency) == (4, 8)


def test_time_left_is_unknown_until_the_first_round_is_through() -> None:
    run = Run(total=10, max_concurrency=3)
    run.now += 6
    run.end()
    run.end()
    assert run.state.snapshot().seconds_left is None
    run.end()
    assert run.state.snapshot().seconds_left == pytest.approx(7 * 6 / 3)


def test_time_left_follows_the_recent_rate_and_not_the_first_hour() -> None:
    run = Run(total=1000, max_concurrency=2)
    for _ in range(60):
        run.now += 60
        run.end()
    for _ in range(40):
        run.now += 1
        run.end()
    assert run.state.snapshot().seconds_left == pytest.approx(900)


def test_time_left_grows_while_nothing_ends() -> None:
    run = Run(total=100, max_concurrency=1)
    for _ in range(30):
        run.now += 1
        run.end()
    before = run.state.snapshot().seconds_left
    run.now += 60
    after = run.state.snapshot().seconds_left
    assert before is not None
    assert after is not None
    assert after > 3 * before


def test_no_time_is_left_when_all_is_done_and_none_is_told_while_stopping() -> None:
    run = Run(total=1, max_concurrency=1)
    run.end()
    assert run.state.snapshot().seconds_left == 0
    run.tell("run_stopping", reason="interrupted", message="Stopping.", in_flight=0)
    assert run.state.snapshot().seconds_left is None
    assert run.state.snapshot().stopping == "interrupted"


def test_many_that_end_at_the_same_moment_divide_by_no_zero() -> None:
    run = Run(total=10, max_concurrency=2)
    for _ in range(3):
        run.end()
    assert (run.state.snapshot().per_minute, run.state.snapshot().seconds_left) == (None, None)


def test_the_end_of_the_run_has_the_last_word_and_stops_the_clock() -> None:
    run = Run(total=10)
    run.start("a")
    run.now += 5
    run.tell("run_ended", total=10, done=9, errors=2, elapsed_sec=5.0, left_out=1)
    run.now += 100
    snapshot = run.state.snapshot()
    assert (snapshot.done, snapshot.errors, snapshot.in_flight, snapshot.elapsed_sec) == (9, 2, 0, 5.0)
    assert snapshot.ended


def test_events_from_several_threads_are_all_counted() -> None:
    run = Run(total=2000)

    def ask(name: int) -> None:
        for number in range(500):
            run.start(f"{name}-{number}")
            run.end(f"{name}-{number}", tokens=3)

    threads = [threading.Thread(target=ask, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = run.state.snapshot()
    assert (snapshot.done, snapshot.in_flight, snapshot.tokens) == (2000, 0, 6000)


def test_a_signal_handler_may_tell_while_its_thread_is_telling() -> None:
    interrupted: list[RunState] = []

    def clock() -> float:
        if interrupted:  # as a handler that runs while the state holds its lock
            interrupted.pop()(RunEvent("run_stopping", {"reason": "interrupted", "message": "Stopping."}))
        return 0.0

    state = RunState(clock)
    interrupted.append(state)
    assert state.snapshot().stopping == "interrupted"
