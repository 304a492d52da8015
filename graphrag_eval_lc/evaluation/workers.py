"""The one loop that does many things at once: as many as there are places, while a bounded number waits."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# A task that refuses to be cancelled does not hold up the end.
_CANCELLING_SEC = 1.0


class Workers(Generic[Item]):
    """Does the same with many items at once, in the running event loop. The first to be put is the first to begin.

    Args:
        work: What is done with an item.
        places: How many items may be under way at once, at least 1.
        room: How many more may wait for a place; ``aput`` waits while there are more.
        goes_on: Whether the others are done where one fails; else they are cancelled.

    Attributes:
        problem: What the first item that failed raised; None while none did. It is raised at the end, or at once where
            the others are cancelled.

    Example:
        >>> async def halves(numbers):
        ...     done = []
        ...     async def halve(number):
        ...         done.append(number / 2)
        ...     await Workers(halve, places=2).arun(numbers)
        ...     return done
        >>> asyncio.run(halves([1, 2, 3]))
        [0.5, 1.0, 1.5]
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

    async def arun(self, items: Iterable[Item]) -> None:
        """Do all items. An item is taken from ``items`` only when there is room for it.

        Raises:
            BaseException: What the first item that failed raised.
        """
        try:
            for item in items:
                await self.aput(item)
            await self.aclose()
        except BaseException:
            self._cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_CANCELLING_SEC)
            raise

    async def aput(self, item: Item) -> None:
        """Have an item done soon.

        Raises:
            BaseException: What an earlier item raised, unless the others go on.
        """
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

    async def aclose(self) -> None:
        """Wait for the last item.

        Raises:
            BaseException: What the first item that failed raised.
        """
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.problem is not None:
            raise self.problem

    async def _awork(self) -> None:
        """Do items until none waits."""
        while self._waiting and (self._goes_on or self.problem is None):
            item = self._waiting.popleft()
            self._some_begun.set()
            try:
                await self._work(item)
            except BaseException as problem:  # else whoever waits for a place would wait for ever
                self._note(problem)
        task = asyncio.current_task()
        if task is not None:  # at once, so that the next item gets a worker that lives
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
