"""Syncing a file to the disk from a thread of its own, so that nobody waits for the disk."""

import threading

from graphrag_eval_lc.run_folder.atomic import sync

_PAUSE_SEC = 0.1


class BackgroundSync:
    """Brings what is written to an open file to the disk within 0.2 seconds, as far as the disk is that fast.

    Args:
        descriptor: The open file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsynced = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._problem: OSError | None = None

    def mark(self) -> None:
        """Say that something was written; the thread starts with the first of it.

        Raises:
            OSError: The last sync failed; it is raised once.
        """
        self._unsynced.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="journal-sync", daemon=True)
            self._thread.start()
        self._raise_problem()

    def close(self) -> None:
        """Sync what is left and end the thread.

        Raises:
            OSError: A sync failed.
        """
        self._closing.set()
        if self._thread is not None:
            self._unsynced.set()
            self._thread.join()
            self._thread = None
        self._raise_problem()

    def _run(self) -> None:
        closing = False
        while not closing:
            self._unsynced.wait()
            self._unsynced.clear()
            closing = self._closing.is_set()
            try:
                sync(self._descriptor)
            except OSError as problem:
                self._problem = problem
            self._closing.wait(_PAUSE_SEC)

    def _raise_problem(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
