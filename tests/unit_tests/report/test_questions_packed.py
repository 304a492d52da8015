import base64
import gzip
import json
from typing import Any

from graphrag_eval_lc.report.questions import DetailChunks


def unpacked(chunk: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(chunk)))


def test_each_detail_is_in_the_named_chunk() -> None:
    chunks = DetailChunks()
    numbers = {f"q{at}": chunks.add(f"q{at}", {"text": str(at) * 40_000}) for at in range(9)}
    packed = list(chunks.packed())
    assert len(packed) == 3
    for key, number in numbers.items():
        assert unpacked(packed[number])[key] == {"text": key[1:] * 40_000}


def test_detail_larger_than_a_chunk_has_its_own_chunk() -> None:
    chunks = DetailChunks()
    assert [chunks.add(key, {"text": "x" * 500_000}) for key in "ab"] == [0, 1]
    assert [list(unpacked(chunk)) for chunk in chunks.packed()] == [["a"], ["b"]]


def test_no_details_have_no_chunks_and_packing_is_deterministic() -> None:
    assert list(DetailChunks().packed()) == []
    first, second = DetailChunks(), DetailChunks()
    for chunks in (first, second):
        chunks.add("q", {"value": float("nan")})
    packed = list(first.packed())
    assert packed == list(second.packed())
    assert unpacked(packed[0]) == {"q": {"value": "NaN"}}
