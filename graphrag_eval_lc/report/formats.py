"""Names, texts and numbers as the pages and the terminal show them; formats.js does the same in the browser."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from graphrag_eval_lc.compare.metric_comparison import value_text
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import is_built_in, metric_spec
from graphrag_eval_lc.texts import shortened

NOT_MEASURED = "–"


def score_text(value: float | None) -> str:
    """Return a score with three digits after the point.

    Example:
        >>> score_text(0.5), score_text(None)
        ('0.500', '–')
    """
    return NOT_MEASURED if value is None else f"{value:.3f}"


def amount_text(value: float | None, unit: str) -> str:
    """Return a value as text, by its unit: that of a metric, as its declaration has it.

    Example:
        >>> amount_text(1234567, "tokens"), amount_text(75, "seconds"), amount_text(0.0036, "usd")
        ('1,234,567', '1 min 15 s', '$0.0036')
        >>> amount_text(0.5, "score"), amount_text(3, "count"), amount_text(2.5, "km")
        ('0.500', '3', '2.50 km')
    """
    if value is None:
        return NOT_MEASURED
    if unit in _TEXT_BY_UNIT:
        return _TEXT_BY_UNIT[unit](value)
    return value_text(value, unit)


def figure_text(value: float | None, unit: str) -> str:
    """Return a value as text that is not broken between number and unit."""
    return amount_text(value, unit).replace(" ", "\N{NO-BREAK SPACE}")


def seconds_text(seconds: float) -> str:
    """Return a duration as text.

    Example:
        >>> seconds_text(0.0042), seconds_text(0.42), seconds_text(12.34), seconds_text(7325)
        ('4 ms', '0.42 s', '12.3 s', '2 h 2 min')
    """
    if seconds >= 3600:
        minutes = round(seconds / 60)
        return f"{minutes // 60} h {minutes % 60} min"
    if seconds >= 60:
        whole = round(seconds)
        return f"{whole // 60} min {whole % 60} s"
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if 0 < seconds < 0.0995 else f"{seconds:.2f} s"


def _number_text(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"


_TEXT_BY_UNIT: Mapping[str, Callable[[float], str]] = {
    "score": score_text,
    "tokens": "{:,.0f}".format,
    "seconds": seconds_text,
    "usd": dollars,
    "count": _number_text,
}


_SCORE = "score"


def score_display(metric: str) -> dict[str, Any]:
    """Return what a page must know of a score beside its name; nothing of most.

    Returns:
        ``unit``, where it is not ``score``; of a metric of a user's own, where they are declared, also ``note`` (its
        title, and that less is better), ``lower`` (where that is so), ``best`` and ``worst`` (the ends of its range,
        None where there is none), and ``failed`` and ``failure_note`` (what a failed question counts as, None where it
        does not count), where that is not 0.

    Example:
        >>> score_display("tone"), score_display("saved_sec")
        ({}, {'unit': 'seconds'})
    """
    spec = metric_spec(metric)
    display: dict[str, Any] = {} if spec.unit == _SCORE else {"unit": spec.unit}
    if is_built_in(metric):
        return display
    title = [spec.title] if spec.title != spec.key else []
    if note := "; ".join([*title, *(["less is better"] if spec.lower_is_better else [])]):
        display["note"] = note
    low, high = spec.range
    if spec.lower_is_better:
        display["lower"] = True
    if spec.lower_is_better or (low, high) != (None, None):
        display["worst"], display["best"] = (high, low) if spec.lower_is_better else (low, high)
    if (failed := spec.value_of_failure) != 0:
        display["failed"] = failed
        if spec.kind == _SCORE:
            counts = "does not count" if failed is None else f"counts as {amount_text(failed, spec.unit)}"
            display["failure_note"] = f"an error {counts}"
    return display


def passing_sign(metric: str) -> str:
    """Return how a metric of a sample that passed stands to the threshold."""
    return "≤" if metric_spec(metric).lower_is_better else "≥"


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
    r"""Return a text in which nothing hides: control characters as pictures, others that are not seen by their code.

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
    r"""Return a text on one line, cut where it is longer than ``length`` characters.

    Example:
        >>> one_line("two\nlines", 5)
        'two l…'
    """
    return visible(shortened(str(text), length))


def shown_name(name: object) -> str:
    """Return an id or a name, of a question, a template, a tool or a metric, as it is shown everywhere."""
    return one_line(name, _LONGEST_NAME)


def without_middle(text: str) -> str:
    """Return a text without its middle where it is longer than 20,000 characters, and visible."""
    if len(text) <= _LONGEST:
        return visible(text)
    left_out = f"\n… {len(text) - _LONGEST:,} characters left out; the whole is in results.jsonl …\n"
    return visible(text[:_HEAD]) + left_out + visible(text[-_TAIL:])


def shown_value(value: Any) -> str:
    """Return an output or another value as text; short JSON is laid out over lines.

    Example:
        >>> print(shown_value('{"rows": [1, 2], "more": false}'))
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
    """Return SPARQL results with a line for each row; None for all else."""
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
    r"""Return the arguments of a call as text: a line each, texts of several lines below their name.

    Example:
        >>> print(args_text({"query": "ASK {\n}", "limit": 3}))
        query:
        ASK {
        }
        limit: 3
    """
    if not isinstance(args, Mapping):
        return "" if args is None else shown_value(args)
    return without_middle("\n".join(_argument(str(name), value) for name, value in args.items()))


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else json_text(value)
    return f"{name}:\n{text}" if "\n" in text.strip() else f"{name}: {text}"
