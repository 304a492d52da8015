"""Things that live in one event loop, such as the connections of a client."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class LoopBound(Generic[Thing]):
    """A thing that is made at its first use in an event loop, and closed with that loop.

    Args:
        make: Makes it.
        close: Closes it.
    """

    def __init__(self, make: Callable[[], Thing], close: Callable[[Thing], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: AsyncGenerator[Thing, None] | None = None
        self._thing: Thing | None = None

    async def get(self) -> Thing:
        """Give the thing of the running loop."""
        loop = asyncio.get_running_loop()
        if self._thing is None or loop is not self._loop:
            self._life = self._living()
            self._thing, self._loop = await anext(self._life), loop
        return self._thing

    async def aclose(self) -> None:
        """Close it now; the next use makes another one."""
        life, self._life, self._thing = self._life, None, None
        if life is not None and self._loop is asyncio.get_running_loop():
            await life.aclose()

    async def _living(self) -> AsyncGenerator[Thing, None]:
        # A loop ends its generators before it closes, so that nobody has to think of it.
        thing = self._make()
        try:
            yield thing
        finally:
            await self._close(thing)
