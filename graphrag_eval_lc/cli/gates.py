"""Telling which gates a run passes, and which it does not."""

from collections.abc import Iterable, Mapping

from rich.console import Console

from graphrag_eval_lc.compare import GateResult, RegressionGate, gate_results
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.masking import masked_text


def tell_gates(run: RunSource, requirements: Mapping[str, float], name: str = "") -> bool:
    """Print the gates of a run, those that it does not pass as errors, and tell whether there is one of these.

    Args:
        run: The run.
        requirements: The least mean by metric.
        name: What the run is called, where there are several.
    """
    if not requirements:
        return False
    prefix = f"Gate: {name}: " if name else "Gate: "
    return _tell([(prefix, gate) for gate in gate_results(run, requirements)])


def tell_regression_gates(gates: Iterable[RegressionGate]) -> bool:
    """Print which runs are worse than the baseline and which are not, and tell whether there is one that is."""
    return _tell([("Gate: " if gate.has_passed else "Regression: ", gate) for gate in gates])


def _tell(gates: Iterable[tuple[str, GateResult | RegressionGate]]) -> bool:
    has_failed = False
    for prefix, gate in gates:
        console = Console(stderr=not gate.has_passed, soft_wrap=True, highlight=False, markup=False)
        console.print(masked_text(f"{prefix}{gate}."))
        has_failed |= not gate.has_passed
    return has_failed
