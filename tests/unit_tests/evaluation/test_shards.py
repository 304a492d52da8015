"""Assigning samples to shards."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.samples import Shard, shard_number
from graphrag_eval_lc.evaluation.stop_signal import FailureLimit

KEYS = st.tuples(st.text(), st.integers(1, 50))


@given(KEYS, st.integers(1, 40))
def test_each_sample_belongs_to_one_shard(key: tuple[str, int], of: int) -> None:
    assert sum(Shard(number, of).has(key) for number in range(1, of + 1)) == 1


@given(st.integers(0, 10**12), st.integers(1, 40))
def test_shares_of_a_number_add_up_to_it(whole: int, of: int) -> None:
    parts = [Shard(number, of).part_of(whole) for number in range(1, of + 1)]
    assert sum(parts) == whole
    assert max(parts) - min(parts) <= 1


def test_shard_of_a_sample_never_changes() -> None:
    keys = [("q1", 1), ("q1", 2), ("q2", 1), ("Größe", 1), ("\ud800", 1)]
    assert [shard_number(key, 16) for key in keys] == [14, 6, 5, 1, 8]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("3", "cannot be '3'. Write it as 3/16"),
        ("0/16", "unknown shard 0/16. The first is 1/16: if your parts are counted from 0, add 1"),
        ("17/16", "unknown shard 17/16"),
        ("0/0", "unknown shard 0/0"),
        ("-1/16", "cannot be '-1/16'"),
        (3, "cannot be 3"),
    ],
)
def test_invalid_shard_is_rejected(text: object, part: str) -> None:
    with pytest.raises(OptionError, match=part):
        Shard.read(text)


def test_failure_limit_is_divided_if_a_number_and_kept_if_a_share() -> None:
    assert str(FailureLimit.read(20).in_shard(Shard(1, 16))) == "2"
    assert str(FailureLimit.read(20).in_shard(Shard(5, 16))) == "1"
    assert str(FailureLimit.read("5%").in_shard(Shard(5, 16))) == "5%"
