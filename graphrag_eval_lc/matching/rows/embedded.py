"""The one piece of results inside a longer text: in a code fence, or before or after a sentence."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_json, cut_mark
from graphrag_eval_lc.matching.rows.python_form import python_end, python_value
from graphrag_eval_lc.matching.rows.results import SparqlResults

ReadText = Callable[[str], SparqlResults]
ReadValue = Callable[[Any], SparqlResults]

_MOST_PLACES: Final = 20
_FENCE: Final = re.compile(r"(?:^|\n)[ \t]{0,10}(```+|~~~+)[ \t]{0,5}([\w+\-/.]{0,40})[^\n`]{0,80}\n")
_NO_RESULTS: Final = frozenset({"bash", "console", "cypher", "rq", "sh", "sparql", "sql", "ttl", "turtle"})


class _Block(NamedTuple):
    language: str
    text: str
    is_closed: bool


def has_fence(text: str) -> bool:
    r"""Return whether a code fence begins in a text.

    Example:
        >>> has_fence("Here:\n```json\n[]\n```"), has_fence("the ``` sign")
        (True, False)
    """
    return ("```" in text or "~~~" in text) and _FENCE.search(text) is not None


def read_fence(text: str, read_text: ReadText, by_language: Mapping[str, ReadText]) -> SparqlResults:
    """Read the results in the one code fence that holds some.

    Args:
        text: The text around it.
        read_text: Reads what stands in a fence whose language says nothing of its form.
        by_language: The readers of the languages that do, such as ``csv``.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: No fence holds results, or several do.
    """
    found: list[SparqlResults] = []
    problems: list[UnreadableOutput] = []
    for block in _blocks(text):
        if block.language in _NO_RESULTS:
            continue
        read = by_language.get(block.language, read_text)
        try:
            results = read(block.text)
        except UnreadableOutput as problem:
            problems.append(problem)
            continue
        if not block.is_closed and results.form.split(" in ")[0] in {"W3C CSV", "W3C TSV", "TSV", "a Markdown table"}:
            problems.append(CutOutput("the code fence has no end"))
            continue
        found.append(replace(results, form=f"{results.form} in a code fence"))
    cut = next((problem for problem in problems if isinstance(problem, CutOutput)), None)
    if len(found) > 1:
        raise UnreadableOutput(f"a text with results in {len(found)} code fences, of which one may be meant")
    if found:
        return found[0]
    if cut is not None:
        raise cut
    raise problems[0] if problems else UnreadableOutput("a text whose code fences hold no results")


def _blocks(text: str) -> Iterator[_Block]:
    at = 0
    for _ in range(_MOST_PLACES):
        opening = _FENCE.search(text, at)
        if opening is None:
            return
        mark = opening[1]
        end = text.find(f"\n{mark}", opening.end() - 1)
        stop = len(text) if end < 0 else end + 1
        yield _Block(opening[2].lower(), text[opening.end() : stop], end >= 0)
        if end < 0:
            return
        at = stop + len(mark)


_VALUE: Final = re.compile(r"""[\[{]\s{0,100}+["'\[{(]|\(\s{0,100}+[\[{(]|<(?:\?xml[\s>]|(?:\w{1,30}:)?sparql[\s>])""")
_XML_END: Final = re.compile(r"</(?:\w{1,30}:)?sparql\s{0,20}>")
_PLAIN_START: Final = re.compile(r"""[\[]\s{0,100}+\{|\{\s{0,100}+["']""")


def has_value(text: str) -> bool:
    """Return whether an object, an array of objects or texts, or XML may stand somewhere in a text.

    Example:
        >>> has_value('Here: [{"name": "Oslo"}].'), has_value("See [1] and {x}.")
        (True, False)
    """
    return _VALUE.search(text) is not None


def read_sentence(text: str, read_value: ReadValue, read_xml: ReadText) -> SparqlResults:
    """Read the one thing in a text that is results with rows, or SPARQL results of any kind.

    Args:
        text: The text.
        read_value: Reads results from a parsed value.
        read_xml: Reads results from XML.

    Raises:
        CutOutput: They end before their end.
        UnreadableOutput: There are none, or several.
    """
    found: list[SparqlResults] = []
    at = end = 0
    for _ in range(_MOST_PLACES):
        match = _VALUE.search(text, at)
        if match is None:
            break
        try:
            results, at = _at(text, match.start(), read_value, read_xml)
        except CutOutput:
            raise
        except UnreadableOutput:
            if _PLAIN_START.match(text, match.start()):
                raise
            at = match.start() + 1
            continue
        if results is not None:
            found.append(results)
            end = at
    if len(found) > 1:
        raise UnreadableOutput(f"a text with {len(found)} things that may be the results")
    if not found:
        raise UnreadableOutput("a text without results")
    mark = cut_mark(text[end:])
    if mark is not None:
        raise CutOutput(f"after the results stands {mark!r}")
    return replace(found[0], form=f"{found[0].form} beside a sentence")


def _at(text: str, start: int, read_value: ReadValue, read_xml: ReadText) -> tuple[SparqlResults | None, int]:
    """Return what begins at a place of a text, None where it is a value but no results, and where that ends.

    Raises:
        CutOutput: It breaks off.
        UnreadableOutput: It is no value.
    """
    if text[start] == "<":
        closing = _XML_END.search(text, start)
        stop = closing.end() if closing else len(text)
        return read_xml(text[start:stop]), stop
    try:
        value, stop = json.JSONDecoder().raw_decode(text, start)
    except RecursionError:
        return None, len(text)
    except ValueError:
        where = cut_json(text[start:]) if _PLAIN_START.match(text, start) else None
        if where is not None:
            raise CutOutput(where) from None
        stop = python_end(text, start)
        value = python_value(text[start:stop])
    try:
        results = read_value(value)
    except CutOutput:
        raise
    except UnreadableOutput:
        return None, stop
    is_empty = not results.row_count and results.boolean is None and results.is_untyped
    return None if is_empty else results, stop
