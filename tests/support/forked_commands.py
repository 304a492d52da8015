"""Run commands in forks of a process that has imported the libraries: the import takes longer than most commands."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

# The imports of a run.
COMMAND_LIBRARIES = ("graphrag_eval_lc.cli.main", "graphrag_eval_lc.benchmark.run_benchmark", "langgraph.graph")
_LONGEST_SEC = 120.0

# A request passes files for stdin, stdout and stderr, and a pipe for the command's process id and exit status. The
# server is in its own session, so that a terminal's signals reach only the command.
_SERVER = """
import gc, importlib, json, os, runpy, signal, socket, sys, warnings
for name in sys.argv[2:]:
    importlib.import_module(name)
gc.freeze()
requests = socket.socket(fileno=int(sys.argv[1]))
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    text, descriptors, _, _ = socket.recv_fds(requests, 65_536, 4)
    while text and not text.endswith(b"\\n"):
        text += requests.recv(65_536)
    if not text:
        sys.exit()
    if not os.fork():
        break
    for each in descriptors:
        os.close(each)
requests.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
request, status = json.loads(text), descriptors.pop()
if child := os.fork():
    for number, each in enumerate(descriptors):
        os.close(number)
        os.close(each)
    os.write(status, b"%d\\n" % child)
    os.write(status, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)
os.close(status)
for number, each in enumerate(descriptors):
    os.dup2(each, number)
    os.close(each)
os.chdir(request["folder"])
os.environ.clear()
os.environ.update(request["environment"])
if os.environ.get("PYTHONWARNINGS") == "ignore":
    warnings.simplefilter("ignore")
for number, name in enumerate(("stdin", "stdout", "stderr")):
    mode, errors = ("w", "backslashreplace" if number == 2 else "strict") if number else ("r", "strict")
    buffering = 1 if os.isatty(number) or number == 2 else -1
    stream = open(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False)
    setattr(sys, name, stream)
    setattr(sys, f"__{name}__", stream)
sys.path[:1] = request["path"]
if request["module"] is not None:
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
else:
    sys.argv = ["-c", *request["arguments"]]
    exec(compile(request["code"], "<string>", "exec"), {"__name__": "__main__"})
"""


@cache
def _fork_server(libraries: tuple[str, ...]) -> socket.socket:
    """Start a process that imports libraries once and serves requests until this process ends."""
    requests, server_end = socket.socketpair()
    with server_end:
        program = [sys.executable, "-c", _SERVER, str(server_end.fileno()), *libraries]
        server = subprocess.Popen(
            program, pass_fds=[server_end.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
    atexit.register(server.wait)
    atexit.register(requests.close)
    return requests


class ForkedProcess:
    """Like ``subprocess.Popen(text=True)``, but with some libraries already imported.

    Args:
        module: The module for ``python -m``; None for ``code``.
        arguments: Its arguments.
        libraries: Imported in advance. Must not include what is tested.
        environment: All variables. Those that Python reads at start-up, such as PYTHONPATH, have no effect.
        code: The code for ``python -c``.
        folder: The working directory; the current folder by default.
        path: Prepended to ``sys.path``.
        is_merged: Whether stderr is redirected to stdout.
        terminal: Used for stdin, stdout and stderr. None: no stdin, and ``communicate`` returns the output.
    """

    def __init__(
        self,
        module: str | None,
        arguments: Sequence[str],
        *,
        libraries: tuple[str, ...],
        environment: Mapping[str, str],
        code: str = "",
        folder: Path | None = None,
        path: Sequence[str] = ("",),
        is_merged: bool = False,
        terminal: int | None = None,
    ) -> None:
        self.args = [module or code, *arguments]
        self.returncode: int | None = None
        self._out, self._err = (tempfile.TemporaryFile("w+", encoding="utf-8") for _ in range(2))  # noqa: SIM115
        request = {
            "module": module,
            "code": code,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
            "path": list(path),
        }
        status, of_process = os.pipe()
        self._status = os.fdopen(status, "rb", buffering=0)
        nothing = os.open(os.devnull, os.O_RDWR)
        streams = [nothing, self._out.fileno(), (self._out if is_merged else self._err).fileno()]
        descriptors = [*(streams if terminal is None else [terminal] * 3), of_process]
        text = f"{json.dumps(request)}\n".encode()
        server = _fork_server(libraries)
        sent = socket.send_fds(server, [text], descriptors)
        server.sendall(text[sent:])
        os.close(nothing)
        os.close(of_process)
        self.pid = int(self._line(_LONGEST_SEC))

    def _line(self, timeout: float | None) -> bytes:
        if not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._status.readline()

    def poll(self) -> int | None:
        """Return the exit code, or None while the command runs."""
        return self.wait(0.0) if self.returncode is not None or select.select([self._status], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the command has ended.

        Raises:
            TimeoutExpired: The command is still running after ``timeout`` seconds.
        """
        if self.returncode is None:
            self.returncode = int(self._line(timeout))
            self._status.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the command to end and return everything it printed."""
        self.wait(timeout)
        self._out.seek(0)
        self._err.seek(0)
        return self._out.read(), self._err.read()

    def send_signal(self, number: int) -> None:
        """Send a signal unless the command has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run_forked(
    module: str,
    arguments: Sequence[str],
    *,
    libraries: tuple[str, ...],
    environment: Mapping[str, str],
    folder: Path | None = None,
    path: Sequence[str] = (),
) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m module`` like ``subprocess.run``, with the arguments of ``ForkedProcess``."""
    process = ForkedProcess(module, arguments, libraries=libraries, environment=environment, folder=folder, path=path)
    try:
        out, err = process.communicate(_LONGEST_SEC)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess([module, *arguments], process.wait(), out, err)
