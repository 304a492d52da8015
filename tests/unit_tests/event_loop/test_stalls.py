"""Code that blocks an event loop is reported while it blocks; code that only looks like it is not."""

import asyncio
import gc
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from graphrag_eval_lc.event_loop.stalls import StallWatch


def watching_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "graphrag-eval-lc-stalls"]


async def block(seconds: float = 0.9) -> None:
    time.sleep(seconds)  # noqa: ASYNC251
    await asyncio.sleep(0)


def count_until(end: float) -> int:
    number = 0
    while time.monotonic() < end:
        number += 1
    return number


async def test_blocking_code_is_reported_once_with_its_location() -> None:
    warnings: list[tuple[float, str, str]] = []

    def warn(text: str) -> None:
        warnings.append((time.monotonic(), threading.current_thread().name, text))

    with StallWatch(warn):
        await asyncio.gather(asyncio.sleep(0.1), asyncio.create_task(block()))
        ended = time.monotonic()
        await asyncio.create_task(block())
    ((at, thread, text),) = warnings
    assert ended - at > 0.1
    assert thread == "graphrag-eval-lc-stalls"
    line = block.__code__.co_firstlineno + 1
    assert text.startswith("block (")
    assert f"test_stalls.py:{line}) blocks the event loop" in text
    assert watching_threads() == []


@pytest.mark.full
@pytest.mark.parametrize("blocking", ["busy", "subprocess", "callback"])
async def test_busy_code_subprocesses_and_callbacks_are_reported(blocking: str) -> None:
    def mine() -> None:
        if blocking == "busy":
            count_until(time.monotonic() + 0.9)
        elif blocking == "subprocess":
            subprocess.run([sys.executable, "-c", "import time; time.sleep(0.9)"], capture_output=True, check=True)
        else:
            time.sleep(0.9)

    warnings: list[str] = []
    with StallWatch(warnings.append):
        asyncio.get_running_loop().call_later(0.01, mine)
        await asyncio.sleep(0.1)
    (text,) = warnings
    assert text.startswith("count_until (" if blocking == "busy" else "mine (")


@pytest.mark.full
async def test_short_steps_and_blocking_threads_are_not_reported() -> None:
    warnings: list[str] = []
    with StallWatch(warnings.append):
        for _ in range(4):
            await block(0.25)
        await asyncio.to_thread(time.sleep, 0.9)
        await asyncio.sleep(0.9)
        end = time.monotonic() + 2.0
        with ThreadPoolExecutor(32) as pool:
            loop = asyncio.get_running_loop()
            await asyncio.gather(*(loop.run_in_executor(pool, count_until, end) for _ in range(32)))
    assert warnings == []


@pytest.mark.full
async def test_garbage_collection_and_imports_are_not_reported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def collect(phase: str, info: Any) -> None:  # as slow as collecting millions of objects
        if phase == "stop":
            end = time.thread_time() + 0.9
            sys.setswitchinterval(10)
            while time.thread_time() < end:
                pass
            sys.setswitchinterval(0.005)

    (tmp_path / "slow_to_load.py").write_text("import time\ntime.sleep(0.9)\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    warnings: list[str] = []
    with StallWatch(warnings.append):
        await asyncio.sleep(0.06)
        gc.callbacks.insert(0, collect)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(collect)
        await asyncio.sleep(0.06)
        __import__("slow_to_load")
    assert warnings == []


@pytest.mark.full
async def test_exception_in_the_callback_is_raised_at_the_end() -> None:
    def fails(text: str) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"), StallWatch(fails):
        await asyncio.create_task(block())
