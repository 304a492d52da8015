"""Coroutines called from synchronous code, also inside a running loop, and when they hang or raise."""

import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from graphrag_eval_lc.event_loop.loop import run_sync

variable = contextvars.ContextVar("variable", default="outside")


async def answer() -> str:
    return variable.get()


async def test_runs_inside_a_running_loop_with_its_context_variables() -> None:
    variable.set("inside")
    assert run_sync(answer) == "inside"


# --- one lasting loop ------------------------------------------------------------------------------------------------


async def current_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_calls_from_all_threads_share_one_loop() -> None:
    first = run_sync(current_loop)
    with ThreadPoolExecutor(4) as threads:
        assert {future.result() for future in [threads.submit(run_sync, current_loop) for _ in range(20)]} == {first}
    assert not first.is_closed()


def test_concurrent_calls_keep_their_own_context() -> None:
    async def has_own_value(number: int) -> bool:
        await asyncio.sleep(0.001 * (number % 3))
        return variable.get() == str(number)

    def call(number: int) -> bool:
        variable.set(str(number))
        return run_sync(lambda: has_own_value(number))

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(call, range(40)))


def test_call_from_inside_the_loop_uses_a_second_lasting_loop() -> None:
    async def outer() -> list[asyncio.AbstractEventLoop]:
        return [await current_loop(), run_sync(current_loop), run_sync(current_loop)]

    outside, *inside = run_sync(outer)
    assert inside[0] is inside[1] is not outside


def test_call_from_a_thread_of_the_loop_uses_the_same_loop() -> None:
    async def outer() -> tuple[asyncio.AbstractEventLoop, asyncio.AbstractEventLoop]:
        return await current_loop(), await asyncio.to_thread(run_sync, current_loop)

    outside, inside = run_sync(outer)
    assert inside is outside


@pytest.mark.full
def test_call_that_blocks_the_loop_runs_in_another_loop() -> None:
    async def outer() -> str:
        with ThreadPoolExecutor(1) as threads:  # code that blocks the loop
            return threads.submit(run_sync, answer).result(30)

    assert run_sync(outer) == "outside"


def test_stopping_the_loop_does_not_stop_the_call() -> None:
    async def stop() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0.01)
        return "end"

    assert run_sync(stop) == "end"
    assert run_sync(answer) == "outside"


def test_error_in_one_call_does_not_end_another() -> None:
    release = threading.Event()

    async def wait() -> str:
        await asyncio.to_thread(release.wait, 30)
        return "end"

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(run_sync, wait)
        with pytest.raises(SystemExit):
            run_sync(lambda: raise_in_another_task(SystemExit(3)))
        release.set()
        assert waiting.result(30) == "end"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_has_its_own_loop() -> None:
    code = """
import asyncio, os
from graphrag_eval_lc.event_loop.loop import run_sync
async def answer():
    await asyncio.sleep(0.01)
    return "end"
run_sync(answer)
child = os.fork()
if child == 0:
    os._exit(0 if run_sync(answer) == "end" else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), run_sync(answer))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("0 end\n", "")


def test_process_exits_silently() -> None:
    code = "from graphrag_eval_lc.event_loop.loop import run_sync\nimport asyncio\nrun_sync(lambda: asyncio.sleep(0))"
    command = [sys.executable, "-X", "dev", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "unclosed" not in done.stderr


# --- Ctrl-C ----------------------------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_wait_and_the_coroutine() -> None:
    ended: list[str] = []

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("yes")

    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run_sync(hang)
    assert ended == ["yes"]
    assert run_sync(answer) == "outside"


def test_first_ctrl_c_ends_the_wait_inside_asyncio_run() -> None:
    code = """
import asyncio, os, signal, threading, time
from graphrag_eval_lc.event_loop.loop import run_sync
async def main():
    run_sync(lambda: asyncio.sleep(60))
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.full
def test_ctrl_c_ends_the_wait_for_blocking_code() -> None:
    code = """
import os, signal, threading, time
from graphrag_eval_lc.event_loop.loop import run_sync
async def block():
    time.sleep(60)
async def answer():
    return "end"
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    run_sync(block)
except KeyboardInterrupt:
    print("interrupted", run_sync(answer))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (done.stdout, done.stderr) == ("interrupted end\n", "")


# --- hanging code ----------------------------------------------------------------------------------------------------


def test_hanging_thread_does_not_delay_the_end() -> None:
    release = threading.Event()

    async def leave_a_thread_behind() -> str:
        asyncio.get_running_loop().run_in_executor(None, release.wait, 60)
        return "end"

    assert run_sync(leave_a_thread_behind) == "end"
    release.set()


def test_remaining_tasks_are_cancelled() -> None:
    cancelled = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("yes")

    tasks = []

    async def leave_a_task_behind() -> str:
        tasks.append(asyncio.create_task(wait()))
        await asyncio.sleep(0)
        return "end"

    assert run_sync(leave_a_task_behind) == "end"
    assert cancelled == ["yes"]


@pytest.mark.full
def test_task_that_ignores_cancellation_does_not_delay_the_end() -> None:
    code = (
        "import asyncio\n"
        "from graphrag_eval_lc.event_loop.loop import has_stuck_tasks, run_sync\n"
        "tasks = []\n"
        "async def stubborn():\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "async def main():\n"
        "    tasks.append(asyncio.create_task(stubborn()))\n"
        "    await asyncio.sleep(0)\n"
        "    return 'end'\n"
        "async def nothing():\n"
        "    return len(asyncio.all_tasks())\n"
        "print(has_stuck_tasks(), run_sync(main), has_stuck_tasks(), run_sync(nothing), flush=True)\n"
        "import os; os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("False end True 1\n", "")  # the next call's loop runs only its own task


# --- exceptions that end the loop ------------------------------------------------------------------------------------


async def raise_in_another_task(error: BaseException) -> str:
    async def other() -> None:
        raise error

    task = asyncio.create_task(other())
    await asyncio.wait({task})
    return f"saw {type(task.exception()).__name__}"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_task_that_ends_the_loop_can_be_survived(error: BaseException) -> None:
    seen: list[BaseException] = []

    def survives(problem: BaseException) -> bool:
        seen.append(problem)
        return True

    outcome = run_sync(lambda: raise_in_another_task(error), survives=survives)
    assert outcome == f"saw {type(error).__name__}"
    assert seen == [error]
