"""Signals as a terminal sends them: to the process, whose main thread handles them while an agent is at work."""

import os
import signal
import time


def send_signal(number: signal.Signals) -> None:
    """Send a signal to this process, and wait until it is handled."""
    os.kill(os.getpid(), number)
    time.sleep(0.2)
