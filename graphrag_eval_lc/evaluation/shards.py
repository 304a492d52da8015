"""Shards: fixed parts of a run's samples, which several machines ask without knowing of each other."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.records import Key

_TEXT = re.compile(r"\s*([0-9]+)\s*/\s*([0-9]+)\s*")
_HINT = "Write it as 3/16, the third of sixteen parts; the first is 1/16."


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a run.

    The question id and the repeat alone decide which part a sample belongs to, not the order or other questions.

    Attributes:
        number: Which part, from 1.
        of: How many parts there are.

    Example:
        >>> [str(Shard.read(f"{number}/3")) for number in (1, 2, 3) if Shard(number, 3).has(("q1", 1))]
        ['1/3']
    """

    number: int
    of: int

    @classmethod
    def read(cls, value: object) -> "Shard":
        """Return the shard that a text such as ``3/16`` means.

        Raises:
            OptionError: It is not a shard.
        """
        if isinstance(value, cls):
            return value
        found = _TEXT.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise OptionError(f"shard cannot be {value!r:.80}", key="shard", hint=_HINT)
        number, of = (int(each) for each in found.groups())
        if number == 0 < of:
            hint = f"The first is 1/{of}: if your parts are counted from 0, add 1."
            raise OptionError(f"unknown shard 0/{of}", key="shard", hint=hint)
        if not 1 <= number <= of:
            raise OptionError(f"unknown shard {number}/{of}", key="shard", hint=_HINT)
        return cls(number, of)

    @classmethod
    def in_record(cls, run: Mapping[str, Any]) -> "Shard | None":
        """Return the shard that a run.json is of; None for a whole run."""
        shard = run.get("shard")
        return None if shard is None else cls(shard["number"], shard["of"])

    def has(self, key: Key) -> bool:
        """Return whether a sample, by its question id and repeat, belongs to this part."""
        return shard_number(key, self.of) == self.number

    def part_of(self, whole: int) -> int:
        """Return this part of a whole number; those of all parts add up to it.

        Example:
            >>> [Shard(number, 4).part_of(10) for number in (1, 2, 3, 4)]
            [3, 3, 2, 2]
        """
        return whole // self.of + (self.number <= whole % self.of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def shard_number(key: Key, of: int) -> int:
    """Return which of so many parts a sample belongs to, from 1.

    This must never change: a shard is resumed with another version of this package.

    Example:
        >>> [shard_number((f"q{number}", 1), 3) for number in range(9)]
        [2, 1, 3, 1, 1, 2, 2, 3, 1]
    """
    question_id, repeat = key
    digest = hashlib.sha256(f"{repeat}/{question_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % of + 1
