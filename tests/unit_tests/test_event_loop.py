"""Coroutines from synchronous code: in a running loop too, and whatever hangs or raises in them."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from graphrag_eval_lc.daemon_threads import DaemonThreadPool
from graphrag_eval_lc.event_loop import run_sync, use_daemon_threads

variable = contextvars.ContextVar("variable", default="outside")


async def answer() -> str:
    return variable.get()


async def fail() -> None:
    raise LookupError("inside")


def test_runs_without_a_loop() -> None:
    assert run_sync(answer) == "outside"


async def test_runs_inside_a_running_loop_with_its_context_variables() -> None:
    variable.set("inside")
    assert run_sync(answer) == "inside"


async def test_error_reaches_the_caller_and_no_thread_stays() -> None:
    with pytest.raises(LookupError, match="inside"):
        run_sync(fail)
    assert not [thread for thread in threading.enumerate() if thread.name == "graphrag-eval-lc"]


# --- what hangs ------------------------------------------------------------------------------------------------------


def test_hanging_thread_does_not_hold_up_the_end() -> None:
    release = threading.Event()

    async def leave_a_thread_behind() -> str:
        asyncio.get_running_loop().run_in_executor(None, release.wait, 60)
        return "end"

    assert run_sync(leave_a_thread_behind) == "end"
    release.set()


def test_tasks_that_are_left_are_cancelled() -> None:
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


def test_task_that_refuses_to_be_cancelled_does_not_hold_up_the_end() -> None:
    code = (
        "import asyncio\n"
        "from graphrag_eval_lc.event_loop import has_stuck_tasks, run_sync\n"
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
        "print(has_stuck_tasks(), run_sync(main), has_stuck_tasks(), flush=True)\n"
        "import os; os._exit(0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("False end True\n", "")


# --- what raises out of the loop -------------------------------------------------------------------------------------


async def raise_in_another_task(error: BaseException) -> str:
    async def other() -> None:
        raise error

    task = asyncio.create_task(other())
    await asyncio.wait({task})
    return f"saw {type(task.exception()).__name__}"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_task_that_ends_the_loop_is_survived_where_asked_for(error: BaseException) -> None:
    told: list[BaseException] = []

    def survives(problem: BaseException) -> bool:
        told.append(problem)
        return True

    outcome = run_sync(lambda: raise_in_another_task(error), survives=survives)
    assert outcome == f"saw {type(error).__name__}"
    assert told == [error]


async def test_so_it_is_inside_a_running_loop() -> None:
    assert run_sync(lambda: raise_in_another_task(SystemExit(3)), survives=lambda _: True) == "saw SystemExit"


def test_else_it_reaches_the_caller() -> None:
    with pytest.raises(SystemExit):
        run_sync(lambda: raise_in_another_task(SystemExit(3)))


def test_exit_of_the_coroutine_itself_reaches_the_caller() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run_sync(leave, survives=lambda _: True)


def test_tasks_that_exit_while_they_are_cancelled_are_survived() -> None:
    async def exits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit(3)

    tasks = []

    async def main() -> str:
        tasks.extend(asyncio.create_task(exits()) for _ in range(3))
        await asyncio.sleep(0)
        return "end"

    assert run_sync(main) == "end"


# --- threads ---------------------------------------------------------------------------------------------------------


def test_loop_gets_daemon_threads_unless_it_has_an_executor_of_its_own() -> None:
    loop = asyncio.new_event_loop()
    use_daemon_threads(loop)
    first = loop._default_executor  # type: ignore[attr-defined]
    use_daemon_threads(loop)
    assert isinstance(first, DaemonThreadPool)
    assert loop._default_executor is first  # type: ignore[attr-defined]
    loop.close()
