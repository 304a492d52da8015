import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics import recall_at_k

ids = st.lists(st.integers(0, 9), max_size=12)


@pytest.mark.parametrize(
    ("relevant", "retrieved", "k", "score"),
    [
        ([1, 3, 5, 6], [1, 4, 3, 5, 7], 1, 1.0),
        ([1, 3, 5, 6], [1, 4, 3, 5, 7], 3, 2 / 3),
        ([1, 3, 5, 6], [1, 4, 3, 5, 7], 10, 0.75),
        ([1, 3], [3, 2, 1], None, 1.0),
        ([1, 2, 3, 4], [1], None, 0.25),
        ({1, 2}, (2, 2, 1), 2, 1.0),
        ([1, 1, 2], [1], 5, 0.5),
        ([], [1], 5, 0.0),
        ([1], [], 5, 0.0),
    ],
)
def test_recall_at_k(relevant: list[int], retrieved: list[int], k: int | None, score: float) -> None:
    assert recall_at_k(relevant, retrieved, k) == pytest.approx(score)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        recall_at_k([1], [1], k)


@given(ids, ids, st.integers(1, 12))
def test_recall_at_k_lies_between_0_and_1_and_ignores_the_order_of_the_relevant(
    relevant: list[int], retrieved: list[int], k: int
) -> None:
    score = recall_at_k(relevant, retrieved, k)
    assert 0.0 <= score <= 1.0
    assert score == recall_at_k(list(reversed(relevant)), retrieved, k)


@given(st.sets(st.integers(0, 9), min_size=1), st.integers(1, 12))
def test_perfect_ranking_scores_1_at_every_k(relevant: set[int], k: int) -> None:
    assert recall_at_k(relevant, sorted(relevant), k) == 1.0


def test_capped_recall_of_the_conformance_vectors(conformance_dir: Path) -> None:
    vectors = json.loads((conformance_dir / "vectors" / "retrieval_ids.json").read_text())
    checked = 0
    for vector in vectors:
        for k, expected in (vector["expected"].get("capped_recall_at_k") or {}).items():
            relevant, retrieved = vector["input"]["relevant_ids"], vector["input"]["retrieved_ids"]
            assert recall_at_k(relevant, retrieved, int(k)) == pytest.approx(expected), (vector["id"], k)
            checked += 1
    assert checked > 100
