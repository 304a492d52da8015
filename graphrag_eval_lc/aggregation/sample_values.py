"""What a result says: whether it failed, its steps, and which of its values are measurements."""

from collections.abc import Iterable, Mapping
from typing import Any

from graphrag_eval_lc.registry.metric_spec import LARGEST

Sample = Mapping[str, Any]


def is_error(sample: Sample) -> bool:
    """Tell whether a result is of a question that failed."""
    return sample.get("status") == "error" or sample.get("error") is not None


def number(value: object) -> float | None:
    """Give a measured number; NaN, infinities and numbers beyond all sense measure nothing."""
    if not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return None
    return float(value) if isinstance(value, bool) else value


def steps_of(sample: Sample) -> Iterable[Mapping[str, Any]]:
    """Give the actual steps of a result."""
    return sample.get("actual_steps") or ()
