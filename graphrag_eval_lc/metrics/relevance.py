"""Reading what is relevant, as ids, gains or groups, and where a ranking has it.

An id may be anything hashable, a tuple too. What is relevant can then be read in two ways: ``[("a", "b")]`` is one id
where tuples were retrieved, and else a group of two ids. Where both readings are possible it is an error; gains by id
and groups as lists have one reading alone.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from numbers import Real
from operator import index
from typing import Any, TypeAlias

from graphrag_eval_lc.metrics.ranked_hits import RankedGains, RankedGroups, RankedHits, RankedIds

Relevant: TypeAlias = Iterable[Hashable] | Mapping[Any, float] | Iterable[Iterable[Hashable]]
"""Ids, gains by id, or groups of ids of each of which any will do."""

_TEXT = (str, bytes, bytearray)


def ranked_hits(relevant: Relevant, retrieved: Iterable[Hashable]) -> RankedHits | None:
    """Give where a ranking has what is relevant; None where nothing is relevant.

    Args:
        relevant: Ids; ``{id: gain}``, of which those with a gain above 0 are relevant; or groups of ids. Ids count
            once, in a group too, and groups without ids not at all.
        retrieved: Ids by rank. Of repeated ones the first counts, and the others take no rank.

    Raises:
        TypeError: One of them is no iterable of ids, or a gain is no number.
        ValueError: Ids and groups are mixed or cannot be told apart, or a gain is not finite.
    """
    if isinstance(retrieved, Mapping):
        raise TypeError("retrieved is a mapping, which has no ranks: give a list of ids, the best first")
    ranked = distinct_ids("retrieved", retrieved)
    if isinstance(relevant, Mapping):
        return _ranked_gains(relevant, ranked)
    listed = _listed("relevant", relevant)
    if _are_groups(listed, ranked):
        return _ranked_groups(listed, ranked)
    distinct = distinct_ids("relevant", listed)
    if not distinct:
        return None
    hits = [rank for rank, identifier in enumerate(ranked, start=1) if identifier in distinct]
    return RankedIds(hits, len(ranked), len(distinct))


def distinct_ids(name: str, identifiers: Iterable[Hashable]) -> dict[Hashable, None]:
    """Give the distinct ids, in their order.

    Raises:
        TypeError: They are a text, no iterable, or no ids; the message says which argument that is.
    """
    listed = _listed(name, identifiers)
    try:
        return dict.fromkeys(listed)
    except TypeError as problem:
        raise TypeError(f"{name} has an element that is no id: {problem}") from None


def checked_cutoff(k: int | None) -> int | None:
    """Give k as it is.

    Raises:
        ValueError: It is no whole number, or less than 1.
    """
    if k is None or (type(k) is int and k >= 1):
        return k
    try:
        number = 0 if isinstance(k, bool) else index(k)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"k is the number of retrieved ids that count, a whole number of at least 1, not {k!r:.40}")
    return number


def _ranked_gains(relevant: Mapping[Any, float], ranked: Iterable[Hashable]) -> RankedGains | None:
    for identifier, gain in relevant.items():
        _check_gain(identifier, gain)
    gains = {identifier: gain for identifier, gain in relevant.items() if gain > 0}
    if not gains:
        return None
    ranked = list(ranked)
    hits = [rank for rank, identifier in enumerate(ranked, start=1) if identifier in gains]
    return RankedGains(hits, len(ranked), [gains[ranked[rank - 1]] for rank in hits], list(gains.values()))


def _check_gain(identifier: Hashable, gain: object) -> None:
    if not isinstance(gain, Real):
        raise TypeError(f"the gain of {identifier!r:.60} is a number, not {type(gain).__name__}")
    try:
        is_finite = isfinite(gain)
    except OverflowError:  # a whole number beyond the floats
        is_finite = False
    if not is_finite:
        raise ValueError(f"the gain of {identifier!r:.60} is a number within the floats, not {gain!s:.40}")


def _ranked_groups(groups: Sequence[Iterable[Hashable]], ranked: Iterable[Hashable]) -> RankedGroups | None:
    rank_of = {identifier: rank for rank, identifier in enumerate(ranked, start=1)}
    distinct = [ids for ids in (distinct_ids("a group of relevant", group) for group in groups) if ids]
    if not distinct:
        return None
    ranks = [sorted(rank_of[identifier] for identifier in ids if identifier in rank_of) for ids in distinct]
    return RankedGroups(ranks, len(rank_of), sum(map(len, distinct)))


def _are_groups(relevant: Sequence[Any], ranked: Collection[Hashable]) -> bool:
    kinds = set(map(type, relevant))
    if any(issubclass(kind, Mapping) for kind in kinds):
        raise TypeError("relevant has a mapping for an element: give the ids of documents, not the documents")
    groups = {kind for kind in kinds if issubclass(kind, Iterable) and not issubclass(kind, _TEXT)}
    compound = set(filter(_is_compound_id, groups))
    if compound and _are_compound_ids(relevant, kinds, compound, set(map(type, ranked))):
        return False
    if groups and groups != kinds:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"relevant mixes ids and groups of ids, with elements of {names}: give one of the two")
    return bool(groups)


def _are_compound_ids(relevant: Sequence[Any], kinds: set[type], compound: set[type], retrieved: set[type]) -> bool:
    """Tell whether tuples and their like among the relevant are ids, as they are where such ids were retrieved."""
    if not any(map(_is_compound_id, retrieved)):
        return False
    held = {type(each) for element in relevant if type(element) in compound for each in element}
    others = kinds - compound
    if (not others and held & retrieved) or any(
        issubclass(kind, Iterable) and not issubclass(kind, _TEXT) for kind in others
    ):
        name = min(kind.__name__ for kind in compound)
        raise ValueError(
            f"each {name} of relevant may be an id or a group of ids: give gains by id, {{id: 1}}, or groups as lists"
        )
    return True


def _is_compound_id(kind: type) -> bool:
    return (
        issubclass(kind, Iterable)
        and issubclass(kind, Hashable)
        and not issubclass(kind, _TEXT)
        and not issubclass(kind, Iterator)
    )


def _listed(name: str, values: Iterable[Any]) -> Sequence[Any]:
    if isinstance(values, _TEXT):
        raise TypeError(f"{name} is a text: give a list of ids, also where it has just one")
    try:
        return list(values)
    except TypeError as problem:
        raise TypeError(f"{name} is no iterable of ids: {problem}") from None
