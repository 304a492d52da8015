"""Telling which gates a run passes, and which it does not."""

from collections.abc import Mapping

from rich.console import Console

from graphrag_eval_lc.comparison import gate_results
from graphrag_eval_lc.comparison.run_source import RunSource
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
    gates = gate_results(run, requirements)
    for gate in gates:
        console = Console(stderr=not gate.has_passed, soft_wrap=True, highlight=False, markup=False)
        console.print(masked_text(f"Gate: {f'{name}: ' if name else ''}{gate}."))
    return not all(gate.has_passed for gate in gates)
