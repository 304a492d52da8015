"""Values of a run.json as what they should be: those of other versions, or changed by hand, may be of any type."""

from collections.abc import Mapping
from typing import Any


def mapping_of(value: object) -> Mapping[str, Any]:
    """Return a mapping; an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def records_of(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; without those that are none."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def texts_of(value: object) -> list[str]:
    """Return the values of a list as texts; nothing in place of anything else."""
    return [str(each) for each in value] if isinstance(value, list) else []


def number_of(value: object, default: int) -> int:
    """Return a whole number from 1; the default in place of anything else.

    Example:
        >>> number_of(3, 1), number_of("3", 1), number_of(True, 1), number_of(None, 2)
        (3, 1, 1, 2)
    """
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default
