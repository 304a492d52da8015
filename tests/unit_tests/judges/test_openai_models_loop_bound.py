import asyncio

from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.openai_models import LoopBound


class Connection:
    def __init__(self) -> None:
        self.closed_in: asyncio.AbstractEventLoop | None = None

    async def close(self) -> None:
        self.closed_in = asyncio.get_running_loop()


def bound_to(made: list[Connection]) -> LoopBound[Connection]:
    def make() -> Connection:
        made.append(Connection())
        return made[-1]

    return LoopBound(make, Connection.close)


def test_all_synchronous_calls_share_one() -> None:
    made: list[Connection] = []
    bound = bound_to(made)
    assert run_sync(bound.get) is run_sync(bound.get)
    assert made[0].closed_in is None


def test_each_event_loop_has_its_own_which_is_closed_with_it() -> None:
    made: list[Connection] = []
    bound = bound_to(made)

    async def use() -> asyncio.AbstractEventLoop:
        assert await bound.get() is await bound.get()
        assert made[-1].closed_in is None
        return asyncio.get_running_loop()

    loops = [asyncio.run(use()) for _ in range(3)]
    assert [one.closed_in for one in made] == loops


async def test_many_tasks_share_one() -> None:
    made: list[Connection] = []
    bound = bound_to(made)
    await asyncio.gather(*(bound.get() for _ in range(10)))
    assert len(made) == 1


async def test_it_can_be_closed_and_used_again() -> None:
    made: list[Connection] = []
    bound = bound_to(made)
    await bound.aclose()
    await bound.get()
    await bound.aclose()
    await bound.aclose()
    assert made[0].closed_in is not None
    assert await bound.get() is made[1]
