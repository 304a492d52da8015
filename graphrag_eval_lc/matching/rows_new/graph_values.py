"""A stand-in until the reader of property graphs is merged."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

from graphrag_eval_lc.matching.rows_new.results import Term


class GraphRules(NamedTuple):
    node_keys: tuple[str, ...] = ()
    list_order: bool = True


def told_by(reference: Iterable[Any], actual: Iterable[Any]) -> Any:
    return None


def key_of(value: Any, told: Any, rules: GraphRules, key_of_term: Callable[[Term], Hashable]) -> Hashable:
    if isinstance(value, Term):
        return key_of_term(value)
    if isinstance(value, dict):
        return ("dict", frozenset((name, key_of(each, told, rules, key_of_term)) for name, each in value.items()))
    if isinstance(value, list):
        return ("list", *(key_of(each, told, rules, key_of_term) for each in value))
    return key_of_term(Term("" if value is None else str(value)))


def value_of_text(text: str) -> Any:
    return None
