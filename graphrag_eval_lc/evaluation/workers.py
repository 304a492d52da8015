"""The one loop that works on many items at once; a bounded number of them waits."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")

# A task that refuses to be cancelled does not hold up the end.
_CANCELLING_SEC = 1.0


class Workers(Generic[Item]):
    """Works on many items at once, in the running event loop; they begin in the order in which they are put.

    ``places`` items may be under way at once, and ``room`` more may wait; ``aput`` waits while there are more. A
    failure cancels the others and is raised at once; if it ``goes_on``, it leaves them alone and is raised by
    ``aclose``. ``problem`` is the first one.
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
        """Work on all items; each is taken from ``items`` when there is room for it. Raise the first failure."""
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
        """Have an item worked on soon; wait where too many wait already."""
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
        """Return at most ``room`` items that wait, to work on them along with the one at hand."""
        self._some_begun.set()
        return [self._waiting.popleft() for _ in range(min(self._room, len(self._waiting)))]

    async def aclose(self) -> None:
        """Wait for the last item; raise the first failure."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self.problem is not None:
            raise self.problem

    async def _awork(self) -> None:
        """Work on one item after the other until none waits."""
        while self._waiting and (self._goes_on or self.problem is None):
            item = self._waiting.popleft()
            self._some_begun.set()
            try:
                await self._work(item)
            except BaseException as problem:  # else whoever waits for room would wait for ever
                self._note(problem)
        task = asyncio.current_task()
        if task is not None:  # now, as the next item needs a worker that still runs
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
