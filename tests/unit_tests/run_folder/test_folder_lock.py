import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import FolderLock

_HOLD = """
import sys
from pathlib import Path
from graphrag_eval_lc.run_folder import FolderLock

lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""

_LEAVE_A_CHILD = """
import os, sys, time
from pathlib import Path
from graphrag_eval_lc.run_folder import FolderLock

lock = FolderLock(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    os.close(1)
    os.close(2)
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
os._exit(0)
"""


@contextmanager
def _other_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_second_process_is_rejected_with_one_error(tmp_path: Path) -> None:
    with _other_process(tmp_path):
        with pytest.raises(RunFolderError) as caught:
            FolderLock(tmp_path)
        assert str(caught.value) == (
            f"{tmp_path}: another run or command works in this folder. Wait for it to end, or use another folder."
        )


def test_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    with _other_process(tmp_path) as process:
        process.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        process.wait(60)
        FolderLock(tmp_path).release()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_that_outlives_the_run_does_not_keep_the_lock(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _LEAVE_A_CHILD, str(tmp_path)], capture_output=True, text=True, check=True, timeout=120
    )
    child = int(ended.stdout)
    try:
        os.kill(child, 0)  # still alive
        FolderLock(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_second_run_in_the_same_process_is_rejected(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(RunFolderError, match="works in this folder"):
        FolderLock(tmp_path)
    FolderLock(tmp_path).release()


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and modes")
def test_lock_file_is_private_and_links_are_not_followed(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        assert (tmp_path / ".lock").stat().st_mode & 0o777 == 0o600
    (tmp_path / "target").touch()
    (tmp_path / ".lock").unlink(missing_ok=True)
    (tmp_path / ".lock").symlink_to(tmp_path / "target")
    with pytest.raises(RunFolderError, match=r"\.lock: cannot be written"):
        FolderLock(tmp_path)


_KILLED_WITHOUT_LOCKS = """
import errno, fcntl, os, signal, sys
from pathlib import Path
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import FolderLock

def unsupported(*_):
    raise OSError(errno.ENOLCK, "No locks available")

fcntl.flock = unsupported
folder = Path(sys.argv[1])
with FolderLock(folder):
    try:
        FolderLock(folder)
    except RunFolderError as problem:
        print(problem)
FolderLock(folder).release()
lock = FolderLock(folder)
print(sorted(os.listdir(folder)), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs flock")
def test_fallback_lock_of_a_killed_process_is_released(tmp_path: Path) -> None:
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", _KILLED_WITHOUT_LOCKS, str(tmp_path)], capture_output=True, text=True, check=False
        )
        assert "another run or command works in this folder" in ended.stdout, ended.stderr
        assert ".lock.held" in ended.stdout.splitlines()[-1]
