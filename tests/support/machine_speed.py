"""Bounds on processor time that hold on slow and busy machines, too: a test gives the seconds of a quiet one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_SEC = 0.0033  # what the yardstick takes on a quiet machine
_SLACK = 2.0  # a bound is there for what grows faster than it may; `benchmarks/` tells of less


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Fail where the block takes more processor time than it may.

    Args:
        most: Seconds on a quiet machine. On one on which a piece of plain Python takes twice as long, twice as many.
    """
    started = time.process_time()
    yield
    took = time.process_time() - started
    if took < most * _SLACK:  # on any machine
        return
    slowness = max(_yardstick(), _yardstick(), 1.0)
    assert took < most * slowness * _SLACK, f"{took:.2f} s; this machine is {slowness:.1f} times as slow as a quiet one"


def _yardstick() -> float:
    """Return how many times as long as on a quiet machine plain Python takes now."""
    took = []
    for _ in range(5):
        started = time.process_time()
        for number in range(20_000):
            words = {"number": str(number), "of": [number, number + 1]}
            assert words
        took.append(time.process_time() - started)
    return sorted(took)[2] / _QUIET_SEC
