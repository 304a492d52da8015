"""Threads for work that may hang: as many as it takes, used again, and never waited for."""

import subprocess
import sys
import threading

import pytest

from graphrag_eval_lc.event_loop.loop import DaemonThreadPool


@pytest.fixture
def pool() -> DaemonThreadPool:
    return DaemonThreadPool("test")


def test_result_and_error_reach_the_caller(pool: DaemonThreadPool) -> None:
    assert pool.submit(divmod, 7, 2).result(30) == (3, 1)
    assert pool.submit(int, "11", base=2).result(30) == 3
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 1, 0).result(30)


def test_hanging_work_does_not_hold_up_other_work(pool: DaemonThreadPool) -> None:
    release = threading.Event()
    hanging = [pool.submit(release.wait, 60) for _ in range(20)]
    assert pool.submit(lambda: "through").result(30) == "through"
    assert not any(future.done() for future in hanging)
    release.set()
    assert all(future.result(30) for future in hanging)


def test_idle_thread_is_used_again(pool: DaemonThreadPool) -> None:
    threads = set()
    for _ in range(50):
        threads.add(pool.submit(threading.get_ident).result(30))
    assert len(threads) < 25  # one, but for the moments between a result and the thread's being idle


def test_closing_waits_for_nothing(pool: DaemonThreadPool) -> None:
    release = threading.Event()
    hanging = pool.submit(release.wait, 60)
    pool.shutdown(wait=True)
    assert not hanging.done()
    release.set()
    assert hanging.result(30)


def test_work_that_was_cancelled_before_its_start_is_not_done(pool: DaemonThreadPool) -> None:
    future = pool.submit(lambda: None)
    assert future.cancel() or future.result(30) is None


def test_hanging_thread_does_not_hold_up_the_end_of_the_process() -> None:
    code = (
        "import threading\n"
        "from graphrag_eval_lc.event_loop.loop import DaemonThreadPool\n"
        "started = threading.Event()\n"
        "DaemonThreadPool('test').submit(lambda: (started.set(), threading.Event().wait()))\n"
        "started.wait()\n"
        "print('end')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "end\n"
