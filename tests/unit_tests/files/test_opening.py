import os
import socket
import stat
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files import opening
from graphrag_eval_lc.files.opening import (
    absolute_path,
    is_private_beside,
    make_folder,
    open_descriptor,
    open_to_read,
    open_to_write,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")
WRITE = os.O_WRONLY | os.O_CREAT
UMASKS = [0o000, 0o022, 0o077, 0o777]


@pytest.fixture(params=[True, False], ids=["O_NOFOLLOW", "without O_NOFOLLOW"])
def leaves_links(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with O_NOFOLLOW, and as on a system without it."""
    if not request.param:
        monkeypatch.setattr(opening, "_SAFE_FLAGS", opening._SAFE_FLAGS & ~os.O_NOFOLLOW)
        monkeypatch.setattr(opening, "_LEAVES_LINKS", False)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def created_mode(path: Path, *, is_private: bool = True) -> int:
    os.close(open_descriptor(path, WRITE, is_private=is_private))
    return mode_of(path)


@pytest.mark.parametrize("mask", UMASKS)
def test_private_files_and_folders_are_readable_by_the_owner_only(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        make_folder(tmp_path / "run")
        assert (mode_of(tmp_path / "run"), created_mode(tmp_path / "run" / "file")) == (0o700, 0o600)
    finally:
        os.umask(before)


@pytest.mark.parametrize(("mask", "modes"), [(0o022, (0o755, 0o644)), (0o007, (0o770, 0o660))])
def test_files_that_are_not_private_follow_the_umask(tmp_path: Path, mask: int, modes: tuple[int, int]) -> None:
    before = os.umask(mask)
    try:
        make_folder(tmp_path / "run", is_private=False)
        assert (mode_of(tmp_path / "run"), created_mode(tmp_path / "run" / "file", is_private=False)) == modes
    finally:
        os.umask(before)


def test_mode_of_an_existing_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(0o755)
    (tmp_path / "run").chmod(0o755)
    make_folder(tmp_path / "run")
    assert mode_of(tmp_path / "run") == 0o755


def test_existing_file_becomes_private_when_appended_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(0o644)
    assert created_mode(tmp_path / "file", is_private=False) == 0o644
    assert created_mode(tmp_path / "file") == 0o600


@pytest.mark.usefixtures("leaves_links")
@pytest.mark.parametrize("target", ["there", "nowhere", "folder"])
def test_symbolic_link_is_not_followed(tmp_path: Path, target: str) -> None:
    (tmp_path / "there").write_text("secret")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / target)
    for flags in (os.O_RDONLY, WRITE, os.O_RDWR | os.O_CREAT | os.O_APPEND):
        with pytest.raises(RunFolderError, match=r"link: this is a symbolic link, and only regular files are used"):
            open_descriptor(tmp_path / "link", flags)
    assert (tmp_path / "there").read_text() == "secret"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.usefixtures("leaves_links")
def test_folder_itself_may_be_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "runs").symlink_to("real")
    assert created_mode(tmp_path / "runs" / "file") == 0o600
    make_folder(tmp_path / "runs")


@pytest.mark.usefixtures("leaves_links")
@pytest.mark.parametrize("flags", [os.O_RDONLY, WRITE, os.O_RDWR | os.O_CREAT])
def test_named_pipe_does_not_hang(tmp_path: Path, flags: int) -> None:
    os.mkfifo(tmp_path / "file")
    with pytest.raises(RunFolderError, match="this is a named pipe"):
        open_descriptor(tmp_path / "file", flags)


@pytest.mark.usefixtures("leaves_links")
def test_device_and_socket_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunFolderError, match="this is a device"):
        open_to_read(Path(os.devnull))
    monkeypatch.chdir(tmp_path)  # socket paths must be short
    with socket.socket(socket.AF_UNIX) as planted:
        planted.bind("socket")
        with pytest.raises(RunFolderError, match="this is a socket"):
            open_to_read(Path("socket"))


def test_hard_linked_file_is_read_but_not_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    os.link(tmp_path / "file", tmp_path / "other")
    with open_to_read(tmp_path / "file") as file:
        assert file.read() == b"kept"
    with pytest.raises(RunFolderError, match=r"has 2 names \(hard links\).* Copy it, and move the copy"):
        open_descriptor(tmp_path / "file", WRITE)
    assert (tmp_path / "other").read_text() == "kept"


def test_descriptors_never_replace_standard_streams(tmp_path: Path) -> None:
    pid = os.fork()
    if pid == 0:
        os.close(1)
        os.close(0)
        os._exit(open_descriptor(tmp_path / "file", WRITE))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) > 2


def test_export_next_to_run_json_has_the_same_privacy(tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.touch()
    for mode in (0o600, 0o644):
        run.chmod(mode)
        assert is_private_beside(tmp_path / "report.html") is (mode == 0o600)
        assert is_private_beside(tmp_path / "csv" / "steps.csv") is (mode == 0o600)
    assert not is_private_beside(tmp_path.parent / "report.html")


def test_export_follows_links_except_in_a_run_folder(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "steps.csv").symlink_to("victim")
    open_to_write(tmp_path / "steps.csv").close()
    assert (tmp_path / "victim").read_text() == ""
    (tmp_path / "run.json").touch()
    with pytest.raises(RunFolderError, match="symbolic link"):
        open_to_write(tmp_path / "steps.csv")


@pytest.mark.parametrize("use", [open_to_read, make_folder, lambda path: created_mode(path)])
def test_nul_in_a_path_is_an_error(use: "object") -> None:
    with pytest.raises(RunFolderError, match=r"runs.x00a': the path has a NUL character"):
        use(Path("runs\0a"))  # type: ignore[operator]


def test_relative_path_in_a_removed_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert absolute_path("/runs") == Path("/runs")
    with pytest.raises(RunFolderError, match=r"runs/a: the current folder cannot be read .*Go to a folder that exists"):
        absolute_path("runs/a")
    monkeypatch.undo()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
@pytest.mark.parametrize("folder", ["/proc/run", "/proc/runs/first"])
def test_folder_in_proc_is_not_reported_as_removed(folder: str) -> None:
    with pytest.raises(RunFolderError) as caught:
        make_folder(Path(folder))
    message = str(caught.value)
    assert message.startswith(f"{folder}: cannot be written (No such file or directory). ")
    assert message.endswith("Nothing can be created in /proc: choose a folder on a disk.")
