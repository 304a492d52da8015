"""The order and the limit that a SPARQL query asks for, read from its text without understanding the rest."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

# Comments and texts first, so that nothing inside of them is taken for a keyword. A text without an end is one too, as
# a search for the end from each of its quotes would take long.
_TOKEN: Final = re.compile(
    r"""
    (?P<iri><[^<>"{}|^`\\\s]*>)
    | (?P<comment>\#[^\n]*)
    | (?P<text>\"{3}.*?(?:\"{3}|\Z) | '{3}.*?(?:'{3}|\Z) | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'?)
    | (?P<variable>[?$]\w+)
    | (?P<word>[A-Za-z_][\w:.-]*)
    | (?P<number>\d+)
    | (?P<other>\S)
    """,
    re.VERBOSE | re.DOTALL,
)
_MOST_DIGITS: Final = 18
_DIRECTIONS: Final = frozenset({"ASC", "DESC"})
_AFTER_ORDER: Final = frozenset({"LIMIT", "OFFSET", "VALUES"})


@dataclass(frozen=True, slots=True)
class QueryOrder:
    """What the outermost ORDER BY and LIMIT of a query say.

    Attributes:
        variables: The variables by which the rows are sorted, without their marks.
        limit: The number of rows at most; None for all.
    """

    variables: tuple[str, ...]
    limit: int | None = None


def query_order(query: str) -> QueryOrder | None:
    """Return how a query sorts its rows; None where it does not, or by more than variables.

    Example:
        >>> query_order("SELECT ?n { ?n a ?type } ORDER BY DESC(?size) ?n LIMIT 10")
        QueryOrder(variables=('size', 'n'), limit=10)
        >>> query_order("SELECT ?n { ?n a ?type } ORDER BY STRLEN(?n)") is None
        True
    """
    tokens = list(_outer_tokens(query))
    start = next((at for at in range(len(tokens) - 2, -1, -1) if tokens[at : at + 2] == ["ORDER", "BY"]), None)
    if start is None:
        return None
    modifiers = tokens[start + 2 :]
    end = next((at for at, token in enumerate(modifiers) if token in _AFTER_ORDER), len(modifiers))
    variables = _sorting_variables(modifiers[:end])
    if not variables:
        return None
    rest = modifiers[end:]
    limit = next((following for token, following in pairwise(rest) if token == "LIMIT"), None)
    return QueryOrder(tuple(variables), _whole_number(limit))


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _outer_tokens(query: str) -> Iterator[str]:
    """Yield what stands outside of all braces: words in upper case, variables with their marks, all else as it is."""
    depth = 0
    for match in _TOKEN.finditer(query):
        kind, token = match.lastgroup, match.group()
        if token in ("{", "}") and kind == "other":
            depth += 1 if token == "{" else -1
        elif depth == 0 and kind != "comment":
            yield token.upper() if kind == "word" else token


def _sorting_variables(conditions: Sequence[str]) -> list[str] | None:
    """Return the variables of sort conditions; None where one is more than a variable with its direction."""
    found: list[str] = []
    at = 0
    while at < len(conditions):
        is_directed = conditions[at] in _DIRECTIONS and conditions[at + 1 : at + 4 : 2] == ["(", ")"]
        variable = conditions[at + 2] if is_directed else conditions[at]
        if variable[0] not in "?$" or len(variable) == 1:
            return None
        found.append(variable[1:])
        at += 4 if is_directed else 1
    return found
