import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import metrics
from graphrag_eval_lc.metrics import (
    average_precision,
    f1,
    hit_rate,
    ndcg,
    parse_measure,
    precision,
    r_precision,
    recall,
    recall_at_k,
)

NOT_APPLICABLE = [
    metrics.precision,
    metrics.recall,
    metrics.f1,
    metrics.reciprocal_rank,
    metrics.average_precision,
    metrics.ndcg,
    metrics.hit_rate,
    metrics.r_precision,
]
ALL: list[Callable[..., float | None]] = [*NOT_APPLICABLE, metrics.recall_at_k]

GROUPS = [["test-1", "test-2"], ["test-3"]]
PREDICTION = ["test-1", "pred-1", "test-2", "pred-3"]

ids = st.lists(st.integers(0, 9), max_size=12)
groups = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5)
gains = st.dictionaries(st.integers(0, 9), st.floats(-1, 1e300) | st.integers(-1, 4), max_size=8)
cutoffs = st.none() | st.integers(1, 12)


def is_share(score: float | None) -> bool:
    return score is None or 0.0 <= score <= 1.0


# --- ids


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


@given(st.sets(st.integers(0, 9), min_size=1), st.integers(1, 12))
def test_perfect_ranking_scores_1_at_every_k(relevant: set[int], k: int) -> None:
    assert recall_at_k(relevant, sorted(relevant), k) == ndcg(relevant, sorted(relevant), k) == 1.0


def test_recall_divides_by_all_relevant_ids_also_where_the_top_k_cannot_hold_them() -> None:
    assert recall([1, 2, 3, 4], [1, 2], k=2) == 0.5
    assert recall_at_k([1, 2, 3, 4], [1, 2], k=2) == 1.0


def test_precision_divides_by_k_and_without_it_by_what_was_retrieved() -> None:
    assert precision([1], [1, 2], k=10) == 0.1
    assert precision([1], [1, 2]) == 0.5


def test_reciprocal_rank_is_0_beyond_k() -> None:
    assert metrics.reciprocal_rank([3], [1, 2, 3]) == pytest.approx(1 / 3)
    assert metrics.reciprocal_rank([3], [1, 2, 3], k=2) == 0.0


def test_average_precision_divides_by_all_relevant_or_by_the_retrieved_ones() -> None:
    relevant, retrieved = [1, 3, 5, 6], [1, 4, 3, 5, 7]
    assert average_precision(relevant, retrieved) == pytest.approx((1 + 2 / 3 + 3 / 4) / 4)
    assert average_precision(relevant, retrieved, normalize="retrieved_relevant") == pytest.approx(
        (1 + 2 / 3 + 3 / 4) / 3
    )
    assert average_precision(relevant, retrieved, k=3) == pytest.approx((1 + 2 / 3) / 4)
    assert average_precision(relevant, retrieved, k=3, normalize="retrieved_relevant") == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(relevant, [7], normalize="retrieved_relevant") == 0.0


def test_other_normalisation_is_an_error() -> None:
    with pytest.raises(ValueError, match="normalize is relevant or retrieved_relevant, not 'hits'"):
        average_precision([1], [1], normalize="hits")  # type: ignore[arg-type]


def test_r_precision_takes_as_many_as_are_relevant_but_no_more_than_k() -> None:
    assert r_precision([1, 2], [1, 3, 2]) == 0.5
    assert r_precision([1, 2], [1, 2], k=1) == 0.5


# --- gains


def test_gains_matter_to_ndcg_alone() -> None:
    relevant = {"a": 3, "b": 1, "c": 0, "d": -1}
    retrieved = ["c", "b", "a", "d"]
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(relevant, retrieved) == pytest.approx((1 / math.log2(3) + 3 / math.log2(4)) / best)
    assert ndcg(relevant, retrieved, k=1) == 0.0
    assert ndcg(relevant, ["b"], k=1) == pytest.approx(1 / 3)
    for metric in set(ALL) - {ndcg}:
        assert metric(relevant, retrieved) == metric(["a", "b"], retrieved)


def test_equal_gains_are_those_of_ids() -> None:
    assert ndcg({"a": 2, "b": 2}, ["a", "x", "b"]) == pytest.approx(ndcg(["a", "b"], ["a", "x", "b"]))


def test_gains_near_the_end_of_the_floats_give_a_share() -> None:
    assert ndcg({"a": 1.7e308, "b": 1.7e308}, ["a", "b"]) == 1.0
    assert ndcg({"a": 5e-324}, ["a"]) == 1.0


@pytest.mark.parametrize("gain", [math.nan, math.inf, 10**400])
def test_gain_beyond_the_floats_is_an_error(gain: float) -> None:
    with pytest.raises(ValueError, match="the gain of 'a' is a number within the floats"):
        ndcg({"a": gain}, ["a"])


