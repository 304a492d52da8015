"""Checks the outputs of steps: why one is unreadable, whether it is cut, and where in it the results are."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic_core import from_json

from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.texts import listed, shortened

_SHORT: Final = 60


class UnreadableOutput(ValueError):  # noqa: N818 - it names what was found, as KeyError's relatives do
    """An output is not what its media type says; the message says what it is instead."""


class CutOutput(UnreadableOutput):
    """An output is cut, and what is left does not show whether it matches; the message says at what point."""


_MARK: Final = re.compile(
    r"(?:(?:\.\.\.|…)[ \t]{0,3})?\[[^\[\]\n]{0,60}\b(?:truncated|omitted|cut off)\b[^\[\]\n]{0,60}\]"
    r"|(?:(?:\.\.\.|…)[ \t]{0,3})?\([^()\n]{0,60}\b(?:truncated|omitted|cut off)\b[^()\n]{0,60}\)"
    r"|<[^<>\n]{0,60}\b(?:truncated|omitted|cut off)\b[^<>\n]{0,60}>"
    r"|(?:\.\.\.|…)[ \t]{0,3}(?:\(?(?:and )?\+?[\d,]{1,12} (?:more|further|other)\b|(?:output )?truncated\b)[^\n]{0,40}"
    r"|\(\+?[\d,]{1,12} more (?:rows?|lines?|characters?|chars?|bytes|results?|items?|entries|records)\b[^()\n]{0,40}\)"
    r"|(?:^|\n)[ \t]{0,3}(?:[Oo]utput|[Rr]esults?|[Rr]esponse) (?:was |were |is |are )?truncated\b[^\n]{0,60}"
)
_NOT: Final = re.compile(r"\b(?:no|not|nothing|never)\b", re.IGNORECASE)
_WORDS_OF_MARKS: Final = ("truncated", "omitted", "cut off", " more", " further", " other")
_LONGEST_TAIL: Final = 300
_LONGEST_NOTE: Final = 600
_ELLIPSIS: Final = re.compile(r"(?:\.\.\.|…)\s{0,20}\Z")


def cut_mark(text: str) -> str | None:
    """Return the note at the end of a text with which a tool says that it cut the text, or None."""
    tail = text[-_LONGEST_TAIL:]
    if not any(word in tail for word in _WORDS_OF_MARKS):  # each mark has one of them
        return None
    found = [match for match in _MARK.finditer(tail) if not tail[match.end() :].strip(" \t\r\n.…`|")]
    found = [match for match in found if _NOT.search(match[0]) is None]
    return printable(shortened(found[-1][0].strip(), _SHORT)) if found else None


_SAID_CUT: Final = re.compile(
    r"\b(?P<no>no|not|nothing|never|without)\b[^.\n]{0,30}\b(?:truncated|cut off)\b|\b(?:truncated|cut off)\b"
    r"|\bonly (?:the )?(?:first|top) \d|(?P<shown>\d[\d,]{0,12}) (?:rows |results |records )?(?:out )?of "
    r"(?:about |over |more than )?(?P<all>\d[\d,]{0,12}) (?:rows|results|records|items|matches)\b",
    re.IGNORECASE,
)


def refuse_cut_in_words(text: str) -> None:
    """Raise CutOutput if a sentence next to results says that they are not all."""
    for found in _SAID_CUT.finditer(text):
        shown, whole = (int((found[name] or "0").replace(",", "")) for name in ("shown", "all"))
        if found["no"] is None and (found["all"] is None or shown < whole):
            raise CutOutput(f"next to the results is {printable(shortened(found[0], _SHORT))!r}")


ERROR_KEYS: Final = frozenset({"error", "errors", "exception", "traceback"})


def refuse_error_report(value: Mapping[Any, Any]) -> None:
    """Raise UnreadableOutput for an object in which a tool reports an error."""
    is_failure = value.get("isError") is True or value.get("success") is False
    is_failure = is_failure or str(value.get("status")).lower() in ("error", "failed", "failure")
    if is_failure or any(part for key, part in value.items() if str(key).lower() in ERROR_KEYS):
        known = (part for key, part in value.items() if str(key).lower() in {*ERROR_KEYS, "message"} and part)
        message = next(known, "no message")
        shown = message if isinstance(message, str) else json_text(message)
        raise UnreadableOutput(f"an error: {printable(shortened(shown[:400], 100))}")


def is_prose(text: str) -> bool:
    """Return whether a text is prose (at least a sentence) and not a value."""
    text = text.strip()
    return " " in text and ("\n" in text or text.endswith((".", "!", "?", ":", "…")) or len(text) > 100)


_NO_ROWS: Final = re.compile(
    r"""\W{0,5}(?:(?:the\ )?(?:\w{1,10}\ )?(?:query|search)\b[^\n]{0,60}?\W)?  # it may say what found nothing
    (?:(?:no|0|zero|empty|(?:did\ not|didn't)\ (?:return|find|match)\ any)\ (?:\w{1,10}\ )?
    (?:results?|rows?|records?|data|match(?:es)?|bindings|answers?|entries)(?:\ set)?|nothing(?=\ (?:was\ )?found))
    (?:\ (?:was|were))?(?:\ (?:found|returned|available|matched))?
    (?:\ (?:for|by|in|with|on|matching|from)\b[^.!\n]{0,200})?(?:\W{0,3}|\W{0,2}[.!\n][^\[{|<]{0,300})""",
    re.IGNORECASE | re.VERBOSE,
)
_ERROR_IN_WORDS: Final = re.compile(
    r"error|exception|fail(?:ed|ure)|time[d -]{0,2}out|denied|refused|invalid|malformed|bad(?:ly)? ?(?:formed|request)"
    r"|unable|could ?n[o']t|traceback",
    re.IGNORECASE,
)


def error_in_words(text: str) -> str | None:
    """Return the line that names an error in a text that seems to report one, as tools write it for the model."""
    lines = text.strip().split("\n")
    line = lines[-1 if lines[0].startswith("Traceback (") else 0]
    return printable(shortened(line, 100)) if _ERROR_IN_WORDS.search(lines[0][:60]) else None


def says_no_rows(output: Any) -> bool:
    """Return whether an output is a sentence that a query found nothing, as many tools write it, and not an error.

    Example:
        >>> says_no_rows("The query returned no results. Try a broader class."), says_no_rows("No data: timeout")
        (True, False)
    """
    is_short = isinstance(output, str) and len(output) <= _LONGEST_NOTE
    return is_short and _NO_ROWS.fullmatch(output.strip()) is not None and _ERROR_IN_WORDS.search(output) is None


def cut_json(text: str) -> str | None:
    """Return the place at which a JSON text breaks off; None if it is invalid for another reason."""
    start = text.lstrip("\ufeff \t\r\n")
    if start[:1] not in {"{", "[", '"'}:
        return None
    if _is_json_beginning(start):
        return f"the JSON breaks off{_json_place(start)}"
    if any(word in text for word in _WORDS_OF_MARKS) and (mark := _MARK.search(text)) is not None:
        before, said = text[: mark.start()], repr(printable(shortened(mark[0].strip(), _SHORT)))
        if _is_json_beginning(before):
            return f"the JSON breaks off{_json_place(before)}, at {said}"
        if cut_mark(text) and _is_json_beginning(before, or_whole=True):
            return f"after the JSON is {said}"
    if (ellipsis := _ELLIPSIS.search(text, max(0, len(text) - 30))) and _is_json_beginning(text[: ellipsis.start()]):
        return f"the JSON breaks off{_json_place(text[: ellipsis.start()])}, at an ellipsis"
    return None


_SPLIT_TOKEN: Final = re.compile(r"-|\.|[eE][+-]?|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?")


def _is_json_beginning(text: str, *, or_whole: bool = False) -> bool:
    """Return whether a text is a JSON value without its end or, with ``or_whole``, a complete one."""
    text = text.lstrip("\ufeff \t\r\n").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        if problem.msg.startswith("Unterminated string"):
            return True
        if problem.msg.startswith("Invalid \\u"):
            return problem.pos >= len(text) - 6 and '"' not in text[problem.pos :]
        is_at_end = problem.pos >= len(text) or _SPLIT_TOKEN.fullmatch(text, problem.pos) is not None
        return is_at_end and bool(text)
    except (ValueError, RecursionError):  # a number of too many digits, or nested too deeply
        return False
    return or_whole


def _json_place(text: str) -> str:
    try:
        value = from_json(text.lstrip("\ufeff \t\r\n"), allow_partial=True)
    except (ValueError, TypeError):
        return ""
    for _ in range(4):
        if isinstance(value, list):
            return f" in row {len(value)}" if value else ""
        if not isinstance(value, dict) or not value:
            return ""
        value = list(value.values())[-1]
    return ""


def parsed_json(text: str) -> Any:
    """Return the value of a JSON text, with or without a byte order mark."""
    try:
        return parse_json(text.removeprefix("\ufeff"))
    except RecursionError:
        raise UnreadableOutput("JSON that is nested too deeply") from None
    except ValueError as problem:
        where = cut_json(text)
        if where is not None:
            raise CutOutput(where) from None
        raise UnreadableOutput(f"not JSON ({problem})") from None


def printable(text: str) -> str:
    """Return a string without lone surrogates, which cannot be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def value_at(value: Any, path: str) -> Any:
    """Return the part of a JSON output at a path of keys, and of indices in arrays, such as ``result.rows``."""
    walked = ""
    for key in path.split("."):
        if isinstance(value, str):
            try:
                value = parsed_json(value)
            except CutOutput:
                raise
            except UnreadableOutput as problem:
                place = f"the value at {walked}" if walked else "the output"
                raise UnreadableOutput(f"{place} is {problem}, so it has no {path} (steps.outputs)") from None
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, Sequence) and key.isascii() and key.isdigit() and int(key[:9]) < len(value):
            value = value[int(key)]
        else:
            where = f"{walked} has" if walked else "the output has"
            raise UnreadableOutput(f"{where} no key {key} (steps.outputs says {path}); {_parts(value)}")
        walked = f"{walked}.{key}" if walked else key
    return value


def _parts(value: Any) -> str:
    if isinstance(value, Mapping):
        keys = [printable(shortened(str(key), 30)) for key in value]
        return f"its keys are {listed(keys)}" if keys else "it is empty"
    if isinstance(value, list):
        return f"it is an array of {len(value)}"
    return f"it is {shortened(json_text(value), 40)}"
