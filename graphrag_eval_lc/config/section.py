"""What all sections of the configuration share: closed, strict, and silent about secrets."""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from graphrag_eval_lc.masking import masked_values

MISTAKE = "mistake"
_NUMBER_WITH_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")


class Section(BaseModel):
    """A part of the configuration: unknown keys are refused, values are not converted, secrets are not printed."""

    model_config = ConfigDict(extra="forbid", strict=True, validate_assignment=True, hide_input_in_errors=True)

    @field_validator("*", mode="before")
    @classmethod
    def _read_exponent(cls, value: Any, info: ValidationInfo) -> Any:
        """Take 1e-6 for a number where one is needed: in YAML 1.1 it is a text, as it has no point."""
        annotation = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, str) and annotation in (float, float | None) and _NUMBER_WITH_EXPONENT.fullmatch(value):
            return float(value)
        return value

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, value if name is None else masked_values({name: value})[name]


def mistake(what: str, mend: str, *key: str) -> PydanticCustomError:
    """Give the error for values that pydantic's own rules allow.

    Args:
        what: What is wrong.
        mend: How to put it right.
        *key: Where, seen from the section that is checked.
    """
    return PydanticCustomError(MISTAKE, "{what}. {mend}", {"what": what, "mend": mend, "key": key})


def named(known: Sequence[str], name: str, near: str | None = None) -> str:
    """Give the sentences that tell which names there are, and first the nearest to one that is not among them.

    Args:
        known: The names.
        name: What was written.
        near: The nearest; None for the one that is written most alike.

    Example:
        >>> named(["recall", "precision"], "recal")
        'Did you mean recall? There are recall, precision'
    """
    near = near or next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)
    question = "" if near is None else f"Did you mean {near}? "
    return f"{question}There are {', '.join(known)}"
