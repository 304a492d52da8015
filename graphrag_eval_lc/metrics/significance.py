"""Whether a mean difference is more than chance: permutation test, Holm's adjustment, effect size, questions needed."""

from collections.abc import Sequence
from math import ceil, fsum
from statistics import NormalDist, mean, stdev
from typing import Final

from graphrag_eval_lc.metrics.intervals import Clusters, batch_size, drawn_clusters, scipy_stats, sums_and_sizes

DRAWS: Final = 9999

_ROUNDING_OF_SUMS = 1e-9


def permutation_p_value(differences_by_cluster: Clusters) -> float:
    """Return the two-sided p-value of a mean difference between two runs, by a paired permutation test.

    If the runs do not differ, each difference may as well have the other sign (Fisher). As the differences of one
    cluster correlate, the signs of whole clusters are flipped. If there are at most 9,999 combinations of signs, all
    are counted, and the p-value is exact; else so many are drawn, and the observed one counts as one of them (Phipson
    and Smyth 2010, "Permutation P-values Should Never Be Zero").

    Args:
        differences_by_cluster: The differences B − A by cluster, in any order. If there is only one cluster, each
            value counts as a cluster.

    Returns:
        Above 0 and at most 1; 1 if nothing differs. With G clusters that differ it is at least 2 / 2^G, so that
        with 5 or fewer it is never below 0.05.

    Raises:
        MissingExtraError: scipy is not installed.

    Example:
        >>> permutation_p_value([[0.5, 0.5], [1.0], [0.25, 0.0]])
        0.25
        >>> permutation_p_value([[0.0], [0.0]])
        1.0
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

    Args:
        differences_by_cluster: As for ``permutation_p_value``.

    Returns:
        Above 0 and at most 1.

    Example:
        >>> lowest_p_value([[1.0], [2.0], [1.0], [-1.0]])
        0.125
        >>> lowest_p_value([[1.0], [2.0], [1.0], [-0.1]])
        0.25
    """
    sums = differing_sums(differences_by_cluster)
    total = fsum(sums)
    with_it = [abs(each) for each in sums if each * total > 0]
    against_it = fsum(abs(each) for each in sums if each * total < 0)
    is_at_its_lowest = bool(with_it) and against_it < min(with_it) * (1 - _ROUNDING_OF_SUMS)
    number = len(with_it) if is_at_its_lowest else len(sums)
    return min(1.0, 2 / min(1 << number, DRAWS + 1))


def differing_sums(differences_by_cluster: Clusters) -> list[float]:
    """Return the sums of the clusters that differ; a flipped sign changes no other.

    Example:
        >>> differing_sums([[0.5, 0.25], [0.0], [0.8 - 0.7, -0.1]])
        [0.75]
    """
    groups = drawn_clusters(differences_by_cluster)
    # Differences that cancel out leave only rounding.
    kept = [values for values in groups if abs(fsum(values)) > _ROUNDING_OF_SUMS * fsum(map(abs, values))]
    return [total for total, _ in sums_and_sizes(kept)]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple tests, so that the chance of any false alarm is that of a single test.

    The smallest of m is multiplied by m, the next by m − 1 and so on; none is smaller than the one before it, or
    larger than 1: Holm 1979, "A Simple Sequentially Rejective Multiple Test Procedure" (Scandinavian Journal of
    Statistics 6, 65–70). The tests may depend on each other.

    Args:
        p_values: 0 to 1 each, in any order.

    Returns:
        The adjusted p-values, in the same order.

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


_POWER = 0.8

# A spread below this share of the mean is only rounding.
_ROUNDING_OF_SPREADS = 1e-12


def cohens_dz(differences: Sequence[float]) -> float | None:
    """Return the effect size of paired differences: Cohen's d_z, their mean divided by their standard deviation.

    Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences", 2.3.5. By convention 0.2 is called small,
    0.5 medium and 0.8 large.

    Args:
        differences: B − A for each pair.

    Returns:
        Any number; None with fewer than 2 pairs, and where all differences are equal.

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
    """Return how many questions it takes to find a difference of this size with a power of 0.8.

    ``n · ((z_(1 − α/2) + z_0.8) · s / |d|)²``, rounded up, for a difference d that n questions measured with the
    clustered standard error s: a two-sided test at the level α then finds it in 80 of 100 cases. The new questions
    are assumed to come in templates as the measured ones do (Miller 2024, "Adding Error Bars to Evals",
    arXiv:2411.00640).

    Args:
        difference: The difference to find, in either direction.
        standard_error: The standard error of the measured difference, at least 0.
        number_of_questions: How many were measured.
        significance: The level α of the test, between 0 and 1; for m tests with adjusted p-values, 0.05 / m.

    Returns:
        At least 1; None if the difference is 0, which no number of questions shows.

    Example:
        >>> questions_needed(0.05, 0.04, 100)
        503
    """
    if difference == 0:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - significance / 2) + normal.inv_cdf(_POWER)
    return max(1, ceil(number_of_questions * (quantiles * standard_error / difference) ** 2))
