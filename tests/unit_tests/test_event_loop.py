import contextvars
import threading

import pytest

from graphrag_eval_lc.event_loop import run_sync

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
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("graphrag-eval-lc")]
