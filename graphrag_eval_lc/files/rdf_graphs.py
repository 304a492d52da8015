"""Reads RDF graphs in any syntax, with pyoxigraph or rdflib (whichever is installed), and single terms in Turtle."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import accumulate
from typing import Any, Final, TypeAlias

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.texts import shortened

GRAPHS: Final = {
    "text/turtle": "Turtle",
    "application/x-turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/ld+json": "JSON-LD",
    "application/rdf+xml": "RDF/XML",
    "application/trig": "TriG",
    "application/n-quads": "N-Quads",
}
"""The name of each media type of graphs."""

RdfTerm: TypeAlias = tuple[str, tuple[str, str | None, str | None]]
"""The text of a term, and its type (uri, literal, bnode; empty for the default graph), datatype and language tag."""

_RDF: Final = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_ELSEWHERE: Final = re.compile(r'"@(?:context|import)"\s*:\s*\[?\s*"|<!ENTITY')  # nothing is loaded from there
# The text of a graph without triples; any other text without triples is JSON, or a comment.
_EMPTY: Final = re.compile(
    r"\A\s*(?:\[\s*\]|\{\s*\})\s*\Z|^\s*@?(?:prefix|base)\b|<rdf:RDF\b", re.IGNORECASE | re.MULTILINE
)
_BASE: Final = "urn:base:"
_BRACKET: Final = re.compile(r"<<|>>|[\[({\])}]")
_DEEPEST: Final = 200  # at some thousands, pyoxigraph's stack overflows and the process ends
# The names in pyoxigraph and in rdflib. Turtle and N-Triples are subsets of TriG.
_SYNTAXES: Final = {
    "JSON-LD": ("JSON_LD", "json-ld"),
    "RDF/XML": ("RDF_XML", "xml"),
    "TriG": ("TRIG", "trig"),
    "N-Quads": ("N_QUADS", "nquads"),
}
_BY_BEGINNING: Final = {"{": ("JSON-LD", "TriG"), "[": ("JSON-LD", "TriG"), "<": ("TriG", "RDF/XML", "N-Quads")}


class BrokenOffError(ValueError):
    """A graph breaks off in its last statement."""


def read_quads(text: str) -> tuple[str, list[tuple[RdfTerm, ...]]]:
    """Return the syntax of an RDF graph, and its quads, sorted and without duplicates.

    Raises a ValueError if the text is not a graph, and a BrokenOffError if it breaks off in its last statement.

    Example:
        >>> read_quads("<urn:a> <urn:b> 5 .")[1][0][2]
        ('5', ('literal', 'http://www.w3.org/2001/XMLSchema#integer', None))
    """
    library, begins = _library(), text.lstrip("\ufeff \t\r\n")[:1]
    if begins in ("{", "[", "<") and _ELSEWHERE.search(text) is not None:
        raise ValueError("an RDF graph with a context or an entity that is defined elsewhere")
    steps = (1 if bracket in ("<<", "[", "(", "{") else -1 for bracket in _BRACKET.findall(text))
    if max(accumulate(steps), default=0) > _DEEPEST:
        raise ValueError("an RDF graph that is nested too deeply")
    problem = ValueError("not an RDF graph")
    for syntax in _BY_BEGINNING.get(begins, ("TriG",)):
        if syntax == "RDF/XML" and _RDF not in text:
            continue
        try:
            quads = sorted({tuple(map(_term, quad)) for quad in _quads(library, text, syntax)}, key=repr)
        except Exception as found:  # each library has its own errors
            problem = ValueError(f"not an RDF graph ({shortened(' '.join(str(found).split())[:200], 100)})")
            continue
        if quads or _EMPTY.search(text) is not None:
            return "Turtle" if syntax == "TriG" else syntax, quads
    whole, end, last = text.rpartition(".\n")
    if last[-1:] not in (".", "}", ""):
        with suppress(ValueError):
            read_quads(whole + end)
            problem = BrokenOffError("the graph breaks off in its last statement")
    raise problem


@cache
def _library() -> Any:
    for name in ("pyoxigraph", "rdflib"):
        with suppress(ImportError):
            return import_module(name)
    raise MissingExtraError("An RDF graph", "graph", "pyoxigraph")


def _quads(library: Any, text: str, syntax: str) -> Iterator[tuple[Any, ...]]:
    oxigraph_name, rdflib_name = _SYNTAXES[syntax]
    if library.__name__ == "pyoxigraph":
        for quad in library.parse(text, format=getattr(library.RdfFormat, oxigraph_name), base_iri=_BASE):
            yield quad.subject, quad.predicate, quad.object, quad.graph_name
        return
    dataset = library.Dataset()
    dataset.parse(data=text, format=rdflib_name, publicID=_BASE)
    for *triple, graph in dataset.quads():
        is_default = graph is None or str(graph) in (_BASE, "urn:x-rdflib:default")
        yield (*triple, None if is_default else graph)


def _term(term: Any) -> RdfTerm:
    kind = type(term).__name__
    if kind in ("DefaultGraph", "NoneType"):
        return "", ("", None, None)
    if kind == "Triple":
        raise ValueError("it has triples as terms, which are not compared")
    text = str(term) if isinstance(term, str) else term.value  # rdflib's terms are texts
    if kind != "Literal":
        return text, ("bnode" if kind in ("BlankNode", "BNode") else "uri", None, None)
    datatype = str(getattr(term.datatype, "value", term.datatype or ""))
    return text, ("literal", None if term.language or datatype in ("", f"{_XSD}string") else datatype, term.language)


_TERM: Final = re.compile(
    r"""(?s)<(?P<uri>[^<>"\s]*+)>|_:(?P<bnode>\S+)|(?P<quote>["'])(?P<text>(?:(?!(?P=quote))[^\\]|\\.)*+)(?P=quote)"""
    r"""(?:@(?P<lang>[A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^(?:<(?P<datatype>[^<>"\s]*+)>|xsd:(?P<xsd>\w+)))?"""
    r"""|(?P<double>[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+)|(?P<decimal>[+-]?\d*\.\d+)|(?P<integer>[+-]?\d+)"""
    r"""|(?P<boolean>true|false)"""
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U(00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def rdf_term(text: str) -> RdfTerm | None:
    """Return the term in a text in Turtle's syntax, without prefixes; None if it is not a term.

    Example:
        >>> rdf_term('"Oslo"@no'), rdf_term("Oslo")
        (('Oslo', ('literal', None, 'no')), None)
    """
    match = _TERM.fullmatch(text)
    if match is None:
        return None
    kind = str(match.lastgroup)
    if kind in ("uri", "bnode"):
        return (_unescaped(match[kind]), (kind, None, None))
    if match["text"] is None:
        return (text, ("literal", _XSD + kind, None))
    datatype = f"{_XSD}{match['xsd']}" if match["xsd"] else _unescaped(match["datatype"] or "")
    return (_unescaped(match["text"]), ("literal", datatype or None, match["lang"]))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[3], found[3]) or chr(int(found[1] or found[2], 16)), text)
