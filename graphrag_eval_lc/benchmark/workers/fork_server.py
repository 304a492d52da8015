"""The process that worker processes are forked from: it has loaded the packages that they need, and has no threads.

A worker that is forked from it begins within milliseconds, and shares its memory. The driver, which has threads, cannot
be forked safely.
"""

import contextlib
import gc
import importlib
import os
import pickle
import signal
import socket
import struct
import sys
import threading
from collections.abc import Iterable
from typing import Any, BinaryIO

from graphrag_eval_lc.benchmark.workers.messages import FromWorker, Unusable
from graphrag_eval_lc.benchmark.workers.worker import Worker
from graphrag_eval_lc.capture import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.retrying import masked_error_text

HEADER = struct.Struct("!Q")
NUMBER = struct.Struct("!q")
FORK = 0


def serve(descriptor: int, modules: Iterable[str]) -> None:
    """Fork workers for the driver until it is gone.

    Args:
        descriptor: A Unix socket to the driver. With the number 0 comes a socket for a worker that is to
            be forked, and its process id is the answer. With the process id of a worker that is gone, its exit status
            is the answer, as ``os.waitpid`` gives it.
        modules: What is loaded for the workers, where it can be.
    """
    for module in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(module)
    _capture_once()
    gc.collect()
    gc.freeze()  # what is loaded stays: the collector of a worker would touch, and so copy, all of its memory
    _stay_at_signals()
    driver = socket.socket(fileno=descriptor)
    while True:
        data, descriptors, _, _ = socket.recv_fds(driver, NUMBER.size, 1)
        if len(data) < NUMBER.size:
            _wait_for_all()
            os._exit(0)
        (number,) = NUMBER.unpack(data)
        if number != FORK:
            _, status = os.waitpid(number, 0)
            driver.send(NUMBER.pack(status))
            continue
        pid = os.fork()
        if not pid:
            driver.close()
            _work(descriptors[0])
        os.close(descriptors[0])
        driver.send(NUMBER.pack(pid))


def _capture_once() -> None:
    """Have all made that the first capture of a process makes, for all workers."""
    handler = GraphRAGEvalCallbackHandler()
    handler.on_block_end(run_id=handler.open_block("q"), error=ValueError("no answer"))
    masked_text(str(handler.response("q")))


def _wait_for_all() -> None:
    """Wait for the workers, which end as the driver is gone, so that they are not left to the system."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _stay_at_signals() -> None:
    """Leave Ctrl-C and the like to the driver, which gets them too, and whose end ends the workers.

    A function does nothing, as what is ignored would be ignored by the programs that an agent starts, too.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, lambda *_: None)


def _work(descriptor: int) -> None:
    """Be a worker process: the first message of the driver is the job."""
    if "numpy" in sys.modules:  # else all workers would draw the same numbers
        sys.modules["numpy"].random.seed()
    try:
        driver = socket.socket(fileno=descriptor)
        stream = driver.makefile("rb")
        sending = threading.Lock()

        def send(message: FromWorker) -> None:
            data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
            with sending, contextlib.suppress(OSError):  # of a driver that is gone, the end of the stream tells
                driver.sendall(HEADER.pack(len(data)) + data)

        try:
            job = _read(stream)
        except EOFError:
            os._exit(0)
        except Exception as problem:  # what it names cannot be imported here
            send(Unusable(masked_error_text(problem), "Give the agent's spec, such as my_agent.py:agent."))
            os._exit(1)
        worker = Worker(job, send)
        threading.Thread(target=_hear, args=(stream, worker), daemon=True).start()
        worker.run()
        _flush_traces()
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def _hear(stream: BinaryIO, worker: Worker) -> None:
    while True:
        try:
            message = _read(stream)
        except (OSError, EOFError):
            os._exit(0)  # the driver is gone
        worker.post(message)


def _read(stream: BinaryIO) -> Any:
    """Read one message; EOFError where the driver is gone."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        raise EOFError
    (length,) = HEADER.unpack(header)
    return pickle.loads(stream.read(length))


def _flush_traces() -> None:
    """Send what LangSmith's tracer has not sent yet; it would do so at the end of a process that is not forked."""
    tracers = sys.modules.get("langchain_core.tracers.langchain")
    if tracers is not None:
        tracers.wait_for_all_tracers()
