"""Threads for work that may hang: started as needed, reused, and never waited for."""

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


def test_hanging_work_does_not_block_other_work(pool: DaemonThreadPool) -> None:
    release = threading.Event()
    hanging = [pool.submit(release.wait, 60) for _ in range(20)]
    assert pool.submit(lambda: "through").result(30) == "through"
    assert not any(future.done() for future in hanging)
    release.set()
    assert all(future.result(30) for future in hanging)


def test_idle_thread_is_reused(pool: DaemonThreadPool) -> None:
    threads = set()
    for _ in range(50):
        threads.add(pool.submit(threading.get_ident).result(30))
    assert len(threads) < 25  # usually one; more if a result arrives before the thread is marked as idle


def test_shutdown_does_not_wait(pool: DaemonThreadPool) -> None:
    release = threading.Event()
    hanging = pool.submit(release.wait, 60)
    pool.shutdown(wait=True)
    assert not hanging.done()
    release.set()
    assert hanging.result(30)


def test_work_can_be_cancelled_before_it_starts(pool: DaemonThreadPool) -> None:
    future = pool.submit(lambda: None)
    assert future.cancel() or future.result(30) is None


def test_hanging_thread_does_not_delay_process_exit() -> None:
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
