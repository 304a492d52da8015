"""Read a SPARQL query into a normal form, in which two spellings of the same query are equal. Needs rdflib.

Prefixes are expanded; sequences and inverses of paths become patterns; blank nodes are variables; filters are split at
``&&``; what is computed replaces its name. ``with_listed_values`` also replaces variables that may only have listed
values.
"""

import logging
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import chain, count
from typing import Any, TypeAlias

from rdflib.paths import InvPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translateGroupGraphPattern, translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from graphrag_eval_lc.graph.query_expressions import (
    Expression,
    conjuncts,
    is_variable,
    listed_values,
    path_text,
    read_expression,
    renamed,
    term_text,
    variables_in,
)
from graphrag_eval_lc.graph.query_text import (
    MARK,
    STANDARD_PREFIXES,
    declared_prefixes,
    expanded,
    is_too_large,
    with_marks,
)

Where: TypeAlias = tuple[str, ...]
"""The groups around a part of a query, outermost first: "optional 1", "minus 2", "exists 3", "not exists 4",
"union 5/1/2" (the first of two branches), "subquery 6", "graph <g>" or "service <s>". Numbers distinguish groups."""

_NUMBERED = ("optional", "minus", "exists", "not exists", "union", "subquery")
_AGGREGATES = {"GROUPCONCAT": "GROUP_CONCAT"}
_PARSER = threading.Lock()  # pyparsing's cache is shared by all threads
_EXISTS = {"Builtin_EXISTS": "exists", "Builtin_NOTEXISTS": "not exists"}
_RDFLIB_LOG = logging.getLogger("rdflib.term")


class UnreadableQueryError(ValueError):
    """It is not a SPARQL query, or one that updates."""


class TooLargeQueryError(UnreadableQueryError):
    """The query is too large to be read and compared."""


@dataclass(frozen=True, order=True)
class Pattern:
    """A triple pattern, and its place.

    Attributes:
        subject: A term; "{<a> <b>}" if it may only be one of these.
        predicate: A term or a path that cannot be unfolded, such as "<p>*".
        object: Like the subject.
        where: The groups around it.
    """

    subject: str
    predicate: str
    object: str
    where: Where = ()


@dataclass(frozen=True)
class Select:
    """The columns and modifiers of a query or of a subquery.

    Attributes:
        where: The groups around its patterns; its own is the last one of a subquery.
        columns: Variables, with the expression, or the other variable, if they are computed. Terms of a DESCRIBE.
        distinct: DISTINCT or REDUCED.
        order: Direction (ASC, DESC) and expression.
        group: GROUP BY.
        limit: LIMIT.
        offset: OFFSET; 0 if there is none.
    """

    where: Where = ()
    columns: tuple[tuple[str, Expression | None], ...] = ()
    distinct: bool = False
    order: tuple[tuple[str, Expression], ...] = ()
    group: tuple[Expression, ...] = ()
    limit: int | None = None
    offset: int = 0


@dataclass(frozen=True)
class QueryForm:
    """A query in one form.

    Attributes:
        form: SELECT, ASK, CONSTRUCT or DESCRIBE.
        patterns: The triple patterns, in the order of the query.
        filters: Conditions, each with the groups around it. Bindings are ("bind", variable, expression).
        selects: The columns and modifiers of the query, and then of its subqueries.
    """

    form: str
    patterns: tuple[Pattern, ...] = ()
    filters: tuple[tuple[Expression, Where], ...] = ()
    selects: tuple[Select, ...] = (Select(),)

    @property
    def select(self) -> Select:
        """The columns and modifiers of the query itself."""
        return self.selects[0]


def kinds_of(where: Where) -> Where:
    """Return groups without the numbers that distinguish them.

    Example:
        >>> kinds_of(("optional 1", "not exists 2", "graph <urn:g>"))
        ('optional', 'not exists', 'graph <urn:g>')
    """
    return tuple(kind if (kind := each.rsplit(" ", 1)[0]) in _NUMBERED else each for each in where)


