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


def test_second_process_is_refused_and_told_who_works_there(tmp_path: Path) -> None:
    with _other_process(tmp_path) as process:
        with pytest.raises(RunFolderError) as caught:
            FolderLock(tmp_path)
        message = str(caught.value)
        assert f"{tmp_path}: another process (pid {process.pid} on " in message
        assert message.endswith("works in this folder. Wait for it to end, or give another folder.")


def test_killed_process_gives_the_lock_up(tmp_path: Path) -> None:
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
        os.kill(child, 0)  # it lives
        FolderLock(tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_second_run_in_the_same_process_is_refused(tmp_path: Path) -> None:
    with FolderLock(tmp_path), pytest.raises(RunFolderError, match=f"pid {os.getpid()} on"):
        FolderLock(tmp_path)
    FolderLock(tmp_path).release()


def test_refused_lock_leaves_the_other_one_alone(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        for _ in range(3):
            with pytest.raises(RunFolderError, match="works in this folder"):
                FolderLock(tmp_path)


def test_lock_is_released_once(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    first.release()
    with FolderLock(tmp_path):
        first.release()
        with pytest.raises(RunFolderError, match="works in this folder"):
            FolderLock(tmp_path)


def test_locks_of_two_folders_are_apart(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with FolderLock(tmp_path / "a"), FolderLock(tmp_path / "b"):
        pass


def test_holder_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        (tmp_path / ".lock").write_text("?")
        with pytest.raises(RunFolderError, match="another process works in this folder"):
            FolderLock(tmp_path)


def test_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="cannot be written"):
        FolderLock(tmp_path / "missing")
