"""Commands in processes that are forks of one with the libraries: to import them takes longer than most commands."""

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

# What a run needs.
COMMAND_LIBRARIES = ("graphrag_eval_lc.cli.main", "graphrag_eval_lc.benchmark.run_benchmark", "langgraph.graph")
_LONGEST_SEC = 120.0

# A request has the files for input, output and error, and a pipe on which a process beside the command says its id and
# how it ended. The signals of a terminal reach the command alone, as the mother is in a session of its own.
_MOTHER = """
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
def _mother(libraries: tuple[str, ...]) -> socket.socket:
    """Start a process that imports libraries once; it ends with this one, whose requests it reads."""
    requests, of_mother = socket.socketpair()
    with of_mother:
        program = [sys.executable, "-c", _MOTHER, str(of_mother.fileno()), *libraries]
        mother = subprocess.Popen(
            program, pass_fds=[of_mother.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
    atexit.register(mother.wait)
    atexit.register(requests.close)
    return requests


class ForkedProcess:
    """A process as ``subprocess.Popen(text=True)`` would start it, in which some libraries are imported already.

    Args:
        module: What ``python -m`` would run; None for ``code``.
        arguments: Its arguments.
        libraries: What is imported before; nothing that the tests are about.
        environment: All variables. Those that Python itself reads as it starts, such as PYTHONPATH, have no effect.
        code: What ``python -c`` would run.
        folder: Where it runs, the current folder by default.
        path: What comes first on the path of modules.
        is_merged: Whether what it prints to stderr is returned with the rest.
        terminal: What it reads from and prints to; None for nothing and for what ``communicate`` returns.
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
        mother = _mother(libraries)
        sent = socket.send_fds(mother, [text], descriptors)
        mother.sendall(text[sent:])
        os.close(nothing)
        os.close(of_process)
        self.pid = int(self._line(_LONGEST_SEC))

    def _line(self, timeout: float | None) -> bytes:
        if not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self._status.readline()

    def poll(self) -> int | None:
        """Return its exit code; None while it runs."""
        return self.wait(0.0) if self.returncode is not None or select.select([self._status], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code when it has ended.

        Raises:
            TimeoutExpired: It has not within some seconds.
        """
        if self.returncode is None:
            self.returncode = int(self._line(timeout))
            self._status.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for its end, and return all that it printed."""
        self.wait(timeout)
        self._out.seek(0)
        self._err.seek(0)
        return self._out.read(), self._err.read()

    def send_signal(self, number: int) -> None:
        """Send it a signal unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
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
    """Run ``python -m module`` as ``subprocess.run`` would; the arguments are those of ``ForkedProcess``."""
    process = ForkedProcess(module, arguments, libraries=libraries, environment=environment, folder=folder, path=path)
    try:
        out, err = process.communicate(_LONGEST_SEC)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return subprocess.CompletedProcess([module, *arguments], process.wait(), out, err)