@pytest.mark.parametrize("gain", ["1", None])
def test_gain_that_is_no_number_is_an_error(gain: Any) -> None:
    with pytest.raises(TypeError, match="the gain of 'a' is a number, not"):
        ndcg({"a": gain}, ["a"])


# --- groups


def test_worked_example_of_autorag() -> None:
    assert precision(GROUPS, PREDICTION) == recall(GROUPS, PREDICTION) == f1(GROUPS, PREDICTION) == 0.5
    assert metrics.reciprocal_rank(GROUPS, PREDICTION) == 0.5
    assert average_precision(GROUPS, PREDICTION) == pytest.approx(5 / 12)
    assert ndcg(GROUPS, PREDICTION) == pytest.approx(0.7039180890341347)
    assert hit_rate(GROUPS, PREDICTION) == 1.0
    assert r_precision(GROUPS, PREDICTION) == 0.5


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter])
def test_groups_may_be_any_iterables(kind: Callable[[list[str]], Iterable[str]]) -> None:
    assert average_precision([kind(group) for group in GROUPS], iter(PREDICTION)) == pytest.approx(5 / 12)


def test_capped_recall_of_groups_is_at_most_1_where_one_id_is_in_several() -> None:
    assert recall_at_k([["a"], ["a", "b"], ["c"]], ["a"], k=1) == 1.0
    assert recall_at_k([["a"], ["b"], ["c"]], ["a", "x"], k=2) == 0.5
    assert recall([["a"], ["b"], ["c"]], ["a", "x"], k=2) == pytest.approx(1 / 3)


TRIPLE, OTHER = ("s", "p", "o"), ("s2", "p", "o2")


@pytest.mark.parametrize(
    ("relevant", "retrieved", "score"),
    [
        ({TRIPLE, OTHER}, [TRIPLE], 0.5),
        ([("a", 1)], [("a", 1)], 1.0),
        ([frozenset("ab")], [frozenset("ab"), frozenset("c")], 1.0),
        (["a", TRIPLE], [TRIPLE, "a"], 1.0),
        ([[TRIPLE, OTHER], [("x",)]], [OTHER], 0.5),
        ({TRIPLE: 2, OTHER: 1}, [TRIPLE], 0.5),
        ([("a", "b"), ("c",)], ["b"], 0.5),
        ([("a", "b")], [], 0.0),
    ],
)
def test_tuples_are_ids_where_tuples_were_retrieved(relevant: Any, retrieved: Any, score: float) -> None:
    assert recall(relevant, retrieved) == score


def test_groups_without_ids_do_not_count() -> None:
    assert recall([["a"], []], ["a"]) == 1.0
    assert recall([[], []], ["a"]) is None


@given(st.sets(st.integers(0, 9), min_size=1), ids, cutoffs)
def test_groups_of_one_id_each_are_ids_but_for_what_is_a_mean_over_groups(
    relevant: set[int], retrieved: list[int], k: int | None
) -> None:
    for metric in (precision, recall, f1, hit_rate, r_precision, recall_at_k):
        assert metric([[each] for each in relevant], retrieved, k) == metric(relevant, retrieved, k)


@given(st.sets(st.integers(0, 9), min_size=1), ids, cutoffs)
def test_average_precision_of_one_group_divides_by_the_retrieved_ones(
    group: set[int], retrieved: list[int], k: int | None
) -> None:
    assert average_precision([group], retrieved, k) == average_precision(
        group, retrieved, k, normalize="retrieved_relevant"
    )


# --- what all of them share


@pytest.mark.parametrize("metric", NOT_APPLICABLE)
@pytest.mark.parametrize("relevant", [[], {}, {"a": 0}, [[]], set()])
def test_nothing_relevant_is_not_applicable(metric: Callable[..., float | None], relevant: Any) -> None:
    assert metric(relevant, ["a"]) is None
    assert recall_at_k(relevant, ["a"]) == 0.0


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("relevant", [["a"], {"a": 2}, [["a"]]])
@pytest.mark.parametrize("k", [None, 3])
def test_nothing_retrieved_is_0(metric: Callable[..., float | None], relevant: Any, k: int | None) -> None:
    assert metric(relevant, [], k) == 0.0


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_below_one_or_not_whole_is_an_error(metric: Callable[..., float | None], k: Any) -> None:
    with pytest.raises(ValueError, match="a whole number of at least 1, not"):
        metric([1], [1], k)


@pytest.mark.parametrize("metric", ALL)
@given(relevant=ids | gains | groups, retrieved=ids, k=cutoffs)
def test_scores_lie_between_0_and_1(
    metric: Callable[..., float | None], relevant: Any, retrieved: list[int], k: int | None
) -> None:
    assert is_share(metric(relevant, retrieved, k))


