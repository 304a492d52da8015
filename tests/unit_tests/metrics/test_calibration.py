"""Means corrected for a judge's errors: worked examples, laws, and coverage."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics.calibration import calibrated_mean, calibrated_share
from graphrag_eval_lc.metrics.intervals import mean_interval

verdicts = st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=8)
labels = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40)
shares = st.sampled_from([0.0, 0.25, 0.5, 0.8, 1.0])


def counts(right: tuple[int, int], wrong: tuple[int, int]) -> list[tuple[bool, bool]]:
    """Return labels: how many right and wrong answers the judge accepts and rejects."""
    return [
        *([(True, True)] * right[0] + [(False, True)] * right[1]),
        *([(True, False)] * wrong[0] + [(False, False)] * wrong[1]),
    ]


def test_share_is_the_rogan_gladen_estimate() -> None:
    # Sensitivity 0.9, specificity 0.6: (0.7 + 0.6 - 1) / (0.9 + 0.6 - 1) = 0.6.
    found = calibrated_share([[True] * 70 + [False] * 30], counts((27, 3), (8, 12)))
    assert found is not None
    assert found.mean == pytest.approx(0.6)


def test_interval_is_lang_and_reiczigels() -> None:
    """Computed from their formula by hand: z = 1.96; q, Se and Sp are each shrunk towards the middle."""
    found = calibrated_share([[True] * 60 + [False] * 40], counts((45, 5), (5, 45)))
    assert found is not None
    z = 1.959963984540054
    q, se, sp = (60 + z**2 / 2) / (100 + z**2), 46 / 52, 46 / 52
    p = (q + sp - 1) / (se + sp - 1)
    se_variance, sp_variance = se * (1 - se) / 52, sp * (1 - sp) / 52
    shift = 2 * z**2 * (p * se_variance - (1 - p) * sp_variance)
    half = z * (q * (1 - q) / (100 + z**2) + p**2 * se_variance + (1 - p) ** 2 * sp_variance) ** 0.5 / (se + sp - 1)
    assert (found.low, found.high) == (pytest.approx(p + shift - half), pytest.approx(p + shift + half))


@pytest.mark.parametrize(
    "labelled",
    [[], counts((3, 0), (0, 0)), counts((0, 0), (1, 3)), counts((1, 1), (1, 1)), counts((0, 4), (4, 0))],
    ids=["no labels", "no wrong ones", "no right ones", "chance", "worse than chance"],
)
def test_share_needs_right_and_wrong_labels_and_a_judge_better_than_chance(
    labelled: list[tuple[bool, bool]],
) -> None:
    assert calibrated_share([[True, False]], labelled) is None


def test_mean_is_that_of_the_labels_if_the_judge_is_uninformative() -> None:
    found = calibrated_mean([[0.5] * 50], [(0.5, 1.0)] * 30 + [(0.5, 0.0)] * 10)
    assert found is not None
    assert found.mean == 0.75


def test_agreeing_judge_narrows_the_interval() -> None:
    labelled = [(1.0, 1.0)] * 20 + [(0.0, 0.0)] * 20
    near = calibrated_mean([[1.0, 0.0] * 200], labelled)
    far = calibrated_mean([[0.5] * 400], [(0.5, label) for _, label in labelled])
    assert near is not None
    assert far is not None
    assert near.high - near.low < 0.6 * (far.high - far.low)


@given(verdicts, labels)
def test_laws_of_shares(verdicts: list[list[bool]], labelled: list[tuple[bool, bool]]) -> None:
    found = calibrated_share(verdicts, labelled)
    if found is not None:
        assert 0 <= found.low <= found.mean <= found.high <= 1
        assert calibrated_share(verdicts[::-1], labelled[::-1]) == pytest.approx(found)


@given(st.lists(st.lists(shares, min_size=1, max_size=6), max_size=8), st.lists(st.tuples(shares, shares), max_size=40))
def test_laws_of_means(scores: list[list[float]], labelled: list[tuple[float, float]]) -> None:
    found = calibrated_mean(scores, labelled)
    assert (found is None) is (sum(map(len, scores)) < 2 or len(labelled) < 2)
    if found is not None:
        assert 0 <= found.low <= found.mean <= found.high <= 1


@pytest.mark.full
@pytest.mark.parametrize(("right", "sensitivity", "specificity"), [(0.5, 0.9, 0.7), (0.7, 0.95, 0.6), (0.9, 0.8, 0.8)])
@pytest.mark.parametrize("number_of_labels", [50, 100])
def test_intervals_cover_the_truth_although_the_raw_one_does_not(
    right: float, sensitivity: float, specificity: float, number_of_labels: int
) -> None:
    """Simulate 300 runs of 200 questions; benchmarks/judge_calibration.py simulates more."""
    draw, runs, covered = Random(7), 300, [0, 0, 0]
    for _ in range(runs):

        def answer() -> tuple[bool, bool]:
            label = draw.random() < right
            return draw.random() < (sensitivity if label else 1 - specificity), label

        verdicts = [answer()[0] for _ in range(200)]
        labelled = [answer() for _ in range(number_of_labels)]
        found = [
            calibrated_share([verdicts], labelled),
            calibrated_mean([[float(each) for each in verdicts]], [(float(one), float(two)) for one, two in labelled]),
            mean_interval([float(each) for each in verdicts], range(200)),
        ]
        for index, interval in enumerate(found):
            covered[index] += interval is None or interval.low <= right <= interval.high
    share_coverage, mean_coverage, raw_coverage = (count / runs for count in covered)
    assert share_coverage > 0.925
    assert mean_coverage > 0.925
    assert raw_coverage < 0.85
