"""The event loop of all synchronous calls, which lasts as long as the process, and its threads.

Clients of models are bound to a loop, so a new loop for each call would break the clients that the next call finds. The
loop runs in its own thread, so code inside another loop, such as a notebook's cell, can wait for it too.
"""

import asyncio
import atexit
import contextvars
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, MutableMapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import thread as standard_pool
from typing import Any, Generic, ParamSpec, TypeVar, cast

from graphrag_eval_lc.event_loop.http_connections import aclose_idle_connections, close_idle_connections_of_others

Parameters = ParamSpec("Parameters")
Outcome = TypeVar("Outcome")

_CLOSING_SEC = 1.0
_SIGNALS_SEC = 0.02  # the pause between checks for signals that another thread received
_BLOCKED_SEC = 2.0
_IDLE_SEC = 10.0

_Work = tuple[Future[Any], Callable[[], Any]]

_current: contextvars.ContextVar["_Call[Any] | None"] = contextvars.ContextVar("synchronous_call", default=None)
_stuck: list["asyncio.Task[Any]"] = []


def run_sync(
    coroutine: Callable[[], Coroutine[Any, Any, Outcome]],
    *,
    survives: Callable[[BaseException], bool] = lambda _: False,
) -> Outcome:
    """Run a coroutine to its end in the lasting loop, and return its result.

    Tasks that it leaves behind are cancelled. Threads that hang in synchronous code, and tasks that refuse to be
    cancelled, do not delay the return. No connection of an HTTP client is used in two loops. ``survives`` returns
    whether the call continues after an exception that one of its tasks raised out of the loop, such as SystemExit.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_sync(answer)
        42
    """
    call = _Call(coroutine, survives)
    depth = _depth()
    try:
        while not call.begins_in(lasting := _lasting_loop(depth)):
            depth += not lasting.is_over
        return call.outcome()
    except BaseException as problem:
        call.give_up(problem)
        raise


