from math import comb, sqrt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from graphrag_eval_lc.metrics import (
    cohens_kappa,
    kappa_interval,
    kappa_standard_error,
    krippendorffs_alpha,
    wilson_interval,
)

# Two psychiatrists on 100 people: Fleiss, Levin and Paik 2003, "Statistical Methods for Rates and Proportions", ch. 18.
DIAGNOSES = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]

counts = st.integers(0, 30)
tables = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.lists(counts, min_size=size, max_size=size), min_size=size, max_size=size)
)


@pytest.mark.parametrize(
    ("count", "number", "lower", "upper"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_newcombes_examples_of_wilsons_interval(count: int, number: int, lower: float, upper: float) -> None:
    assert wilson_interval(count, number) == (pytest.approx(lower, abs=5e-5), pytest.approx(upper, abs=5e-5))


def test_interval_of_a_single_row_is_wide() -> None:
    lower, upper = wilson_interval(1, 1)
    assert lower < 0.21
    assert upper == 1.0


@given(st.integers(1, 10**6), st.data())
def test_wilsons_interval_contains_the_share_and_is_symmetric(number: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, number))
    lower, upper = wilson_interval(count, number)
    assert 0 <= lower <= count / number <= upper <= 1
    assert wilson_interval(number - count, number) == (pytest.approx(1 - upper), pytest.approx(1 - lower))


@given(st.integers(1, 1000), st.data())
def test_wilsons_bounds_are_at_the_limit_of_rejection(number: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, number))
    for bound in wilson_interval(count, number):
        error = sqrt(bound * (1 - bound) / number)
        if 1e-9 < bound < 1 - 1e-9:
            assert abs(count / number - bound) == pytest.approx(1.959964 * error, rel=1e-5)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5])
def test_wilsons_interval_has_about_its_nominal_coverage(share: float) -> None:
    chances = [comb(40, count) * share**count * (1 - share) ** (40 - count) for count in range(41)]
    contained = [lower <= share <= upper for lower, upper in (wilson_interval(count, 40) for count in range(41))]
    assert 0.92 < sum(chance for chance, is_contained in zip(chances, contained, strict=True) if is_contained) < 0.98


@given(st.integers(1, 100), st.data())
def test_higher_confidence_is_a_wider_interval(number: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, number))
    lower, upper = wilson_interval(count, number, confidence=0.99)
    assert lower <= wilson_interval(count, number)[0]
    assert wilson_interval(count, number)[1] <= upper


@pytest.mark.parametrize(("count", "number"), [(0, 0), (3, 2), (-1, 2)])
def test_impossible_share_is_an_error(count: int, number: int) -> None:
    with pytest.raises(ValueError, match=f"not {count} of {number}"):
        wilson_interval(count, number)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_must_be_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ValueError, match=f"not {confidence}"):
        wilson_interval(1, 2, confidence=confidence)


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),
        ([[45, 15], [25, 15]], 0.1304),
        ([[25, 35], [5, 35]], 0.2593),
        (DIAGNOSES, 0.6765),
        ([[10, 0], [0, 10]], 1.0),
        ([[0, 10], [10, 0]], -1.0),
        ([[10, 0], [5, 0]], 0.0),
    ],
)
def test_worked_examples_of_kappa(table: list[list[int]], kappa: float) -> None:
    assert cohens_kappa(table) == pytest.approx(kappa, abs=5e-5)


@pytest.mark.parametrize("table", [[[0, 0], [0, 0]], [[10, 0], [0, 0]], []])
def test_kappa_is_undefined_if_all_answers_are_the_same(table: list[list[int]]) -> None:
    assert (cohens_kappa(table), kappa_standard_error(table), kappa_interval(table)) == (None, None, None)


def test_standard_error_of_the_published_example() -> None:
    assert kappa_standard_error(DIAGNOSES) == pytest.approx(0.0877, abs=5e-5)
    assert kappa_interval(DIAGNOSES) == (pytest.approx(0.4824, abs=5e-4), pytest.approx(0.8247, abs=5e-4))


@pytest.mark.parametrize("table", [[[2, 0], [0, 2]], [[0, 3], [3, 0]], [[7, 0], [0, 90]]])
def test_full_agreement_has_an_interval_without_a_standard_error(table: list[list[int]]) -> None:
    assert kappa_standard_error(table) is None
    kappa, interval = cohens_kappa(table), kappa_interval(table)
    assert kappa is not None
    assert interval is not None
    assert -1 <= interval[0] <= kappa <= interval[1] <= 1
    assert interval[1] - interval[0] > 0.1


