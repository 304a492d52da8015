"""How many questions may fail before a run is ended on purpose."""

from dataclasses import dataclass

from graphrag_eval_lc.errors import OptionError


@dataclass(frozen=True, slots=True)
class FailureLimit:
    """A number of failures, or a share of all samples of the run.

    Attributes:
        value: The number, or the share from 0 to 1.
        is_share: Which of both it is.

    Example:
        >>> FailureLimit.read("5%").is_passed(errors=6, total=100)
        True
    """

    value: float
    is_share: bool

    @classmethod
    def read(cls, value: object) -> "FailureLimit":
        """Give the limit that a whole number such as ``20`` or a share such as ``5%`` means.

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
                mend="Give a number from 0, such as 20, or a share of the questions, such as 5%.",
            )
        return cls(number / 100 if is_share else number, is_share)

    def is_passed(self, *, errors: int, total: int) -> bool:
        """Tell whether more questions failed than may fail."""
        return errors > (self.value * total if self.is_share else self.value)

    def __str__(self) -> str:
        return f"{self.value:.10g}" if not self.is_share else f"{100 * self.value:.10g}%"
