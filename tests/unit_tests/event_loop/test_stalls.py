"""A blocked event loop: how long it stood still, for whom, and who is told."""

import asyncio
import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from graphrag_eval_lc.event_loop.stalls import Span, Stall, StallWatch, timeout_beside_stalls


class Told:
    """Keeps the stalls that a watch tells, and in which thread."""

    def __init__(self) -> None:
        self.stalls: list[Stall] = []
        self.threads: set[str] = set()

    def __call__(self, stall: Stall) -> None:
        self.stalls.append(stall)
        self.threads.add(threading.current_thread().name)

    @property
    def subjects(self) -> list[Any]:
        return [None if stall.span is None else stall.span.subject for stall in self.stalls]


def watching_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "graphrag-eval-lc-stalls"]


async def block(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251
    await asyncio.sleep(0)


async def spanned(watch: StallWatch, subject: str, *seconds: float) -> Span:
    """Begin a span, block the loop in pieces, and go on until what the others did is over."""
    with watch.span(subject) as span:
        await asyncio.sleep(0.01)
        for each in seconds:
            await block(each)
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)
        return span


@pytest.mark.full
async def test_who_blocks_is_told_while_it_lasts_with_the_place_in_the_code() -> None:
    told = Told()
    lasted: list[float] = []

    def on_stall(stall: Stall) -> None:
        lasted.append(time.monotonic())
        told(stall)

    with StallWatch(on_stall) as watch:
        await asyncio.gather(spanned(watch, "a"), spanned(watch, "b", 0.8))
        ended = time.monotonic()
    (stall,) = told.stalls
    assert told.subjects == ["b"]
    assert stall.where.startswith("block (")
    assert stall.where.endswith(f"test_stalls.py:{block.__code__.co_firstlineno + 1})")
    assert stall.is_own_code
    assert 0.5 <= stall.seconds < 0.8
    assert ended - lasted[0] > 0.2
    assert told.threads == {"graphrag-eval-lc-stalls"}


async def test_a_stall_counts_for_the_others_and_not_for_who_brought_it_about() -> None:
    with StallWatch(Told()) as watch:
        waiting, blocking = await asyncio.gather(spanned(watch, "a"), spanned(watch, "b", 0.3))
    assert 0.2 < waiting.stalled_sec < 0.45
    assert waiting.blocked_sec == 0
    assert blocking.stalled_sec < 0.1
    assert 0.2 < blocking.blocked_sec < 0.45


@pytest.mark.full
async def test_several_stalls_add_up_and_each_pays_its_own() -> None:
    with StallWatch(Told()) as watch:
        spans = await asyncio.gather(spanned(watch, "a"), spanned(watch, "b", 0.2, 0.2), spanned(watch, "c", 0.4))
    stalled = [span.stalled_sec for span in spans]
    blocked = [span.blocked_sec for span in spans]
    assert blocked == [0, pytest.approx(0.4, abs=0.15), pytest.approx(0.4, abs=0.15)]
    assert stalled == [pytest.approx(0.8, abs=0.25), pytest.approx(0.4, abs=0.2), pytest.approx(0.4, abs=0.2)]


async def test_what_begins_in_the_moment_of_a_stall_is_stalled_for_the_rest_of_it() -> None:
    with StallWatch(Told()) as watch:
        await asyncio.sleep(0.1)
        time.sleep(0.3)  # noqa: ASYNC251
        with watch.span("late") as late:
            time.sleep(0.2)  # noqa: ASYNC251
            assert 0.05 < late.stalled_sec + late.blocked_sec < 0.3


@pytest.mark.full
async def test_tasks_and_callbacks_that_come_of_a_span_belong_to_it() -> None:
    with StallWatch(told := Told()) as watch:
        with watch.span("task"):
            await asyncio.create_task(block(0.8))
        with watch.span("callback"):
            asyncio.get_running_loop().call_later(0.01, lambda: time.sleep(0.8))
        await asyncio.sleep(0.1)
        with watch.span("builtin"):
            asyncio.get_running_loop().call_soon(time.sleep, 0.8)
        await asyncio.sleep(0.1)
    assert told.subjects == ["task", "callback", "builtin"]


@pytest.mark.full
async def test_a_span_is_told_once_and_other_code_once_for_each_place() -> None:
    with StallWatch(told := Told()) as watch:
        with watch.span("a"):
            await block(0.8)
            await asyncio.sleep(0.06)
            await block(0.8)
        for _ in range(2):
            await asyncio.sleep(0.06)
            await block(0.8)
    assert told.subjects == ["a", None]


