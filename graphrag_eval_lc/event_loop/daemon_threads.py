"""A thread pool for work that may hang: its threads never keep the process alive."""

import queue
import threading
from collections.abc import Callable, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import thread as standard_pool
from typing import Any, ParamSpec, TypeVar, cast

Parameters = ParamSpec("Parameters")
Outcome = TypeVar("Outcome")

_IDLE_SEC = 10.0

_Work = tuple[Future[Any], Callable[[], Any]]


class DaemonThreadPool(ThreadPoolExecutor):
    """Starts as many daemon threads as there is concurrent work, and reuses idle ones.

    The standard library joins the threads of its pools at exit, so one hanging thread keeps the process alive. It is
    the base class only because asyncio accepts no other default executor.
    """

    def __init__(self, name: str) -> None:
        super().__init__(max_workers=1)  # never starts a thread, since ``submit`` is replaced
        self._name = name
        self._work: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._is_closed = False
        self._busy: set[threading.Thread] = set()

    def submit(
        self, fn: Callable[Parameters, Outcome], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Outcome]:
        """Run a function in a thread."""
        if self._is_closed:
            raise RuntimeError("the threads are closed")
        future: Future[Outcome] = Future()
        self._work.put((future, lambda: fn(*args, **kwargs)))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._run, name=f"graphrag-eval-lc-{self._name}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End idle threads now and busy ones after their work, without waiting."""
        self._is_closed = True
        self.let_hanging_go()
        while self._idle.acquire(blocking=False):
            self._work.put(None)

    def let_hanging_go(self) -> None:
        """Keep the process from waiting at exit for thread pools that hanging work has created."""
        if self._busy:
            _let_daemon_threads_go()

    def _run(self) -> None:
        while True:
            try:
                work = self._work.get(timeout=_IDLE_SEC)
            except queue.Empty:
                if self._idle.acquire(blocking=False):
                    return
                continue  # a submitted task counts on this thread
            if work is None:
                return
            self._busy.add(threading.current_thread())
            _carry_out(*work)
            self._busy.discard(threading.current_thread())
            del work
            if self._is_closed:
                return
            self._idle.release()


def _carry_out(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        outcome = work()
    except BaseException as problem:
        future.set_exception(problem)
    else:
        future.set_result(outcome)


def _let_daemon_threads_go() -> None:
    """Keep the standard library from joining daemon threads at exit.

    Hanging work may have created a pool, as LangGraph does for parallel nodes. Its threads inherit the daemon flag, but
    the standard library joins them anyway.
    """
    joined = cast("MutableMapping[threading.Thread, Any]", standard_pool._threads_queues)
    for thread in [thread for thread in list(joined) if thread.daemon]:
        joined.pop(thread, None)
