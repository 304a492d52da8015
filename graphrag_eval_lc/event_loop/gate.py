"""An event that a thread may wait for while signals come whose handlers raise, such as Ctrl-C."""

import threading


class Gate:
    """Is closed until it is opened, for good.

    ``threading.Event`` waits in Python code. Where a signal's handler raises in the midst of that, its lock is in
    disorder, and ``RuntimeError: release unlocked lock`` takes the place of the KeyboardInterrupt.

    Example:
        >>> gate = Gate()
        >>> gate.wait(0.01)
        False
        >>> gate.open()
        >>> gate.wait(), gate.is_open
        (True, True)
    """

    def __init__(self) -> None:
        self.is_open = False
        self._closed = threading.Lock()
        self._closed.acquire()

    def open(self) -> None:
        """Let all threads pass; a second time does nothing. One thread at a time may call it."""
        if not self.is_open:
            self.is_open = True
            self._closed.release()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until it is open, at most for some seconds; return whether it is."""
        if not self.is_open and self._closed.acquire(timeout=seconds):
            self._closed.release()
        return self.is_open
