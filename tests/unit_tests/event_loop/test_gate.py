import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from graphrag_eval_lc.event_loop.loop import Gate


class _SignalCame(BaseException):
    pass


@pytest.fixture
def alarm() -> Iterator[list[bool]]:
    """Raise in the main thread when the alarm goes off, while the list says so."""
    is_on = [False]

    def raise_it(number: int, frame: FrameType | None) -> None:
        if is_on[0]:
            is_on[0] = False
            raise _SignalCame

    earlier = signal.signal(signal.SIGALRM, raise_it)
    yield is_on
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, earlier)


def wait_for_the_alarm(gate: Gate, alarm: list[bool]) -> None:
    alarm[0] = True
    signal.setitimer(signal.ITIMER_REAL, 0.0002)
    while not gate.wait(0.00002):
        pass


def test_who_waits_gets_what_a_signals_handler_raises_and_may_wait_again(alarm: list[bool]) -> None:
    gate = Gate()
    came = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        with pytest.raises(_SignalCame):
            wait_for_the_alarm(gate, alarm)
        came += 1
    assert came > 10
    gate.open()
    assert gate.wait()


def test_threads_that_wait_pass_once_it_is_open() -> None:
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
