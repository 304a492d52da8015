import json

from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.files.glued_records import pieces

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=3), min_size=1, max_size=4)


def parts(line: bytes) -> list[bytes]:
    return [line[piece.start : piece.end] for piece in pieces(line)]


@given(OBJECTS, st.sampled_from(["", " ", "\t"]), st.booleans())
def test_glued_objects_are_taken_apart(objects: list[dict[str, object]], between: str, is_ascii: bool) -> None:
    texts = [json.dumps(each, ensure_ascii=is_ascii).encode("utf-8", "surrogatepass") for each in objects]
    line = between.encode().join(texts) + b"\n"
    assert parts(line) == texts
    assert all(piece.is_json for piece in pieces(line))


@given(st.binary(max_size=40))
def test_any_bytes_are_covered_in_order(line: bytes) -> None:
    ends = [0, *(piece.end for piece in pieces(line))]
    assert all(piece.start >= before for piece, before in zip(pieces(line), ends, strict=False))
    assert all(piece.start < piece.end <= len(line) for piece in pieces(line))


def test_what_is_no_object_is_not_taken_apart() -> None:
    assert parts(b'{"a": 1}{"b": {"c": 1}, "d') == [b'{"a": 1}', b'{"b": {"c": 1}, "d']
    assert parts(b'1 {"a": 1}') == [b'1 {"a": 1}']
    assert parts(b"  \r\n") == []


def test_deeply_nested_line_is_one_piece() -> None:
    assert parts(b'{"a":' * 100_000) == [b'{"a":' * 100_000]


def test_byte_order_mark_belongs_to_no_piece() -> None:
    assert parts(b'\xef\xbb\xbf{"a": 1}{"b": 2}') == [b'{"a": 1}', b'{"b": 2}']
