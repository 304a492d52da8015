"""Workers as processes of this machine, each asked one question at a time: what blocks, leaks or crashes costs one."""

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphrag_eval_lc.benchmark.workers.fork_server import FORK, HEADER, NUMBER
from graphrag_eval_lc.benchmark.workers.messages import FromWorker, ToWorker
from graphrag_eval_lc.errors import AgentError, OptionError

# Loaded once for all workers, where the driver has them too. None of them starts threads.
_MODULES = ("langgraph.graph", "langgraph.prebuilt", "langchain.agents", "openai", "langchain_openai", "yaml", "httpx")
_SERVE = (
    "import sys; sys.path[:] = {path!r}; "
    "from graphrag_eval_lc.benchmark.workers.fork_server import serve; serve({descriptor}, {modules!r})"
)
_LEFT_SEC = 5.0


class ProcessTransport:
    """Starts worker processes, forked from one process that has loaded the packages.

    Args:
        job: The job of all workers, pickled.
        size: How many there are at most.
    """

    places = 1
    is_question_to_blame = True
    is_begun_whole = False

    def __init__(self, job: bytes, size: int) -> None:
        if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
            raise OptionError(
                "questions cannot be isolated on this system, which cannot fork processes",
                key="isolate",
                hint="Leave isolate out, or run it on Linux or macOS.",
            )
        self._job = job
        self._size = size
        self._server: _ForkServer | None = None
        self._starting = asyncio.Lock()

    async def aopen(self) -> int:
        """Return how many workers there are to be."""
        return self._size

    async def aleft_behind(self) -> Sequence[Mapping[str, Any]]:
        """Return nothing: what these workers answer is the driver's within a millisecond."""
        return ()

    async def astart(
        self, number: int, hear: Callable[[FromWorker], None], lost: Callable[[str], None]
    ) -> "ProcessLink":
        """Start a worker process."""
        async with self._starting:
            if self._server is None:
                self._server = await asyncio.to_thread(_ForkServer)
            ours, theirs = socket.socketpair()
            with theirs:
                pid = await asyncio.to_thread(self._server.fork, theirs)
        link = ProcessLink(pid, self._server, hear, lost)
        _, transport = await asyncio.get_running_loop().create_connection(lambda: link, sock=ours)
        assert transport is link
        link.send_bytes(self._job)
        return link

    async def aclose(self) -> None:
        """End the process that workers are forked from."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)


class ProcessLink(asyncio.Protocol):
    """The socket to one worker process; each message is pickled, behind its length.

    Args:
        pid: The process.
        server: What it was forked from.
        hear: Called with its messages.
        lost: Called with the reason where it ends without being told to.
    """

    def __init__(
        self, pid: int, server: "_ForkServer", hear: Callable[[FromWorker], None], lost: Callable[[str], None]
    ) -> None:
        self._pid = pid
        self._server = server
        self._hear = hear
        self._lost = lost
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self._is_ended = False

    def send(self, message: ToWorker) -> None:
        """Send a message."""
        self.send_bytes(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))

    def send_bytes(self, data: bytes) -> None:
        """Send a pickled message."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(HEADER.pack(len(data)) + data)

    def end(self) -> None:
        """Kill the process, unless it has ended."""
        if not self._is_ended:
            self._is_ended = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            if self._transport is not None:
                self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the socket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take parts of messages."""
        self._received += data
        while len(self._received) >= HEADER.size:
            (length,) = HEADER.unpack_from(self._received)
            end = HEADER.size + length
            if len(self._received) < end:
                return
            message = pickle.loads(memoryview(self._received)[HEADER.size : end])
            del self._received[:end]
            self._hear(message)

    def connection_lost(self, problem: Exception | None) -> None:
        """Find out how the process ended."""
        self._ending = asyncio.ensure_future(self._aended())

    async def _aended(self) -> None:
        status = await asyncio.to_thread(self._server.status, self._pid)
        if not self._is_ended:
            self._is_ended = True
            self._lost(_how_it_ended(status))


def _how_it_ended(status: int | None) -> str:
    """Say how a worker process ended.

    Example:
        >>> _how_it_ended(signal.SIGSEGV)
        'the process that asked it was ended by SIGSEGV (Segmentation fault)'
        >>> _how_it_ended(3 << 8)
        'the process that asked it ended itself with the exit code 3'
    """
    if status is None:
        return "the process that asked it is gone"
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"the process that asked it ended itself with the exit code {code}"
    known = signal.Signals(-code)
    why = "; the system does that where memory runs out" if known is signal.SIGKILL else ""
    return f"the process that asked it was ended by {known.name} ({signal.strsignal(known)}){why}"


class _ForkServer:
    """The process that workers are forked from; see ``fork_server``. It is asked from threads, one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            modules = [name for name in _MODULES if name in sys.modules]
            code = _SERVE.format(path=sys.path, descriptor=theirs.fileno(), modules=modules)
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def fork(self, worker: socket.socket) -> int:
        """Fork a worker that has this socket, and return its process id.

        Raises:
            AgentError: The process that workers are forked from is gone.
        """
        with self._lock:
            try:
                socket.send_fds(self._socket, [NUMBER.pack(FORK)], [worker.fileno()])
                return self._answer()
            except OSError:
                raise AgentError(
                    f"no process can be started for questions: what they are forked from is gone{self._how_it_ended()}",
                    hint="Look at what it printed. Where memory ran out, lower max_concurrency (--max-concurrency).",
                ) from None

    def _how_it_ended(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(_LEFT_SEC)
            return f" (exit code {code})" if code >= 0 else f" ({signal.strsignal(-code)})"
        return ""

    def status(self, pid: int) -> int | None:
        """Return the exit status of a worker that ends; None where nobody knows."""
        with self._lock, contextlib.suppress(OSError, ChildProcessError):
            self._socket.send(NUMBER.pack(pid))
            return self._answer()
        return None

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._socket.close()
        try:
            self._process.wait(_LEFT_SEC)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> int:
        answer = self._socket.recv(NUMBER.size, socket.MSG_WAITALL)
        if len(answer) < NUMBER.size:
            raise ChildProcessError("the process that worker processes are forked from is gone")
        (number,) = NUMBER.unpack(answer)
        return int(number)
