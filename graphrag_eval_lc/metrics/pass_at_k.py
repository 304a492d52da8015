"""The chance that an agent passes a question asked several times: pass@k and pass^k."""

from math import comb


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
