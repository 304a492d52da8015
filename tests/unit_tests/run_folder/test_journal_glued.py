"""Records that stand glued on one line, as where a newline was lost: what can be read is read."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import Journal, iter_responses, iter_results

A, A2, B = (
    json.dumps(each).encode() for each in ({"question_id": "a"}, {"question_id": "a", "n": 2}, {"question_id": "b"})
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "responses.jsonl"


def ids(records: Iterable[object]) -> list[object]:
    return [record["question_id"] for record in records]  # type: ignore[index]


def test_both_records_of_a_line_are_read_and_nothing_is_set_aside(path: Path) -> None:
    path.write_bytes(A + B + b"\n")
    assert ids(iter_responses(path)) == ["a", "b"]
    with Journal(path) as journal:
        assert journal.set_aside == []
        assert journal.keys() == [("a", 1), ("b", 1)]
        assert ids(journal.records()) == ["a", "b"]
        assert journal.read(("b", 1)) == {"question_id": "b"}
        journal.add({"question_id": "c"})
    assert ids(iter_responses(path)) == ["a", "b", "c"]


def test_last_record_of_a_key_counts_on_one_line_too(path: Path) -> None:
    path.write_bytes(A + b" " + A2 + B + b"\n")
    with Journal(path) as journal:
        assert journal.read(("a", 1)) == {"question_id": "a", "n": 2}


def test_what_is_torn_behind_a_record_is_set_aside_alone(path: Path) -> None:
    path.write_bytes(A + B[:9])
    with Journal(path) as journal:
        assert journal.keys() == [("a", 1)]
        assert [sentence.split(";")[0] for sentence in journal.set_aside] == [
            "Line 1 (9 bytes) was cut off while it was written"
        ]
    assert path.read_bytes() == A + b"\n"
    assert path.with_name("responses.jsonl.torn").read_bytes() == B[:9] + b"\n"


def test_parts_without_a_response_in_the_middle_are_set_aside(path: Path) -> None:
    path.write_bytes(A + b'{"no": 1}' + B + b"\n" + b'{"no": 2}\n' + A2 + b"{\n")
    with Journal(path) as journal:
        assert len(journal.set_aside) == 3
        assert ids(journal.records()) == ["b", "a"]
        assert journal.read(("a", 1)) == {"question_id": "a", "n": 2}
    assert path.read_bytes() == A + B + b"\n" + A2 + b"\n"
    assert path.with_name("responses.jsonl.torn").read_bytes() == b'{"no": 1}\n{"no": 2}\n{\n'


def test_results_glued_on_a_line_are_read(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(A + B + b"\n" + A2 + b"\n")
    assert ids(iter_results(path)) == ["a", "b", "a"]
    path.write_bytes(A + B[:9] + b"\n")
    with pytest.raises(RunFolderError, match="line 1: this line is no result"):
        list(iter_results(path))


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.text(max_size=5)), min_size=1, max_size=6),
    st.data(),
)
def test_nothing_is_lost_wherever_newlines_are_lost(records: list[tuple[str, str]], data: st.DataObject) -> None:
    import tempfile

    lines = [json.dumps({"question_id": key, "text": text}, ensure_ascii=False).encode() for key, text in records]
    content = b"".join(line + data.draw(st.sampled_from([b"\n", b""])) for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "responses.jsonl")
        path.write_bytes(content)
        with Journal(path) as journal:
            assert journal.set_aside == []
            kept = {record["question_id"]: record["text"] for record in journal.records()}
    assert kept == dict(records)
