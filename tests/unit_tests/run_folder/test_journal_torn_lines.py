"""Lines damaged by a kill, a disk or an editor, and responses to an earlier question text."""

from pathlib import Path

import pytest

from graphrag_eval_lc.run_folder import Journal

A, B, C = (f'{{"question_id": "{name}"}}\n'.encode() for name in "abc")
OF_EDITORS = [A.replace(b"\n", b"\r\n") + b"\r\n" + B, A + b"\n\n" + B, b"\xef\xbb\xbf" + A + B]


@pytest.mark.parametrize(
    ("raw", "warning", "remaining"),
    [
        (A + B[:10], [(2, 10, "was cut off while it was written")], A),
        (A + B + B.rstrip(), [], A + B + B),  # only its newline is missing
        (A + b"bad\n" + B, [(2, 4, "holds no response")], A + b"bad\n" + B),
        (A + B + b'{"no": "id"}\n\0', [(3, 13, "holds no response"), (4, 1, "was cut off while it was written")], None),
        *((raw, [], raw) for raw in OF_EDITORS),
    ],
)
def test_unreadable_lines_are_reported_and_a_truncated_one_removed(
    tmp_path: Path, raw: bytes, warning: list[tuple[int, int, str]], remaining: bytes | None
) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(raw)
    remaining = A + B + b'{"no": "id"}\n' if remaining is None else remaining
    with Journal(path) as journal:
        assert journal.unreadable == [f"Line {line} of {path} ({size} bytes) {why}." for line, size, why in warning]
        assert path.read_bytes() == remaining
        journal.add({"question_id": "c"})
        assert {record["question_id"] for record in journal.records(journal)} == {"c", "a"} | (
            {"b"} if B in remaining else set()
        )
    assert path.read_bytes() == remaining + C
    assert [each.name for each in tmp_path.iterdir()] == ["responses.jsonl"]


def test_next_record_gets_its_own_line_after_blanks(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    path.write_bytes(A + b"  ")
    with Journal(path) as journal:
        journal.add({"question_id": "b"})
        assert [record["question_id"] for record in journal.records(journal)] == ["a", "b"]


def test_response_to_another_question_text_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "responses.jsonl"
    with Journal(path) as journal:
        for text in ("1 + 1?", "1 + 2?"):
            journal.add({"question_id": "q", "question_text": text})
            journal.add({"question_id": "other", "question_text": text})
            journal.add({"question_id": "no text"})
    with Journal(path, texts={"q": "1 + 1?", "other": "1 + 2?", "no text": "?"}) as reopened:
        assert list(reopened) == [("no text", 1), ("other", 1)]
