"""Describe in words how a query differs from the reference query. This explains a failure and is never a score.

Right queries may differ, too: a difference shows what to check, not that the query is wrong. Needs rdflib.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, TypeAlias, get_args

from graphrag_eval_lc.graph.query_alignment import aligned, with_names, with_names_of_graphs
from graphrag_eval_lc.graph.query_expressions import Expression, is_variable, renamed, variables_in
from graphrag_eval_lc.graph.query_forms import (
    Pattern,
    QueryForm,
    Select,
    TooLargeQueryError,
    Where,
    read_query,
    with_listed_values,
    with_merged_branches,
)
from graphrag_eval_lc.graph.query_text import (
    RDF_TYPE,
    STANDARD_PREFIXES,
    declared_prefixes,
    inferred_prefixes,
    is_too_large,
)
from graphrag_eval_lc.graph.query_words import Words
from graphrag_eval_lc.texts import counted, shortened

DifferenceKind: TypeAlias = Literal[
    "form",
    "class",
    "property",
    "path",
    "direction",
    "entity",
    "value",
    "aggregate",
    "columns",
    "missing_filter",
    "extra_filter",
    "filter",
    "missing_pattern",
    "extra_pattern",
    "inverse",
    "group",
    "order",
    "limit",
    "distinct",
]
"""What differs, the most telling first."""

_KINDS: tuple[DifferenceKind, ...] = get_args(DifferenceKind)
_LONGEST = 200
_ALTERNATIVES = re.compile(r"\(\^?<[^<>]*>(?:\|\^?<[^<>]*>)+\)")
_FILTER = "the filter "


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a query and the reference query.

    Attributes:
        kind: The kind of difference.
        sentence: The difference in words, such as "uses cim:ratedU instead of cim:ratedS".
        expected: What the reference query has; None if it has nothing there.
        actual: What the query has; None if it has nothing there.
        column: The column of the reference that has the values of its property; None if that is not what differs.
    """

    kind: DifferenceKind
    sentence: str
    expected: str | None = None
    actual: str | None = None
    column: str | None = None


def query_differences(
    reference: str,
    actual: str,
    *,
    required_columns: Iterable[str] | None = None,
    ordered: bool = False,
    prefixes: Mapping[str, str] | None = None,
) -> list[Difference]:
    """Compare a SPARQL query with the reference query, whatever they call their variables.

    Args:
        reference: The reference query.
        actual: The query of the agent. A prefix that only one of the two declares holds for both.
        required_columns: The columns of the reference that count; None for all.
        ordered: Whether the order of rows counts. It also does with a LIMIT.
        prefixes: Those that the endpoint knows without a declaration.

    Returns:
        The differences, the most telling first; an empty list without any. The template of a CONSTRUCT is not compared.

    Raises:
        TooLargeQueryError: One of them is too large: it has more than about 80 patterns in a group or 200 in all.
        UnreadableQueryError: One of them is not a SPARQL query, or is an update.

    Example:
        >>> reference = "PREFIX c: <urn:c#> SELECT ?s { ?t a c:Transformer; c:ratedS ?s FILTER(?s > 10) }"
        >>> for each in query_differences(reference, "SELECT ?u { ?x a c:Transformer; c:ratedU ?u }"):
        ...     print(each.kind, "-", each.sentence)
        property - uses c:ratedU instead of c:ratedS
        missing_filter - lacks the filter 10 < ?s
    """
    if is_too_large(reference) or is_too_large(actual):
        raise TooLargeQueryError("it is too large to be compared")
    known = inferred_prefixes(reference, actual) | inferred_prefixes(actual, reference) | dict(prefixes or {})
    known |= declared_prefixes(actual) | declared_prefixes(reference)
    required = None if required_columns is None else {f"?{name.removeprefix('?')}" for name in required_columns}
    words = Words(STANDARD_PREFIXES | known)
    try:
        forms = [with_listed_values(read_query(query, known)) for query in (reference, actual)]
        merged = [with_merged_branches(form) for form in forms]
        attempts = [merged, forms] if merged != forms else [forms]
        found = [list(_Comparison(wanted, given, words).differences(required, ordered)) for wanted, given in attempts]
        shortest = min(found, key=len)
    except RecursionError as problem:  # of a long condition
        raise TooLargeQueryError("it is too large to be compared") from problem
    short: dict[Difference, None] = {}
    for each in shortest:  # a list of values may have thousands
        old, new = (None if text is None else shortened(text, _LONGEST) for text in (each.expected, each.actual))
        short[replace(each, sentence=shortened(each.sentence, 2 * _LONGEST), expected=old, actual=new)] = None
    return sorted(without_equal(short), key=lambda each: _KINDS.index(each.kind))