@pytest.mark.parametrize("metric", ALL)
@given(relevant=ids, retrieved=ids, k=cutoffs)
def test_order_and_repeats_of_the_relevant_do_not_matter(
    metric: Callable[..., float | None], relevant: list[int], retrieved: list[int], k: int | None
) -> None:
    score = metric(relevant, retrieved, k)
    assert score == metric(relevant[::-1] + relevant, retrieved, k) == metric(set(relevant), retrieved, k)


@pytest.mark.parametrize("metric", ALL)
@given(relevant=groups, retrieved=ids, k=cutoffs)
def test_order_within_groups_does_not_matter_and_that_of_groups_only_to_rounding(
    metric: Callable[..., float | None], relevant: list[list[int]], retrieved: list[int], k: int | None
) -> None:
    score = metric(relevant, retrieved, k)
    assert score == metric([group[::-1] for group in relevant], retrieved, k)
    assert score == pytest.approx(metric(relevant[::-1], retrieved, k))


@pytest.mark.parametrize("metric", ALL)
@given(relevant=ids | gains | groups, retrieved=ids, k=cutoffs)
def test_repeated_retrieved_ids_count_once(
    metric: Callable[..., float | None], relevant: Any, retrieved: list[int], k: int | None
) -> None:
    distinct = list(dict.fromkeys(retrieved))
    assert metric(relevant, retrieved, k) == metric(relevant, distinct, k)


@given(ids | groups, ids, st.integers(1, 12))
def test_more_of_the_ranking_never_lowers_recall_hits_and_reciprocal_rank(
    relevant: Any, retrieved: list[int], k: int
) -> None:
    for metric in (recall, hit_rate, metrics.reciprocal_rank):
        score, next_score = metric(relevant, retrieved, k), metric(relevant, retrieved, k + 1)
        assert score is None or (next_score is not None and score <= next_score)


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("relevant", "retrieved", "message"),
    [
        ("doc-1", ["doc-1"], "relevant is a text"),
        (["doc-1"], "doc-1", "retrieved is a text"),
        (["doc-1"], {"doc-1": 0.5}, "retrieved is a mapping, which has no ranks"),
        (None, ["doc-1"], "relevant is not an iterable of ids"),
        (["doc-1"], None, "retrieved is not an iterable of ids"),
        (["doc-1"], [["doc-1"]], "retrieved has an element that is not an id"),
        ([{"id": "doc-1"}], ["doc-1"], "pass the ids of documents"),
        ([["doc-1", ["doc-2"]]], ["doc-1"], "a group of relevant has an element that is not an id"),
    ],
)
def test_what_is_no_ranking_is_an_error(
    metric: Callable[..., float | None], relevant: Any, retrieved: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        metric(relevant, retrieved)


@pytest.mark.parametrize("metric", ALL)
def test_ids_beside_groups_are_an_error(metric: Callable[..., float | None]) -> None:
    with pytest.raises(ValueError, match="relevant mixes ids and groups of ids, with elements of list, str"):
        metric(["a", ["b"]], ["a"])


# --- beside trec_eval

TREC_EVAL = {"RR": "recip_rank", "AP": "map", "nDCG": "ndcg", "Rprec": "Rprec", "P": "set_P"} | {
    f"{name}@{k}": f"{theirs}_{k}"
    for name, theirs in {"P": "P", "R": "recall", "AP": "map_cut", "nDCG": "ndcg_cut", "Success": "success"}.items()
    for k in (1, 3, 10, 25)
}


@pytest.mark.full
@given(
    relevant=st.dictionaries(st.integers(0, 40), st.integers(0, 4), min_size=1, max_size=20),
    retrieved=st.lists(st.integers(0, 40), min_size=1, max_size=30, unique=True),
    is_graded=st.booleans(),
)
def test_equal_to_trec_eval_on_random_runs(relevant: dict[int, int], retrieved: list[int], is_graded: bool) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judged = relevant if is_graded else {identifier: min(gain, 1) for identifier, gain in relevant.items()}
    qrels = {"q": {str(identifier): gain for identifier, gain in judged.items()}}
    run = {"q": {str(identifier): float(-rank) for rank, identifier in enumerate(retrieved)}}
    asked = {"recip_rank", "map", "ndcg", "Rprec", "set_P"} | {
        f"{family}.1,3,10,25" for family in ("P", "recall", "map_cut", "ndcg_cut", "success")
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)["q"]
    given_ids = judged if is_graded else [identifier for identifier, gain in judged.items() if gain]
    for name, their_name in TREC_EVAL.items():
        # Where nothing is relevant trec_eval has 0.
        score = parse_measure(name)(given_ids, retrieved) or 0.0
        assert score == pytest.approx(theirs[their_name], rel=1e-9, abs=1e-9), name