def read_query(query: str, prefixes: Mapping[str, str] | None = None) -> QueryForm:
    """Read a query.

    Args:
        query: SPARQL 1.1: SELECT, ASK, CONSTRUCT or DESCRIBE.
        prefixes: Those that the endpoint knows without a declaration.

    Raises:
        TooLargeQueryError: Reading or comparing it could take longer than a few seconds.
        UnreadableQueryError: It is not such a query; the text says at which place it breaks off.

    Example:
        >>> one = read_query("SELECT ?n {?l a <urn:Line>; <urn:from>/<urn:name> ?n FILTER(?n > 3 && ?n != 5)}")
        >>> other = read_query("SELECT ?n {?l a <urn:Line>; <urn:from> [<urn:name> ?n] FILTER(5 != ?n) FILTER(3 < ?n)}")
        >>> len(one.patterns), len(one.filters), len(other.patterns), len(other.filters)
        (3, 2, 3, 2)
    """
    if is_too_large(query):
        raise TooLargeQueryError("it is too large to be read")
    # rdflib knows one prefix for a namespace only, so all are expanded.
    text = expanded(query, STANDARD_PREFIXES | dict(prefixes or {}) | declared_prefixes(query))
    shape, terms = with_marks(text)
    try:
        form: QueryForm = _with_terms(_form_of(shape), terms)
    except TooLargeQueryError:
        raise
    except UnreadableQueryError:
        return _form_of(text)  # which names the place
    return form


@lru_cache(maxsize=1024)
def _form_of(query: str) -> QueryForm:
    """Parse a query in about 15 ms; the cache is shared by queries that differ only in IRIs and texts."""
    try:
        with _PARSER:
            _RDFLIB_LOG.disabled = True  # it logs a traceback for each literal that does not fit its datatype
            try:
                return _Reader().form(translateQuery(parseQuery(query)).algebra)
            finally:
                _RDFLIB_LOG.disabled = False
    except RecursionError as problem:
        raise TooLargeQueryError("it is too large to be read") from problem
    except Exception as problem:  # rdflib and pyparsing raise many kinds, of which Exception itself is one
        if "recursion depth" in str(problem):
            raise TooLargeQueryError("it is too large to be read") from problem
        raise UnreadableQueryError(str(problem)) from problem


def _with_terms(part: Any, terms: Mapping[str, str]) -> Any:
    """Return a form, or a part of it, with terms in place of their marks."""
    if isinstance(part, str):
        is_typed = "^^" in part or "\\" in part  # such a literal has no marks
        return part if is_typed else MARK.sub(lambda mark: terms[mark[0]], part)
    if isinstance(part, tuple):
        return tuple(_with_terms(each, terms) for each in part)
    if not isinstance(part, QueryForm | Pattern | Select):
        return part
    return type(part)(*(_with_terms(getattr(part, each.name), terms) for each in fields(part)))


