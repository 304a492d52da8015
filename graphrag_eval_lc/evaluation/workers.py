"""Runs an async function on many items concurrently, with a bounded queue."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# How long to wait for cancelled tasks, as a task may refuse to be cancelled.
_CANCELLING_SEC = 1.0


class Workers(Generic[Item]):
    """Processes items concurrently in the running event loop; items start in the order in which they are put.

    Args:
        work: Processes one item.
        places: The concurrency limit.
        room: How many more items may be queued; ``aput`` waits while there are more.
        goes_on: Whether the other items continue after a failure, which is then raised by ``aclose``. Otherwise a
            failure cancels them and is raised at once.

    Attributes:
        problem: The first failure; None if there is none.
    """

    def __init__(
        self, work: Callable[[Item], Awaitable[None]], *, places: int, room: int = 0, goes_on: bool = False
    ) -> None:
        self.problem: BaseException | None = None
        self._work = work
        self._places = places
        self._room = room
        self._goes_on = goes_on
        self._waiting: deque[Item] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._some_begun = asyncio.Event()

    async def arun(self, items: Iterable[Item] | AsyncIterable[Item]) -> None:
        """Process all items, taking each from ``items`` when there is room for it. Raise the first failure."""
        try:
            if isinstance(items, AsyncIterable):
                async for item in items:
                    await self.aput(item)
            else:
                for item in items:
                    await self.aput(item)
            await self.aclose()
        except BaseException:
            self._cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_CANCELLING_SEC)
            raise

    async def aput(self, item: Item) -> None:
        """Queue an item; wait while the queue is full."""
        self._waiting.append(item)
        if len(self._tasks) < self._places:
            task = asyncio.create_task(self._awork())
            self._tasks.add(task)
            task.add_done_callback(self._ended)
        while len(self._waiting) > self._room and self._tasks:
            self._some_begun.clear()
            await self._some_begun.wait()
        if self.problem is not None and not self._goes_on:
            raise self.problem

    def take_waiting(self) -> list[Item]:
        """Remove and return up to ``room`` queued items, so that ``work`` can process them together with its item."""
        self._some_begun.set()
        return [self._waiting.popleft() for _ in range(min(self._room, len(self._waiting)))]

    async def aclose(self) -> None:
        """Wait for the last item; raise the first failure."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.problem is not None:
            raise self.problem

    async def _awork(self) -> None:
        """Process queued items one after the other until the queue is empty."""
        while self._waiting and (self._goes_on or self.problem is None):
            item = self._waiting.popleft()
            self._some_begun.set()
            try:
                await self._work(item)
            except BaseException as problem:  # otherwise a caller that waits for room would wait forever
                self._note(problem)
        task = asyncio.current_task()
        if task is not None:  # at once, as this task accepts no more items although it is not done yet
            self._tasks.discard(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if task.cancelled():  # before it began
            self._note(asyncio.CancelledError())
        self._some_begun.set()

    def _note(self, problem: BaseException) -> None:
        if self.problem is None:
            is_cancelled = isinstance(problem, asyncio.CancelledError)
            self.problem = RuntimeError(f"{problem!r} ended it") if is_cancelled else problem
            if not self._goes_on:
                self._cancel()

    def _cancel(self) -> None:
        self._waiting.clear()
        for task in self._tasks - {asyncio.current_task()}:
            task.cancel()
