import csv
import io

import pytest

from graphrag_eval_lc.files.reading import cells_of_any_length


def test_long_cells_are_read_and_the_limit_is_restored_even_after_an_error() -> None:
    limit = csv.field_size_limit()
    long = "x" * (limit + 1)
    with cells_of_any_length():
        assert next(csv.reader(io.StringIO(long))) == [long]
    with pytest.raises(csv.Error, match="field larger"):
        next(csv.reader(io.StringIO(long)))
    with pytest.raises(ValueError, match="stop"), cells_of_any_length():
        raise ValueError("stop")
    assert csv.field_size_limit() == limit