def without_equal(differences: Iterable[Difference]) -> list[Difference]:
    """Return the differences without those whose texts are the same in both queries, as these would say nothing.

    Example:
        >>> without_equal([Difference("columns", "returns ?x instead of ?x", "?x", "?x")])
        []
    """
    found = list(differences)
    missing = {each.expected for each in found if each.actual is None}
    equal = (missing & {each.actual for each in found if each.expected is None}) - {None}
    return [
        each
        for each in found
        if (each.expected is None or each.expected != each.actual) and not {each.expected, each.actual} & equal
    ]


def in_words(differences: Sequence[Difference], most: int = 3) -> str:
    """Return the first differences as one sentence.

    Example:
        >>> in_words([Difference("limit", "has LIMIT 3 instead of 5"), Difference("distinct", "lacks DISTINCT")])
        'The query has LIMIT 3 instead of 5; lacks DISTINCT.'
    """
    if not differences:
        return ""
    parts = [each.sentence for each in differences[:most]]
    if len(differences) > most:
        parts.append(f"and {counted(len(differences) - most, 'more difference')}")
    return f"The query {'; '.join(parts)}."


class _Comparison:
    """Two queries, with the variables and groups of the actual one renamed to those of the reference."""

    def __init__(self, wanted: QueryForm, given: QueryForm, words: Words) -> None:
        self._names, self._given = aligned(wanted, given)
        self._wanted, self._words = wanted, words
        self._own_names = {renamed_: own for own, renamed_ in self._names.items()}

    def differences(self, required: Collection[str] | None, ordered: bool) -> Iterator[Difference]:
        """Yield what differs, part by part."""
        wanted, given = self._wanted, self._given
        if wanted.form != given.form:
            yield Difference("form", f"is {given.form} instead of {wanted.form}", wanted.form, given.form)
        yield from self._patterns()
        yield from self._filters()
        if wanted.form == given.form == "SELECT":
            yield from self._computed(wanted.select, given.select, "", required)
        theirs, ours = ({each.where: each for each in form.selects} for form in (wanted, given))
        for where, select in theirs.items():
            if where in ours:
                place = " in the subquery" if where else ""
                is_ordered = select.limit is not None or (ordered and not where)
                yield from self._modifiers(select, ours[where], place, is_ordered=is_ordered)
        for select in (each for where, each in ours.items() if where not in theirs and each.limit is not None):
            yield Difference("limit", f"has LIMIT {select.limit} in a subquery", None, str(select.limit))

    def _modifiers(self, wanted: Select, given: Select, place: str, *, is_ordered: bool) -> Iterator[Difference]:
        """Compare the modifiers of the queries, or of two subqueries."""
        if place:
            computed = {name for name, value in wanted.columns if isinstance(value, tuple)}
            yield from self._computed(wanted, given, place, computed)
        each_once, given_once = _columns_without_duplicates(wanted, {}), _columns_without_duplicates(given, self._names)
        is_alike = each_once is not None and each_once == given_once
        if not is_alike:
            yield from self._groups(wanted, given, place)
        order = self._order(given.order, self._names)
        if is_ordered and order != self._order(wanted.order, {}):
            expected, actual = self._order_text(wanted.order), self._order_text(given.order)
            if order:
                sentence = f"sorts by {actual} instead of {expected or 'nothing'}{place}"
                yield Difference("order", sentence, expected, actual)
            else:
                yield Difference("order", f"does not sort by {expected}{place}", expected)
        for name in ("limit", "offset"):
            expected_number, number = getattr(wanted, name), getattr(given, name)
            if expected_number != number:
                is_there = number is not None and (name == "limit" or number > 0)
                has = f"has {name.upper()} {number}" if is_there else f"lacks {name.upper()} {expected_number}"
                instead = f" instead of {expected_number}" if is_there and expected_number else ""
                old, new = (None if each is None else str(each) for each in (expected_number, number))
                yield Difference("limit", has + instead + place, old, new)
        if wanted.distinct != given.distinct and not is_alike:
            yield Difference("distinct", f"{'lacks' if wanted.distinct else 'adds'} DISTINCT{place}")

    def _patterns(self) -> Iterator[Difference]:
        missing, extra = list(self._wanted.patterns), []
        for pattern in self._given.patterns:
            as_wanted = with_names(pattern, self._names)
            if (
                same := next((each for each in (as_wanted, _backwards(as_wanted)) if each in missing), None)
            ) is not None:
                missing.remove(same)
            else:
                extra.append(as_wanted)
        yield from self._paths(missing, extra)
        for is_pair in _PAIRS:
            for expected, actual in product(tuple(missing), tuple(extra)):
                if expected not in missing or actual not in extra or not (kind := is_pair(expected, actual)):
                    continue
                is_only = len(missing) == len(extra) == 1
                if kind != "property" or self._is_same_place(expected, is_only=is_only):
                    missing.remove(expected)
                    extra.remove(actual)
                    yield self._pair(kind, expected, actual)
        for text in self._words.chains(missing):
            yield Difference("missing_pattern", f"lacks {text}", text)
        for text in self._words.chains([with_names(each, self._own_names) for each in extra]):
            yield Difference("extra_pattern", f"adds {text}", None, text)

    def _paths(self, missing: list[Pattern], extra: list[Pattern]) -> Iterator[Difference]:
        """Take out patterns that follow a path between the same ends with more, fewer or other repeated steps."""
        own = [with_names(each, self._names) for each in self._given.patterns]
        ours = _chains(extra, own)
        for ends, chains in _chains(missing, self._wanted.patterns).items():
            for expected, actual in product(chains, ours.get(ends, ())):
                one, other = (Counter(each.predicate.rstrip("*+?") for each in chain) for chain in (expected, actual))
                are_left = set(expected) <= set(missing) and set(actual) <= set(extra)
                if are_left and (one <= other or other <= one):
                    missing[:] = [each for each in missing if each not in expected]
                    extra[:] = [each for each in extra if each not in actual]
                    paths = ("/".join(each.predicate for each in chain) for chain in (expected, actual))
                    old, new = map(self._words.term, paths)
                    yield Difference("path", f"follows {new} instead of {old}", old, new)

    def _is_same_place(self, expected: Pattern, *, is_only: bool) -> bool:
        """Return whether there is evidence, not only a guess, that a pattern has the same ends in both queries."""
        own = [with_names(each, self._names) for each in self._given.patterns]
        theirs, ours = (
            [(end, each.predicate, end == each.subject) for each in patterns for end in (each.subject, each.object)]
            for patterns in (self._wanted.patterns, own)
        )
        ends = {expected.subject, expected.object}
        for end in ends:
            is_inside_path = end.startswith("?·"), self._own_names.get(end, end).startswith("?·")
            degrees = [sum(each[0] == end for each in uses) for uses in (theirs, ours)]
            if is_inside_path[0] != is_inside_path[1] and degrees[0] != degrees[1]:
                return False
        return is_only or not all(map(is_variable, ends)) or any(use in ours for use in theirs if use[0] in ends)

    def _pair(self, kind: DifferenceKind, expected: Pattern, actual: Pattern) -> Difference:
        words = self._words
        actual = with_names(actual, self._own_names)
        match kind:
            case "property":
                old, new = words.term(expected.predicate), words.term(actual.predicate)
                is_column = (expected.object, None) in self._wanted.select.columns
                column = expected.object.removeprefix("?") if is_column else None
                return Difference(kind, f"uses {new} instead of {old}", old, new, column)
            case "inverse" | "direction":
                old, new = words.pattern(expected), words.pattern(actual)
                return Difference(kind, f"has {new} instead of {old}", old, new)
            case "group":
                return self._other_group(words.pattern(actual, ""), expected.where, actual.where)
        is_object = expected.object != actual.object
        if any(map(is_variable, (expected.object, actual.object) if is_object else (expected.subject, actual.subject))):
            old, new = words.pattern(expected), words.pattern(actual)
            return Difference(kind, f"has {new} instead of {old}", old, new)
        old, new = (words.term(each.object if is_object else each.subject) for each in (expected, actual))
        verb = "looks for the class" if kind == "class" else "uses"
        return Difference(kind, f"{verb} {new} instead of {old}", old, new)

    def _other_group(self, what: str, expected: Where, actual: Where) -> Difference:
        """Return the difference for something that is in another group."""
        old, new = self._words.groups(expected) or "required", self._words.groups(actual) or "required"
        if old == new:
            return Difference("group", f"has {what} in another {old} group")
        if not actual:
            sentence = f"has {what} outside of {old}"
        else:
            sentence = f"has {what} in {new} instead of {f'in {old}' if expected else old}"
        return Difference("group", sentence, old, new)

    def _filters(self) -> Iterator[Difference]:
        missing = [(renamed(condition, {}), where) for condition, where in self._wanted.filters]
        extra = []
        for condition, where in self._given.filters:
            each = (renamed(condition, self._names), with_names_of_graphs(where, self._names))
            if each in missing:
                missing.remove(each)
            else:
                extra.append(each)
        for is_pair in (_same_condition, _same_variables):
            for expected, actual in product(tuple(missing), tuple(extra)):
                if expected in missing and actual in extra and is_pair(expected, actual):
                    missing.remove(expected)
                    extra.remove(actual)
                    old, new = self._words.condition(expected[0]), self._own(actual[0])
                    if is_pair is _same_condition:
                        yield self._other_group(new, expected[1], actual[1])
                    elif expected[0][0] == actual[0][0] == "bind":
                        yield Difference("filter", f"has {new} instead of {old}", old, new)
                    else:
                        old, new = old.removeprefix(_FILTER), new.removeprefix(_FILTER)
                        yield Difference("filter", f"filters by {new} instead of {old}", old, new)
        for condition, _ in missing:
            text = self._words.condition(condition)
            yield Difference("missing_filter", f"lacks {text}", text)
        for condition, _ in extra:
            text = self._own(condition)
            yield Difference("extra_filter", f"adds {text}", None, text)

    def _computed(
        self, wanted: Select, given: Select, place: str, required: Collection[str] | None
    ) -> Iterator[Difference]:
        """Compare what is returned: missing columns are paired with computed ones that are not expected."""
        columns = [each for each in wanted.columns if required is None or each[0] in required]
        returned = [renamed(name if value is None else value, self._names) for name, value in given.columns]
        expected = [renamed(name if value is None else value, {}) for name, value in columns]
        extra = [each for each in returned if not isinstance(each, str) and each not in expected]
        for column in expected:
            if column in returned:
                continue
            if column in [name for name, value in given.columns if value is None]:
                continue  # the same name with another role
            old, is_computed = self._words.expression(column), not isinstance(column, str)
            if extra:
                new = self._words.expression(renamed(extra.pop(0), self._own_names))
                yield Difference("aggregate", f"computes {new} instead of {old}{place}", old, new)
            elif is_computed:
                yield Difference("aggregate", f"does not compute {old}{place}", old)
            else:
                yield Difference("columns", f"does not return {old}", old)

    def _groups(self, wanted: Select, given: Select, place: str) -> Iterator[Difference]:
        expected = {renamed(each, {}) for each in wanted.group}
        actual = {renamed(each, self._names) for each in given.group}
        if expected != actual:
            old = ", ".join(map(self._words.expression, wanted.group)) or None
            new = ", ".join(map(self._words.expression, given.group)) or None
            sentence = f"groups by {new or 'nothing'} instead of {old or 'nothing'}{place}"
            yield Difference("aggregate", sentence, old, new)

    def _own(self, condition: Expression) -> str:
        return self._words.condition(renamed(condition, self._own_names))

    def _order(
        self, order: Iterable[tuple[str, Expression]], names: Mapping[str, str]
    ) -> tuple[tuple[str, Expression], ...]:
        return tuple((direction, renamed(value, names)) for direction, value in order)

    def _order_text(self, order: Iterable[tuple[str, Expression]]) -> str:
        return " ".join(f"{direction}({self._words.expression(value)})" for direction, value in order)


