"""Read a SPARQL query into one form, in which two spellings of the same query are equal. It needs rdflib.

Prefixes are expanded; sequences and inverses of paths become patterns; blank nodes are variables; filters are split at
``&&``. ``with_listed_values`` also replaces variables that may only have listed values.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, count
from typing import Any, TypeAlias

from rdflib.paths import AlternativePath, InvPath, MulPath, NegatedPath, Path, SequencePath
from rdflib.plugins.sparql.algebra import translateGroupGraphPattern, translateQuery
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.term import BNode, Identifier, Literal, URIRef, Variable

Expression: TypeAlias = str | tuple["Expression", ...]
"""A term ("?x", "<iri>", '"text"'), or an operator and its operands."""

STANDARD_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
UNDECLARED = "prefix:"
"""What the IRI of a name begins with whose prefix nobody declares."""
RDF_TYPE = f"<{STANDARD_PREFIXES['rdf']}type>"
_XSD_STRING = f"^^<{STANDARD_PREFIXES['xsd']}string>"
_DECLARATION = re.compile(r"(?i)\bPREFIX\s+((?:[\w][\w.-]*)?):\s*<([^<>\"{}|^`\\\s]*)>")
_FULL_IRI = re.compile(r"<([^<>\s]*[#/])([\w.-]+)>")
_NAME_CHARACTER = r"(?:[\w-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])"
PREFIXED_NAME = re.compile(
    rf"(?<![\w?$@:.-])((?:[A-Za-z][\w.-]*)?):((?:{_NAME_CHARACTER}(?:[.:]*{_NAME_CHARACTER})*)?)"
)
NO_NAMES = re.compile(
    r"#[^\n]*|<[^<>\s]*>|\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
"""Comments, IRIs and texts of a query, in which no prefixed name is one."""
_ESCAPE = re.compile(r"\\([_~.\-!$&'()*+,;=/?#@%])")
_COMMUTATIVE = ("=", "!=", "+", "*", "&&", "||", "in", "not in")
_PARSER = threading.Lock()  # pyparsing keeps what it has parsed in one place for all threads
_EXISTS = {"Builtin_EXISTS": "exists", "Builtin_NOTEXISTS": "not exists"}


class UnreadableQueryError(ValueError):
    """It is not a SPARQL query, or one that updates."""


@dataclass(frozen=True, order=True)
class Pattern:
    """A triple pattern, and where it is.

    Attributes:
        subject: A term; "{<a> <b>}" if it may only be one of these.
        predicate: A term or a path that cannot be unfolded, such as "<p>*".
        object: Like the subject.
        where: The groups around it, outermost first: "optional", "minus", "exists", "not exists", "union", "graph <g>",
            "service <s>", "subquery".
    """

    subject: str
    predicate: str
    object: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryForm:
    """A query in one form.

    Attributes:
        form: SELECT, ASK, CONSTRUCT or DESCRIBE.
        patterns: The triple patterns, in the order of the query.
        filters: Conditions, each with the groups around it. Bindings are ("bind", variable, expression).
        columns: What a SELECT returns: variables, with the expression if they are computed. Terms of a DESCRIBE.
        distinct: DISTINCT or REDUCED.
        order: Direction (ASC, DESC) and expression.
        group: GROUP BY.
        limit: LIMIT.
        offset: OFFSET; 0 if there is none.
    """

    form: str
    patterns: tuple[Pattern, ...] = ()
    filters: tuple[tuple[Expression, tuple[str, ...]], ...] = ()
    columns: tuple[tuple[str, Expression | None], ...] = ()
    distinct: bool = False
    order: tuple[tuple[str, Expression], ...] = ()
    group: tuple[Expression, ...] = ()
    limit: int | None = None
    offset: int = 0


def declared_prefixes(query: str) -> dict[str, str]:
    """Return the prefixes that a query declares.

    Example:
        >>> declared_prefixes("PREFIX cim: <https://cim.ucaiug.io/ns#> SELECT * {?x a cim:Line}")
        {'cim': 'https://cim.ucaiug.io/ns#'}
    """
    return dict(_DECLARATION.findall(_without_comments(query)))


@lru_cache(maxsize=1024)
def _form_of(query: str, prefixes: tuple[tuple[str, str], ...]) -> QueryForm:
    """Read a query. Prefixes are expanded before rdflib parses it, as it knows one prefix for a namespace only."""
    try:
        with _PARSER:
            return _Reader().whole(translateQuery(parseQuery(_expanded(query, dict(prefixes)))).algebra)
    except Exception as problem:  # rdflib and pyparsing raise many kinds, of which Exception itself is one
        raise UnreadableQueryError(str(problem)) from problem


def _expanded(query: str, prefixes: Mapping[str, str]) -> str:
    """Return a query with full IRIs; one whose prefix nobody declares begins with ``UNDECLARED``."""

    def iri(name: re.Match[str]) -> str:
        namespace = prefixes.get(name[1], f"{UNDECLARED}{name[1]}:")
        local = _ESCAPE.sub(r"\1", name[2])
        return f"<{namespace}{local}>"

    return outside_texts(_DECLARATION.sub(" ", _without_comments(query)), lambda part: PREFIXED_NAME.sub(iri, part))


def outside_texts(query: str, change: Callable[[str], str]) -> str:
    """Return a query whose parts outside of comments, IRIs and texts are changed by a function."""
    parts: list[str] = []
    end = 0
    for opaque in NO_NAMES.finditer(query):
        parts += (change(query[end : opaque.start()]), opaque[0])
        end = opaque.end()
    return "".join((*parts, change(query[end:])))


def _without_comments(query: str) -> str:
    """Return a query without comments; a # in an IRI or a text begins none."""
    return NO_NAMES.sub(lambda found: " " if found[0].startswith("#") else found[0], query)


