"""The limit on failed questions."""

from typing import Any

import pytest

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.stop_signal import FailureLimit


@pytest.mark.parametrize(
    ("value", "errors", "total", "is_passed"),
    [
        (0, 0, 10, False),
        (0, 1, 10, True),
        (20, 20, 1000, False),
        ("20", 21, 1000, True),
        ("5%", 5, 100, False),
        ("5%", 6, 100, True),
        (" 12.5 % ", 1, 8, False),
        ("12.5%", 2, 8, True),
        ("0%", 1, 10**6, True),
        ("100%", 10, 10, False),
    ],
)
def test_limit_is_exceeded_by_more_failures_than_it_allows(
    value: Any, errors: int, total: int, is_passed: bool
) -> None:
    assert FailureLimit.read(value).is_passed(errors=errors, total=total) is is_passed


@pytest.mark.parametrize(
    ("value", "text"), [(20, "20"), (10**20, "1" + 20 * "0"), ("007", "7"), ("5%", "5%"), ("12.5 %", "12.5%")]
)
def test_limit_is_shown_as_it_was_written(value: Any, text: str) -> None:
    assert str(FailureLimit.read(value)) == text


@pytest.mark.parametrize("value", [-1, "-1", "-5%", "101%", "nan%", "inf%", "5.5", 2.5, True, "", "%", "many", None])
def test_limit_must_be_a_number_or_a_share(value: Any) -> None:
    with pytest.raises(OptionError, match=r"max_failures cannot be .*such as 20, or a share"):
        FailureLimit.read(value)
