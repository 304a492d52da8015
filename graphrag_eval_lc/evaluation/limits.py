"""The limit of failures, which ends a run early."""

from dataclasses import dataclass

from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.evaluation.shards import Shard


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """A number of failures, or a share of all samples of the run.

    Attributes:
        value: The number, or the share from 0 to 1.
        is_share: Whether it is a share.

    Example:
        >>> FailureLimit.read("5%").is_passed(errors=6, total=100)
        True
    """

    value: float
    is_share: bool

    @classmethod
    def read(cls, value: object) -> "FailureLimit":
        """Return the limit that a whole number such as ``20`` or a share such as ``5%`` means.

        Raises:
            OptionError: It is neither.
        """
        text = str(value).strip()
        try:
            number = float(text.removesuffix("%")) if text.endswith("%") else int(text)
        except ValueError:
            number = -1
        is_share = text.endswith("%")
        if isinstance(value, bool) or not (number >= 0 and (number <= 100 or not is_share)):
            raise OptionError(
                f"max_failures cannot be {value!r}",
                key="max_failures",
                hint="Give a number from 0, such as 20, or a share of the questions, such as 5%.",
            )
        return cls(number / 100 if is_share else number, is_share)

    def is_passed(self, *, errors: int, total: int) -> bool:
        """Return whether more questions failed than allowed."""
        return errors > (self.value * total if self.is_share else self.value)

    def in_shard(self, shard: Shard) -> "FailureLimit":
        """Return the limit of one shard: its part of a number; a share stays what it is."""
        return self if self.is_share else FailureLimit(shard.part_of(int(self.value)), is_share=False)

    def __str__(self) -> str:
        return f"{100 * self.value:.10g}%" if self.is_share else str(int(self.value))
