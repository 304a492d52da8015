"""Rows that a tool printed as Python shows them: lists, tuples and dicts of plain values, and of rdflib's terms.

``python_calls`` reads the values of databases in them: decimals, times, UUIDs, numpy's numbers. A text with anything
else, such as objects of Neo4j's driver, sets or points, is for ``graph_repr``. Nothing is run: a text is parsed only if
each of its parts is a value, a bracket or one of the names below or in ``python_calls``.
"""

import ast
import re
from typing import Any, Final

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.python_calls import CONSTANTS, NAMES, UTC, as_cell, call_value

_LONGEST: Final = 2_000_000
_DEEPEST: Final = 20

_STRING: Final = (
    r"""(?:'[^'\\\n]*+(?:\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})[^'\\\n]*+)*+'"""
    r"""|"[^"\\\n]*+(?:\\(?:[\\'"nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})[^"\\\n]*+)*+")"""
)
_NUMBER: Final = r"-?(?:0|[1-9]\d{0,999}+)(?:\.\d{1,400}+)?(?:e[+-]?\d{1,4})?"
_NAME: Final = (
    r"rdflib\.term\.Variable(?=\()|(?:rdflib\.term\.)?(?:URIRef|Literal|BNode)(?=\()"
    r"|(?:datatype|lang)(?==)|True|False|None|nan|-?inf"
    rf"|{NAMES}|[A-Za-z_]\w{{0,99}}(?==[^=])"
)
_BYTES: Final = (
    r"""(?:b'[^'\\\n]*+(?:\\(?:[\\'nrt]|x[0-9a-f]{2})[^'\\\n]*+)*+'"""
    r"""|b"[^"\\\n]*+(?:\\(?:[\\nrt]|x[0-9a-f]{2})[^"\\\n]*+)*+")"""
)
_TOKEN: Final = re.compile(rf"{_STRING}|{_BYTES}|(?:{_NAME}|{_NUMBER})(?![\w.'\"])|[\[\](){{}},:=]|[ \n\r\t]++")
_BEGINNING: Final = re.compile(
    r"\s{0,100}(?:\[\s{0,20}(?:[({\[]|(?:Row|OrderedDict|RealDictRow)\()|[{]\s{0,20}'|\(\s{0,20}[\[({])"
)
_OPENING: Final = {"]": "[", ")": "(", "}": "{"}
_FIRST_SIGN: Final = re.compile(r"['\"(]")
_TORN: Final = re.compile(
    r"""\Z|b?'[^'\n]*\Z|b?"[^"\n]*\Z|-?\d{0,20}\.?\Z|[A-Za-z][A-Za-z._\d]{0,24}\Z|(?:\.\.\.|…)\s*\Z"""
)


def is_python(text: str) -> bool:
    """Return whether a text begins as the repr of rows or of an object.

    Example:
        >>> is_python("[{'name': 'Oslo'}]"), is_python("[1] Oslo is a city")
        (True, False)
    """
    return _BEGINNING.match(text.removeprefix("\ufeff")) is not None


def _begins_as_python(text: str, start: int) -> bool:
    """Return whether the first quote or round bracket is not that of JSON, which says itself where it breaks off."""
    first = _FIRST_SIGN.search(text, start, start + 200)
    return first is not None and first[0] != '"'


def python_end(text: str, start: int) -> int:
    """Return where the value that begins at a place ends.

    Raises:
        CutOutput: It breaks off before its end.
        UnreadableOutput: It is no value.
    """
    open_brackets: list[str] = []
    at = start
    while True:
        match = _TOKEN.match(text, at)
        if match is None:
            is_torn = _TORN.match(text, at) is not None or cut_mark(text) is not None
            if open_brackets and is_torn and _begins_as_python(text, start):
                raise CutOutput("the Python value breaks off before its end")
            raise UnreadableOutput(f"no Python value from character {at + 1:,} on")
        token = match[0]
        at = match.end()
        if token in ("[", "(", "{"):
            open_brackets.append(token)
            if len(open_brackets) > _DEEPEST:
                raise UnreadableOutput("a Python value that is nested too deeply")
        elif token in _OPENING:
            if not open_brackets or open_brackets.pop() != _OPENING[token]:
                raise UnreadableOutput("a Python value whose brackets do not fit")
            if not open_brackets:
                return at


def python_value(text: str) -> Any:
    """Return the value of a repr; rdflib's terms are terms as in SPARQL 1.1 JSON.

    Raises:
        CutOutput: It breaks off before its end.
        UnreadableOutput: It is no value, or too long or deep.

    Example:
        >>> python_value("[('Oslo', 5), (None, 2.5)]")
        [('Oslo', 5), (None, 2.5)]
    """
    text = text.removeprefix("\ufeff").strip()
    if len(text) > _LONGEST:
        raise UnreadableOutput(f"a Python value of more than {_LONGEST:,} characters")
    end = python_end(text, 0)
    if text[end:].strip():
        mark = cut_mark(text)
        if mark is not None:
            raise CutOutput(f"after the Python value stands {mark!r}")
        raise UnreadableOutput("a Python value with more text after it")
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError, TypeError) as problem:
        if isinstance(problem, UnreadableOutput):
            raise
        raise UnreadableOutput(f"no Python value ({type(problem).__name__})") from None


_NAMED: Final = {"nan": float("nan"), "inf": float("inf"), "NaT": CONSTANTS["NaT"]}


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return as_cell(value)
        case ast.List(elts=items):
            return [as_cell(_value(item)) for item in items]
        case ast.Tuple(elts=items):
            return tuple(as_cell(_value(item)) for item in items)
        case ast.Dict(keys=keys, values=values):
            return {_key(key): as_cell(_value(value)) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _value(operand)
            return -number if isinstance(number, int | float) else number
        case ast.Name(id=name) if name in _NAMED:
            return _NAMED[name]
        case ast.Call(func=function, args=[ast.Constant(value=str(text))], keywords=keywords):
            name = _name_of(function)
            if name in _TERMS:
                return _term(name, text, {word.arg: word.value for word in keywords})
            return call_value(name, [text], _values(keywords))
        case ast.Call(func=function, args=arguments, keywords=keywords):
            return call_value(_name_of(function), [_value(each) for each in arguments], _values(keywords))
        case ast.Attribute(attr="utc"):
            return UTC
        case ast.Attribute(attr=name) if name in CONSTANTS:
            return CONSTANTS[name]
    raise UnreadableOutput("a Python value that is neither plain nor a term")


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))


def _values(keywords: list[ast.keyword]) -> dict[str, Any]:
    return {word.arg: _value(word.value) for word in keywords if word.arg is not None}


_TERMS: Final = frozenset({"Variable", "URIRef", "BNode", "Literal"})


def _key(node: ast.expr | None) -> str:
    key = None if node is None else _value(node)
    if not isinstance(key, str | int):
        raise UnreadableOutput("a Python value with a key that is no name")
    return str(key)


def _term(kind: str, text: str, more: dict[str | None, ast.expr]) -> Any:
    if kind == "Variable":
        return text
    if kind in ("URIRef", "BNode"):
        return {"type": "uri" if kind == "URIRef" else "bnode", "value": text}
    if kind != "Literal":
        raise UnreadableOutput("a Python value that is neither plain nor a term")
    term = {"type": "literal", "value": text}
    if "lang" in more:
        term["xml:lang"] = str(_value(more["lang"]))
    datatype = _value(more["datatype"]) if "datatype" in more else None
    if isinstance(datatype, dict):
        term["datatype"] = str(datatype.get("value"))
    return term
