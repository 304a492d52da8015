"""Stopping a run early, on request or by a signal."""

import asyncio
import signal
import threading

import pytest

from graphrag_eval_lc.evaluation.stop_signal import StopSignal, stopped_by_signals


def bound() -> tuple[StopSignal, list[str]]:
    reported: list[str] = []
    stop = StopSignal()
    stop.bind(lambda: reported.append(str(stop.reason)))
    return stop, reported


async def test_first_reason_is_kept_and_reported_once() -> None:
    stop, reported = bound()
    stop.request("max_tokens", "the budget")
    stop.request("interrupted", "Ctrl-C")
    await asyncio.sleep(0)
    assert (stop.reason, stop.message, reported) == ("max_tokens", "the budget", ["max_tokens"])
    assert not stop.abandoned.done()


async def test_request_made_before_the_loop_is_reported_when_it_starts() -> None:
    reported: list[str] = []
    stop = StopSignal()
    stop.request("interrupted", "Ctrl-C")
    stop.abandon()
    stop.bind(lambda: reported.append("told"))
    assert reported == ["told"]
    assert stop.abandoned.done()


async def test_request_from_another_thread_ends_the_wait() -> None:
    stop, _ = bound()
    thread = threading.Thread(target=stop.request, args=("interrupted", "SIGTERM"))
    thread.start()
    assert await asyncio.wait_for(stop.sleep(3600), 30) is True
    thread.join()


def test_request_after_the_loop_has_closed_does_nothing() -> None:
    stop = StopSignal()

    async def bind() -> None:
        stop.bind(lambda: None)

    asyncio.run(bind())
    stop.request("interrupted", "Ctrl-C")
    stop.abandon()


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_first_signal_stops_gracefully_and_the_second_at_once(number: signal.Signals, name: str) -> None:
    stop = StopSignal()
    with stopped_by_signals(stop):
        signal.raise_signal(number)
        assert (stop.reason, stop.message, stop.is_at_once) == ("interrupted", name, False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert stop.is_at_once
    assert stop.is_abandoned


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_repeated_sighup_stops_gracefully() -> None:
    stop = StopSignal()
    with stopped_by_signals(stop):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
    assert (stop.reason, stop.message, stop.is_abandoned, stop.is_at_once) == ("interrupted", "SIGHUP", False, False)


def test_signal_to_a_stopping_run_abandons_running_questions() -> None:
    stop = StopSignal()
    stop.request("max_failures", "too many")
    with stopped_by_signals(stop):
        signal.raise_signal(signal.SIGINT)
        assert (stop.reason, stop.is_abandoned, stop.is_at_once) == ("max_failures", True, False)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stop.is_at_once


def test_previous_handlers_are_restored() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with stopped_by_signals(StopSignal()):
        assert signal.getsignal(signal.SIGINT) is not before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_other_threads_install_no_handlers() -> None:
    seen = []

    def run() -> None:
        with stopped_by_signals(StopSignal()):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
