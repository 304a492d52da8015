"""Running a coroutine from synchronous code, also where an event loop runs already, as in a notebook."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

from graphrag_eval_lc.daemon_threads import DaemonThreadPool

Outcome = TypeVar("Outcome")

_CLOSING_SEC = 1.0
_stuck: list["asyncio.Task[Any]"] = []


def _never(_: BaseException) -> bool:
    return False


def run_sync(
    coroutine: Callable[[], Coroutine[Any, Any, Outcome]], *, survives: Callable[[BaseException], bool] = _never
) -> Outcome:
    """Run a coroutine to its end and give what it returns.

    Threads that hang in synchronous code, and tasks that refuse to be cancelled, do not hold up the end.

    Args:
        coroutine: A function that makes the coroutine.
        survives: Told a SystemExit or KeyboardInterrupt that some task raised out of the event loop, or a
            RuntimeError where a task stopped the loop: whether the coroutine goes on nevertheless.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_sync(answer)
        42
    """
    run = _run_in_thread if _is_in_loop() else _run
    return run(coroutine, survives)


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def use_daemon_threads(loop: asyncio.AbstractEventLoop) -> None:
    """Let what a loop hands to threads run in daemon threads, as many as it takes, unless it has its own executor."""
    if getattr(loop, "_default_executor", None) is None:
        loop.set_default_executor(DaemonThreadPool("agent"))


def _run(coroutine: Callable[[], Coroutine[Any, Any, Outcome]], survives: Callable[[BaseException], bool]) -> Outcome:
    main: asyncio.Task[Outcome] | None = None
    try:
        with _new_loop() as loop:
            main = loop.create_task(coroutine())
            while True:
                try:
                    return loop.run_until_complete(main)
                except (SystemExit, KeyboardInterrupt, RuntimeError) as problem:
                    # A task that raises these, or calls loop.stop(), stops the loop; its other tasks are as they were.
                    if main.done() or not survives(problem):
                        raise
    finally:
        if main is not None and main.done() and not main.cancelled():
            main.exception()  # asyncio reports one that nobody asked for, although it was raised


def _run_in_thread(
    coroutine: Callable[[], Coroutine[Any, Any, Outcome]], survives: Callable[[BaseException], bool]
) -> Outcome:
    """Run where a loop waits for this very call: in a thread with a loop of its own."""
    outcome: list[Outcome] = []
    problems: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            outcome.append(context.run(_run, coroutine, survives))
        except BaseException as problem:
            problems.append(problem)

    thread = threading.Thread(target=run, name="graphrag-eval-lc", daemon=True)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return outcome[0]


@contextmanager
def _new_loop() -> Generator[asyncio.AbstractEventLoop, None, None]:
    loop = asyncio.new_event_loop()
    threads = DaemonThreadPool("agent")
    loop.set_default_executor(threads)
    try:
        yield loop
    finally:
        try:
            _cancel_tasks(loop)
        finally:
            threads.shutdown(wait=False)
            loop.close()


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what still runs, and wait a moment for it."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()

    async def close() -> None:
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSING_SEC)
        closing = asyncio.ensure_future(loop.shutdown_asyncgens())
        await asyncio.wait({closing}, timeout=_CLOSING_SEC)

    for _ in range(len(tasks) + 1):  # each task may raise a SystemExit out of the loop, once
        try:
            loop.run_until_complete(close())
            break
        except (SystemExit, KeyboardInterrupt):
            continue
    stuck = asyncio.all_tasks(loop)
    for task in stuck:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # it was told to end and did not
    if stuck:
        _stuck.extend(stuck)
        threading.Thread(target=_keep, args=(stuck,), name="graphrag-eval-lc-stuck", daemon=True).start()


def _keep(tasks: "set[asyncio.Task[Any]]") -> None:
    """Hold tasks for good, as Python would run them once more to collect them, and they would refuse again.

    What the frame of a daemon thread holds is not collected at the end of the process either.
    """
    threading.Event().wait()


def has_stuck_tasks() -> bool:
    """Tell whether a task refused to be cancelled, so that the process may not end by itself."""
    return bool(_stuck)