@given(tables)
def test_kappa_is_at_most_1_and_only_for_full_agreement(table: list[list[int]]) -> None:
    kappa = cohens_kappa(table)
    assume(kappa is not None)
    disagreed = sum(map(sum, table)) - sum(table[i][i] for i in range(len(table)))
    assert -1 <= kappa <= 1  # type: ignore[operator]
    assert (kappa == 1) == (disagreed == 0)


@given(tables, st.sampled_from((0.5, 0.95, 0.999)))
def test_kappas_interval_contains_it_whenever_it_is_defined(table: list[list[int]], confidence: float) -> None:
    kappa, interval = cohens_kappa(table), kappa_interval(table, confidence=confidence)
    assert (kappa is None) is (interval is None)
    if kappa is not None and interval is not None:
        assert -1 <= interval[0] <= kappa <= interval[1] <= 1
        assert interval[0] < interval[1]


@given(tables)
def test_order_of_raters_does_not_matter(table: list[list[int]]) -> None:
    transposed = [list(column) for column in zip(*table, strict=True)]
    assert cohens_kappa(transposed) == pytest.approx(cohens_kappa(table))
    assert kappa_standard_error(transposed) == pytest.approx(kappa_standard_error(table), abs=1e-6)


@given(tables, st.integers(2, 5))
def test_repeating_the_rows_keeps_kappa_and_shrinks_its_error(table: list[list[int]], times: int) -> None:
    more = [[times * count for count in row] for row in table]
    error = kappa_standard_error(table)
    assume(error is not None and error > 1e-4)
    assert cohens_kappa(more) == pytest.approx(cohens_kappa(table))
    assert kappa_standard_error(more) == pytest.approx(error / sqrt(times))  # type: ignore[operator]


def kappa_of_shares(shares: list[list[float]]) -> float:
    observed = sum(shares[i][i] for i in range(len(shares)))
    expected = sum(sum(shares[i]) * sum(row[i] for row in shares) for i in range(len(shares)))
    return (observed - expected) / (1 - expected)


@given(st.lists(st.lists(st.integers(1, 30), min_size=3, max_size=3), min_size=3, max_size=3))
def test_standard_error_agrees_with_the_delta_method(table: list[list[int]]) -> None:
    number = sum(map(sum, table))
    shares = [[count / number for count in row] for row in table]
    slopes = []
    for i in range(3):
        for j in range(3):
            moved = [[list(row) for row in shares] for _ in range(2)]
            moved[0][i][j] -= 1e-6
            moved[1][i][j] += 1e-6
            slopes.append((kappa_of_shares(moved[1]) - kappa_of_shares(moved[0])) / 2e-6)
    flat = [share for row in shares for share in row]
    mean = sum(share * slope for share, slope in zip(flat, slopes, strict=True))
    variance = sum(share * (slope - mean) ** 2 for share, slope in zip(flat, slopes, strict=True))
    assert kappa_standard_error(table) == pytest.approx(sqrt(variance / number), rel=1e-4)


@pytest.mark.parametrize("table", [[[1, 2], [3]], [[1, 2]], [[1, -2], [3, 4]]])
def test_invalid_table_is_an_error(table: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="square"):
        cohens_kappa(table)


# Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability": 4 observers, 12 units, section D; "." is no value.
OBSERVERS = ("1 2 3 3 2 1 4 1 2 . . .", "1 2 3 3 2 2 4 1 2 5 . 3", ". 3 3 3 2 3 4 2 2 5 1 .", "1 2 3 3 2 4 4 1 2 5 1 .")


def test_alpha_of_the_published_example() -> None:
    rows = [[None if value == "." else int(value) for value in row.split()] for row in OBSERVERS]
    units = list(zip(*rows, strict=True))
    assert krippendorffs_alpha(units) == pytest.approx(0.743, abs=5e-4)
    assert krippendorffs_alpha(units, level="interval") == pytest.approx(0.849, abs=5e-4)


@given(st.lists(st.lists(st.sampled_from([0, 1, 2, None]), min_size=2, max_size=4), min_size=1, max_size=12))
def test_laws_of_alpha(units: list[list[int | None]]) -> None:
    alpha = krippendorffs_alpha(units)
    if alpha is None:
        return
    assert alpha <= 1
    assert krippendorffs_alpha([unit[::-1] for unit in units[::-1]]) == pytest.approx(alpha)
    assert krippendorffs_alpha([*units, [None, 1]]) == pytest.approx(alpha)
    agreeing = all(len({value for value in unit if value is not None}) < 2 for unit in units)
    assert (alpha == 1) is agreeing


@pytest.mark.parametrize("units", [[], [[1, None]], [[1, 1], [1, 1]]])
def test_alpha_is_undefined_without_differences_or_pairs(units: list[list[int | None]]) -> None:
    assert krippendorffs_alpha(units) is None
