"""Shares: Wilson's interval, pass@k and pass^k of repeats, and the agreement of raters, kappa and alpha."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb, fsum, sqrt
from statistics import NormalDist
from typing import Final, Literal

from graphrag_eval_lc.metrics.intervals import wilson_bounds

CountTable = Sequence[Sequence[float]]
# Observations that kappa_interval adds to a table, spread evenly over its cells.
KAPPA_PRIOR: Final = 2.4


def wilson_interval(count: int, number: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a share that was observed as ``count`` of ``number``.

    ``(p + z²/2n ± z·sqrt(p(1 − p)/n + z²/4n²)) / (1 + z²/n)`` with p = count / number: the score interval of Wilson
    1927, "Probable Inference, the Law of Succession, and Statistical Inference" (JASA 22), without continuity
    correction, as recommended by Newcombe 1998 (Statistics in Medicine 17, 857–872). It is valid for small ``number``
    and for shares near 0 and 1, and always contains p.

    Args:
        count: Cases in which it was so, 0 to ``number``.
        number: All cases, at least 1.
        confidence: Between 0 and 1.

    Returns:
        The lower and the upper bound, 0 to 1.

    Raises:
        ValueError: A number is outside its range.

    Example:
        >>> [round(bound, 4) for bound in wilson_interval(81, 263)]
        [0.2553, 0.3662]
    """
    if number < 1 or not 0 <= count <= number:
        raise ValueError(f"a share is 0 to n of n, n at least 1, not {count} of {number}")
    low, high = wilson_bounds(count / number, number, _quantile(confidence))
    return low, high


def cohens_kappa(table: CountTable) -> float | None:
    """Return the agreement of two raters beyond chance: Cohen's kappa.

    ``(p_o − p_e) / (1 − p_e)``, where p_o is the share of items on which they agree, and p_e the share expected if
    each drew its answers at random with the same frequencies: Cohen 1960, "A Coefficient of Agreement for Nominal
    Scales" (Educational and Psychological Measurement 20).

    Args:
        table: Counts; ``table[i][j]`` items got answer i from the first rater and answer j from the second.

    Returns:
        At most 1, which is full agreement; 0 is chance. None without items, and if both raters always chose the
        same single answer, so that p_e is 1.

    Raises:
        ValueError: The table is not square, or has a count below 0.

    Example:
        >>> cohens_kappa([[20, 5], [10, 15]])
        0.4
    """
    first, second = _margins(table)
    number = sum(first)
    # In integers, n² times the shares: full agreement is exactly 1.
    observed = number * sum(table[i][i] for i in range(len(table)))
    expected = sum(a * b for a, b in zip(first, second, strict=True))
    return None if expected == number**2 else (observed - expected) / (number**2 - expected)


def kappa_standard_error(table: CountTable) -> float | None:
    """Return the large-sample standard error of Cohen's kappa.

    The square root of ``(Σ_i p_ii (1 − (p_i. + p_.i)(1 − κ))² + (1 − κ)² Σ_i≠j p_ij (p_.i + p_j.)² −
    (κ − p_e (1 − κ))²) / (n (1 − p_e)²)``: Fleiss, Cohen and Everitt 1969, "Large Sample Standard Errors of Kappa and
    Weighted Kappa" (Psychological Bulletin 72). With few items (below some 50) it tends to be too small.

    Args:
        table: As for ``cohens_kappa``.

    Returns:
        Above 0; None if kappa is undefined, and if the formula yields 0, as for full agreement of any number
        of items: the error is unknown there.

    Raises:
        ValueError: The table is not square, or has a count below 0.

    Example:
        >>> round(kappa_standard_error([[20, 5], [10, 15]]), 4)
        0.127
    """
    kappa = cohens_kappa(table)
    if kappa is None:
        return None
    number = fsum(count for row in table for count in row)
    shares = [[count / number for count in row] for row in table]
    first, second = ([total / number for total in margin] for margin in _margins(table))
    expected = fsum(a * b for a, b in zip(first, second, strict=True))
    places = range(len(table))
    agreed = fsum(shares[i][i] * (1 - (first[i] + second[i]) * (1 - kappa)) ** 2 for i in places)
    other = fsum(shares[i][j] * (second[i] + first[j]) ** 2 for i in places for j in places if i != j)
    variance = agreed + (1 - kappa) ** 2 * other - (kappa - expected * (1 - kappa)) ** 2
    # Full agreement, and full disagreement, leave only rounding.
    return None if variance <= 1e-12 else sqrt(variance / number) / (1 - expected)


