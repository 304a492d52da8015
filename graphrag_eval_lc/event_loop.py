"""Running a coroutine from synchronous code, also where an event loop runs already, as in a notebook."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Outcome = TypeVar("Outcome")


def run_sync(coroutine: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
    """Run a coroutine to its end and give what it returns.

    Args:
        coroutine: A function that makes the coroutine.

    Example:
        >>> async def answer() -> int:
        ...     return 42
        >>> run_sync(answer)
        42
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine())
    # The running loop waits for this call, so the coroutine needs a loop and a thread of its own.
    context = contextvars.copy_context()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="graphrag-eval-lc") as thread:
        return thread.submit(context.run, lambda: asyncio.run(coroutine())).result()
