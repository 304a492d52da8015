"""Commands in processes that are forks of one with the libraries: to import them takes longer than most commands."""

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_MOTHER = """
import importlib, json, os, runpy, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in iter(sys.stdin.readline, ""):
    request = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, name in enumerate(request["streams"]):
    os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
os.chdir(request["folder"])
os.environ.clear()
os.environ.update(request["environment"])
sys.argv = [request["module"], *request["arguments"]]
sys.path[:1] = request["path"]
runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
"""


@cache
def _mother(libraries: tuple[str, ...]) -> "subprocess.Popen[str]":
    """Start a process that imports libraries once; it ends with this one, whose requests it reads."""
    program = [sys.executable, "-c", _MOTHER, *libraries]
    mother = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    atexit.register(mother.communicate)
    return mother


def run_forked(
    module: str,
    arguments: Sequence[str],
    *,
    libraries: tuple[str, ...],
    environment: Mapping[str, str],
    folder: Path | None = None,
    path: Sequence[str] = (),
) -> "subprocess.CompletedProcess[str]":
    """Run ``python -m module`` as `subprocess.run` would, in a process in which some libraries are imported.

    Args:
        module: The module.
        arguments: Its arguments.
        libraries: What is imported before; nothing that the tests are about.
        environment: All variables. Those that Python itself reads as it starts, such as PYTHONPATH, have no effect.
        folder: Where it runs, the current folder by default.
        path: What comes first on the path of modules.
    """
    mother = _mother(libraries)
    assert mother.stdin is not None
    assert mother.stdout is not None
    with tempfile.TemporaryDirectory() as streams:
        written = [Path(streams, name) for name in ("out", "err")]
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(folder or Path.cwd()),
            "path": list(path),
            "streams": [os.devnull, *map(str, written)],
        }
        mother.stdin.write(f"{json.dumps(request)}\n")
        mother.stdin.flush()
        if not select.select([mother.stdout], [], [], 120)[0]:
            os.killpg(mother.pid, signal.SIGKILL)
            _mother.cache_clear()
            raise TimeoutError(f"{module} {' '.join(arguments)} did not end within 120 s")
        code = int(mother.stdout.readline())
        out, err = (each.read_text(encoding="utf-8") for each in written)
    return subprocess.CompletedProcess([module, *arguments], code, out, err)
