from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.judges.embedding_model import packed, unpacked

FINITE = {"allow_nan": False, "allow_infinity": False}


@given(st.lists(st.floats(**FINITE)))
def test_a_packed_vector_is_unpacked_exactly(vector: list[float]) -> None:
    kind, text = packed(vector)
    assert unpacked(text, kind) == tuple(vector)


@given(st.lists(st.floats(width=32, **FINITE)))
def test_numbers_that_fit_take_32_bits(vector: list[float]) -> None:
    assert packed(vector)[0] == "f"