def _columns_without_duplicates(select: Select, names: Mapping[str, str]) -> set[Expression] | None:
    """Return the columns if no two rows are equal, due to DISTINCT or to GROUP BY of just these; else None."""
    columns, groups = (
        {renamed(each, names) for each in of} for of in ([name for name, _ in select.columns], select.group)
    )
    is_plain = all(value is None for _, value in select.columns) and all(isinstance(each, str) for each in groups)
    return (
        columns if is_plain and (groups == columns or (select.distinct and (not groups or columns <= groups))) else None
    )


def _chains(patterns: Sequence[Pattern], every: Sequence[Pattern]) -> dict[Pattern, list[list[Pattern]]]:
    """Return each pattern, and each path of patterns joined by variables in no other pattern, by their ends."""
    uses = Counter(end for each in every for end in (each.subject, each.object))
    after = {
        first: second
        for first, second in product(patterns, patterns)
        if first.object == second.subject and is_variable(first.object) and uses[first.object] == 2
        if first.where == second.where
    }
    found: dict[Pattern, list[list[Pattern]]] = {}
    chains = [[each] for each in patterns]
    while chains:
        for chain in chains:
            found.setdefault(replace(chain[0], predicate="", object=chain[-1].object), []).append(chain)
        chains = [[*chain, next_] for chain in chains if (next_ := after.get(chain[-1])) and next_ not in chain]
    return found


