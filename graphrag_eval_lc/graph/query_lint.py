"""Find mistakes in a SPARQL query: in its text, and terms or combinations that a graph's vocabulary does not have.

A finding is only useful if it is true, so each rule skips cases that it cannot be sure of. Needs rdflib, and
pyoxigraph for the position of a syntax error.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

from graphrag_eval_lc.graph.query_expressions import listed_values, variables_in
from graphrag_eval_lc.graph.query_forms import (
    Pattern,
    QueryForm,
    TooLargeQueryError,
    UnreadableQueryError,
    read_query,
)
from graphrag_eval_lc.graph.query_text import (
    NO_NAMES,
    PREFIXED_NAME,
    RDF_TYPE,
    STANDARD_PREFIXES,
    UNDECLARED,
    declared_prefixes,
    is_too_large,
    outside_texts,
)
from graphrag_eval_lc.graph.query_words import Words
from graphrag_eval_lc.graph.vocabulary import Vocabulary, local_name
from graphrag_eval_lc.texts import shortened

LintRule: TypeAlias = Literal[
    "syntax",
    "undeclared_prefix",
    "unknown_class",
    "unknown_property",
    "property_not_on_class",
    "unbound_variable",
    "disconnected_patterns",
    "no_limit",
    "too_large",
]
RULES: tuple[LintRule, ...] = get_args(LintRule)

_STANDARD = tuple(f"<{namespace}" for namespace in STANDARD_PREFIXES.values())
_IRI = re.compile(r"<[^<>\s]+>")
_SHOWN_ERROR = 60
_LABELS = "service <http://wikiba.se/ontology#label>"
"""Wikibase's service, which binds ?xLabel, ?xAltLabel and ?xDescription to what ?x is called."""
# Named subqueries of Blazegraph, DEFINE of Virtuoso, @en@rdfs:label and text search of QLever.
_EXTENSION = re.compile(r"(?i)\b(?:AS|INCLUDE)\s+%\w|\bDEFINE\s+[\w-]+:|@[\w-]+@|\bTEXTLIMIT\b|\b(?:TEXT|SCORE)\s*\(\?")
_SERVICE = re.compile(r"(?<![\w?$:@-])SERVICE(\s+SILENT)?(?![\w:-])", re.IGNORECASE)
_PLACE = re.compile(r"error at (\d+):(\d+): (.*)", re.DOTALL)
_RDFLIB_PLACE = re.compile(r"\(line:(\d+), col:(\d+)\)")


@dataclass(frozen=True, slots=True)
class QueryFinding:
    """A mistake in a query.

    Attributes:
        rule: The rule that found it.
        what: What is wrong.
        hint: What would be right; empty if that is not known.
        line: The line in the query, from 1, of a syntax error.
        column: The column in that line, from 1.
    """

    rule: LintRule
    what: str
    hint: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.hint})" if self.hint else self.what


_TOO_LARGE = QueryFinding("too_large", "it is too large to be checked")


def lint_query(
    query: str,
    vocabulary: Vocabulary | None = None,
    *,
    prefixes: Mapping[str, str] | None = None,
    was_answered: bool = False,
    needs_limit: bool = False,
) -> list[QueryFinding]:
    """Find the mistakes of a query.

    Args:
        query: SPARQL.
        vocabulary: What the graph has; None leaves out the rules that need it.
        prefixes: Those that the endpoint knows without a declaration.
        was_answered: Whether an endpoint answered it: then its syntax and prefixes are right, whatever the standard
            says.
        needs_limit: Whether a SELECT without aggregates must have a LIMIT.

    Example:
        >>> grid = Vocabulary(source="grid", classes={"urn:c#DCLineSegment": 2}, properties={"urn:c#length": 2})
        >>> for each in lint_query("PREFIX c: <urn:c#> SELECT ?l { ?l a c:DCLine; c:length ?m }", grid):
        ...     print(each)
        c:DCLine is not a class of this graph (nearest: c:DCLineSegment)
    """
    if is_too_large(query):
        return [_TOO_LARGE]
    known = STANDARD_PREFIXES | dict(prefixes or {})
    declared = declared_prefixes(query)
    undeclared = _undeclared(query, known | declared)
    guessed = {} if vocabulary is None else _guessed_namespaces(undeclared, vocabulary)
    found: list[QueryFinding] = []
    wrong: QueryFinding | None = None
    if not was_answered:
        for prefix in sorted(undeclared):
            hint = f"PREFIX {prefix}: <{guessed[prefix]}>" if prefix in guessed else ""
            found.append(QueryFinding("undeclared_prefix", f"the prefix {prefix}: is not declared", hint))
        if _store() is not None:
            wrong = _syntax_error(query, known | dict.fromkeys(undeclared, "urn:undeclared:"))
    known |= guessed
    try:
        form = read_query(query, known)
    except TooLargeQueryError:
        return [*found, _TOO_LARGE]
    except UnreadableQueryError as problem:
        # Each parser rejects some valid queries, so only what both reject is a mistake.
        if _EXTENSION.search(NO_NAMES.sub(" ", query)) is not None or was_answered:
            return found
        if _store() is None:
            message, place = str(problem), _RDFLIB_PLACE.search(str(problem))
            what = f"it is not SPARQL: {message.splitlines()[0] if message else 'it cannot be read'}"
            return [*found, QueryFinding("syntax", what, "", *(map(int, place.groups()) if place else ()))]
        return found if wrong is None else [wrong]
    try:
        words = Words(known | declared)
        found += chain.from_iterable(rule(form, words) for rule in (_unbound, _disconnected))
        is_aggregated = form.select.group or any(isinstance(value, tuple) for _, value in form.select.columns)
        if needs_limit and form.form == "SELECT" and form.select.limit is None and not is_aggregated:
            found.append(QueryFinding("no_limit", "it has no LIMIT"))
        if vocabulary is not None:
            found += chain.from_iterable(rule(form, words, vocabulary) for rule in _OF_VOCABULARY)
    except RecursionError:  # of a long condition
        found.append(_TOO_LARGE)
    return sorted(dict.fromkeys(found), key=lambda each: RULES.index(each.rule))


