from pathlib import Path

import pytest

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import Journal

A, B, C = (f'{{"question_id": "{name}"}}\n'.encode() for name in "abc")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl"


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl.torn"


def test_torn_last_line_is_set_aside_and_told(path: Path, torn: Path) -> None:
    path.write_bytes(A + B[:10])
    with Journal(path) as journal:
        assert journal.set_aside == [f"Line 2 (10 bytes) was cut off while it was written; it stands in {torn} now."]
        assert journal.keys() == [("a", 1)]
    assert path.read_bytes() == A
    assert torn.read_bytes() == B[:10] + b"\n"


def test_repaired_journal_reports_nothing_more(path: Path, torn: Path) -> None:
    path.write_bytes(A + B[:10])
    Journal(path).close()
    with Journal(path) as again:
        assert again.set_aside == []
    assert torn.read_bytes() == B[:10] + b"\n"


def test_lines_set_aside_later_join_the_earlier_ones(path: Path, torn: Path) -> None:
    for cut in (5, 6):
        path.write_bytes(A + B[:cut])
        Journal(path).close()
    assert torn.read_bytes() == B[:5] + b"\n" + B[:6] + b"\n"


def test_unreadable_lines_in_the_middle_are_set_aside(path: Path, torn: Path) -> None:
    path.write_bytes(A + b"bad\n" + B + b'{"no": "id"}\n' + b"\0\0")
    with Journal(path) as journal:
        assert journal.set_aside == [
            f"Line 2 (4 bytes) holds no response; it stands in {torn} now.",
            f"Line 4 (13 bytes) holds no response; it stands in {torn} now.",
            f"Line 5 (2 bytes) was cut off while it was written; it stands in {torn} now.",
        ]
        journal.add({"question_id": "c"})
        assert [record["question_id"] for record in journal.records()] == ["a", "b", "c"]
    assert path.read_bytes() == A + B + C
    assert torn.read_bytes() == b'bad\n{"no": "id"}\n\0\0\n'
    assert not list(path.parent.glob("*.new"))


def test_unreadable_lines_at_the_end_are_cut_off(path: Path, torn: Path) -> None:
    path.write_bytes(A + b"bad\nworse\n")
    with Journal(path) as journal:
        assert len(journal.set_aside) == 2
    assert path.read_bytes() == A
    assert torn.read_bytes() == b"bad\nworse\n"


def test_last_line_that_lacks_only_its_newline_is_kept(path: Path, torn: Path) -> None:
    path.write_bytes(A + B.rstrip())
    with Journal(path) as journal:
        assert journal.set_aside == []
        journal.add({"question_id": "c"})
    assert path.read_bytes() == A + B + C
    assert not torn.exists()


@pytest.mark.parametrize("raw", [A.replace(b"\n", b"\r\n") + b"\r\n" + B, A + b"\n\n" + B, b"\xef\xbb\xbf" + A + B])
def test_what_editors_add_is_taken(path: Path, torn: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    with Journal(path) as journal:
        assert journal.set_aside == []
        assert [record["question_id"] for record in journal.records()] == ["a", "b"]
        assert journal.read(("a", 1)) == {"question_id": "a"}
    assert path.read_bytes() == raw
    assert not torn.exists()


def test_next_record_gets_its_own_line_behind_blanks(path: Path) -> None:
    path.write_bytes(A + b"  ")
    with Journal(path) as journal:
        journal.add({"question_id": "b"})
    assert path.read_bytes() == A + b"  \n" + B


def test_nothing_is_cut_off_where_it_cannot_be_set_aside(path: Path, torn: Path) -> None:
    path.write_bytes(A + B[:10])
    torn.mkdir()
    with pytest.raises(RunFolderError, match=r"responses\.jsonl\.torn: cannot be written"):
        Journal(path)
    assert path.read_bytes() == A + B[:10]
