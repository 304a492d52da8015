from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder.journal import journal_lines, key_of, record_in


def test_lines_have_byte_offsets(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(b'{"question_id": "a"}\r\n\n  \r\nbad\n{"question_id": 2}')
    assert [(line.number, line.offset, line.length, line.record, line.has_newline) for line in journal_lines(path)] == [
        (1, 0, 22, {"question_id": "a"}, True),
        (4, 27, 4, None, True),
        (5, 31, 18, {"question_id": 2}, False),
    ]


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"cannot be read \(Is a directory\)"):
        list(journal_lines(tmp_path))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\0\0\0",
        b"[]",
        b"{}",
        b'{"question_id": null}',
        b'{"question_id": true}',
        b'{"question_id": "a", "repeat": 0}',
        b'{"question_id": "a", "repeat": "1"}',
        b'{"question_id": "a", "x": "\xff"}',
        b'{"question_id": "a"}{"question_id": "b"}',
        b"[" * 100_000,
    ],
)
def test_other_lines_are_not_records(line: bytes) -> None:
    assert record_in(line) is None


def test_record_with_lone_surrogates_nan_and_a_byte_order_mark() -> None:
    assert record_in(b'\xef\xbb\xbf{"question_id": "a\\ud800"}') == {"question_id": "a\ud800"}
    record = record_in(b'{"question_id": "a", "x": NaN}\r\n')
    assert record is not None
    assert record["x"] != record["x"]


def test_key_is_the_id_as_string_and_the_repeat() -> None:
    assert key_of({"question_id": 7}) == ("7", 1)
    assert key_of({"question_id": "7", "repeat": 3}) == ("7", 3)
    assert key_of({"id": "7"}) is None