@pytest.mark.full
async def test_blocking_in_short_pieces_is_told_too_in_the_end() -> None:
    with StallWatch(told := Told()) as watch:
        await spanned(watch, "a", *[0.3] * 11)
    assert told.subjects == ["a"]


@pytest.mark.full
async def test_a_loop_whose_threads_block_does_not_stand_still() -> None:
    with StallWatch(told := Told()) as watch, watch.span("a") as span:
        await asyncio.to_thread(time.sleep, 0.7)
        assert span.stalled_sec + span.blocked_sec < 0.1
    assert told.stalls == []


def count_until(end: float) -> int:
    number = 0
    while time.monotonic() < end:
        number += 1
    return number


@pytest.mark.full
async def test_threads_that_take_all_of_the_time_are_no_stall() -> None:
    end = time.monotonic() + 2.0
    with ThreadPoolExecutor(32) as pool, StallWatch(told := Told()) as watch, watch.span("a") as span:
        loop = asyncio.get_running_loop()
        await asyncio.gather(*(loop.run_in_executor(pool, count_until, end) for _ in range(32)))
        assert span.stalled_sec < 0.7
    assert told.stalls == []


@pytest.mark.full
async def test_a_collection_of_garbage_is_told_of_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(phase: str, info: Any) -> None:  # as long as one of millions of objects
        if phase == "stop":
            end = time.thread_time() + 0.7
            sys.setswitchinterval(10)
            while time.thread_time() < end:
                pass
            sys.setswitchinterval(0.005)

    with StallWatch(told := Told()) as watch, watch.span("a") as span:
        await asyncio.sleep(0.06)
        gc.callbacks.insert(0, collect)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(collect)
        await asyncio.sleep(0.06)
        assert span.stalled_sec + span.blocked_sec > 0.4
    assert told.stalls == []


@pytest.mark.full
async def test_loading_a_module_is_told_of_nobody(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.7)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with StallWatch(told := Told()) as watch, watch.span("a") as span:
        await asyncio.sleep(0.06)
        __import__("slow_to_load")
        assert span.stalled_sec > 0.5
    assert told.stalls == []


@pytest.mark.full
async def test_two_watches_of_a_loop_share_its_thread_and_know_their_own_spans_only() -> None:
    with StallWatch(first := Told()) as one, StallWatch(second := Told()) as other:
        assert len(watching_threads()) == 1
        waiting, _ = await asyncio.gather(spanned(other, "b"), spanned(one, "a", 0.8))
    assert (first.subjects, second.subjects) == (["a"], [None])
    assert waiting.stalled_sec > 0.4
    assert watching_threads() == []


@pytest.mark.full
async def test_nothing_is_left_behind_and_what_was_measured_stays() -> None:
    for _ in range(2):
        callbacks = list(gc.callbacks)
        with StallWatch(Told()) as watch:
            waiting, _ = await asyncio.gather(spanned(watch, "a"), spanned(watch, "b", 0.2))
        measured = waiting.stalled_sec
        await asyncio.sleep(0.15)
        assert waiting.stalled_sec == measured > 0.1
        assert (watching_threads(), gc.callbacks) == ([], callbacks)


@pytest.mark.full
async def test_what_is_told_may_fail_and_is_raised_at_the_end() -> None:
    def fails(stall: Stall) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"), StallWatch(fails) as watch:
        await spanned(watch, "a", 0.8)


async def test_a_timeout_is_longer_by_the_stalls_of_others() -> None:
    with StallWatch(Told()) as watch:

        async def waits() -> None:
            async with timeout_beside_stalls(0.2):
                await asyncio.sleep(0.15)

        await asyncio.gather(waits(), spanned(watch, "b", 0.35))


@pytest.mark.full
async def test_a_timeout_ends_what_hangs_although_there_are_stalls() -> None:
    with StallWatch(Told()) as watch:

        async def hangs() -> float:
            with pytest.raises(TimeoutError):
                async with timeout_beside_stalls(0.3):
                    await asyncio.sleep(60)
            return time.monotonic()

        began = time.monotonic()
        ended, _ = await asyncio.gather(hangs(), spanned(watch, "b", 0.4))
    assert 0.55 < ended - began < 1.0


@pytest.mark.full
async def test_ones_own_stalls_make_no_timeout_longer() -> None:
    async def blocks() -> None:
        async with timeout_beside_stalls(0.3):
            await block(0.5)
            await asyncio.sleep(0.2)

    with StallWatch(Told()), pytest.raises(TimeoutError):
        await blocks()


async def test_a_timeout_without_a_watch_is_a_timeout() -> None:
    with pytest.raises(TimeoutError):
        async with timeout_beside_stalls(0.01):
            await asyncio.sleep(60)
