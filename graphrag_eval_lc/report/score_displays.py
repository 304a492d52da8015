"""How pages show a score that differs from most, which go from 0 to 1 and of which more is better."""

from typing import Any

from graphrag_eval_lc.registry.metrics import is_built_in, metric_spec
from graphrag_eval_lc.report.amounts import amount_text

_SCORE = "score"


def score_display(metric: str) -> dict[str, Any]:
    """Give what a page must know of a score beside its name; nothing of most.

    Returns:
        ``unit``, where it is not ``score``; of a metric of a user's own, where they are declared, also ``note`` (its
        title, and that less is better), ``lower`` (where that is so), ``best`` and ``worst`` (the ends of its range,
        None where there is none), and ``failed`` and ``failure_note`` (what a failed question counts as, None where it
        does not count), where that is not 0.

    Example:
        >>> score_display("tone"), score_display("saved_sec")
        ({}, {'unit': 'seconds'})
    """
    spec = metric_spec(metric)
    display: dict[str, Any] = {} if spec.unit == _SCORE else {"unit": spec.unit}
    if is_built_in(metric):
        return display
    title = [spec.title] if spec.title != spec.key else []
    if note := "; ".join([*title, *(["less is better"] if spec.lower_is_better else [])]):
        display["note"] = note
    low, high = spec.range
    if spec.lower_is_better:
        display["lower"] = True
    if spec.lower_is_better or (low, high) != (None, None):
        display["worst"], display["best"] = (high, low) if spec.lower_is_better else (low, high)
    if (failed := spec.value_of_failure) != 0:
        display["failed"] = failed
        if spec.kind == _SCORE:
            counts = "does not count" if failed is None else f"counts as {amount_text(failed, spec.unit)}"
            display["failure_note"] = f"an error {counts}"
    return display
