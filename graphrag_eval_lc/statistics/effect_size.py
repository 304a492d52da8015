"""How large a difference is beside its spread, and how many questions it takes to see it."""

from collections.abc import Sequence
from math import ceil
from statistics import NormalDist, mean, stdev

_POWER = 0.8

# A spread below this share of the mean is what rounding leaves of none.
_ROUNDING = 1e-12


def cohens_dz(differences: Sequence[float]) -> float | None:
    """Give the effect size of paired differences: Cohen's d_z, their mean divided by their standard deviation.

    Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences", 2.3.5. By convention 0.2 is called small,
    0.5 medium and 0.8 large.

    Args:
        differences: B − A for each pair.

    Returns:
        Any number; None with fewer than 2 pairs, and where all differences are the same, so that there is no spread
        to compare with.

    Example:
        >>> cohens_dz([0.0, 1.0, 2.0]), cohens_dz([0.5, 0.5])
        (1.0, None)
    """
    if len(differences) < 2:
        return None
    centre, spread = mean(differences), stdev(differences)
    return None if spread <= _ROUNDING * abs(centre) else centre / spread


def questions_needed(
    difference: float, standard_error: float, number_of_questions: int, *, significance: float = 0.05
) -> int | None:
    """Give how many questions it takes to see a difference of this size.

    ``n · ((z_(1 − α/2) + z_0.8) · s / |d|)²``, rounded up, for a difference d that n questions measured with the
    clustered standard error s: as many that a two-sided test at the level α finds it in 80 of 100 cases. It takes
    the new questions to come in templates as those measured do. (Miller 2024, "Adding Error Bars to Evals",
    arXiv:2411.00640.)

    Args:
        difference: The difference to see, in either direction.
        standard_error: That of the measured difference, at least 0.
        number_of_questions: How many were measured.
        significance: The level α of the test, between 0 and 1; one of m tests that are adjusted for their number
            has 0.05 / m.

    Returns:
        At least 1; None where the difference is 0, which no number of questions shows.

    Example:
        >>> questions_needed(0.05, 0.04, 100)
        503
    """
    if difference == 0:
        return None
    normal = NormalDist()
    quantiles = normal.inv_cdf(1 - significance / 2) + normal.inv_cdf(_POWER)
    return max(1, ceil(number_of_questions * (quantiles * standard_error / difference) ** 2))
