"""Put into words how a query differs from the reference query. It explains a failure and is never a score.

Right queries differ too: a difference says what to look at, not that the query is wrong. It needs rdflib.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Literal, TypeAlias, get_args

from graphrag_eval_lc.graph.query_forms import (
    RDF_TYPE,
    STANDARD_PREFIXES,
    Expression,
    Pattern,
    QueryForm,
    declared_prefixes,
    inferred_prefixes,
    read_query,
    renamed,
    variables_in,
    with_listed_values,
)
from graphrag_eval_lc.graph.query_words import Words
from graphrag_eval_lc.matching.assignment import best_assignment
from graphrag_eval_lc.texts import counted, shortened

DifferenceKind: TypeAlias = Literal[
    "form",
    "class",
    "property",
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
_MOST_SWAPPED = 40  # of more variables all pairs take too long
_ROUNDS = 6  # so that the ends of a path of six properties tell its nodes apart


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a query and the reference query.

    Attributes:
        kind: What differs.
        sentence: It in words, such as "asks cim:ratedU instead of cim:ratedS".
        expected: What the reference query has; None if it has nothing there.
        actual: What the query has; None if it has nothing there.
    """

    kind: DifferenceKind
    sentence: str
    expected: str | None = None
    actual: str | None = None


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
        The differences, the most telling first; none if there are none. Which branch of a UNION a pattern is in, the
        modifiers of subqueries, and the template of a CONSTRUCT are not compared.

    Raises:
        UnreadableQueryError: One of them is not SPARQL that reads.

    Example:
        >>> reference = "PREFIX c: <urn:c#> SELECT ?s { ?t a c:Transformer; c:ratedS ?s FILTER(?s > 10) }"
        >>> for each in query_differences(reference, "SELECT ?u { ?x a c:Transformer; c:ratedU ?u }"):
        ...     print(each.kind, "-", each.sentence)
        property - asks c:ratedU instead of c:ratedS
        missing_filter - lacks the filter 10 < ?s
    """
    known = inferred_prefixes(reference, actual) | inferred_prefixes(actual, reference) | dict(prefixes or {})
    known |= declared_prefixes(actual) | declared_prefixes(reference)
    wanted, given = (with_listed_values(read_query(query, known)) for query in (reference, actual))
    compared = _Comparison(wanted, given, Words(STANDARD_PREFIXES | known))
    found = dict.fromkeys(map(_within_limits, compared.differences(required_columns, ordered)))
    return sorted(found, key=lambda each: _KINDS.index(each.kind))


def _within_limits(found: Difference) -> Difference:
    """Return a difference with shortened texts, as a list of values may have thousands."""
    expected, actual = (None if each is None else shortened(each, _LONGEST) for each in (found.expected, found.actual))
    return Difference(found.kind, shortened(found.sentence, 2 * _LONGEST), expected, actual)


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
    """Two queries, with the variables of the actual one renamed to those of the reference."""

    def __init__(self, wanted: QueryForm, given: QueryForm, words: Words) -> None:
        self._wanted, self._given, self._words = wanted, given, words
        self._names = _aligned(wanted, given)
        self._own_names = {renamed_: own for own, renamed_ in self._names.items()}

    def differences(self, required_columns: Iterable[str] | None, ordered: bool) -> Iterator[Difference]:
        """Yield what differs, part by part."""
        wanted, given = self._wanted, self._given
        if wanted.form != given.form:
            yield Difference("form", f"is {given.form} instead of {wanted.form}", wanted.form, given.form)
        yield from self._patterns()
        yield from self._filters()
        yield from self._columns(required_columns)
        yield from self._groups()
        order = self._order(given.order, self._names)
        if (ordered or wanted.limit is not None) and order != self._order(wanted.order, {}):
            expected, actual = self._order_text(wanted.order), self._order_text(given.order)
            if order:
                yield Difference("order", f"sorts by {actual} instead of {expected or 'nothing'}", expected, actual)
            else:
                yield Difference("order", f"does not sort by {expected}", expected)
        for name in ("limit", "offset"):
            expected_number, number = getattr(wanted, name), getattr(given, name)
            if expected_number != number:
                is_there = number is not None and (name == "limit" or number > 0)
                has = f"has {name.upper()} {number}" if is_there else f"lacks {name.upper()} {expected_number}"
                instead = f" instead of {expected_number}" if is_there and expected_number else ""
                old, new = (None if each is None else str(each) for each in (expected_number, number))
                yield Difference("limit", has + instead, old, new)
        if wanted.distinct != given.distinct:
            yield Difference("distinct", f"{'lacks' if wanted.distinct else 'adds'} DISTINCT")

    def _patterns(self) -> Iterator[Difference]:
        missing, extra = list(self._wanted.patterns), []
        for pattern in self._given.patterns:
            as_wanted = _renamed(pattern, self._names)
            if as_wanted in missing:
                missing.remove(as_wanted)
            else:
                extra.append(as_wanted)
        for is_pair in (_other_property, _other_end, _turned, _inverse, _other_group):
            for expected, actual in product(tuple(missing), tuple(extra)):
                if expected not in missing or actual not in extra or not (kind := is_pair(expected, actual)):
                    continue
                if kind != "property" or not self._ends_inside_path(expected):
                    missing.remove(expected)
                    extra.remove(actual)
                    yield self._pair(kind, expected, actual)
        for text in self._words.chains(missing):
            yield Difference("missing_pattern", f"lacks {text}", text)
        for text in self._words.chains([_renamed(each, self._own_names) for each in extra]):
            yield Difference("extra_pattern", f"adds {text}", None, text)

    def _ends_inside_path(self, expected: Pattern) -> bool:
        """Return whether a pattern ends at a node inside a path for one query, and at a variable for the other."""
        ends = (expected.subject, expected.object)
        return any(end.startswith("?·") != self._own_names.get(end, end).startswith("?·") for end in ends)

    def _pair(self, kind: DifferenceKind, expected: Pattern, actual: Pattern) -> Difference:
        words = self._words
        actual = _renamed(actual, self._own_names)
        match kind:
            case "property":
                old, new = words.term(expected.predicate), words.term(actual.predicate)
                return Difference(kind, f"asks {new} instead of {old}", old, new)
            case "inverse":
                old, new = words.pattern(expected), words.pattern(actual)
                return Difference(kind, f"has {new} instead of {old}", old, new)
            case "direction":
                old, new = words.pattern(expected), words.pattern(actual)
                return Difference(kind, f"has {new} the other way round", old, new)
            case "group":
                old, new = (" in ".join(reversed(each.where)).upper() or "required" for each in (expected, actual))
                return Difference(kind, f"has {words.pattern(actual, '')} as {new} instead of {old}", old, new)
        is_object = expected.object != actual.object
        old, new = (words.term(each.object if is_object else each.subject) for each in (expected, actual))
        verb = "looks for the class" if kind == "class" else "uses"
        return Difference(kind, f"{verb} {new} instead of {old}", old, new)

    def _filters(self) -> Iterator[Difference]:
        missing = [(renamed(condition, {}), where) for condition, where in self._wanted.filters]
        extra = []
        for condition, where in self._given.filters:
            if (each := (renamed(condition, self._names), where)) in missing:
                missing.remove(each)
            else:
                extra.append(each)
        for expected, actual in product(tuple(missing), tuple(extra)):
            is_alike = set(variables_in(expected[0])) == set(variables_in(actual[0])) and expected[1] == actual[1]
            if expected in missing and actual in extra and is_alike:
                missing.remove(expected)
                extra.remove(actual)
                old, new = self._words.expression(expected[0]), self._own(actual[0])
                yield Difference("filter", f"filters by {new} instead of {old}", old, new)
        for condition, _ in missing:
            text = self._words.expression(condition)
            yield Difference("missing_filter", f"lacks the filter {text}", text)
        for condition, _ in extra:
            text = self._own(condition)
            yield Difference("extra_filter", f"adds the filter {text}", None, text)

    def _columns(self, required_columns: Iterable[str] | None) -> Iterator[Difference]:
        if self._wanted.form != "SELECT" or self._given.form != "SELECT":
            return
        required = None if required_columns is None else {f"?{name.removeprefix('?')}" for name in required_columns}
        columns = [each for each in self._wanted.columns if required is None or each[0] in required]
        given = {self._names.get(name, name) for name, value in self._given.columns if value is None}
        computed = [renamed(value, self._names) for _, value in self._given.columns if value is not None]
        expected = [renamed(value, {}) for _, value in columns if value is not None]
        missing = [each for each in expected if each not in computed]
        extra = [each for each in computed if each not in expected]
        for place, expression in enumerate(missing):
            old = self._words.expression(expression)
            if place < len(extra):
                new = self._own(extra[place])
                yield Difference("aggregate", f"computes {new} instead of {old}", old, new)
            else:
                yield Difference("aggregate", f"does not compute {old}", old)
        for name, value in columns:
            if value is None and name not in given:
                yield Difference("columns", f"does not return {name}", name)

    def _groups(self) -> Iterator[Difference]:
        expected = {renamed(each, {}) for each in self._wanted.group}
        actual = {renamed(each, self._names) for each in self._given.group}
        if expected != actual:
            old = ", ".join(map(self._words.expression, self._wanted.group)) or None
            new = ", ".join(map(self._words.expression, self._given.group)) or None
            sentence = f"groups by {new or 'nothing'} instead of {old or 'nothing'}"
            yield Difference("aggregate", sentence, old, new)

    def _own(self, condition: Expression) -> str:
        return self._words.expression(renamed(condition, self._own_names))

    def _order(
        self, order: Iterable[tuple[str, Expression]], names: Mapping[str, str]
    ) -> tuple[tuple[str, Expression], ...]:
        return tuple((direction, renamed(value, names)) for direction, value in order)

    def _order_text(self, order: Iterable[tuple[str, Expression]]) -> str:
        return " ".join(f"{direction}({self._words.expression(value)})" for direction, value in order)


def _renamed(pattern: Pattern, names: Mapping[str, str]) -> Pattern:
    subject, predicate, object_ = (
        names.get(each, each) for each in (pattern.subject, pattern.predicate, pattern.object)
    )
    return Pattern(subject, predicate, object_, pattern.where)


def _is_variable(term: str) -> bool:
    return term.startswith("?")


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
    if any(map(_is_variable, ends)):
        return None
    if expected.predicate == RDF_TYPE:
        return "class"
    return "value" if all(end.startswith('"') for end in ends) else "entity"


def _turned(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    turned = Pattern(actual.object, actual.predicate, actual.subject, actual.where)
    return "direction" if turned == expected else None


def _inverse(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    """Compare patterns that go from one end to the other and back, which may mean the same."""
    is_back = (expected.subject, expected.object, expected.where) == (actual.object, actual.subject, actual.where)
    return "inverse" if is_back else None


def _other_group(expected: Pattern, actual: Pattern) -> DifferenceKind | None:
    return "group" if Pattern(actual.subject, actual.predicate, actual.object, expected.where) == expected else None


def _aligned(wanted: QueryForm, given: QueryForm) -> dict[str, str]:
    """Return for each variable of ``given`` the name that it has in ``wanted``, or one that is not in it.

    Variables are alike if their patterns are: the same predicate, the same or a similar other end, the same group.
    Names and the place among the columns decide between equals.
    """
    theirs, ours = _variables(wanted), _variables(given)
    likeness: dict[tuple[str, str], float] = {}
    left, right = {name: _ends(name, wanted) for name in theirs}, {name: _ends(name, given) for name in ours}
    columns = {name: at for at, (name, _) in enumerate(wanted.columns)}
    own_columns = {name: at for at, (name, _) in enumerate(given.columns)}
    bonus = {
        (one, other): 0.3 * (one == other)
        + 0.3 * ((one in columns) == (other in own_columns))
        + 0.1 * (one in columns and columns[one] == own_columns.get(other))
        for one, other in product(theirs, ours)
    }
    for _ in range(_ROUNDS):
        before, likeness = likeness, {}
        for one, other in product(theirs, ours):
            fits = sum(max((_likeness(end, each, before) for each in right[other]), default=0.0) for end in left[one])
            likeness[one, other] = fits / max(len(left[one]), len(right[other]), 1) + bonus[one, other]
    rows = [{at: likeness[one, other] for at, other in enumerate(ours)} for one in theirs]
    found = best_assignment(rows)
    names = {ours[at]: one for one, at in zip(theirs, found, strict=True) if at is not None}
    names |= {name: f"{name}'" for name in ours if name not in names}
    return _improved(names, wanted, given)


def _improved(names: dict[str, str], wanted: QueryForm, given: QueryForm) -> dict[str, str]:
    """Swap the names of two variables as long as more patterns are equal then."""
    patterns = Counter(wanted.patterns)

    def equal(tried: Mapping[str, str]) -> int:
        return (patterns & Counter(_renamed(each, tried) for each in given.patterns)).total()

    most = equal(names)
    is_better = most < min(len(wanted.patterns), len(given.patterns)) and len(names) <= _MOST_SWAPPED
    while is_better:
        is_better = False
        for one, other in combinations(names, 2):
            tried = names | {one: names[other], other: names[one]}
            if (number := equal(tried)) > most:
                names, most, is_better = tried, number, True
    return names


def _variables(form: QueryForm) -> list[str]:
    of_patterns = (term for each in form.patterns for term in (each.subject, each.predicate, each.object))
    names = dict.fromkeys(term for term in of_patterns if _is_variable(term))
    for condition, _ in form.filters:
        names.update(dict.fromkeys(variables_in(condition)))
    return list(names)


_End: TypeAlias = tuple[str, str, str, tuple[str, ...]]


def _ends(name: str, form: QueryForm) -> list[_End]:
    """Return the patterns of a variable: its place in them, the predicate, the other end and the group."""
    ends: list[_End] = []
    for each in form.patterns:
        if each.subject == name:
            ends.append(("subject", each.predicate, each.object, each.where))
        if each.object == name:
            ends.append(("object", each.predicate, each.subject, each.where))
        if each.predicate == name:
            ends.append(("predicate", "", each.object, each.where))
    return ends


def _likeness(one: _End, other: _End, before: Mapping[tuple[str, str], float]) -> float:
    if one[0] != other[0]:
        return 0.0
    worth = 2.0 * (one[1] == other[1]) + 0.2 * (one[3] == other[3])
    if one[2] == other[2]:
        return worth + 1.0
    return worth + min(before.get((one[2], other[2]), 0.0), 3.0) / 3.0