def use_daemon_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Make a loop use daemon threads, as many as needed, unless it has its own executor."""
    if getattr(loop, "_default_executor", loop) is None:  # other loops than asyncio's have no such attribute
        loop.set_default_executor(DaemonThreadPool("agent"))


def has_stuck_tasks() -> bool:
    """Return whether a task refused to be cancelled, so that the process may have to be ended by force."""
    return bool(_stuck)


class Gate:
    """Blocks threads until it is opened, once and for all; safe to wait for when Ctrl-C may come.

    ``threading.Event`` waits in Python code. If a signal handler raises in the middle of that, the lock is left in a
    wrong state, and ``RuntimeError: release unlocked lock`` replaces the KeyboardInterrupt.

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
        """Let all threads pass; a second call does nothing. Only one thread at a time may call it."""
        if not self.is_open:
            self.is_open = True
            self._closed.release()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until it is open, at most ``seconds`` (negative: without limit); return whether it is."""
        if not self.is_open and self._closed.acquire(timeout=seconds):
            self._closed.release()
        return self.is_open


class _Call(Generic[Outcome]):
    """A synchronous call: its coroutine, in the caller's context, and all tasks that start in it."""

    def __init__(
        self, coroutine: Callable[[], Coroutine[Any, Any, Outcome]], survives: Callable[[BaseException], bool]
    ) -> None:
        self.lasting: _LastingLoop | None = None
        self.outer = _current.get()
        self.survives = survives
        self.is_closing = False
        self._coroutine = coroutine
        self.tasks: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        self._main: asyncio.Task[Outcome] | None = None
        self._problem: BaseException | None = None
        self._has_begun = Gate()
        self.has_ended = Gate()
        self._lock = threading.Lock()

    # --- in the caller's thread ---

    def begins_in(self, lasting: "_LastingLoop") -> bool:
        """Try to start in a loop; return False if the loop is blocked, perhaps by code that waits for this call."""
        self.lasting = lasting
        close_idle_connections_of_others(lasting.loop)
        lasting.loop.call_soon_threadsafe(self._begin, lasting, contextvars.copy_context())
        if self._has_begun.wait(_BLOCKED_SEC):
            return True
        with self._lock:
            if not self._has_begun.is_open:
                self.lasting = None
        return self.lasting is not None

    def outcome(self) -> Outcome:
        """Wait for the end, and return the coroutine's result."""
        try:
            waiting = asyncio.current_task()
        except RuntimeError:  # no loop runs in this thread
            waiting = None
        cancellations = 0 if waiting is None else waiting.cancelling()
        while not self.has_ended.wait(_SIGNALS_SEC):
            if waiting is not None and waiting.cancelling() > cancellations:
                raise asyncio.CancelledError
        main, problem = self._main, self._problem
        self._main = self._problem = None  # the result is not kept with the call's context
        if problem is not None:
            raise problem
        assert main is not None
        return main.result()

    def give_up(self, problem: BaseException) -> None:
        """End the call whose caller no longer waits for it, as after Ctrl-C."""
        lasting = self.lasting
        if lasting is None or self.has_ended.is_open:
            return
        lasting.loop.call_soon_threadsafe(self.fail, problem)
        if not self.has_ended.wait(2 * _CLOSING_SEC):
            lasting.is_blocked = lasting.is_retired = True

    # --- in the loop's thread ---

    def _begin(self, lasting: "_LastingLoop", context: contextvars.Context) -> None:
        with self._lock:
            if self.lasting is not lasting:
                return  # it came too late
            self._has_begun.open()
        lasting.calls.add(self)
        lasting.loop.set_task_factory(_task)  # an agent may have set another
        context.run(_current.set, self)
        try:
            self._main = lasting.loop.create_task(self._coroutine(), context=context)
        except BaseException as problem:
            self.fail(problem)
        else:
            self._main.add_done_callback(lambda _: self._close())

    def fail(self, problem: BaseException) -> None:
        """End the call with an error before its coroutine ends."""
        if not self.has_ended.is_open:
            self._problem = self._problem or problem
            self._close()

    def raised(self, problem: BaseException) -> bool:
        """Return whether one of the call's tasks raised this exception, which ended the loop's run."""
        return any(task.done() and not task.cancelled() and task.exception() is problem for task in list(self.tasks))

    def _close(self) -> None:
        if not self.is_closing and self.lasting is not None:
            self.is_closing = True
            for call in self.lasting.calls:
                if call.outer is self:  # from a thread that hangs
                    call.fail(RuntimeError("the call around this one has ended"))
            self._closing = self.lasting.loop.create_task(self._aclose(self.lasting), context=contextvars.Context())

    async def _aclose(self, lasting: "_LastingLoop") -> None:
        """Cancel the tasks that still run, wait up to a second for them, and let the caller continue."""
        end, cancelled = time.monotonic() + _CLOSING_SEC, set[asyncio.Task[Any]]()
        try:
            while (left := {task for task in self.tasks if not task.done()}) and time.monotonic() < end:
                for task in left - cancelled:
                    task.cancel()
                cancelled |= left
                await asyncio.wait(left, timeout=end - time.monotonic())
            if lasting.calls == {self}:
                await aclose_idle_connections()
        finally:
            main = self._main
            if main is not None and main.done() and not main.cancelled():
                main.exception()  # read, as asyncio would report it as never retrieved
            self.has_ended.open()
            lasting.ended(self, [task for task in self.tasks if not task.done()])