def inferred_prefixes(query: str, other: str) -> dict[str, str]:
    """Return prefixes that a query uses without a declaration, as the IRIs of another query show them.

    Example:
        >>> inferred_prefixes("SELECT * {?x a cim:Line}", "SELECT * {?y a <https://cim.ucaiug.io/ns#Line>}")
        {'cim': 'https://cim.ucaiug.io/ns#'}
    """
    declared = declared_prefixes(query)
    namespaces = {local: namespace for namespace, local in _FULL_IRI.findall(other)}
    used = (found for found in PREFIXED_NAME.findall(NO_NAMES.sub(" ", query)) if found[0] not in declared)
    return {prefix: namespaces[local] for prefix, local in used if local in namespaces}


def read_query(query: str, prefixes: Mapping[str, str] | None = None) -> QueryForm:
    """Read a query.

    Args:
        query: SPARQL 1.1: SELECT, ASK, CONSTRUCT or DESCRIBE.
        prefixes: Those that the endpoint knows without a declaration.

    Raises:
        UnreadableQueryError: It is not such a query; the text says where it breaks off.

    Example:
        >>> one = read_query("SELECT ?n {?l a <urn:Line>; <urn:from>/<urn:name> ?n FILTER(?n > 3 && ?n != 5)}")
        >>> other = read_query("SELECT ?n {?l a <urn:Line>; <urn:from> [<urn:name> ?n] FILTER(5 != ?n) FILTER(3 < ?n)}")
        >>> len(one.patterns), len(one.filters), len(other.patterns), len(other.filters)
        (3, 2, 3, 2)
    """
    known = STANDARD_PREFIXES | dict(prefixes or {}) | declared_prefixes(query)
    return _form_of(query, tuple(sorted(known.items())))


