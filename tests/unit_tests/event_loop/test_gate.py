import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from graphrag_eval_lc.event_loop.loop import Gate


class _AlarmError(BaseException):
    pass


@pytest.fixture
def alarm() -> Iterator[list[bool]]:
    """Raise in the main thread when the timer fires, if the list holds True."""
    is_on = [False]

    def handler(number: int, frame: FrameType | None) -> None:
        if is_on[0]:
            is_on[0] = False
            raise _AlarmError

    previous = signal.signal(signal.SIGALRM, handler)
    yield is_on
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def wait_for_the_alarm(gate: Gate, alarm: list[bool]) -> None:
    alarm[0] = True
    signal.setitimer(signal.ITIMER_REAL, 0.0002)
    while not gate.wait(0.00002):
        pass


def test_wait_raises_from_a_signal_handler_and_can_be_repeated(alarm: list[bool]) -> None:
    gate = Gate()
    count = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with pytest.raises(_AlarmError):
            wait_for_the_alarm(gate, alarm)
        count += 1
    assert count > 10
    gate.open()
    assert gate.wait()


def test_waiting_threads_continue_when_the_gate_opens() -> None:
    gate = Gate()
    passed: list[bool] = []
    threads = [threading.Thread(target=lambda: passed.append(gate.wait(30))) for _ in range(3)]
    for thread in threads:
        thread.start()
    gate.open()
    gate.open()
    for thread in threads:
        thread.join()
    assert passed == [True] * 3
