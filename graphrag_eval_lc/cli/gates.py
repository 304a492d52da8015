"""Telling which gates a run does not pass."""

from collections.abc import Mapping

from rich.console import Console

from graphrag_eval_lc.comparison import gate_results
from graphrag_eval_lc.comparison.run_source import RunSource
from graphrag_eval_lc.masking import masked_text


def tell_failed_gates(run: RunSource, requirements: Mapping[str, float], name: str = "") -> bool:
    """Print the gates that a run does not pass, and tell whether there is one.

    Args:
        run: The run.
        requirements: The least mean by metric.
        name: What the run is called, where there are several.
    """
    if not requirements:
        return False
    failed = [gate for gate in gate_results(run, requirements) if not gate.has_passed]
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    for gate in failed:
        console.print(masked_text(f"Gate: {f'{name}: ' if name else ''}{gate}."))
    return bool(failed)
