"""A claim as a model lists it: a text that is not blank."""

from typing import Annotated

from pydantic import AfterValidator


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("a claim is a text that is not blank")
    return text.strip()


# Not by min_length, which strict JSON schemas of some endpoints do not know.
Claim = Annotated[str, AfterValidator(_not_blank)]
