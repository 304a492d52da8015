"""Send signals to the test process while an agent runs in another thread."""

import os
import signal
import time


def send_signal(number: signal.Signals) -> None:
    """Send a signal to this process and wait until it is handled."""
    os.kill(os.getpid(), number)
    time.sleep(0.2)
