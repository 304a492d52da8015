"""Reading W3C SPARQL Query Results XML, without DTDs and entities of its own."""

import re
from dataclasses import replace
from typing import Any, Final, NoReturn
from xml.parsers import expat

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.results import SparqlResults, results_from_bindings

_NAMESPACE: Final = "http://www.w3.org/2005/sparql-results#"
_XML: Final = "http://www.w3.org/XML/1998/namespace"
_BEGINNING: Final = re.compile(r"\s{0,100}<(?:\?xml\s|!|(?:\w{1,30}:)?sparql[\s>])")
_ROOT: Final = re.compile(r"<(?:\w{1,30}:)?sparql[\s>]")
_LONGEST_PROLOGUE: Final = 5_000
_DEEPEST: Final = 40
_PLAIN: Final = frozenset({"uri", "bnode", "literal"})
_PARTS: Final = frozenset({"subject", "predicate", "object"})


def is_xml(text: str) -> bool:
    """Return whether a text begins as SPARQL results in XML.

    Example:
        >>> is_xml('<?xml version="1.0"?><sparql xmlns="…">'), is_xml("<html>")
        (True, False)
    """
    has_beginning = _BEGINNING.match(text.removeprefix("\ufeff")) is not None
    return has_beginning and _ROOT.search(text, 0, _LONGEST_PROLOGUE) is not None


def read_xml(text: str) -> SparqlResults:
    """Read the results of a SELECT or ASK query in XML.

    Raises:
        CutOutput: The XML ends before its end.
        UnreadableOutput: It is something else, or has a DTD.
    """
    handler = _Handler()
    parser = expat.ParserCreate("utf-8", " ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_dtd
    parser.StartElementHandler = handler.start
    parser.EndElementHandler = handler.end
    parser.CharacterDataHandler = handler.texts.append
    try:
        data = text.removeprefix("\ufeff").strip().encode()
    except UnicodeEncodeError:
        raise UnreadableOutput("XML with half a character (a lone surrogate)") from None
    try:
        parser.Parse(data, False)
    except expat.ExpatError as problem:
        raise UnreadableOutput(f"no XML ({problem})") from None
    try:
        parser.Parse(b"", True)
    except expat.ExpatError:
        row = f" in row {len(handler.bindings)}" if handler.bindings else ""
        raise CutOutput(f"the XML breaks off{row}") from None
    return handler.results()


def _refuse_dtd(*_: Any) -> NoReturn:
    raise UnreadableOutput("XML with a DTD, which is not read")


class _Handler:
    """Gathers rows of terms as expat tells of elements."""

    def __init__(self) -> None:
        self.variables: list[str] = []
        self.bindings: list[dict[str, Any]] = []
        self.texts: list[str] = []
        self._boolean: str | None = None
        self._has_results = False
        self._name: str | None = None
        self._path: list[str] = []
        self._terms: list[dict[str, Any]] = []

    def start(self, element: str, attributes: dict[str, str]) -> None:
        namespace, _, name = element.rpartition(" ")
        if namespace not in ("", _NAMESPACE) or (not self._path and name != "sparql"):
            raise UnreadableOutput(f"XML whose element {name[:40]} is none of SPARQL results")
        self._path.append(name)
        if len(self._path) > _DEEPEST:
            raise UnreadableOutput("XML that is nested too deeply")
        self.texts.clear()
        if name == "variable":
            self.variables.append(attributes.get("name", ""))
        elif name == "results":
            self._has_results = True
        elif name == "result":
            self.bindings.append({})
        elif name == "binding":
            self._name = attributes.get("name")
        elif name in _PLAIN or name == "triple":
            term: dict[str, Any] = {"type": name, "value": {} if name == "triple" else ""}
            if "datatype" in attributes:
                term["datatype"] = attributes["datatype"]
            if f"{_XML} lang" in attributes:
                term["xml:lang"] = attributes[f"{_XML} lang"]
            self._terms.append(term)

    def end(self, element: str) -> None:
        name = self._path.pop()
        text = "".join(self.texts)
        if name in _PLAIN and self._terms:
            self._terms[-1]["value"] = text if name == "literal" else text.strip()
        if name in _PLAIN or name == "triple":
            self._place(self._terms.pop())
        elif name == "boolean":
            self._boolean = text.strip()
        self.texts.clear()

    def _place(self, term: dict[str, Any]) -> None:
        holder = self._path[-1] if self._path else ""
        if holder in _PARTS and self._terms and isinstance(self._terms[-1]["value"], dict):
            self._terms[-1]["value"][holder] = term
        elif holder == "binding" and self.bindings and self._name is not None:
            self.bindings[-1][self._name] = term

    def results(self) -> SparqlResults:
        if self._boolean is not None:
            if self._boolean not in ("true", "false", "1", "0"):
                raise UnreadableOutput("XML whose boolean is neither true nor false")
            return SparqlResults({}, 0, self._boolean in ("true", "1"), form="W3C XML")
        if not self._has_results:
            raise UnreadableOutput("XML without results and without a boolean")
        return replace(results_from_bindings(list(dict.fromkeys(self.variables)), self.bindings), form="W3C XML")