def kappa_interval(table: CountTable, *, confidence: float = 0.95) -> tuple[float, float] | None:
    """Return the confidence interval of Cohen's kappa.

    κ ± t · ``kappa_standard_error``, both of the table with 2.4 observations more, spread evenly over its cells, as
    Agresti and Coull 1998 (The American Statistician 52) add some to a share; t is Student's quantile for the number
    of items less 1. It holds the true kappa in at least 93 of 100 cases from 20 items on. Without the additions it
    does so in 50 to 95, and full agreement has no interval (benchmarks/interval_coverage.py).

    Args:
        table: As for ``cohens_kappa``.
        confidence: Between 0 and 1.

    Returns:
        The bounds, within −1 to 1; they contain κ. None if kappa is undefined.

    Raises:
        ValueError: The table is not square, or a number is outside its range.

    Example:
        >>> [round(bound, 3) for bound in kappa_interval([[20, 5], [10, 15]])]
        [0.13, 0.634]
        >>> [round(bound, 3) for bound in kappa_interval([[20, 0], [0, 10]])]
        [0.768, 1.0]
    """
    kappa, quantile = cohens_kappa(table), _quantile(confidence)
    if kappa is None:
        return None
    more = [[count + KAPPA_PRIOR / len(table) ** 2 for count in row] for row in table]
    centre, error = cohens_kappa(more), kappa_standard_error(more)
    assert centre is not None
    assert error is not None
    half = _t_quantile(quantile, fsum(count for row in table for count in row) - 1) * error
    return max(-1.0, min(kappa, centre - half)), min(1.0, max(kappa, centre + half))


def krippendorffs_alpha(
    units: Iterable[Sequence[float | None]], *, level: Literal["nominal", "interval"] = "nominal"
) -> float | None:
    """Return the agreement of any number of raters beyond chance: Krippendorff's alpha.

    ``1 − D_o / D_e``: the disagreement observed within units, over that expected if the same values were dealt to units
    at random. With n_u values in unit u, n = Σ n_u over the units with at least 2 values, and δ² the difference of two
    values: ``D_o = 1/n Σ_u Σ_{i≠j} δ²(u_i, u_j) / (n_u − 1)`` and ``D_e = Σ_{i≠j} δ²(i, j) / (n (n − 1))`` over all
    values. Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability" (University of Pennsylvania, departmental
    paper 43); Hayes and Krippendorff 2007 (Communication Methods and Measures 1, 77–89).

    Args:
        units: What each rater said of a unit, such as an answer; None if a rater said nothing. Units may have
            different raters. Units with fewer than 2 values count nothing.
        level: How values differ: ``nominal`` (equal or not), or ``interval`` (the square of the difference).

    Returns:
        At most 1, which is full agreement; 0 is chance, below it raters disagree systematically. None without a unit
        that has 2 values, and if all values are equal, so that nothing can be said of chance.

    Example:
        >>> round(krippendorffs_alpha([[1, 1, None], [2, 2, 3], [3, 3, 3], [3, 3, 3], [2, 2, 2], [1, 2, 3]]), 3)
        0.556
    """
    known = [[value for value in unit if value is not None] for unit in units]
    pairable = [unit for unit in known if len(unit) > 1]
    counts = Counter(value for unit in pairable for value in unit)
    number = counts.total()

    def distance(one: float, other: float) -> float:
        return float(one != other) if level == "nominal" else float(one - other) ** 2

    def disagreement(values: Counter[float]) -> float:
        return 2 * fsum(values[one] * values[other] * distance(one, other) for one, other in combinations(values, 2))

    expected = disagreement(counts)
    if not expected:
        return None
    observed = fsum(disagreement(Counter(unit)) / (len(unit) - 1) for unit in pairable)
    return 1 - (number - 1) * observed / expected


