"""Match the variables and groups of a query with those of the reference query, whatever their names."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from itertools import chain, combinations, product
from typing import TypeAlias

from graphrag_eval_lc.graph.query_expressions import Expression, is_variable, renamed, variables_in
from graphrag_eval_lc.graph.query_forms import Pattern, QueryForm, Where, kinds_of
from graphrag_eval_lc.matching.assignment import best_assignment

_ROUNDS = 6
_MOST_ROUNDS = 50  # so far two variables can look alike
_MOST_SWAPPED = 40  # of more variables all pairs take too long
_End: TypeAlias = tuple[str, str, str, Where]


def aligned(wanted: QueryForm, given: QueryForm) -> tuple[dict[str, str], QueryForm]:
    """Align a query with the reference query.

    Returns:
        For each variable of ``given``, its name in ``wanted``, or a name that ``wanted`` lacks; and ``given`` with the
        group names of ``wanted``, but its original variable names.
    """
    names = _aligned_variables(wanted, given)
    groups = _aligned_groups(wanted, given, names)
    return names, _with_groups(given, groups)


def with_names(pattern: Pattern, names: Mapping[str, str]) -> Pattern:
    """Return a pattern with other names of variables."""
    subject, predicate, object_ = (
        names.get(each, each) for each in (pattern.subject, pattern.predicate, pattern.object)
    )
    return Pattern(subject, predicate, object_, with_names_of_graphs(pattern.where, names))


def with_names_of_graphs(where: Where, names: Mapping[str, str]) -> Where:
    """Return groups with other names of variables, such as of ``GRAPH ?g``."""
    parts = (group.partition(" ") for group in where)
    return tuple(f"{kind}{space}{names.get(term, term)}" for kind, space, term in parts)


def _aligned_variables(wanted: QueryForm, given: QueryForm) -> dict[str, str]:
    """Align variables: two variables are alike if their patterns are alike.

    A pattern is like another one if it has the same predicate, the same or a similar other end and the same group.
    Names and column positions break ties.
    """
    theirs, ours = _variables(wanted), _variables(given)
    left, right = {name: _ends(name, wanted) for name in theirs}, {name: _ends(name, given) for name in ours}
    bonus = _bonus(wanted, given, _radius(left, right))
    likeness: dict[tuple[str, str], float] = {}
    for _ in range(_ROUNDS):
        before, likeness = likeness, {}
        for one, other in product(theirs, ours):
            fits = sum(max((_likeness(end, each, before) for each in right[other]), default=0.0) for end in left[one])
            likeness[one, other] = fits / max(len(left[one]), len(right[other]), 1) + bonus(one, other)
    rows = [{at: likeness[one, other] for at, other in enumerate(ours)} for one in theirs]
    assigned = [(one, ours[at]) for one, at in zip(theirs, best_assignment(rows), strict=True) if at is not None]
    attempts = []
    for pairs in (assigned, list(_along_patterns(likeness, left, right))):
        names = {other: one for one, other in pairs}
        attempts.append(names | {name: f"{name}'" for name in ours if name not in names})
    equal = _equal_patterns(wanted, given)
    return _improved(max(attempts, key=equal), wanted, given, equal)


def _along_patterns(
    likeness: Mapping[tuple[str, str], float], left: Mapping[str, list[_End]], right: Mapping[str, list[_End]]
) -> Iterator[tuple[str, str]]:
    """Yield pairs of variables: the most alike first, followed by those at the other ends of their patterns.

    If parts of a query look the same, this keeps the variables of one part together.
    """
    worth = dict(likeness)
    heap = [(-value, pair) for pair, value in worth.items()]
    heapify(heap)
    done: set[tuple[bool, str]] = set()
    while heap:
        value, (one, other) = heappop(heap)
        if {(True, one), (False, other)} & done or -value < worth[one, other]:
            continue
        done |= {(True, one), (False, other)}
        yield one, other
        for end, its in product(left[one], right[other]):
            pair = end[2], its[2]
            if pair in worth and (*end[:2], end[3]) == (*its[:2], its[3]):
                worth[pair] += 1.0
                heappush(heap, (-worth[pair], pair))


def _bonus(wanted: QueryForm, given: QueryForm, radius: Callable[[str, str], int]) -> Callable[[str, str], float]:
    columns, own_columns = (
        {value if is_variable(value) else name: at for at, (name, value) in enumerate(form.select.columns)}
        for form in (wanted, given)
    )

    def bonus(one: str, other: str) -> float:
        agreements = (
            (0.3, one == other),
            (0.3, (one in columns) == (other in own_columns)),
            (0.1, one in columns and columns[one] == own_columns.get(other)),
            (0.1, _is_inside_path(one) == _is_inside_path(other)),
        )
        return sum(worth for worth, agrees in agreements if agrees) + 0.1 * radius(one, other)

    return bonus


def _radius(left: Mapping[str, Sequence[_End]], right: Mapping[str, Sequence[_End]]) -> Callable[[str, str], int]:
    """Return a function of two variables: within how many steps around them all patterns are equal."""
    colours: list[dict[tuple[bool, str], int]] = [
        {(is_left, name): 0 for is_left, ends in ((True, left), (False, right)) for name in ends}
    ]
    for _ in range(_MOST_ROUNDS):
        last = colours[-1]

        def colour(is_left: bool, ends: Sequence[_End], last: Mapping[tuple[bool, str], int] = last) -> int:
            around = ((part, name, str(last.get((is_left, end), end)), where) for part, name, end, where in ends)
            return hash(tuple(sorted(around)))

        sides = ((True, left), (False, right))
        colours.append({(side, name): colour(side, ends) for side, each in sides for name, ends in each.items()})
        if len(set(colours[-1].values())) == len(set(last.values())):
            break

    def radius(one: str, other: str) -> int:
        rounds = (at for at, colour in enumerate(colours) if colour[True, one] != colour[False, other])
        return next(rounds, len(colours)) - 1

    return radius


def _equal_patterns(wanted: QueryForm, given: QueryForm) -> Callable[[Mapping[str, str]], tuple[int, int]]:
    """Return a function of names that counts the patterns that are equal with them, and the names of the same kind."""
    patterns = Counter(map(_without_numbers, wanted.patterns))
    own = list(map(_without_numbers, given.patterns))

    def equal(names: Mapping[str, str]) -> tuple[int, int]:
        alike = (patterns & Counter(with_names(each, names) for each in own)).total()
        return alike, sum(_is_inside_path(one) == _is_inside_path(names[one]) for one in names)

    return equal


def _improved(
    names: dict[str, str],
    wanted: QueryForm,
    given: QueryForm,
    equal: Callable[[Mapping[str, str]], tuple[int, int]],
) -> dict[str, str]:
    """Swap the names of two variables as long as that makes more patterns equal."""
    most = equal(names)
    is_better = most[0] < min(len(wanted.patterns), len(given.patterns)) and len(names) <= _MOST_SWAPPED
    while is_better:
        is_better = False
        for one, other in combinations(names, 2):
            tried = names | {one: names[other], other: names[one]}
            if (number := equal(tried)) > most:
                names, most, is_better = tried, number, True
    return names


def _is_inside_path(name: str) -> bool:
    return name.startswith("?·")


def _without_numbers(pattern: Pattern) -> Pattern:
    return replace(pattern, where=kinds_of(pattern.where))


def _variables(form: QueryForm) -> list[str]:
    of_patterns = (term for each in form.patterns for term in (each.subject, each.predicate, each.object))
    others: list[Expression] = [condition for condition, _ in form.filters]
    for each in form.selects:
        others += [name if value is None else value for name, value in each.columns]
        others += [*each.group, *(value for _, value in each.order)]
    names = dict.fromkeys(term for term in of_patterns if is_variable(term))
    return list(names | dict.fromkeys(chain.from_iterable(map(variables_in, others))))


def _ends(name: str, form: QueryForm) -> list[_End]:
    """Return the patterns of a variable: its place in them, the predicate, the other end and the kinds of groups."""
    ends: list[_End] = []
    for each in form.patterns:
        where = kinds_of(each.where)
        if each.subject == name:
            ends.append(("subject", each.predicate, each.object, where))
        if each.object == name:
            ends.append(("object", each.predicate, each.subject, where))
        if each.predicate == name:
            ends.append(("predicate", "", each.object, where))
    return ends


def _likeness(one: _End, other: _End, before: Mapping[tuple[str, str], float]) -> float:
    if one[0] != other[0]:
        return 0.0
    worth = 2.0 * (one[1] == other[1]) + 0.2 * (one[3] == other[3])
    if one[2] == other[2]:
        return worth + 1.0
    return worth + min(before.get((one[2], other[2]), 0.0), 3.0) / 3.0


def _aligned_groups(wanted: QueryForm, given: QueryForm, names: Mapping[str, str]) -> dict[str, str]:
    """Return for each numbered group of ``given`` the group of the same kind in ``wanted`` that shares most with it."""
    theirs, ours = _contents(wanted, {}), _contents(given, names)
    found: dict[str, str] = {}
    for kind in {kinds_of((group,))[0] for group in ours}:
        left, right = ([name for name in each if kinds_of((name,)) == (kind,)] for each in (theirs, ours))
        rows = [
            {at: (theirs[one] & ours[other]).total() + 0.1 / (1 + abs(place - at)) for at, other in enumerate(right)}
            for place, one in enumerate(left)
        ]
        found |= (
            {right[at]: one for one, at in zip(left, best_assignment(rows), strict=True) if at is not None}
            if rows
            else {}
        )
    return {group: found.get(group, f"{kinds_of((group,))[0]} 0{group.rsplit(' ', 1)[1]}") for group in ours}


def _contents(form: QueryForm, names: Mapping[str, str]) -> dict[str, Counter[object]]:
    """Return what is in each numbered group."""
    contents: dict[str, Counter[object]] = {}
    items: Iterable[tuple[object, Where]] = (
        *((replace(with_names(each, names), where=kinds_of(each.where)), each.where) for each in form.patterns),
        *((renamed(condition, names), where) for condition, where in form.filters),
        *((each, each.where) for each in form.selects),
    )
    for item, where in items:
        for group in where:
            if kinds_of((group,)) != (group,):
                contents.setdefault(group, Counter())[item] += 1
    return contents


def _with_groups(form: QueryForm, groups: Mapping[str, str]) -> QueryForm:
    def moved(where: Where) -> Where:
        return tuple(groups.get(each, each) for each in where)

    return replace(
        form,
        patterns=tuple(replace(each, where=moved(each.where)) for each in form.patterns),
        filters=tuple((condition, moved(where)) for condition, where in form.filters),
        selects=tuple(replace(each, where=moved(each.where)) for each in form.selects),
    )
