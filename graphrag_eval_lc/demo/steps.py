"""What plans are made of: tool calls, what is seen of them, and the steps that most plans share."""

import json
import unicodedata
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.demo.queries import PROLOGUE

_NORDIC_LETTERS = str.maketrans("øØæÆ", "oOaA")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a plan wants to make."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Observation:
    """What a tool call gave: its text, and whether it succeeded."""

    text: str
    succeeded: bool

    @property
    def rows(self) -> list[dict[str, str]]:
        """The rows of SPARQL JSON results, by column; none for an error."""
        if not self.succeeded:
            return []
        bindings = json.loads(self.text)["results"]["bindings"]
        return [{column: term["value"] for column, term in row.items()} for row in bindings]


Plan = Generator[list[Call], list[Observation], str]
"""Yields the calls to make at once, is sent what they gave, and returns the answer."""


def found(name: str, class_name: str | None) -> Generator[list[Call], list[Observation], str | None]:
    """Look up an IRI; where nothing is found, try the name without Nordic letters."""
    plain = _without_nordic_letters(name)
    for spelling in dict.fromkeys((name, plain)):
        [seen] = yield [search(spelling, class_name)]
        if seen.rows:
            return seen.rows[0]["iri"]
    return None


def queried(query: str, *, forgets_prefix: bool = False) -> Generator[list[Call], list[Observation], Observation]:
    """Run a query; one that fails for its missing prefixes is sent again with them."""
    if forgets_prefix:
        [seen] = yield [Call("sparql_query", {"query": query})]
        if seen.succeeded:
            return seen
    [seen] = yield [Call("sparql_query", {"query": PROLOGUE + query})]
    return seen


def search(name: str, class_name: str | None) -> Call:
    """Give the call that searches a name, among the things of a class if one is given."""
    return Call("autocomplete_search", {"query": name} | ({"result_class": class_name} if class_name else {}))


def _without_nordic_letters(name: str) -> str:
    decomposed = unicodedata.normalize("NFKD", name.translate(_NORDIC_LETTERS))
    return decomposed.encode("ascii", "ignore").decode().upper()
