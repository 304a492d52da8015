"""Limits on processor time that also hold on slow and busy machines. Tests state seconds on an idle machine."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_SEC = 0.0033  # the yardstick's time on an idle machine
_SLACK = 2.0  # catches wrong complexity; `benchmarks/` measures smaller differences


@contextmanager
def processor_seconds(most: float) -> Iterator[None]:
    """Fail if the block uses too much processor time.

    Args:
        most: Seconds on an idle machine, scaled by how much slower plain Python runs now.
    """
    started = time.process_time()
    yield
    took = time.process_time() - started
    if took < most * _SLACK:  # on any machine
        return
    slowness = max(_yardstick(), _yardstick(), 1.0)
    assert took < most * slowness * _SLACK, f"{took:.2f} s; this machine is {slowness:.1f} times as slow as a quiet one"


def _yardstick() -> float:
    """Return how much longer than on an idle machine plain Python takes now."""
    took = []
    for _ in range(5):
        started = time.process_time()
        for number in range(20_000):
            words = {"number": str(number), "of": [number, number + 1]}
            assert words
        took.append(time.process_time() - started)
    return sorted(took)[2] / _QUIET_SEC
