"""Texts of datasets and agents as a report shows them: control characters visible, long ones shortened."""

import json
import re
from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.texts import shortened

_HEAD, _TAIL = 15_000, 5_000
_LONGEST = _HEAD + _TAIL
_LONGEST_NAME = 200
# A longer JSON text is left as it is, as it is only made longer.
_LONGEST_LAID_OUT = 8_000

# All controls but tab and newline, marks that change the direction of what follows, and halves of characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: object) -> str:
    r"""Give a text in which nothing hides: control characters as pictures, others that are not seen by their code.

    Example:
        >>> visible("a\x00b\u202ec")
        'a␀b⟨U+202E⟩c'
    """
    return _UNSEEN.sub(_shown_character, str(text).replace("\r\n", "\n"))


def _shown_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def one_line(text: object, length: int) -> str:
    r"""Give a text on one line, cut where it is longer than ``length`` characters.

    Example:
        >>> one_line("two\nlines", 5)
        'two l…'
    """
    return visible(shortened(str(text), length))


def shown_name(name: object) -> str:
    """Give an id or a name, of a question, a template, a tool or a metric, as it is shown everywhere."""
    return one_line(name, _LONGEST_NAME)


def without_middle(text: str) -> str:
    """Give a text without its middle where it is longer than 20,000 characters, and visible."""
    if len(text) <= _LONGEST:
        return visible(text)
    left_out = f"\n… {len(text) - _LONGEST:,} characters left out; the whole is in results.jsonl …\n"
    return visible(text[:_HEAD]) + left_out + visible(text[-_TAIL:])


def value_text(value: Any) -> str:
    """Give an output or another value as text; short JSON is laid out over lines.

    Example:
        >>> print(value_text('{"rows": [1, 2], "more": false}'))
        {
          "rows": [
            1,
            2
          ],
          "more": false
        }
    """
    if not isinstance(value, str):
        value = json_text(value)
    is_short_json = len(value) <= _LONGEST_LAID_OUT and value.lstrip()[:1] in ("{", "[")
    return without_middle(_laid_out(value) if is_short_json else value)


def _laid_out(text: str) -> str:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        return text
    rows = _rows_laid_out(value)
    return json_text(value, indent=2) if rows is None else rows


def _rows_laid_out(value: Any) -> str | None:
    """Give SPARQL results with a line for each row; None for all else."""
    if not isinstance(value, dict) or not isinstance(value.get("results"), dict):
        return None
    bindings = value["results"].get("bindings")
    if not isinstance(bindings, list) or len(value["results"]) > 1:
        return None
    rows = ",".join(f"\n  {json_text(row)}" for row in bindings)
    other = {key: item for key, item in value.items() if key != "results"}
    parts = [f"{json.dumps(key)}: {json_text(item)}" for key, item in other.items()]
    parts.append(f'"results": {{"bindings": [{rows}{chr(10) if rows else ""}]}}')
    return "{" + ",\n ".join(parts) + "}"


def args_text(args: Any) -> str:
    r"""Give the arguments of a call as text: a line each, texts of several lines below their name.

    Example:
        >>> print(args_text({"query": "ASK {\n}", "limit": 3}))
        query:
        ASK {
        }
        limit: 3
    """
    if not isinstance(args, Mapping):
        return "" if args is None else value_text(args)
    return without_middle("\n".join(_argument(str(name), value) for name, value in args.items()))


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return f"{name}:\n{text}" if "\n" in text.strip() else f"{name}: {text}"
