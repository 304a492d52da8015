"""What differs between two queries, as far as their words show it: a property, a filter, an entity, a time, the order.

This names groups of failures. It is never a score: right queries differ too.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

_COMMENT_OR_TEXT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?<!\S)#[^\n]*")
_PROLOGUE = re.compile(r"\b(?:PREFIX\s+\S*\s*|BASE\s*)<[^>]*>", re.IGNORECASE)
# In SPARQL an IRI or a prefixed name; in Cypher and SQL a label, or a property or column after its owner.
_SPARQL_TERM = re.compile(r"<([^<>\s]+)>|(?<![\w?$])[A-Za-z][\w-]*:([\w.-]*\w)")
_OTHER_TERM = re.compile(r"(?<=[:.])([A-Za-z_]\w*)")
_VARIABLE = re.compile(r"[?$]\w")
_TIME = re.compile(r"\b\d{4}-\d\d(?:-\d\d)?(?:[T ][\d:.]+)?")
_SPARQL_CONDITION = re.compile(r"\b(?:FILTER|HAVING|MINUS|VALUES)\b", re.IGNORECASE)
_OTHER_CONDITION = re.compile(r"\b(?:WHERE|AND|HAVING)\b", re.IGNORECASE)
_SORTING = re.compile(r"\b(?:DESC|LIMIT\s+\d+|OFFSET\s+\d+|SKIP\s+\d+)\b", re.IGNORECASE)
_LONGEST: Final = 20_000
_DIGITS_OF_AN_ENTITY: Final = 2


def query_difference(reference: object, actual: object) -> tuple[str, str] | None:
    """Return the kind of the difference of two steps' queries and a sentence on it; None if no rule fits.

    Args:
        reference: The arguments of the reference step.
        actual: Those of the agent's call.

    Example:
        >>> query_difference({"query": "SELECT ?x { ?t g:ratedS ?x }"}, {"query": "SELECT ?x { ?t g:ratedU ?x }"})
        ('wrong property', 'Wrong property: `ratedU` for `ratedS`')
        >>> query_difference({"query": "SELECT * {?a ?b ?c FILTER(?a > 1)}"}, {"query": "SELECT * {?a ?b ?c}"})
        ('missing filter', 'A filter is missing')
    """
    expected, found = _query_in(reference), _query_in(actual)
    if not expected or not found or expected == found:
        return None
    wanted, used = _terms(expected), _terms(found)
    missing, added = sorted(wanted - used), sorted(used - wanted)
    if len(missing) == len(added) == 1:
        if _is_entity(missing[0]) and _is_entity(added[0]):
            return "wrong entity", "Wrong entity: the query is about another one"
        if not _is_entity(missing[0]) and not _is_entity(added[0]):
            right, wrong = _apart(missing[0], added[0])
            are_classes = all(name.rpartition(".")[2][:1].isupper() for name in (right, wrong))
            word = "class" if are_classes else "property"
            return f"wrong {word}", f"Wrong {word}: `{wrong}` for `{right}`"
    if missing and added and all(map(_is_entity, [*missing, *added])):
        return "wrong entity", "Wrong entity: the query is about another one"
    if not missing and not added:
        return _other_difference(expected, found)
    return None


def _other_difference(expected: str, found: str) -> tuple[str, str] | None:
    """Compare two queries that use the same names."""
    if set(_TIME.findall(expected)) != set(_TIME.findall(found)):
        return "wrong time", "Wrong time in the query"
    counts = [len(_condition_of(query).findall(_COMMENT_OR_TEXT.sub("''", query))) for query in (expected, found)]
    if counts[0] > counts[1]:
        return "missing filter", "A filter is missing"
    if counts[0] < counts[1]:
        return "extra filter", "A filter too many"
    if _sorting(expected) != _sorting(found):
        return "other order or limit", "Another order or limit"
    return None


def _query_in(args: object) -> str:
    """Return the longest text of a step's arguments, which is its query if it has one."""
    if not isinstance(args, Mapping):
        return ""
    texts = [value for value in args.values() if isinstance(value, str) and " " in value.strip()]
    return max(texts, key=len, default="")[:_LONGEST]


def _terms(query: str) -> set[str]:
    """Return the names of properties, classes and entities that a query uses, without their prefixes."""
    if not _is_sparql(query):
        return set(_OTHER_TERM.findall(_COMMENT_OR_TEXT.sub(" ", query)))
    found = _SPARQL_TERM.findall(_COMMENT_OR_TEXT.sub(" ", _PROLOGUE.sub(" ", query)))
    return {re.split(r"[#/]", iri)[-1] if iri else name for iri, name in found}


def _apart(one: str, other: str) -> tuple[str, str]:
    """Return two names without the owner before the dot that both share.

    Example:
        >>> _apart("End.ratedS", "End.ratedU"), _apart("Line.length", "Conductor.length")
        (('ratedS', 'ratedU'), ('Line.length', 'Conductor.length'))
    """
    (owner, _, name), (other_owner, _, other_name) = one.rpartition("."), other.rpartition(".")
    return (name, other_name) if owner == other_owner else (one, other)


def _is_entity(name: str) -> bool:
    return name.startswith("urn:") or sum(character.isdigit() for character in name) >= _DIGITS_OF_AN_ENTITY


def _is_sparql(query: str) -> bool:
    return "{" in query and (_VARIABLE.search(query) is not None or "<" in query)


def _condition_of(query: str) -> re.Pattern[str]:
    return _SPARQL_CONDITION if _is_sparql(query) else _OTHER_CONDITION


def _sorting(query: str) -> Counter[str]:
    return Counter(" ".join(each.split()).upper() for each in _SORTING.findall(query))