class _Reader:
    """Collects what is in the algebra of one query."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._patterns: list[Pattern] = []
        self._filters: list[tuple[Expression, Where]] = []
        self._selects: list[Select] = []
        self._aggregates: dict[str, Expression] = {}
        self._computed: dict[str, Expression] = {}
        self._groups: list[Expression] = []

    def form(self, algebra: Any) -> QueryForm:
        """Read the algebra of a whole query."""
        form = {"SelectQuery": "SELECT", "AskQuery": "ASK", "ConstructQuery": "CONSTRUCT"}.get(algebra.name, "DESCRIBE")
        self._select(algebra.p, ())
        if form == "DESCRIBE":
            terms = tuple((term_text(term), None) for term in algebra.PV or ())
            self._selects[0] = replace(self._selects[0], columns=terms)
        elif form != "SELECT":
            self._selects[0] = replace(self._selects[0], columns=())
        joined = {term for each in self._patterns for term in (each.subject, each.predicate, each.object)}
        shown = _resolved({name: value for name, value in self._computed.items() if name not in joined})
        filters = [
            (part, where)
            for condition, where in self._filters
            if condition[:1] != ("bind",) or where or condition[1] not in shown
            for part in conjuncts(_with_computed(condition, shown))
        ]
        selects = tuple(
            replace(
                each,
                columns=tuple((name, shown.get(name, value)) for name, value in each.columns),
                order=tuple((direction, renamed(value, shown)) for direction, value in each.order),
                group=tuple(renamed(value, shown) for value in each.group),
            )
            for each in self._selects
        )
        return QueryForm(form, tuple(self._patterns), tuple(filters), selects)

    def _select(self, node: Any, where: Where) -> None:
        """Read the modifiers of a query or subquery, then the groups below them."""
        at = len(self._selects)
        self._selects.append(Select(where))
        found: dict[str, Any] = {}
        computed: dict[str, Any] = {}
        having: list[Any] = []
        while node is not None:
            if node.name == "Slice":
                found |= {"limit": node.length, "offset": node.start or 0}
            elif node.name in ("Distinct", "Reduced"):
                found["distinct"] = True
            elif node.name == "Project":
                found["columns"] = [term_text(variable) for variable in node.PV]
            elif node.name == "OrderBy":
                found["order"] = [(each.order or "ASC", each.expr) for each in node.expr]
            elif node.name == "Extend":
                computed[term_text(node.var)] = node.expr
            elif node.name == "Filter":
                below = node.p
                while below is not None and below.name == "Extend":
                    below = below.p
                if below is None or below.name not in ("AggregateJoin", "Group"):
                    break
                having.append(node.expr)  # as below it are only computed columns and groups
            else:
                break
            node = node.p
        outer = self._groups, self._aggregates
        self._groups, self._aggregates = [], {}  # rdflib numbers the aggregates of each subquery from 1
        if node is not None:
            self._read(node, where)
        values = {name: value for name, raw in computed.items() if (value := self._expression(raw)) != name}
        self._computed |= values
        columns = tuple((name, values.get(name)) for name in found.pop("columns", ()))
        shown = {name for name, _ in columns}
        self._filters += ((("bind", name, value), where) for name, value in values.items() if name not in shown)
        self._filters += ((self._expression(raw), where) for raw in having)
        order = tuple((direction, self._expression(raw)) for direction, raw in found.pop("order", ()))
        self._selects[at] = Select(where, columns, order=order, group=tuple(self._groups), **found)
        self._groups, self._aggregates = outer

    def _read(self, node: Any, where: Where) -> None:
        """Read a group of the algebra into patterns and filters."""
        match node.name:
            case "BGP" | "TriplesBlock":
                for subject, predicate, object_ in node.triples or ():
                    self._unfold(term_text(subject), predicate, term_text(object_), where)
            case "Join":
                self._read(node.p1, where)
                self._read(node.p2, where)
            case "LeftJoin":
                self._read(node.p1, where)
                optional = self._inside(where, "optional")
                self._read(node.p2, optional)
                if node.expr is not None and not (isinstance(node.expr, CompValue) and node.expr.name == "TrueFilter"):
                    self._condition(node.expr, optional)
            case "Union":
                number, branches = next(self._numbers), list(_branches(node))
                for at, branch in enumerate(branches, 1):
                    self._read(branch, (*where, f"union {number}/{at}/{len(branches)}"))
            case "Minus":
                self._read(node.p1, where)
                self._read(node.p2, self._inside(where, "minus"))
            case "Filter":
                self._read(node.p, where)
                self._condition(node.expr, where)
            case "Extend":
                self._read(node.p, where)  # first, as it says what the names of aggregates stand for
                name, value = term_text(node.var), self._expression(node.expr)
                if value != name:
                    self._filters.append((("bind", name, value), where))
                    if not where:
                        self._computed[name] = value
            case "Graph":
                self._read(node.p, (*where, f"graph {term_text(node.term)}"))
            case "ServiceGraphPattern":
                self._read(translateGroupGraphPattern(node.graph), (*where, f"service {term_text(node.term)}"))
            case "ToMultiSet":
                self._rows_or_subquery(node.p, where)
            case "values":
                self._rows_or_subquery(node, where)
            case "Group":
                self._groups += [self._expression(each) for each in node.expr or ()]
                self._read(node.p, where)
            case "AggregateJoin":
                for each in node.A:
                    name = each.name.removeprefix("Aggregate_").upper()
                    operand: Expression = "*" if each.vars == "*" else self._expression(each.vars)
                    words = (_AGGREGATES.get(name, name), *(("DISTINCT",) if each.distinct else ()), operand)
                    if each.separator is not None:
                        words = (*words, f"separator={term_text(each.separator)}")
                    self._aggregates[term_text(each.res)] = operand if name == "SAMPLE" else words
                self._read(node.p, where)
            case "Project" | "Slice" | "Distinct" | "Reduced" | "OrderBy":
                self._select(node, self._inside(where, "subquery"))
            case _ if node.p is not None:
                self._read(node.p, where)

    def _inside(self, where: Where, kind: str) -> Where:
        return (*where, f"{kind} {next(self._numbers)}")

    def _rows_or_subquery(self, node: Any, where: Where) -> None:
        if node.name != "values":
            self._select(node, self._inside(where, "subquery"))
            return
        names = sorted({name for row in node.res for name in row})
        rows = sorted(tuple(term_text(row.get(name, "UNDEF")) for name in names) for row in node.res)
        if len(names) == 1:
            self._filters.append((("in", term_text(names[0]), *(row[0] for row in rows)), where))
        else:
            head = tuple(term_text(name) for name in names)
            self._filters.append((("values", head, *rows), where))

    def _condition(self, expression: Any, where: Where) -> None:
        """Read a filter; what (NOT) EXISTS asks for is a group of patterns."""
        name = expression.name if isinstance(expression, CompValue) else ""
        if name == "ConditionalAndExpression":
            for each in (expression.expr, *expression.other):
                self._condition(each, where)
        elif name in _EXISTS:
            self._group_of(expression.graph, self._inside(where, _EXISTS[name]))
        elif name == "UnaryNot" and getattr(expression.expr, "name", "") in _EXISTS:
            is_negated = expression.expr.name == "Builtin_EXISTS"
            self._group_of(expression.expr.graph, self._inside(where, "not exists" if is_negated else "exists"))
        else:
            self._filters.append((self._expression(expression), where))

    def _group_of(self, graph: Any, where: Where) -> None:
        is_raw = graph.name.startswith("GroupGraphPattern")
        self._read(translateGroupGraphPattern(graph) if is_raw else graph, where)

    def _unfold(self, subject: str, predicate: Any, object_: str, where: Where) -> None:
        """Add a pattern, or several if its predicate is a sequence or an inverse."""
        if isinstance(predicate, SequencePath):
            ends = [subject, *(f"?·{next(self._numbers)}" for _ in predicate.args[1:]), object_]
            for at, part in enumerate(predicate.args):
                self._unfold(ends[at], part, ends[at + 1], where)
        elif isinstance(predicate, InvPath):
            self._unfold(object_, predicate.arg, subject, where)
        else:
            text = path_text(predicate) if isinstance(predicate, Path) else term_text(predicate)
            self._patterns.append(Pattern(subject, text, object_, where))

    def _expression(self, raw: Any) -> Expression:
        return read_expression(raw, self._aggregates)


def _branches(node: Any) -> Iterator[Any]:
    """Yield the branches of a UNION of any number of groups."""
    if node.name == "Union":
        yield from _branches(node.p1)
        yield from _branches(node.p2)
    else:
        yield node


def _resolved(computed: Mapping[str, Expression]) -> dict[str, Expression]:
    """Return the computed values with other computed values inserted for their names; circular ones are left out."""
    resolved: dict[str, Expression] = {}
    for name, value in computed.items():
        made = renamed(value, resolved)
        if name not in variables_in(made):
            resolved = {each: renamed(old, {name: made}) for each, old in resolved.items()} | {name: made}
    return resolved


def _with_computed(condition: Expression, computed: Mapping[str, Expression]) -> Expression:
    if condition[:1] == ("bind",):
        return ("bind", condition[1], renamed(condition[2], computed))
    return renamed(condition, computed) if computed else condition


def with_listed_values(form: QueryForm) -> QueryForm:
    """Replace variables that may only have listed values (``VALUES``, ``IN``, ``=``), if nothing else needs them.

    Example:
        >>> with_listed_values(read_query("ASK { VALUES ?k { <urn:a> <urn:b> } ?x a ?k }")).patterns[0].object
        '{<urn:a> <urn:b>}'
    """
    conditions = [condition for condition, where in form.filters if not where]
    listed = {found[0]: found[1] for condition in conditions if (found := listed_values(condition))}
    needed: Sequence[Iterable[str]] = [
        (name for name, value in form.select.columns if value is None and len(listed.get(name, ())) > 1),
        *(variables_in(value) for each in form.selects for _, value in each.columns if value is not None),
        *(variables_in(value) for each in form.selects for _, value in each.order),
        *(variables_in(value) for each in form.selects for value in each.group),
        *(variables_in(condition) for condition, where in form.filters if where or listed_values(condition) is None),
    ]
    unchanged = set(chain.from_iterable(needed))
    unchanged |= {term for each in form.patterns if each.where for term in (each.subject, each.object)}
    several = Counter(found[0] for condition in conditions if (found := listed_values(condition)))
    unchanged |= {name for name, number in several.items() if number > 1}
    listed = {name: values for name, values in listed.items() if name not in unchanged}
    if not listed:
        return form
    text = {name: values[0] if len(values) == 1 else f"{{{' '.join(values)}}}" for name, values in listed.items()}
    patterns = tuple(
        replace(each, subject=text.get(each.subject, each.subject), object=text.get(each.object, each.object))
        for each in form.patterns
    )
    filters = tuple(
        (condition, where)
        for condition, where in form.filters
        if where or (found := listed_values(condition)) is None or found[0] not in listed
    )
    return replace(form, patterns=patterns, filters=filters)


def with_merged_branches(form: QueryForm) -> QueryForm:
    """Replace a UNION of patterns that differ in one constant by one pattern.

    Example:
        >>> form = with_merged_branches(read_query("ASK { { ?x a <urn:a> } UNION { ?x a <urn:b> } }"))
        >>> form.patterns[0].object, form.patterns[0].where
        ('{<urn:a> <urn:b>}', ())
    """
    branches: dict[Where, list[Pattern]] = {}
    for pattern in form.patterns:
        if pattern.where and pattern.where[-1].startswith("union "):
            branches.setdefault((*pattern.where[:-1], pattern.where[-1].split("/")[0]), []).append(pattern)
    others = [where for _, where in form.filters] + [each.where for each in form.selects]
    others += [each.where for each in form.patterns]
    for union, patterns in branches.items():
        wheres = {each.where for each in patterns}
        is_whole = len(wheres) == len(patterns) == int(patterns[0].where[-1].rsplit("/", 1)[1])
        has_more = sum(where[: len(union)] in wheres for where in others) > len(patterns)
        merged = _merged(patterns, union[:-1]) if is_whole and not has_more else None
        if merged is not None:
            kept = tuple(each for each in form.patterns if each not in patterns[1:])
            form = replace(form, patterns=tuple(merged if each == patterns[0] else each for each in kept))
    return form


def _merged(patterns: Sequence[Pattern], where: Where) -> Pattern | None:
    """Return one pattern for some that differ in one constant end, or in path and direction; None for others."""
    subjects, predicates, objects = (
        sorted({getattr(each, part) for each in patterns}) for part in ("subject", "predicate", "object")
    )
    if len(subjects) == len(predicates) == 1 and len(objects) > 1 and not any(map(is_variable, objects)):
        return replace(patterns[0], object=f"{{{' '.join(objects)}}}", where=where)
    if any(map(is_variable, predicates)) or len({frozenset((each.subject, each.object)) for each in patterns}) > 1:
        return None
    first = patterns[0]
    paths = {f"{'' if each.subject == first.subject else '^'}{each.predicate}" for each in patterns}
    return replace(first, predicate=f"({'|'.join(sorted(paths))})", where=where) if len(paths) > 1 else None
