"""Ranking measures, by function and by name: a table of values, and laws that all follow."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import metrics
from graphrag_eval_lc.metrics import DEFAULT_MEASURES, Measure, average_precision, ndcg, parse_measure, ranking_scores

FUNCTIONS: dict[str, Callable[..., float | None]] = {
    "P": metrics.precision,
    "R": metrics.recall,
    "R_cap": metrics.recall_at_k,
    "F1": metrics.f1,
    "RR": metrics.reciprocal_rank,
    "AP": metrics.average_precision,
    "nDCG": metrics.ndcg,
    "Success": metrics.hit_rate,
    "Rprec": metrics.r_precision,
}
GROUPS, PREDICTION = [["test-1", "test-2"], ["test-3"]], ["test-1", "pred-1", "test-2", "pred-3"]
R4, FIVE = [1, 3, 5, 6], [1, 4, 3, 5, 7]
GAINS = {"a": 3, "b": 1, "c": 0, "d": -1}
TRIPLE, OTHER = ("s", "p", "o"), ("s2", "p", "o2")

ids = st.lists(st.integers(0, 9), max_size=12)
groups = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=5)
gains = st.dictionaries(st.integers(0, 9), st.floats(-1, 1e300) | st.integers(-1, 4), max_size=8)
cutoffs = st.none() | st.integers(1, 12)

VALUES: list[tuple[str, Any, Any, float | None]] = [
    # ids
    *((f"R_cap@{k}", R4, FIVE, value) for k, value in ((1, 1.0), (3, 2 / 3), (10, 0.75))),
    ("R_cap", [1, 3], [3, 2, 1], 1.0),
    ("R_cap@2", {1, 2}, (2, 2, 1), 1.0),
    ("R_cap@5", [1, 1, 2], [1], 0.5),
    ("R_cap@2", [1, 2, 3, 4], [1, 2], 1.0),
    ("R@2", [1, 2, 3, 4], [1, 2], 0.5),
    ("P@10", [1], [1, 2], 0.1),
    ("P", [1], [1, 2], 0.5),
    ("RR", [3], [1, 2, 3], 1 / 3),
    ("RR@2", [3], [1, 2, 3], 0.0),
    ("AP", R4, FIVE, (1 + 2 / 3 + 3 / 4) / 4),
    ("AP@3", R4, FIVE, (1 + 2 / 3) / 4),
    ("Rprec", [1, 2], [1, 3, 2], 0.5),
    ("nDCG@1", [["a"], ["b"]], ["a", "b", "c"], 1.0),
    # gains by id, which only nDCG uses
    ("nDCG", GAINS, ["c", "b", "a", "d"], (1 / math.log2(3) + 3 / math.log2(4)) / (3 + 1 / math.log2(3))),
    ("nDCG@1", GAINS, ["c", "b"], 0.0),
    ("nDCG@1", GAINS, ["b"], 1 / 3),
    ("nDCG", {"a": 1.7e308, "b": 1.7e308}, ["a", "b"], 1.0),
    ("nDCG", {"a": 5e-324}, ["a"], 1.0),
    # groups: the worked example of AutoRAG
    *((name, GROUPS, PREDICTION, 0.5) for name in ("P", "R", "F1", "RR", "Rprec")),
    ("AP", GROUPS, PREDICTION, 5 / 12),
    ("nDCG", GROUPS, PREDICTION, 0.7039180890341347),
    ("Success", GROUPS, PREDICTION, 1.0),
    *(("AP", [kind(group) for group in GROUPS], PREDICTION, 5 / 12) for kind in (tuple, set, frozenset)),
    ("R_cap@1", [["a"], ["a", "b"], ["c"]], ["a"], 1.0),
    ("R_cap@2", [["a"], ["b"], ["c"]], ["a", "x"], 0.5),
    ("R@2", [["a"], ["b"], ["c"]], ["a", "x"], 1 / 3),
    ("R", [["a"], []], ["a"], 1.0),
    ("R", [[], []], ["a"], None),
    # tuples are ids if the retrieved ids are tuples
    ("R", {TRIPLE, OTHER}, [TRIPLE], 0.5),
    ("R", [("a", 1)], [("a", 1)], 1.0),
    ("R", [frozenset("ab")], [frozenset("ab"), frozenset("c")], 1.0),
    ("R", ["a", TRIPLE], [TRIPLE, "a"], 1.0),
    ("R", [[TRIPLE, OTHER], [("x",)]], [OTHER], 0.5),
    ("R", {TRIPLE: 2, OTHER: 1}, [TRIPLE], 0.5),
    ("R", [("a", "b"), ("c",)], ["b"], 0.5),
    ("R", [("a", "b")], [], 0.0),
]


@pytest.mark.parametrize(("measure", "relevant", "retrieved", "value"), VALUES)
def test_value_of_a_measure(measure: str, relevant: Any, retrieved: Any, value: float | None) -> None:
    parsed = parse_measure(measure)
    assert parsed(relevant, retrieved) == pytest.approx(value)
    cutoff = () if parsed.cutoff is None else (parsed.cutoff,)
    assert FUNCTIONS[parsed.name](relevant, iter(retrieved), *cutoff) == pytest.approx(value)


def test_average_precision_can_be_normalised_by_the_retrieved() -> None:
    assert average_precision(R4, FIVE, normalize="retrieved_relevant") == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert average_precision(R4, FIVE, k=3, normalize="retrieved_relevant") == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(R4, [7], normalize="retrieved_relevant") == 0.0
    with pytest.raises(ValueError, match="normalize is relevant or retrieved_relevant, not 'hits'"):
        average_precision([1], [1], normalize="hits")  # type: ignore[arg-type]


@pytest.mark.parametrize("relevant", [[], {}, {"a": 0}, [[]], set()])
def test_without_relevant_ids_only_capped_recall_has_a_value(relevant: Any) -> None:
    for name, metric in FUNCTIONS.items():
        assert metric(relevant, ["a"]) == (0.0 if name == "R_cap" else None)
        assert parse_measure(name)(relevant, ["a"]) is None
    assert ranking_scores(relevant, ["a"]) == {}


@pytest.mark.parametrize("relevant", [["a"], {"a": 2}, [["a"]]])
def test_nothing_retrieved_is_0(relevant: Any) -> None:
    assert [metric(relevant, [], k) for metric in FUNCTIONS.values() for k in (None, 3)] == [0.0] * 18


# --- laws


@given(relevant=ids | gains | groups, retrieved=ids, k=cutoffs)
def test_every_measure_is_a_share_and_repeated_ids_count_once(
    relevant: Any, retrieved: list[int], k: int | None
) -> None:
    for name, metric in FUNCTIONS.items():
        score = metric(relevant, retrieved, k)
        assert score is None or 0.0 <= score <= 1.0
        assert score == metric(relevant, list(dict.fromkeys(retrieved)), k)
        measure = Measure(name, None if name == "Rprec" else k)
        if score is not None and name != "Rprec" and ranking_scores(relevant, retrieved, [measure]):
            assert ranking_scores(relevant, retrieved, [measure]) == {measure.key: score}


@given(relevant=ids, in_groups=groups, retrieved=ids, k=cutoffs)
def test_order_of_relevant_ids_or_groups_does_not_matter(
    relevant: list[int], in_groups: list[list[int]], retrieved: list[int], k: int | None
) -> None:
    for metric in FUNCTIONS.values():
        score = metric(relevant, retrieved, k)
        assert score == metric(relevant[::-1] + relevant, retrieved, k) == metric(set(relevant), retrieved, k)
        score = metric(in_groups, retrieved, k)
        assert score == metric([group[::-1] for group in in_groups], retrieved, k)
        assert score == pytest.approx(metric(in_groups[::-1], retrieved, k))


@given(st.sets(st.integers(0, 9), min_size=1), ids, cutoffs)
def test_single_id_groups_and_equal_gains_count_like_ids(
    relevant: set[int], retrieved: list[int], k: int | None
) -> None:
    for name in ("P", "R", "F1", "Success", "Rprec", "R_cap"):
        score = FUNCTIONS[name](relevant, retrieved, k)
        assert score == FUNCTIONS[name]([[each] for each in relevant], retrieved, k)
        assert score == FUNCTIONS[name](dict.fromkeys(relevant, 7), retrieved, k)
    assert ndcg(dict.fromkeys(relevant, 7), retrieved, k) == pytest.approx(ndcg(relevant, retrieved, k))
    single_group = average_precision([relevant], retrieved, k)
    assert single_group == average_precision(relevant, retrieved, k, normalize="retrieved_relevant")
    assert metrics.recall_at_k(relevant, sorted(relevant), k) == ndcg(relevant, sorted(relevant), k) == 1.0


@given(ids | groups, ids, st.integers(1, 12))
def test_larger_k_never_lowers_recall_hits_and_reciprocal_rank(relevant: Any, retrieved: list[int], k: int) -> None:
    for name in ("R", "Success", "RR"):
        score, next_score = (FUNCTIONS[name](relevant, retrieved, each) for each in (k, k + 1))
        assert score is None or (next_score is not None and score <= next_score)


# --- wrong input


@pytest.mark.parametrize(
    ("gain", "kind", "problem"),
    [
        *(
            (gain, ValueError, "the gain of 'a' is a number within the floats")
            for gain in (math.nan, math.inf, 10**400)
        ),
        *((gain, TypeError, "the gain of 'a' is a number, not") for gain in ("1", None)),
    ],
)
def test_gains_must_be_finite_numbers(gain: Any, kind: type[Exception], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        ndcg({"a": gain}, ["a"])


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_must_be_a_positive_integer(k: Any) -> None:
    for metric in FUNCTIONS.values():
        with pytest.raises(ValueError, match="a whole number of at least 1, not"):
            metric([1], [1], k)


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
def test_invalid_ranking_is_an_error(relevant: Any, retrieved: Any, message: str) -> None:
    for metric in FUNCTIONS.values():
        with pytest.raises(TypeError, match=message):
            metric(relevant, retrieved)


def test_ids_next_to_groups_are_an_error() -> None:
    for metric in FUNCTIONS.values():
        with pytest.raises(ValueError, match="relevant mixes ids and groups of ids, with elements of list, str"):
            metric(["a", ["b"]], ["a"])


# --- names of measures


@pytest.mark.parametrize(
    ("text", "name", "key"),
    [
        ("nDCG@10", "nDCG@10", "ndcg@10"),
        ("NDCG@10", "nDCG@10", "ndcg@10"),
        ("P@5", "P@5", "precision@5"),
        ("precision@05", "P@5", "precision@5"),
        ("R@10", "R@10", "recall@10"),
        ("Recall", "R", "recall"),
        ("r_cap@3", "R_cap@3", "recall_capped@3"),
        ("R_cap", "R_cap", "recall_capped"),
        ("f1", "F1", "f1"),
        ("AP", "AP", "average_precision"),
        ("MAP@100", "AP@100", "average_precision@100"),
        ("RR", "RR", "reciprocal_rank"),
        (" MRR @ 10 ", "RR@10", "reciprocal_rank@10"),
        ("Success@5", "Success@5", "hit_rate@5"),
        ("HitRate@5", "Success@5", "hit_rate@5"),
        ("Hits@5", "Success@5", "hit_rate@5"),
        ("Rprec", "Rprec", "r_precision"),
        ("R-Precision", "Rprec", "r_precision"),
        ("SetP", "P", "precision"),
        ("set_recall", "R", "recall"),
        ("SetF", "F1", "f1"),
    ],
)
def test_measures_are_parsed_by_their_common_names(text: str, name: str, key: str) -> None:
    measure = parse_measure(text)
    assert (str(measure), measure.key) == (name, key)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("cutoff", [None, 1, 20])
def test_text_and_key_are_parsed_back(name: str, cutoff: int | None) -> None:
    measure = Measure(name, None if name == "Rprec" else cutoff)
    assert parse_measure(str(measure)) == parse_measure(measure.key) == measure


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("nDGC@10", r"unknown measure 'nDGC@10': did you mean nDCG@10\?"),
        ("Sucess@5", r"did you mean Success@5\?"),
        ("recal", r"did you mean R\b"),
        ("P_5", r"did you mean P@5\?"),
        ("MRR10", r"did you mean RR@10\?"),
        ("R-precison@5", r"did you mean Rprec\b"),
        ("", "the measures are P, R, R_cap, F1, RR, AP, nDCG, Success, Rprec"),
        ("bleu", "the measures are P, R, R_cap, F1, RR, AP, nDCG, Success, Rprec"),
        ("@10", "the measures are P, R"),
    ],
)
def test_typo_is_an_error_with_the_nearest_names(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        parse_measure(text)


@pytest.mark.parametrize("text", ["P@0", "P@", "P@-1", "P@1.5", "P@ten", "P@5@6", "P@٣", "P@" + "9" * 5000])
def test_cutoff_must_be_a_positive_integer(text: str) -> None:
    with pytest.raises(ValueError, match=r"the cut-off of 'P@.*is a whole number of at least 1, as in P@5"):
        parse_measure(text)


def test_r_precision_has_no_cutoff() -> None:
    with pytest.raises(ValueError, match="Rprec has no cut-off"):
        parse_measure("Rprec@5")


def test_set_measures_have_no_cutoff() -> None:
    with pytest.raises(ValueError, match="SetP takes no cut-off, as it is over all that was retrieved: write P@5"):
        parse_measure("SetP@5")


@pytest.mark.parametrize("value", [5, None, b"P@5", Measure("P")])
def test_measure_name_must_be_a_string(value: Any) -> None:
    with pytest.raises(TypeError, match="a measure is named by a text such as nDCG@10, not by "):
        parse_measure(value)


def test_measures_can_be_passed_by_name() -> None:
    assert ranking_scores(["a"], ["b", "a"], ["P@5", Measure("RR")]) == {"precision@5": 0.2, "reciprocal_rank": 0.5}
    with pytest.raises(ValueError, match="did you mean nDCG@10"):
        ranking_scores([], [], ["nDGC@10"])


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ("P@5", r"measures is a list of measures, also if it has just one: \['P@5'\]"),
        (Measure("P", 5), r"also if it has just one: \['P@5'\]"),
        (None, "measures is a list of measures, not NoneType"),
        ([5], "a measure is named by a text such as nDCG@10, not by int"),
    ],
)
def test_measures_must_be_a_list(measures: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ranking_scores(["a"], ["a"], measures)


def test_unknown_name_or_invalid_cutoff_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown measure 'ndcg': did you mean nDCG\?"):
        Measure("ndcg")
    with pytest.raises(ValueError, match="at least 1"):
        Measure("P", 0)


@given(st.text(max_size=20) | st.from_regex(r"[A-Za-z_]{1,6}@?[0-9]{0,3}", fullmatch=True))
def test_any_text_parses_or_raises_value_error(text: str) -> None:
    try:
        measure = parse_measure(text)
    except ValueError:
        return
    assert parse_measure(str(measure)) == measure


def test_scores_are_keyed_in_the_order_of_the_measures() -> None:
    measures = [parse_measure(text) for text in ("nDCG@2", "P@1", "Rprec")]
    scores = ranking_scores(["a", "b"], ["a", "b", "c"], measures)
    assert list(scores.items()) == [("ndcg@2", 1.0), ("precision@1", 1.0), ("r_precision", 1.0)]


def test_default_measures_are_all_except_capped_recall_without_cutoff() -> None:
    names = [str(measure) for measure in DEFAULT_MEASURES]
    assert names == ["P", "R", "F1", "RR", "AP", "nDCG", "Success", "Rprec"]
    assert list(ranking_scores(["a"], ["a"])) == [measure.key for measure in DEFAULT_MEASURES]


# --- compared with trec_eval

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
def test_agrees_with_trec_eval_on_random_runs(relevant: dict[int, int], retrieved: list[int], is_graded: bool) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    judged = relevant if is_graded else {identifier: min(gain, 1) for identifier, gain in relevant.items()}
    qrels = {"q": {str(identifier): gain for identifier, gain in judged.items()}}
    run = {"q": {str(identifier): float(-rank) for rank, identifier in enumerate(retrieved)}}
    requested = {"recip_rank", "map", "ndcg", "Rprec", "set_P"} | {
        f"{family}.1,3,10,25" for family in ("P", "recall", "map_cut", "ndcg_cut", "success")
    }
    theirs = pytrec_eval.RelevanceEvaluator(qrels, requested).evaluate(run)["q"]
    relevant_ids = judged if is_graded else [identifier for identifier, gain in judged.items() if gain]
    for name, their_name in TREC_EVAL.items():
        # Where nothing is relevant, trec_eval returns 0.
        score = parse_measure(name)(relevant_ids, retrieved) or 0.0
        assert score == pytest.approx(theirs[their_name], rel=1e-9, abs=1e-9), name
