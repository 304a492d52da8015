"""The mean difference of two runs: whether it is more than chance, its interval, its power, and sample sizes."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from math import ceil, copysign, fsum, sqrt
from statistics import NormalDist, mean, stdev
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.metrics.intervals import (
    Clusters,
    Interval,
    batch_size,
    cluster_robust_mean,
    drawn_clusters,
    refuse_too_large,
    scipy_stats,
)

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


# How many numbers of a table of choices are held at a time (512 KB).
_NUMBERS_IN_CACHE: Final = 65_536
# Means of chosen templates, and skewness, are rounding errors below this share of the values.
_ROUNDING: Final = 1e-9
# The share of runs in which the range of needed questions holds the true number.
_RANGE_CONFIDENCE: Final = 0.8


class NeededQuestions(NamedTuple):
    """The range of the number of questions needed; ``high`` is None if it has no upper end."""

    low: int
    high: int | None


class MeanDifference:
    """The mean difference of two runs over questions in clusters such as templates.

    The p-value of a supposed true difference is the larger one of two tests; it is greatest for the observed mean:

    * Student's t test with the cluster-robust standard error (``cluster_robust_mean``), if that makes it more
      careful, with the correction for skewness of Johnson 1978, "Modified t Tests and Confidence Intervals for
      Asymmetrical Populations" (JASA 73, 536–544): the quantile t is widened by γ · (1/6 + t²/3), for the skewness γ
      of the mean. The variance counts one question more than there are, which differs by as much as those that
      differ, so that it is not 0 if all differ alike.
    * The sign flips of Fisher, of whole clusters (``permutation_p_value``). Flipped are the differences from the
      supposed one; so many choices of clusters have a mean beyond it (Hartigan 1969, "Using Subsample Values as
      Typical Values", JASA 64, 1303–1317).

    ``p_value`` is that of no difference, and ``interval`` holds what differences cannot be rejected, so that the two
    never contradict one another. If k clusters differ, sign flips yield no p-value below 2 / 2^k: if a level cannot
    be reached so, they say nothing but that 0 and the means of all clusters are possible, and the interval is that of
    the t test, extended to hold these.

    If the two runs are the same agent, p is below 0.05 in at most 5 of 100 comparisons, whatever the sizes
    of the clusters, as long as each cluster goes up as far and as often as down. If few clusters change much and
    many a little the other way, it is up to 12 of 100 with fewer than 100 clusters of one size (more, if a few
    large ones decide): no test of the differences alone can know of changes that are not among them.

    Attributes:
        difference: The mean difference over all values.
        standard_error: Its standard error, above 0 but if nothing differs and no ``scale`` is known; None with
            fewer than 2 values.
        degrees_of_freedom: Those of the standard error; None with fewer than 2 values.

    Example:
        >>> found = MeanDifference([[0.5, 0.25], [0.5], [0.25, 0.0], [0.25], [0.5], [0.25]])
        >>> low, high = found.interval(0.95)
        >>> round(found.p_value, 4), 0 < low < found.difference < high
        (0.0432, True)
    """

    difference: float
    standard_error: float | None
    degrees_of_freedom: float | None

    def __init__(self, differences_by_cluster: Clusters, *, scale: float | None = None) -> None:
        """Prepare the tests of some differences.

        Args:
            differences_by_cluster: The finite differences B − A by cluster, in any order, at least one. If there is
                only one cluster, each value counts as a cluster.
            scale: The greatest possible difference of a question, such as 1 for scores between 0 and 1; None if there
            is none. If no question differs, one is assumed to differ by this much.

        Raises:
            ValueError: No value is given, or one is not finite or above 1e120.
        """
        drawn = [sorted(map(float, values)) for values in drawn_clusters(differences_by_cluster)]
        values = [*chain.from_iterable(drawn)]
        if not values or not all(map(math.isfinite, values)):
            raise ValueError("a mean difference needs finite numbers, at least one")
        refuse_too_large(values)
        groups = _in_order(drawn)
        self.number_of_values = len(values)
        self._groups, self._scale = groups, scale
        self.difference = fsum(values) / len(values)
        self.standard_error = self.degrees_of_freedom = None
        if len(groups) > 1:
            robust = cluster_robust_mean(groups)
            # The mean may lack a question that differs by as much as those that differ.
            squares = [value**2 for value in values if value]
            more = sqrt(fsum(squares) / len(squares)) if squares else (scale or 0.0)
            self._one_more = more / len(values)
            self.standard_error = math.hypot(robust.standard_error, self._one_more)
            self.degrees_of_freedom = robust.degrees_of_freedom

    @cached_property
    def p_value(self) -> float:
        """The two-sided p-value of no difference, above 0 and at most 1; 1 with fewer than 2 values.

        Raises:
            MissingExtraError: scipy is not installed.
        """
        if not self.standard_error or not self.difference or self.degrees_of_freedom is None:
            return 1.0
        stats = scipy_stats()
        means = self._means_of_choices
        beyond = (means <= 0) if self.difference > 0 else (means >= 0)
        of_flips = 2 * (int(beyond.sum()) + 1) / (len(means) + 1)
        statistic = self._careful_statistic(self.difference / self.standard_error)
        of_t = 2 * float(stats.t.sf(statistic, self.degrees_of_freedom))
        return min(1.0, max(of_flips, of_t, lowest_of_flips(len(differing_sums(self._groups)))))

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Return the differences that the test does not reject at the level 1 − ``confidence``.

        Args:
            confidence: The confidence level, between 0 and 1.

        Returns:
            The bounds, which hold 0 if and only if ``p_value`` is at least 1 − ``confidence``; None with fewer than 2
            values, and if nothing differs and no ``scale`` says how far it could.

        Raises:
            MissingExtraError: scipy is not installed.
            ValueError: The confidence level is out of range.
        """
        if not 0 < confidence < 1:
            raise ValueError(f"the confidence level is between 0 and 1, not {confidence}")
        if not self.standard_error or self.degrees_of_freedom is None:
            return None
        significance = 1 - confidence
        quantile = float(scipy_stats().t.ppf(1 - significance / 2, self.degrees_of_freedom))
        low, high = self._flips_interval(significance)
        low = min(low, self.difference - self._careful_quantile(quantile, 1) * self.standard_error)
        high = max(high, self.difference + self._careful_quantile(quantile, -1) * self.standard_error)
        if self.p_value >= significance:
            # Sign flips that cannot reach the level reject nothing.
            return Interval(min(low, 0.0), max(high, 0.0))
        # Rounding must not make the interval contradict the p-value.
        if self.difference > 0:
            return Interval(max(low, math.nextafter(0, 1)), high)
        return Interval(low, min(high, math.nextafter(0, -1)))

    def power(self, effect: float, significance: float = 0.05) -> float | None:
        """Return the chance that the test finds a true difference, given how much the measured ones vary.

        It combines the chance that the t test finds it (a noncentral t distribution, corrected for skewness) with the
        chance that enough clusters differ for sign flips to reach the level. The variance is at least what such a
        mean needs if questions differ by as much as those that do: if scores are 0 or 1, a drop of 0.05 turns at
        least 5 of 100 questions. If none differs, ``scale`` is what one would differ by. With fewer than 11 clusters,
        or if a few large ones decide, it promises too much (benchmarks/difference_tests.py).

        Args:
            effect: The true difference, in either direction, not 0.
            significance: The level of the test, between 0 and 1.

        Returns:
            0 to 1; 0 if no p-value can be below the level, as with fewer than 6 clusters none is below 0.05; None
            with fewer than 2 values, and if nothing differs and no ``scale`` says how far it could.

        Raises:
            MissingExtraError: scipy is not installed.
        """
        if not self.standard_error or self.degrees_of_freedom is None:
            return None
        number, clusters = self.number_of_values, len(self._groups)
        if lowest_of_flips(clusters) >= significance:
            return 0.0
        differing = [abs(value) for values in self._groups for value in values if value]
        size = fsum(each**2 for each in differing) / fsum(differing) if differing else (self._scale or 0.0)
        effect = abs(effect)
        one_more = self._one_more**2
        measured = self.standard_error**2 - one_more
        variance = max(measured, effect * (size - effect) / number, one_more)
        stats = scipy_stats()
        quantile = float(stats.t.ppf(1 - significance / 2, self.degrees_of_freedom))
        quantile = self._careful_quantile(quantile, copysign(1, self.difference)) * sqrt(1 + one_more / variance)
        of_t = float(stats.nct.sf(quantile, self.degrees_of_freedom, effect / sqrt(variance)))
        share = len(differing_sums(self._groups)) / clusters
        if len(differing) < number * effect / size:  # so large a difference has more questions differ than did
            alike = max(0.0, 1 - effect / size)
            share = max(share, 1 - fsum(alike ** len(values) for values in self._groups) / clusters)
        most_that_say_nothing = math.floor(math.log2(2 / significance))
        of_flips = float(stats.binom.sf(most_that_say_nothing, clusters, share))
        # The chance of both lies between the product and the smaller one, as they are partly dependent.
        return (of_t * of_flips + min(of_t, of_flips)) / 2

    def questions_needed(self, significance: float = 0.05) -> int | None:
        """Return how many questions it takes to find the measured difference; None without one or a standard error."""
        if not self.standard_error:
            return None
        return questions_needed(self.difference, self.standard_error, self.number_of_values, significance=significance)

    def questions_needed_range(self, significance: float = 0.05) -> NeededQuestions | None:
        """Return a range for the number of questions that it takes to find the true difference with a power of 0.8.

        The smaller the measured difference, the less certain is a single number: it depends on the square of t, the
        difference divided by its standard error. The true ratio lies in ``t ± 1.28 · sqrt(1 + t² / 2ν)`` in 80 of 100
        cases, for ν degrees of freedom (Hedges and Olkin 1985, "Statistical Methods for Meta-Analysis", 5.B.1, for the
        error of a standardised mean). The range is that of both ends.

        Args:
            significance: The level of the test, between 0 and 1.

        Returns:
            The range, rounded outwards to one significant digit: at least so many, and at most so many (None if the
            true difference may as well be 0). None without a difference or a standard error.
        """
        if not self.standard_error or not self.difference or self.degrees_of_freedom is None:
            return None
        ratio = abs(self.difference) / self.standard_error
        spread = sqrt(1 + ratio**2 / (2 * self.degrees_of_freedom))
        reach = NormalDist().inv_cdf((1 + _RANGE_CONFIDENCE) / 2) * spread
        low, high = (
            None if end <= 0 else questions_needed(end, 1.0, self.number_of_values, significance=significance)
            for end in (ratio + reach, ratio - reach)
        )
        return NeededQuestions(_rounded(low or 1, math.floor), None if high is None else _rounded(high, ceil))

    @cached_property
    def _means_of_choices(self) -> Any:
        """The means of all values in chosen clusters, in ascending order; those that are rounding are 0."""
        import numpy as np

        sums, sizes = np.array([[fsum(values), len(values)] for values in self._groups]).T
        means = np.sort(
            np.concatenate([(chosen @ sums) / (chosen @ sizes) for chosen in choices_of_clusters(len(sums))])
        )
        means[np.abs(means) <= _ROUNDING * np.abs(sums / sizes).max()] = 0
        return means

    def _flips_interval(self, significance: float) -> tuple[float, float]:
        means = self._means_of_choices
        # If so many means lie beyond a difference, its p-value is at least the level.
        number = ceil(significance * (len(means) + 1) / 2 * (1 - _ROUNDING)) - 1
        at = max(number, 1) - 1
        return min(float(means[at]), self.difference), max(float(means[-1 - at]), self.difference)

    @cached_property
    def _skewness(self) -> float:
        residuals = [fsum(value - self.difference for value in values) for values in self._groups]
        largest = max(map(abs, residuals))
        if largest <= _ROUNDING * max(abs(value) for values in self._groups for value in values):
            return 0.0
        scaled = [residual / largest for residual in residuals]
        skewness = fsum(each**3 for each in scaled) / fsum(each**2 for each in scaled) ** 1.5
        return 0.0 if abs(skewness) <= _ROUNDING else skewness

    def _skewness_against(self, sign: float) -> float:
        """Return the skewness that makes differences of this sign less certain than in the t test, at least 0."""
        return max(0.0, -copysign(self._skewness, self._skewness * sign))

    def _careful_statistic(self, statistic: float) -> float:
        """Return how large the t statistic is once corrected for skewness, at least 0."""
        skewness, size = self._skewness_against(statistic), abs(statistic)
        if not skewness:
            return size
        return max(0.0, (sqrt(max(0.0, 1 + 4 / 3 * skewness * (size - skewness / 6))) - 1) / (2 / 3 * skewness))

    def _careful_quantile(self, quantile: float, sign: float) -> float:
        """Return how large a statistic of this sign has to be to count as much as ``quantile``."""
        return quantile + self._skewness_against(sign) * (1 / 6 + quantile**2 / 3)


def _in_order(groups: Sequence[list[float]]) -> list[list[float]]:
    """Return clusters in an order that depends neither on their given order nor on which run is called A.

    Some choices of clusters are drawn by index. Clusters that differ by as much in both directions are in the
    order in which the mean goes; if it is 0, in that of the cluster whose counterpart is missing.
    """
    plain = sorted((abs(total := fsum(values)), len(values), total) for values in groups)
    mirrored = sorted((size, number, -total) for size, number, total in plain)
    mean = fsum(total for _, _, total in plain)
    sign = copysign(1, mean) if mean else (-1 if plain < mirrored else 1)
    return sorted(groups, key=lambda values: (abs(fsum(values)), len(values), sign * fsum(values)))


def _rounded(number: int, rounding: Callable[[float], int]) -> int:
    """Return a number with one significant digit, as ``rounding`` goes.

    Example:
        >>> _rounded(356, math.floor), _rounded(2235, ceil), _rounded(7, ceil)
        (300, 3000, 7)
    """
    unit: int = 10 ** (len(str(number)) - 1)
    return rounding(number / unit) * unit


def choices_of_clusters(number_of_clusters: int) -> Iterator[Any]:
    """Yield non-empty choices of clusters: all of them, or a sample that includes each cluster with probability 0.5."""
    if number_of_clusters <= 64:
        yield _few_choices(number_of_clusters)
        return
    import numpy as np

    random, left = np.random.default_rng(0), DRAWS
    # Products that fit into the cache are several times faster; multiples of 16 rows give the same digits.
    rows = max(16, _NUMBERS_IN_CACHE // number_of_clusters // 16 * 16)
    while left:
        number = min(left, batch_size(number_of_clusters))
        packed = random.integers(0, 256, (number, -(-number_of_clusters // 8)), np.uint8)
        for start in range(0, number, rows):
            yield np.unpackbits(packed[start : start + rows], axis=1, count=number_of_clusters).astype(float)
        left -= number


@lru_cache(maxsize=4)
def _few_choices(number_of_clusters: int) -> Any:
    import numpy as np

    if 1 << number_of_clusters <= DRAWS + 1:
        return ((np.arange(1, 1 << number_of_clusters)[:, None] >> np.arange(number_of_clusters)) & 1).astype(float)
    chosen = np.random.default_rng(0).integers(0, 2, (DRAWS, number_of_clusters)).astype(float)
    return chosen[chosen.any(axis=1)]
