"""Lifts the limit of Python's csv module, which is 128 KiB per cell."""

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# A C long, which has 32 bits on Windows.
_LONGEST_CELL = min(sys.maxsize, 2**31 - 1)


@contextmanager
def cells_of_any_length() -> Iterator[None]:
    """Let csv read cells of any length, such as query results; restore the previous limit at the end."""
    earlier = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(earlier)
