import random
from datetime import UTC, datetime
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.capture.interpret import in_order
from graphrag_eval_lc.capture.responses import Step, actual_step
from graphrag_eval_lc.capture.values import utc_timestamp


def step(name: str, order: tuple[int, int], parent: Step | None = None) -> Step:
    return Step(name, {}, uuid4(), parent, order)


@given(st.randoms())
def test_steps_follow_their_parent(rng: random.Random) -> None:
    a, b, c = step("a", (1, 0)), step("b", (1, 1)), step("c", (9, 0))
    steps = [a, b, c, step("a1", (5, 0), a), step("a2", (5, 1), a), step("b1", (3, 0), b)]
    rng.shuffle(steps)
    assert [each.name for each in in_order(steps)] == ["a", "a1", "a2", "b", "b1", "c"]


@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_timestamps_are_utc(moment: datetime) -> None:
    text = utc_timestamp(moment.timestamp())
    assert text.endswith("Z")
    assert abs(datetime.fromisoformat(text) - moment).total_seconds() < 1e-5


def test_open_step_is_an_error_with_the_given_reason() -> None:
    record = actual_step(step("a", (0, 0)), "the run was stopped", "b")
    assert (record["name"], record["status"], record["error"]) == ("b", "error", "the run was stopped")
    assert "output" not in record
    assert "elapsed_sec" not in record
