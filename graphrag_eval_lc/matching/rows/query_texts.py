"""Telling a query in SPARQL, Cypher or SQL from other texts, by how it begins."""

import re
from typing import Final

_QUERY: Final = re.compile(
    r"""
    \s* (?: (?: prefix \s+ [^\s:]* : | base ) \s* <[^>]*> \s* )*
    (?:
        select \b .* (?: \b from \b | \{ )
      | ask \b \s* (?: where \s* )? \{
      | (?: optional \s+ match | match | unwind | call | with ) \b .* \b (?: return | yield | select ) \b
    )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def is_query(text: str) -> bool:
    """Return whether a text looks like a query that gives rows, and not like words to search for.

    Example:
        >>> is_query("MATCH (s:Station) RETURN s.name"), is_query("stations with 420 kV")
        (True, False)
    """
    return _QUERY.match(text) is not None