class _LastingLoop:
    """An event loop in its own thread."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.is_retired = False
        self.is_blocked = False
        self.is_over = False
        self.calls: set[_Call[Any]] = set()
        self.loop = asyncio.new_event_loop()
        self.loop.set_task_factory(_task)
        self._threads = DaemonThreadPool("agent")
        self.loop.set_default_executor(self._threads)
        self.thread = threading.Thread(target=self._run, name="graphrag-eval-lc-loop", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.is_over or self.calls:
            try:
                self.loop.run_forever()  # it also returns if a task stops the loop
            except BaseException as problem:
                self._raised(problem)
        if self.is_retired:
            # Garbage collection would run these tasks once more, and they would refuse again. Objects held by the frame
            # of a daemon thread are not collected, not even at exit.
            threading.Event().wait()
        self.loop.close()

    def _raised(self, problem: BaseException) -> None:
        """End the calls whose task raised this exception, or all calls if no task is known; the loop continues."""
        guilty = [call for call in self.calls if call.raised(problem)] or list(self.calls)
        for call in guilty:
            if not call.is_closing and not call.survives(problem):
                call.fail(problem)

    def ended(self, call: _Call[Any], stuck: list["asyncio.Task[Any]"]) -> None:
        """Forget a call; if ``stuck`` tasks refused to end, the loop stops for good after its last call."""
        self.calls.discard(call)
        self._threads.let_hanging_go()
        for task in stuck:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # else asyncio reports it
        if stuck:
            _stuck.extend(stuck)
            self.is_retired = True
        if self.is_retired and not self.calls:
            self.is_over = True
            self.loop.stop()

    def close(self) -> None:
        """End the loop at exit, unless calls still need it."""
        if self.calls or self.is_retired:
            return
        wait([asyncio.run_coroutine_threadsafe(self.loop.shutdown_asyncgens(), self.loop)], timeout=_CLOSING_SEC)
        self.is_over = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(_CLOSING_SEC)


def _task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> "asyncio.Task[Any]":
    """Create a task, and add it to the call whose task starts it."""
    context: contextvars.Context | None = options.get("context")
    call = _current.get() if context is None else context.get(_current)
    task = asyncio.Task(coroutine, loop=loop, **options)
    if call is not None:
        call.tasks.add(task)
        if call.has_ended.is_open:
            task.cancel()
    return task


# --- the threads of the loops: work in them may hang, and they never keep the process alive ---------------------------


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
        """Keep the process from waiting at exit for thread pools that hanging work has created.

        LangGraph creates one for parallel nodes. Its threads inherit the daemon flag, but the standard library joins
        them anyway.
        """
        joined = cast("MutableMapping[threading.Thread, Any]", standard_pool._threads_queues)
        for thread in [thread for thread in list(joined) if thread.daemon] if self._busy else ():
            joined.pop(thread, None)

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


# --- the loops of the process -----------------------------------------------------------------------------------------

_lock = threading.Lock()
_loops: list[_LastingLoop] = []
_of_parent: list[_LastingLoop] = []


def _lasting_loop(depth: int) -> _LastingLoop:
    with _lock:
        while len(_loops) <= depth:
            _loops.append(_LastingLoop(len(_loops)))
        known = _loops[depth]
        if known.is_retired and (known.is_blocked or not known.calls):  # otherwise two loops would share the clients
            _loops[depth] = _LastingLoop(depth)
        return _loops[depth]


def _depth() -> int:
    """Return the index of the loop for a call from here; a call inside a lasting loop needs the next one.

    The loop of this thread cannot run the call, as it is blocked while the code waits.
    """
    here = threading.current_thread()
    for lasting in _loops:
        if lasting.thread is here:
            return lasting.depth + 1
    call = _current.get()
    return call.lasting.depth if call is not None and call.lasting in _loops else 0


def _forget_loops() -> None:
    """Start with no loops in a forked child, which inherits its parent's loops without their threads.

    The inherited loops are kept open, as closing one would close the parent's too.
    """
    global _lock
    _lock = threading.Lock()
    _of_parent.extend(_loops)
    _loops.clear()


def _close_loops() -> None:
    for lasting in _loops:
        lasting.close()
    _loops.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loops)
atexit.register(_close_loops)
