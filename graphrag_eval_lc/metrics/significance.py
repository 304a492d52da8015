"""Whether a mean difference is more than chance: permutation test, Holm's adjustment, effect size, questions needed."""

from collections.abc import Sequence
from math import ceil, fsum
from statistics import NormalDist, mean, stdev
from typing import Final

from graphrag_eval_lc.metrics.intervals import Clusters, batch_size, drawn_clusters, scipy_stats

DRAWS: Final = 9999
_POWER: Final = 0.8
# Sums below this share of their parts, and spreads below the other of the mean, are only rounding.
_ROUNDING_OF_SUMS: Final = 1e-9
_ROUNDING_OF_SPREADS: Final = 1e-12


def permutation_p_value(differences_by_cluster: Clusters) -> float:
    """Return the two-sided p-value of a mean difference B − A, by a paired permutation test; 1 if nothing differs.

    If the runs do not differ, each difference may as well have the other sign (Fisher). As the differences of one
    cluster correlate, the signs of whole clusters are flipped; of the only cluster each value counts as one. If there
    are at most 9,999 combinations of signs, all are counted, and the p-value is exact; else so many are drawn, and the
    observed one counts as one of them (Phipson and Smyth 2010, "Permutation P-values Should Never Be Zero"). With G
    clusters that differ it is at least 2 / 2^G, so that with 5 or fewer it is never below 0.05.

    Example:
        >>> permutation_p_value([[0.5, 0.5], [1.0], [0.25, 0.0]]), permutation_p_value([[0.0], [0.0]])
        (0.25, 1.0)
    """
    stats = scipy_stats()
    sums = differing_sums(differences_by_cluster)
    if len(sums) < 2:
        return 1.0
    test = stats.permutation_test(
        (sums,),
        lambda differences, axis: differences.sum(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=DRAWS,
        batch=batch_size(len(sums)),
        alternative="two-sided",
        rng=0,
    )
    return float(test.pvalue)


def lowest_p_value(differences_by_cluster: Clusters) -> float:
    """Return the least ``permutation_p_value`` that such clusters can have, however large their differences.

    With G clusters that differ it is 2 / 2^G. Of these, L differ in the direction of the mean. If all others together
    weigh less than the smallest of the L, it is 2 / 2^L: that is then the p-value, which larger differences would not
    change.

    Example:
        >>> lowest_p_value([[1.0], [2.0], [1.0], [-1.0]]), lowest_p_value([[1.0], [2.0], [1.0], [-0.1]])
        (0.125, 0.25)
    """
    sums = differing_sums(differences_by_cluster)
    total = fsum(sums)
    with_it = [abs(each) for each in sums if each * total > 0]
    against_it = fsum(abs(each) for each in sums if each * total < 0)
    is_at_its_lowest = bool(with_it) and against_it < min(with_it) * (1 - _ROUNDING_OF_SUMS)
    return lowest_of_flips(len(with_it) if is_at_its_lowest else len(sums))


def lowest_of_flips(number_of_clusters: int) -> float:
    """Return the least p-value that flips of so many signs can have."""
    return min(1.0, 2 / min(1 << number_of_clusters, DRAWS + 1))


def differing_sums(differences_by_cluster: Clusters) -> list[float]:
    """Return the sums of the clusters that differ, in an order independent of the clusters' and of signs.

    Example:
        >>> differing_sums([[0.5, 0.25], [0.0], [0.8 - 0.7, -0.1]])
        [0.75]
    """
    groups = drawn_clusters(differences_by_cluster)
    # Differences that cancel out leave only rounding.
    kept = [values for values in groups if abs(fsum(values)) > _ROUNDING_OF_SUMS * fsum(map(abs, values))]
    sums = sorted(((fsum(values), len(values)) for values in kept), key=lambda each: (abs(each[0]), *each))
    return [total for total, _ in sums]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple tests, so that the chance of any false alarm is that of a single test.

    The smallest of m is multiplied by m, the next by m − 1 and so on; none is smaller than the one before it, or
    larger than 1: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure" (Scandinavian Journal of
    Statistics 6, 65–70). The tests may depend on each other.

    Example:
        >>> [round(p_value, 2) for p_value in holm([0.01, 0.04, 0.03])]
        [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def cohens_dz(differences: Sequence[float]) -> float | None:
    """Return Cohen's d_z, the mean of paired differences by their standard deviation; None if all are equal.

    Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences", 2.3.5. By convention 0.2 is called small,
    0.5 medium and 0.8 large.

    Example:
        >>> cohens_dz([0.0, 1.0, 2.0]), cohens_dz([0.5, 0.5])
        (1.0, None)
    """
    if len(differences) < 2:
        return None
    centre, spread = mean(differences), stdev(differences)
    return None if spread <= _ROUNDING_OF_SPREADS * abs(centre) else centre / spread


def questions_needed(
    difference: float, standard_error: float, number_of_questions: int, *, significance: float = 0.05
) -> int | None:
    """Return how many questions it takes to find a difference of this size with a power of 0.8; None if it is 0.

    ``n · ((z_(1 − α/2) + z_0.8) · s / |d|)²``, rounded up, for a difference d that n questions measured with the
    clustered standard error s: a two-sided test at the level α then finds it in 80 of 100 cases. The new questions
    are assumed to come in templates as the measured ones do (Miller 2024, "Adding Error Bars to Evals",
    arXiv:2411.00640).

    Example:
        >>> questions_needed(0.05, 0.04, 100)
        503
    """
    if difference == 0:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - significance / 2) + normal.inv_cdf(_POWER)
    return max(1, ceil(number_of_questions * (quantiles * standard_error / difference) ** 2))
