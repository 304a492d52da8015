from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc import metrics
from graphrag_eval_lc.metrics import DEFAULT_MEASURES, Measure, parse_measure, ranking_scores

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
ids = st.lists(st.integers(0, 9), max_size=12)
some_ids = st.lists(st.integers(0, 9), min_size=1, max_size=12)


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
def test_measures_are_read_with_their_usual_names(text: str, name: str, key: str) -> None:
    measure = parse_measure(text)
    assert (str(measure), measure.key) == (name, key)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("cutoff", [None, 1, 20])
def test_text_and_key_are_read_again(name: str, cutoff: int | None) -> None:
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
def test_typo_gets_the_nearest_names(text: str, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        parse_measure(text)


@pytest.mark.parametrize("text", ["P@0", "P@", "P@-1", "P@1.5", "P@ten", "P@5@6", "P@٣", "P@" + "9" * 5000])
def test_cut_off_is_a_whole_number_of_at_least_1(text: str) -> None:
    with pytest.raises(ValueError, match=r"the cut-off of 'P@.*is a whole number of at least 1, as in P@5"):
        parse_measure(text)


def test_r_precision_takes_no_cut_off() -> None:
    with pytest.raises(ValueError, match="Rprec takes no cut-off"):
        parse_measure("Rprec@5")


def test_set_measures_take_no_cut_off() -> None:
    with pytest.raises(ValueError, match="SetP takes no cut-off, as it is over all that was retrieved: write P@5"):
        parse_measure("SetP@5")


@pytest.mark.parametrize("value", [5, None, b"P@5", Measure("P")])
def test_measure_is_named_by_a_text(value: Any) -> None:
    with pytest.raises(TypeError, match="a measure is named by a text such as nDCG@10, not by "):
        parse_measure(value)


def test_scores_take_the_names_of_measures_too() -> None:
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
def test_what_is_no_list_of_measures_is_an_error(measures: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ranking_scores(["a"], ["a"], measures)


def test_measure_of_an_unknown_name_or_a_wrong_cut_off_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown measure 'ndcg': did you mean nDCG\?"):
        Measure("ndcg")
    with pytest.raises(ValueError, match="at least 1"):
        Measure("P", 0)


@given(st.text(max_size=20) | st.from_regex(r"[A-Za-z_]{1,6}@?[0-9]{0,3}", fullmatch=True))
def test_any_text_is_a_measure_or_a_value_error(text: str) -> None:
    try:
        measure = parse_measure(text)
    except ValueError:
        return
    assert parse_measure(str(measure)) == measure


@pytest.mark.parametrize("name", FUNCTIONS)
@given(
    relevant=some_ids | st.lists(some_ids, min_size=1, max_size=5),
    retrieved=ids,
    cutoff=st.none() | st.integers(1, 12),
)
def test_measure_gives_what_its_function_gives(
    name: str, relevant: Any, retrieved: list[int], cutoff: int | None
) -> None:
    cutoff = None if name == "Rprec" else cutoff
    measure = Measure(name, cutoff)
    assert measure(relevant, retrieved) == FUNCTIONS[name](relevant, retrieved, cutoff)
    assert ranking_scores(relevant, retrieved, [measure]) == {measure.key: measure(relevant, retrieved)}


def test_scores_are_in_the_order_of_the_measures_by_their_keys() -> None:
    measures = [parse_measure(text) for text in ("nDCG@2", "P@1", "Rprec")]
    scores = ranking_scores(["a", "b"], ["a", "b", "c"], measures)
    assert list(scores.items()) == [("ndcg@2", 1.0), ("precision@1", 1.0), ("r_precision", 1.0)]


def test_default_measures_are_all_without_a_cut_off_but_capped_recall() -> None:
    names = [str(measure) for measure in DEFAULT_MEASURES]
    assert names == ["P", "R", "F1", "RR", "AP", "nDCG", "Success", "Rprec"]
    assert list(ranking_scores(["a"], ["a"])) == [measure.key for measure in DEFAULT_MEASURES]


def test_nothing_relevant_has_no_scores() -> None:
    assert ranking_scores([], ["a"]) == {}
    assert parse_measure("P")([], ["a"]) is None
    assert parse_measure("R_cap@5")([], ["a"]) is None