def _backwards(pattern: Pattern) -> Pattern:
    """Return a pattern of alternatives, such as ``?x (p|^q) ?y``, written from its other end."""
    if not _ALTERNATIVES.fullmatch(pattern.predicate):
        return pattern
    turned = (each[1:] if each[0] == "^" else f"^{each}" for each in pattern.predicate[1:-1].split("|"))
    return Pattern(pattern.object, f"({'|'.join(sorted(turned))})", pattern.subject, pattern.where)


def _other_property(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    is_same = (expected.subject, expected.object, expected.where) == (actual.subject, actual.object, actual.where)
    return "property" if is_same else None


def _other_end(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    """Compare patterns that differ in one end, which is a constant in both."""
    if (expected.predicate, expected.where) != (actual.predicate, actual.where):
        return None
    if expected.subject == actual.subject:
        ends = expected.object, actual.object
    elif expected.object == actual.object:
        ends = expected.subject, actual.subject
    else:
        return None
    if any(map(is_variable, ends)):
        return None
    if expected.predicate == RDF_TYPE:
        return "class"
    return "value" if all(end.startswith('"') for end in ends) else "entity"


def _any_end(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    """Compare patterns that differ in one end, which is a constant in one of them."""
    if (expected.predicate, expected.where) != (actual.predicate, actual.where):
        return None
    if (expected.subject == actual.subject) == (expected.object == actual.object):
        return None
    ends = (
        (expected.object, actual.object) if expected.subject == actual.subject else (expected.subject, actual.subject)
    )
    if is_variable(ends[0]) == is_variable(ends[1]):
        return None
    return "value" if any(end.startswith('"') for end in ends) else "entity"


def _turned(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    turned = Pattern(actual.object, actual.predicate, actual.subject, actual.where)
    return "direction" if turned == expected else None


def _inverse(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    """Compare patterns that go from one end to the other and back, which may mean the same."""
    is_back = (expected.subject, expected.object, expected.where) == (actual.object, actual.subject, actual.where)
    return "inverse" if is_back else None


def _other_group(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    return "group" if Pattern(actual.subject, actual.predicate, actual.object, expected.where) == expected else None


_PAIRS: tuple[Callable[[Pattern, Pattern], DifferenceKind | None], ...] = (
    _other_property,
    _other_end,
    _turned,
    _inverse,
    _other_group,
    _any_end,
)
_Condition: TypeAlias = tuple[Expression, Where]


def _same_condition(expected: _Condition, actual: _Condition) -> bool:
    return expected[0] == actual[0]


def _same_variables(expected: _Condition, actual: _Condition) -> bool:
    """Return whether two conditions in the same group are on the same variables."""
    return expected[1] == actual[1] and set(variables_in(expected[0])) == set(variables_in(actual[0]))
