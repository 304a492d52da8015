import subprocess
import sys
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from graphrag_eval_lc.metrics import (
    Distance,
    id_context_precision,
    id_context_recall,
    text_context_precision,
    text_context_recall,
    text_context_scores,
)

texts = st.lists(st.text("ab ", max_size=6), max_size=5)


# --- by id


def test_ids_are_compared_as_sets_of_strings() -> None:
    assert id_context_precision(["x", "x", "a"], ["a", "b"]) == 0.5
    assert id_context_recall(["x", "x", "a"], ["a", "b", "b"]) == 0.5
    assert id_context_precision([1, "2"], ["1", 2]) == id_context_recall([1, "2"], ["1", 2]) == 1.0
    assert id_context_precision(["01", "Doc"], [1, "doc"]) == 0.0


def test_empty_ids() -> None:
    assert id_context_precision([], ["a"]) == id_context_recall([], ["a"]) == 0.0
    assert id_context_precision(["a"], []) == 0.0
    assert id_context_recall(["a"], []) is None
    assert id_context_precision([], []) is None


@pytest.mark.parametrize("metric", [id_context_precision, id_context_recall])
def test_string_instead_of_ids_is_an_error(metric: Any) -> None:
    with pytest.raises(TypeError, match="reference_context_ids is a text"):
        metric(["a"], "a")


# --- by text


def test_precision_is_the_average_precision_of_texts_similar_to_a_reference() -> None:
    references = ["The Eiffel Tower is in Paris.", "Paris is a city."]
    retrieved = ["Paris is a city!", "1234", "The Eiffel Tower was in Paris."]
    assert text_context_precision(retrieved, references) == pytest.approx((1 + 2 / 3) / 2)
    assert text_context_recall(retrieved, references) == 1.0
    assert text_context_recall(retrieved[:2], references) == 0.5


def test_similarity_at_the_threshold_counts_for_precision_but_not_for_recall() -> None:
    pair = ["abcdefghij"], ["abcdefghxx"]
    assert text_context_scores(*pair, threshold=0.8) == {"precision": 1.0, "recall": 0.0, "f1": 0.0}
    assert text_context_scores(*pair, threshold=0.79) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert text_context_scores(["same"], ["same"], threshold=1.0)["recall"] == 0.0


def test_f1_is_the_harmonic_mean() -> None:
    scores = text_context_scores(["1234", "abcd"], ["abcd"])
    assert scores == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("distance", "likeness"),
    [("levenshtein", 0.5), ("hamming", 0.25), ("jaro", 11 / 12), ("jaro_winkler", 11 / 12 + 0.1 / 12)],
)
def test_distances_by_name(distance: Distance, likeness: float) -> None:
    pair = ["abcd"], ["acbd"] if distance != "hamming" else ["axyz"]
    below, above = likeness - 1e-6, likeness + 1e-6
    assert text_context_precision(*pair, threshold=below, distance=distance) == 1.0
    assert text_context_precision(*pair, threshold=above, distance=distance) == 0.0


def test_without_references_there_is_no_value_and_without_results_it_is_0() -> None:
    assert text_context_scores(["a"], []) == {}
    assert text_context_precision(["a"], []) is None
    assert text_context_recall([], []) is None
    assert text_context_scores([], ["a"]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


def test_empty_texts_are_equal() -> None:
    assert text_context_scores(["", "a"], ["", "b"]) == {"precision": 1.0, "recall": 0.5, "f1": pytest.approx(2 / 3)}


@given(texts, texts, st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 0.6, 0.8, 1.0]), st.sampled_from(get_args(Distance)))
def test_scores_are_between_0_and_1(
    retrieved: list[str], references: list[str], threshold: float, distance: Distance
) -> None:
    scores = text_context_scores(retrieved, references, threshold=threshold, distance=distance)
    assert bool(scores) == bool(references)
    assert all(0.0 <= score <= 1.0 for score in scores.values())
    second = text_context_scores(retrieved, references[::-1], threshold=threshold, distance=distance)
    assert scores == second


@given(
    texts,
    texts.map(lambda several: several or [""]),
    st.sampled_from([0.0, 0.25, 1 / 3, 0.4, 0.5, 0.6, 2 / 3, 0.8, 1.0]),
)
def test_shortcut_for_dissimilar_texts_changes_no_result(
    retrieved: list[str], references: list[str], threshold: float
) -> None:
    found = [
        any(1 - Levenshtein.normalized_distance(text, reference) > threshold for text in retrieved)
        for reference in references
    ]
    assert text_context_recall(retrieved, references, threshold=threshold) == sum(found) / len(references)


def test_texts_too_long_to_compare_are_an_error() -> None:
    long = ["x" * 300_000]
    with pytest.raises(ValueError, match="the texts are too long to compare: 300000 characters were retrieved"):
        text_context_scores(long, long)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_threshold_outside_0_to_1_is_an_error(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold is 0 to 1, not"):
        text_context_scores(["a"], ["a"], threshold=threshold)


@pytest.mark.parametrize("metric", [text_context_precision, text_context_recall, text_context_scores])
@pytest.mark.parametrize(("threshold", "kind"), [("0.5", "str"), (None, "NoneType"), ([0.5], "list")])
def test_threshold_of_another_type_is_an_error(metric: Any, threshold: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"threshold is a number from 0 to 1, not {kind}"):
        metric(["a"], ["a"], threshold=threshold)


def test_unknown_distance_is_an_error() -> None:
    with pytest.raises(ValueError, match="distance is one of levenshtein, hamming, jaro, jaro_winkler, not 'cosine'"):
        text_context_scores(["a"], ["a"], distance="cosine")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("retrieved", "message"),
    [
        ("a", "retrieved is a list of texts, not str"),
        (None, "retrieved is a list of texts, not NoneType"),
        ([{"text": "a"}], "retrieved has an element that is not a text but dict"),
    ],
)
def test_texts_must_be_a_list_of_strings(retrieved: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        text_context_scores(retrieved, ["a"])


def test_rapidfuzz_is_loaded_when_texts_are_compared() -> None:
    script = "import sys, graphrag_eval_lc.metrics; assert 'rapidfuzz' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.35, 0.45, 0.5, 0.55, 0.65, 0.7, 0.95])
@pytest.mark.parametrize("distance", ["levenshtein", "hamming", "jaro", "jaro_winkler"])
def test_ties_at_the_threshold_are_decided_by_the_exact_distance(threshold: float, distance: Distance) -> None:
    from rapidfuzz import distance as distances

    kinds = {"levenshtein": "Levenshtein", "hamming": "Hamming", "jaro": "Jaro", "jaro_winkler": "JaroWinkler"}
    measured = getattr(distances, kinds[distance]).normalized_distance
    for length in (*range(1, 60), 100, 1000, 1001):
        for wrong in {round(length * (1 - threshold)) + shift for shift in (-1, 0, 1)} & set(range(length + 1)):
            text, reference = "a" * length, "b" * wrong + "a" * (length - wrong)
            similarity = 1 - measured(text, reference)
            scores = text_context_scores([text], [reference], threshold=threshold, distance=distance)
            assert scores["precision"] == float(similarity >= threshold)
            assert scores["recall"] == float(similarity > threshold)
