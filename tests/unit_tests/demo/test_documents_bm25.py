import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.demo.documents import BM25

WORDS = st.lists(st.sampled_from("abcde"), max_size=8)


def test_scores_are_those_of_a_calculation_by_hand():
    ranking = BM25([["ice", "ice", "line"], ["line"], ["oil", "sample"]], k1=1.2, b=0.75)
    # N = 3, mean length = 2; "ice" is in one text of length 3 with tf = 2, "line" in two.
    ice = math.log(1 + 2.5 / 1.5) * 2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    line_in_first = math.log(1 + 1.5 / 2.5) * 1 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2))
    line_in_second = math.log(1 + 1.5 / 2.5) * 1 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))
    assert ranking.scores(["ice", "line"]) == pytest.approx([ice + line_in_first, line_in_second, 0.0])


def test_without_length_normalisation_only_the_frequency_counts():
    scores = BM25([["ice"], ["ice", "and", "snow"]], b=0.0).scores(["ice"])
    assert scores[0] == pytest.approx(scores[1])


def test_no_texts_give_no_scores():
    assert BM25([]).scores(["ice"]) == []


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_a_score_is_positive_exactly_where_a_word_is_shared(texts, query):
    for text, score in zip(texts, BM25(texts).scores(query), strict=True):
        assert (score > 0) == bool(set(text) & set(query))


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
def test_the_order_of_the_texts_does_not_change_their_scores(texts, query):
    forwards = BM25(texts).scores(query)
    assert BM25(texts[::-1]).scores(query)[::-1] == pytest.approx(forwards)