def _t_quantile(quantile: float, freedom: float) -> float:
    """Return Student's quantile of a normal one, by the expansion of Fisher and Cornish 1960, so without scipy.

    Example:
        >>> round(_t_quantile(1.96, 19), 3), round(_t_quantile(1.96, 199), 3)
        (2.093, 1.972)
    """
    freedom = max(freedom, 1)
    first = (quantile**3 + quantile) / 4
    second = (5 * quantile**5 + 16 * quantile**3 + 3 * quantile) / 96
    return quantile + first / freedom + second / freedom**2


def _quantile(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is between 0 and 1, not {confidence}")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def _margins(table: CountTable) -> tuple[list[float], list[float]]:
    """Return the counts of each rater's answers."""
    if any(len(row) != len(table) for row in table) or any(count < 0 for row in table for count in row):
        raise ValueError("a table of agreement is square, with counts of at least 0")
    return [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]


def pass_at_k(number_of_samples: int, number_passed: int, k: int) -> float:
    """Return the chance that at least one of k answers to a question passes: pass@k.

    ``1 − C(n − c, k) / C(n, k)`` for n samples of which c passed: the share of all choices of k samples that hold a
    passed one. It is the unbiased estimator of Chen et al. 2021, "Evaluating Large Language Models Trained on Code"
    (arXiv:2107.03374). It never falls as k grows; for k = 1 it is c / n.

    Args:
        number_of_samples: How many times the question was asked, at least 1.
        number_passed: How many of the answers passed, 0 to ``number_of_samples``.
        k: How many answers there are to choose from, 1 to ``number_of_samples``.

    Returns:
        0 to 1; 0 if none passed, 1 if fewer than k failed.

    Raises:
        ValueError: A number is outside its range.

    Example:
        >>> pass_at_k(4, 1, 1), pass_at_k(4, 1, 2), pass_at_k(4, 1, 4)
        (0.25, 0.5, 1.0)
    """
    _check(number_of_samples, number_passed, k)
    choices = comb(number_of_samples, k)
    return (choices - comb(number_of_samples - number_passed, k)) / choices


def pass_hat_k(number_of_samples: int, number_passed: int, k: int) -> float:
    """Return the chance that all of k answers to a question pass: pass^k, "pass hat k".

    ``C(c, k) / C(n, k)`` for n samples of which c passed: the share of all choices of k samples that hold passed ones
    only. It is defined by Yao et al. 2024, "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World
    Domains" (arXiv:2406.12045). It never grows with k; for k = 1 it is c / n.

    Args:
        number_of_samples: How many times the question was asked, at least 1.
        number_passed: How many of the answers passed, 0 to ``number_of_samples``.
        k: How many answers must pass, 1 to ``number_of_samples``.

    Returns:
        0 to 1; 0 if fewer than k passed, 1 if all did.

    Raises:
        ValueError: A number is outside its range.

    Example:
        >>> pass_hat_k(4, 3, 1), pass_hat_k(4, 3, 2), pass_hat_k(4, 3, 4)
        (0.75, 0.5, 0.0)
    """
    _check(number_of_samples, number_passed, k)
    return comb(number_passed, k) / comb(number_of_samples, k)


def _check(number_of_samples: int, number_passed: int, k: int) -> None:
    if not 0 <= number_passed <= number_of_samples:
        raise ValueError(f"of {number_of_samples} samples 0 to {number_of_samples} can pass, not {number_passed}")
    if not 1 <= k <= number_of_samples:
        raise ValueError(f"k is 1 to the number of samples, {number_of_samples}, not {k}")