class _Reader:
    """Collects what is in the algebra of one query."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._patterns: list[Pattern] = []
        self._filters: list[tuple[Expression, tuple[str, ...]]] = []
        self._aggregates: dict[str, Expression] = {}
        self._group: list[Expression] = []

    def whole(self, algebra: Any) -> QueryForm:
        """Read the algebra from the top: the modifiers, then the groups below them."""
        form = {"SelectQuery": "SELECT", "AskQuery": "ASK", "ConstructQuery": "CONSTRUCT"}.get(algebra.name, "DESCRIBE")
        node, distinct, order = algebra.p, False, []
        limit: int | None = None
        offset = 0
        columns: list[str] = []
        having: list[Any] = []
        computed: dict[str, Expression] = {}
        while node is not None:
            if node.name == "Slice":
                limit, offset = node.length, node.start or 0
            elif node.name in ("Distinct", "Reduced"):
                distinct = True
            elif node.name == "Project":
                columns = [_text(variable) for variable in node.PV]
            elif node.name == "OrderBy":
                order = [(each.order or "ASC", each.expr) for each in node.expr]
            elif node.name == "Extend":
                computed[_text(node.var)] = node.expr
            elif node.name == "Filter" and _is_of_groups(node.p):
                having.append(node.expr)
            else:
                break
            node = node.p
        if node is not None:
            self._read(node, ())
        if form == "DESCRIBE":
            columns = [_text(term) for term in algebra.PV or ()]
        filters = [*self._filters, *((self._expression(raw), ()) for raw in having)]
        shown = {name: self._expression(raw) for name, raw in computed.items()}
        bound = [(("bind", name, value), ()) for name, value in shown.items() if name not in columns]
        split = [(part, where) for condition, where in [*filters, *bound] for part in _conjuncts(condition)]
        return QueryForm(
            form=form,
            patterns=tuple(self._patterns),
            filters=tuple(split),
            columns=tuple(_column(name, shown.get(name)) for name in columns) if form in ("SELECT", "DESCRIBE") else (),
            distinct=distinct,
            order=tuple((direction, renamed(self._expression(raw), shown)) for direction, raw in order),
            group=tuple(self._group),
            limit=limit,
            offset=offset,
        )

    def _read(self, node: Any, where: tuple[str, ...]) -> None:
        """Read a group of the algebra into patterns and filters."""
        match node.name:
            case "BGP" | "TriplesBlock":
                for subject, predicate, object_ in node.triples or ():
                    self._unfold(_text(subject), predicate, _text(object_), where)
            case "Join":
                self._read(node.p1, where)
                self._read(node.p2, where)
            case "LeftJoin":
                self._read(node.p1, where)
                self._read(node.p2, (*where, "optional"))
                if node.expr is not None and not (isinstance(node.expr, CompValue) and node.expr.name == "TrueFilter"):
                    self._condition(node.expr, (*where, "optional"))
            case "Union":
                self._read(node.p1, (*where, "union"))
                self._read(node.p2, (*where, "union"))
            case "Minus":
                self._read(node.p1, where)
                self._read(node.p2, (*where, "minus"))
            case "Filter":
                self._read(node.p, where)
                self._condition(node.expr, where)
            case "Extend":
                self._read(node.p, where)  # first, as it says what the names of aggregates stand for
                name, value = _text(node.var), self._expression(node.expr)
                if value != name:
                    self._filters.append((("bind", name, value), where))
            case "Graph":
                self._read(node.p, (*where, f"graph {_text(node.term)}"))
            case "ServiceGraphPattern":
                self._read(translateGroupGraphPattern(node.graph), (*where, f"service {_text(node.term)}"))
            case "ToMultiSet":
                self._rows_or_subquery(node.p, where)
            case "values":
                self._rows_or_subquery(node, where)
            case "Group":
                self._group += [self._expression(each) for each in node.expr or ()]
                self._read(node.p, where)
            case "AggregateJoin":
                for each in node.A:
                    name = each.name.removeprefix("Aggregate_").upper()
                    operand: Expression = "*" if each.vars == "*" else self._expression(each.vars)
                    words = (name, "DISTINCT", operand) if each.distinct else (name, operand)
                    self._aggregates[_text(each.res)] = operand if name == "SAMPLE" else words
                self._read(node.p, where)
            case _ if node.p is not None:  # modifiers of a subquery
                self._read(node.p, where)

    def _rows_or_subquery(self, node: Any, where: tuple[str, ...]) -> None:
        if node.name != "values":
            self._read(node, (*where, "subquery"))
            return
        names = sorted({name for row in node.res for name in row})
        rows = sorted(tuple(_text(row.get(name, "UNDEF")) for name in names) for row in node.res)
        if len(names) == 1:
            self._filters.append((("in", _text(names[0]), *(row[0] for row in rows)), where))
        else:
            head = tuple(_text(name) for name in names)
            self._filters.append((("values", head, *rows), where))

    def _condition(self, expression: Any, where: tuple[str, ...]) -> None:
        """Read a filter; what (NOT) EXISTS asks for is a group of patterns."""
        name = expression.name if isinstance(expression, CompValue) else ""
        if name == "ConditionalAndExpression":
            for each in (expression.expr, *expression.other):
                self._condition(each, where)
        elif name in _EXISTS:
            self._group_of(expression.graph, (*where, _EXISTS[name]))
        elif name == "UnaryNot" and getattr(expression.expr, "name", "") in _EXISTS:
            is_negated = expression.expr.name == "Builtin_EXISTS"
            self._group_of(expression.expr.graph, (*where, "not exists" if is_negated else "exists"))
        else:
            self._filters.append((self._expression(expression), where))

    def _group_of(self, graph: Any, where: tuple[str, ...]) -> None:
        is_raw = graph.name.startswith("GroupGraphPattern")
        self._read(translateGroupGraphPattern(graph) if is_raw else graph, where)

    def _unfold(self, subject: str, predicate: Any, object_: str, where: tuple[str, ...]) -> None:
        """Add a pattern, or several if its predicate is a sequence or an inverse."""
        if isinstance(predicate, SequencePath):
            ends = [subject, *(f"?·{next(self._numbers)}" for _ in predicate.args[1:]), object_]
            for at, part in enumerate(predicate.args):
                self._unfold(ends[at], part, ends[at + 1], where)
        elif isinstance(predicate, InvPath):
            self._unfold(object_, predicate.arg, subject, where)
        else:
            text = _path(predicate) if isinstance(predicate, Path) else _text(predicate)
            self._patterns.append(Pattern(subject, text, object_, where))

    def _expression(self, raw: Any) -> Expression:
        """Return an expression with its operands in order where that does not matter."""
        if isinstance(raw, Identifier):
            text = _text(raw)
            return self._aggregates.get(text, text)
        if isinstance(raw, (list, tuple)):
            return tuple(self._expression(each) for each in raw)
        if not isinstance(raw, CompValue):
            return str(raw)
        match raw.name:
            case "ConditionalAndExpression" | "ConditionalOrExpression":
                name = "&&" if raw.name == "ConditionalAndExpression" else "||"
                return (name, *(self._expression(each) for each in (raw.expr, *raw.other)))
            case "RelationalExpression":
                return self._relation(raw)
            case "AdditiveExpression" | "MultiplicativeExpression":
                value = self._expression(raw.expr)
                for operator, other in zip(raw.op or (), raw.other or (), strict=False):
                    value = (str(operator), value, self._expression(other))
                return value
            case "UnaryNot":
                return ("!", self._expression(raw.expr))
            case "UnaryMinus":
                return ("-", self._expression(raw.expr))
            case "Function":
                return (_text(raw.iri), *(self._expression(each) for each in raw.expr or ()))
            case "Builtin_EXISTS" | "Builtin_NOTEXISTS":
                return (raw.name.removeprefix("Builtin_"),)
        operands = [raw[key] for key in raw if not str(key).startswith("_") and raw[key] not in (None, [])]
        return (raw.name.removeprefix("Builtin_").removeprefix("Aggregate_"), *map(self._expression, operands))

    def _relation(self, raw: Any) -> Expression:
        left, operator = self._expression(raw.expr), str(raw.op)
        if operator in ("IN", "NOT IN"):
            values = raw.other if isinstance(raw.other, list) else ()  # of IN () rdflib makes rdf:nil
            return (operator.lower(), left, *sorted(map(self._expression, values), key=str))
        right = self._expression(raw.other)
        if operator in (">", ">="):
            return (operator.replace(">", "<"), right, left)
        return (operator, left, right)


def _column(name: str, value: Expression | None) -> tuple[str, Expression | None]:
    """Return a column; one that is another variable under a new name is that variable."""
    return (value, None) if isinstance(value, str) and value.startswith("?") else (name, value)


def _is_of_groups(node: Any) -> bool:
    """Return whether a filter is HAVING: below it are only computed columns and groups."""
    while node is not None and node.name == "Extend":
        node = node.p
    return node is not None and node.name in ("AggregateJoin", "Group")


def _text(term: Any) -> str:
    if isinstance(term, Variable):
        return f"?{term}"
    if isinstance(term, BNode):
        return f"?_{term}"
    if isinstance(term, URIRef):
        return f"<{term}>"
    if isinstance(term, Literal):
        return str(term.n3()).removesuffix(_XSD_STRING)  # which a literal without a datatype has
    return str(term)


def _path(path: Any) -> str:
    """Return a path that stays one, with its alternatives sorted."""
    if isinstance(path, AlternativePath):
        return f"({'|'.join(sorted(map(_path, path.args)))})"
    if isinstance(path, SequencePath):
        return f"({'/'.join(map(_path, path.args))})"
    if isinstance(path, MulPath):
        return f"{_path(path.path)}{path.mod}"
    if isinstance(path, InvPath):
        return f"^{_path(path.arg)}"
    if isinstance(path, NegatedPath):
        return f"!({'|'.join(sorted(map(_path, path.args)))})"
    return _text(path)


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, tuple) and condition and condition[0] == "&&":
        for each in condition[1:]:
            yield from _conjuncts(each)
    else:
        yield condition


def variables_in(expression: Expression) -> Iterator[str]:
    """Yield the variables of an expression, as often as they are in it."""
    if isinstance(expression, str):
        if expression.startswith("?"):
            yield expression
    else:
        for each in expression:
            yield from variables_in(each)


def renamed(expression: Expression, names: Mapping[str, str] | Mapping[str, Expression]) -> Expression:
    """Return an expression with other names of variables, and the operands in order whose order does not matter."""
    if isinstance(expression, str):
        return names.get(expression, expression)
    parts = [renamed(each, names) for each in expression]
    if parts and parts[0] in _COMMUTATIVE:
        first = 2 if parts[0] in ("in", "not in") else 1  # what is looked for stays in front of the list
        parts[first:] = sorted(parts[first:], key=str)
    return tuple(parts)


def listed_values(condition: Expression) -> tuple[str, tuple[str, ...]] | None:
    """Return the variable and the constants that it may be, if a condition says just that."""
    if not isinstance(condition, tuple) or len(condition) < 3 or condition[0] not in ("in", "=", "bind"):
        return None
    operands = [each for each in condition[1:] if isinstance(each, str)]
    if len(operands) != len(condition) - 1:
        return None
    names = [each for each in operands if each.startswith("?")]
    values = tuple(sorted(each for each in operands if not each.startswith("?")))
    return (names[0], values) if len(names) == 1 and values and "UNDEF" not in values else None


def with_listed_values(form: QueryForm) -> QueryForm:
    """Replace variables that may only have listed values (``VALUES``, ``IN``, ``=``), if nothing else needs them.

    Example:
        >>> with_listed_values(read_query("ASK { VALUES ?k { <urn:a> <urn:b> } ?x a ?k }")).patterns[0].object
        '{<urn:a> <urn:b>}'
    """
    conditions = [condition for condition, where in form.filters if not where]
    listed = {found[0]: found[1] for condition in conditions if (found := listed_values(condition))}
    needed: Sequence[Iterable[str]] = [
        (name for name, _ in form.columns if len(listed.get(name, ())) > 1),
        *(variables_in(value) for _, value in form.columns if value is not None),
        *(variables_in(value) for _, value in form.order),
        *map(variables_in, form.group),
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
