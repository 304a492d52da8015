import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.files.writing import replace_file, write_data


def test_replacing_leaves_no_temporary_files(tmp_path: Path) -> None:
    target = tmp_path / "file"
    replace_file(target, [b"a", b"b"])
    replace_file(target, [b"c"])
    assert target.read_bytes() == b"c"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_file_is_unchanged_if_its_content_raises(tmp_path: Path) -> None:
    def failing_chunks() -> Iterator[bytes]:
        yield b"new"
        raise RuntimeError("no more")

    target = tmp_path / "file"
    target.write_bytes(b"old")
    with pytest.raises(RuntimeError):
        replace_file(target, failing_chunks())
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        RunFolderError, match=r"file: cannot be written \(No such file or directory\)\. The folder .* does not exist"
    ):
        replace_file(tmp_path / "gone" / "file", [b""])
    with pytest.raises(
        RunFolderError, match=r"\(No such file or directory\)\. The folder was removed while the run was"
    ):
        replace_file(tmp_path / "gone" / "file", [b""], is_private=True)


def test_yaml_file_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "draft.yaml"
    write_data(path, {"a": 1})
    with pytest.raises(RunFolderError, match="exists already"):
        write_data(path, {"a": 2})
    write_data(path, {"a": 2}, overwrite=True)
    assert path.read_text() == "a: 2\n"


def test_json_suffix_writes_json(tmp_path: Path) -> None:
    write_data(tmp_path / "draft.json", [{"a": "é"}])
    assert json.loads((tmp_path / "draft.json").read_text(encoding="utf-8")) == [{"a": "é"}]
