"""How many requests to models are under way at once, over all questions and metrics of a run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphrag_eval_lc.errors import OptionError


class CallPool:
    """The places for requests, shared by all models of a run.

    It may serve several event loops, one after the other: it belongs to the one in which it was used last.

    Args:
        max_concurrency: The number of places, at least 1.

    Raises:
        OptionError: There is no place.
    """

    def __init__(self, max_concurrency: int) -> None:
        if max_concurrency < 1:
            raise OptionError(f"max_concurrency is at least 1, not {max_concurrency}")
        self.max_concurrency = max_concurrency
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(max_concurrency)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._places = loop, asyncio.Semaphore(self.max_concurrency)
        async with self._places:
            yield