def _undeclared(query: str, known: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the undeclared prefixes of a query, each with the local names that follow it in the query."""
    used: dict[str, set[str]] = {}
    for prefix, name in PREFIXED_NAME.findall(NO_NAMES.sub(" ", query)):
        if prefix not in known and prefix != "_":
            used.setdefault(prefix, set()).add(name)
    return used


def _guessed_namespaces(undeclared: Mapping[str, set[str]], vocabulary: Vocabulary) -> dict[str, str]:
    """Return for each undeclared prefix the namespace in which the graph has most of its names."""
    terms = [*vocabulary.classes, *vocabulary.properties]
    guessed = {}
    for prefix, names in undeclared.items():
        namespaces = Counter(term.removesuffix(name) for term in terms if (name := local_name(term)) in names)
        if namespaces:
            guessed[prefix] = namespaces.most_common(1)[0][0]
    return guessed


@cache
def _store() -> Any:
    """Return an empty store of pyoxigraph, whose fast parser locates syntax errors; None if it is not installed."""
    try:
        return import_module("pyoxigraph").Store()
    except ImportError:
        return None


def _syntax_error(query: str, prefixes: Mapping[str, str]) -> QueryFinding | None:
    declared = declared_prefixes(query)
    head = "".join(f"PREFIX {name}: <{iri}> " for name, iri in prefixes.items() if name not in declared)

    def without_calls(part: str) -> str:  # pyoxigraph would call SERVICE; GRAPH is padded, so that positions stay
        return _SERVICE.sub(lambda found: f"GRAPH  {re.sub(r'[A-Za-z]', ' ', found[1] or '')}", part)

    try:
        _store().query(head + outside_texts(query, without_calls))
    except SyntaxError as problem:
        if (place := _PLACE.search(str(problem))) is None:
            return QueryFinding("syntax", f"it is not SPARQL: {problem}")
        line, column = int(place[1]), int(place[2])
        column -= len(head) if line == 1 else 0
        return QueryFinding(
            "syntax",
            f"it is not SPARQL: line {line}, column {column}: {shortened(place[3], _SHOWN_ERROR)}",
            "",
            line,
            column,
        )
    except (ValueError, RuntimeError, OSError):
        return None
    return None


def _unbound(form: QueryForm, words: Words) -> Iterator[QueryFinding]:
    """Find columns that no pattern, BIND or VALUES ever binds."""
    if form.form != "SELECT":
        return
    bound = {term for each in form.patterns for term in (each.subject, each.predicate, each.object)}
    bound |= {word for each in form.patterns for group in each.where for word in group.split(" ")}
    bound |= {name for select in form.selects for name, value in select.columns if value is not None}
    for condition, _ in form.filters:
        if isinstance(condition, tuple) and condition[0] in ("bind", "values", "in"):
            bound |= set(variables_in(condition[1]))
    if any(_LABELS in each.where for each in form.patterns):
        bound |= {f"{name}{suffix}" for name in bound for suffix in ("Label", "AltLabel", "Description")}
    for name, value in form.select.columns:
        unbound = [each for each in variables_in(name if value is None else value) if each not in bound]
        for each in dict.fromkeys(unbound):
            yield QueryFinding("unbound_variable", f"{words.term(each)} is returned and never bound")


def _disconnected(form: QueryForm, words: Words) -> Iterator[QueryFinding]:
    """Find required patterns that share no variable with the others and name no entity: a cross product of rows."""
    if any(each.where for each in form.patterns) or any(where for _, where in form.filters):
        return  # groups may be alternatives
    if form.form == "ASK":
        return  # it has no rows
    listed = {found[0] for condition, _ in form.filters if (found := listed_values(condition))}
    connecting = [condition for condition, _ in form.filters] + [value for _, value in form.select.columns if value]
    merged: list[set[str]] = []
    for each in (*((each.subject, each.predicate, each.object) for each in form.patterns), *connecting):
        part = set(variables_in(each))
        merged = [other for other in merged if not other & part] + [part.union(*(o for o in merged if o & part))]
    of_patterns = {term for each in form.patterns for term in (each.subject, each.predicate, each.object)}
    merged = [part for part in merged if part & of_patterns]
    if len(merged) < 2:
        return
    for part in merged:
        of_part = [each for each in form.patterns if part & {each.subject, each.object}]
        if of_part and not part & listed and not any(_names_an_entity(each) for each in of_part):
            names = ", ".join(words.term(name) for name in sorted(part)[:3])
            what = f"nothing connects {names} with the other patterns, so that each row is repeated for each of theirs"
            yield QueryFinding("disconnected_patterns", what)
            return


def _names_an_entity(pattern: Pattern) -> bool:
    is_class = pattern.predicate == RDF_TYPE
    return not pattern.subject.startswith("?") or (not is_class and not pattern.object.startswith("?"))


def _iris(term: str) -> list[str]:
    return [iri for iri in _IRI.findall(term) if not iri.startswith((*_STANDARD, f"<{UNDECLARED}"))]


def _asked_of_graph(form: QueryForm) -> Iterable[Pattern]:
    """Return the patterns that this graph answers, without those for another endpoint."""
    return (each for each in form.patterns if not any(group.startswith("service") for group in each.where))


def _unknown_classes(form: QueryForm, words: Words, vocabulary: Vocabulary) -> Iterator[QueryFinding]:
    if not vocabulary.classes or not vocabulary.complete:
        return
    variables = {each.object for each in _asked_of_graph(form) if each.predicate == RDF_TYPE}
    listed = [found for condition, _ in form.filters if (found := listed_values(condition)) and found[0] in variables]
    terms = chain(variables, *(values for _, values in listed))
    for iri in dict.fromkeys(chain.from_iterable(map(_iris, terms))):
        if iri[1:-1] not in vocabulary.classes:
            what = f"{words.term(iri)} is not a class of this graph"
            yield QueryFinding("unknown_class", what, _nearest(iri, vocabulary, vocabulary.classes, words))


def _unknown_properties(form: QueryForm, words: Words, vocabulary: Vocabulary) -> Iterator[QueryFinding]:
    if not vocabulary.properties or not vocabulary.complete:
        return
    own = {iri.removesuffix(local_name(iri)) for iri in (*vocabulary.properties, *vocabulary.classes)}
    names = {local_name(iri) for iri in vocabulary.properties}
    for iri in dict.fromkeys(chain.from_iterable(_iris(each.predicate) for each in _asked_of_graph(form))):
        name = local_name(iri[1:-1])
        # In another namespace it may be a function of the store, such as a search.
        is_of_graph = iri[1:-1].removesuffix(name) in own or name in names
        if iri[1:-1] not in vocabulary.properties and is_of_graph:
            what = f"{words.term(iri)} is not a property of this graph"
            yield QueryFinding("unknown_property", what, _nearest(iri, vocabulary, vocabulary.properties, words))


def _not_on_class(form: QueryForm, words: Words, vocabulary: Vocabulary) -> Iterator[QueryFinding]:
    """Find properties that no instance of the variable's class has."""
    uses = vocabulary.uses
    if not uses or not vocabulary.complete:
        return
    classes: dict[str, set[str]] = {}
    for each in _asked_of_graph(form):
        named = _iris(each.object) if each.predicate == RDF_TYPE and not each.where else []
        if named and all(iri[1:-1] in uses for iri in named):
            classes.setdefault(each.subject, set()).add(" ".join(sorted(named)))
    for each in _asked_of_graph(form):
        name = each.predicate[1:-1]
        if not each.predicate.startswith("<") or not each.predicate.endswith(">") or name not in vocabulary.properties:
            continue
        for group in sorted(classes.get(each.subject, ())):
            of_class = set().union(*(uses[iri[1:-1]] for iri in _iris(group)))
            if name not in of_class and not each.predicate.startswith(_STANDARD):
                classes_text = " or ".join(words.term(iri) for iri in _iris(group))
                what = f"no {classes_text} has {words.term(each.predicate)}"
                hint = _nearest(each.predicate, vocabulary, of_class, words)
                yield QueryFinding("property_not_on_class", what, hint)


_OF_VOCABULARY: tuple[Callable[[QueryForm, Words, Vocabulary], Iterator[QueryFinding]], ...] = (
    _unknown_classes,
    _unknown_properties,
    _not_on_class,
)


def _nearest(iri: str, vocabulary: Vocabulary, terms: Iterable[str], words: Words) -> str:
    nearest = vocabulary.nearest(iri[1:-1], terms)
    return f"nearest: {', '.join(words.term(f'<{each}>') for each in nearest)}" if nearest else ""
