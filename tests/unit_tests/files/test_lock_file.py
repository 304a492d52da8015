import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files import folder_lock
from graphrag_eval_lc.files.folder_lock import STAND_IN, FolderLock
from graphrag_eval_lc.files.lock_holder import Holder

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")

_WITHOUT_LOCKS = """
import errno, os, sys
from pathlib import Path
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files import folder_lock

def refuse(descriptor):
    raise OSError(errno.ENOLCK, "No locks available")

folder_lock._lock = refuse
"""
_HOLD = """
lock = folder_lock.FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""
# Each waits for the word to go, says how it went, and the winner holds on until all have tried.
_RACE = """
print("ready", flush=True)
sys.stdin.readline()
try:
    lock = folder_lock.FolderLock(Path(sys.argv[1]))
    print("won", flush=True)
except RunFolderError as problem:
    print(problem, flush=True)
sys.stdin.read()
"""


def start(code: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _WITHOUT_LOCKS + code, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


_RARER = [pytest.param(name, marks=pytest.mark.full) for name in ("ENOTSUP", "EOPNOTSUPP", "ENOSYS")]


@pytest.fixture(params=["ENOLCK", *_RARER])
def no_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    def refuse(descriptor: int) -> None:
        raise OSError(getattr(errno, request.param), "No locks available")

    monkeypatch.setattr(folder_lock, "_lock", refuse)


def plant(folder: Path, holder: Holder) -> None:
    (folder / STAND_IN).write_bytes(holder.as_bytes())


def told_of(folder: Path) -> Holder:
    holder = Holder.read((folder / STAND_IN).read_bytes())
    assert holder is not None
    return holder


@pytest.mark.usefixtures("no_locks")
def test_lock_file_stands_in_and_goes_with_the_lock(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    holder = json.loads((tmp_path / STAND_IN).read_text())
    assert holder["pid"] == os.getpid()
    assert holder["host"] == os.uname().nodename
    assert (tmp_path / STAND_IN).stat().st_mode & 0o777 == 0o600
    with pytest.raises(RunFolderError, match=rf"another process \(pid {os.getpid()} on .+\) works in this folder"):
        FolderLock(tmp_path)
    lock.release()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    FolderLock(tmp_path).release()


@pytest.mark.usefixtures("no_locks")
def test_process_that_lives_keeps_it_and_a_killed_one_gives_it_up(tmp_path: Path) -> None:
    with start(_HOLD, tmp_path) as process:
        assert said(process) == "held"
        with pytest.raises(RunFolderError, match=rf"another process \(pid {process.pid} on .+\) works in this folder"):
            FolderLock(tmp_path)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        with FolderLock(tmp_path):
            assert told_of(tmp_path).pid == os.getpid()


@pytest.mark.usefixtures("no_locks")
def test_another_process_with_the_same_number_is_not_the_holder(tmp_path: Path) -> None:
    me = Holder.this()
    plant(tmp_path, Holder(me.pid, me.host, "1", me.boot, me.machine, "t"))
    FolderLock(tmp_path).release()


@pytest.mark.usefixtures("no_locks")
def test_process_before_the_hosts_last_start_is_dead(tmp_path: Path) -> None:
    me = Holder.this()
    plant(tmp_path, Holder(me.pid, me.host, me.started, "an earlier one", me.machine, "t"))
    FolderLock(tmp_path).release()


@pytest.mark.usefixtures("no_locks")
@pytest.mark.parametrize("machine", ["another", None])
def test_process_of_another_host_is_refused_with_how_to_mend(tmp_path: Path, machine: str | None) -> None:
    me = Holder.this()
    host = me.host if machine else "node7"  # the same name with another id, as of two containers, is another host
    plant(tmp_path, Holder(1, host, "1", "2", machine, "t"))
    with pytest.raises(RunFolderError) as caught:
        FolderLock(tmp_path)
    message = str(caught.value)
    assert f"a process of another host (pid 1 on {host}) works in this folder" in message
    assert message.endswith(f"Where it has ended, remove {tmp_path / STAND_IN}.")
    assert (tmp_path / STAND_IN).exists()


@pytest.mark.full
@pytest.mark.usefixtures("no_locks")
def test_lock_file_that_says_nothing_is_refused_with_how_to_mend(tmp_path: Path) -> None:
    (tmp_path / STAND_IN).write_bytes(b"")
    with pytest.raises(RunFolderError, match=rf"another process works in this folder.*remove .*{STAND_IN}"):
        FolderLock(tmp_path)


def test_process_with_locks_minds_the_lock_file_of_one_without(tmp_path: Path) -> None:
    plant(tmp_path, Holder(1, "node7"))
    with pytest.raises(RunFolderError, match="another host"):
        FolderLock(tmp_path)
    (tmp_path / STAND_IN).unlink()
    FolderLock(tmp_path).release()


@pytest.mark.usefixtures("no_locks")
def test_link_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "victim").write_bytes(b"")
    (tmp_path / STAND_IN).symlink_to("victim")
    with pytest.raises(RunFolderError, match="symbolic link"):
        FolderLock(tmp_path)
    assert (tmp_path / "victim").read_bytes() == b""


@pytest.mark.usefixtures("no_locks")
def test_forked_child_leaves_the_lock_file(tmp_path: Path) -> None:
    with FolderLock(tmp_path):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        assert (tmp_path / STAND_IN).exists()


@pytest.mark.full
@pytest.mark.parametrize("is_stale", [False, True], ids=["free", "of a dead process"])
def test_of_20_processes_exactly_one_wins(tmp_path: Path, is_stale: bool) -> None:
    processes = [start(_RACE, tmp_path) for _ in range(20)]
    try:
        assert {said(process) for process in processes} == {"ready"}
        if is_stale:
            me = Holder.this()
            plant(tmp_path, Holder(me.pid, me.host, "1", me.boot, me.machine, "dead"))
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        outcomes = [said(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert outcomes.count("won") == 1
    assert all("works in this folder" in outcome for outcome in outcomes if outcome != "won")
    (winner,) = (process for process, outcome in zip(processes, outcomes, strict=True) if outcome == "won")
    assert told_of(tmp_path).pid == winner.pid
