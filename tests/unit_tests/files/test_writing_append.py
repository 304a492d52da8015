import os
import shutil
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files.writing import AppendFile


def test_append_returns_the_offset_of_each_line(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    assert [file.append(b"one\n"), file.append(b"two\n")] == [0, 4]
    assert (tmp_path / "file").read_bytes() == b"one\ntwo\n"
    file.close()
    reopened = AppendFile(tmp_path / "file")
    assert reopened.append(b"three\n") == 8
    reopened.close()


def test_file_can_be_emptied_first(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    file = AppendFile(tmp_path / "file", empty=True)
    assert file.append(b"new") == 0
    file.close()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_full_disk_is_an_error_with_a_hint(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, file.descriptor)
    os.close(full)
    with pytest.raises(RunFolderError, match=r"file: cannot be written \(No space left on device\)\. Free space"):
        file.append(b"line\n")
    file.close()


def test_removed_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    file = AppendFile(tmp_path / "run" / "file")
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(RunFolderError, match="its folder was removed while the run was writing"):
        file.append(b"line\n")
    file.close()


def test_replaced_file_is_reported(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    (tmp_path / "other").write_bytes(b"")
    (tmp_path / "other").replace(tmp_path / "file")
    with pytest.raises(RunFolderError, match="was removed"):
        file.append(b"line\n")
    file.close()


def test_closed_file_rejects_lines_and_can_be_closed_again(tmp_path: Path) -> None:
    file = AppendFile(tmp_path / "file")
    file.close()
    file.close()
    with pytest.raises(RunFolderError):
        file.append(b"line\n")
    assert (tmp_path / "file").read_bytes() == b""
