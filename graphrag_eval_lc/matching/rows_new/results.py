"""Stand-in for the data model until the owner's version is merged."""

from typing import NamedTuple, TypeAlias

Shape: TypeAlias = tuple[str, str | None, str | None]


class Term(NamedTuple):
    """A term."""

    text: str
    shape: Shape


class Triple(NamedTuple):
    """A triple."""

    subject: Term
    predicate: Term
    object: Term
