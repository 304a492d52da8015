"""Names, texts and values as pages and terminal show them; formats.js does the same in the browser."""

from collections.abc import Callable, Mapping
from typing import Any

from graphrag_eval_lc.compare.metric_comparison import value_text
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.rows.row_steps import CYPHER_QUERY, SPARQL_QUERY
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import is_built_in, metric_spec
from graphrag_eval_lc.texts import visible


def amount_text(value: float | None, unit: str) -> str:
    """Return a value as text, by the unit of its metric.

    Example:
        >>> amount_text(1234567, "tokens"), amount_text(75, "seconds"), amount_text(0.0036, "usd")
        ('1,234,567', '1 min 15 s', '$0.0036')
        >>> amount_text(0.5, "score"), amount_text(3, "count"), amount_text(2.5, "km"), amount_text(None, "score")
        ('0.500', '3', '2.50 km', '–')
    """
    if value is None:
        return "–"
    if unit in _TEXT_BY_UNIT:
        return _TEXT_BY_UNIT[unit](value)
    return value_text(value, unit)


def unbroken_amount_text(value: float | None, unit: str) -> str:
    """Return a value as text without a line break between number and unit."""
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


_TEXT_BY_UNIT: Mapping[str, Callable[[float], str]] = {
    "score": "{:.3f}".format,
    "tokens": "{:,.0f}".format,
    "seconds": seconds_text,
    "usd": dollars,
    "count": lambda value: f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}",
}


def score_display(metric: str) -> dict[str, Any]:
    """Return how a page shows a score that is not shown in the usual way; empty for most.

    The keys are ``unit`` and what users declare for their metrics: a ``note``, whether lower is better (``lower``),
    the ends of its range (``best``, ``worst``), and what a failed question counts as (``failed``, ``failure_note``).

    Example:
        >>> score_display("tone"), score_display("saved_sec")
        ({}, {'unit': 'seconds'})
    """
    spec = metric_spec(metric)
    display: dict[str, Any] = {} if spec.unit == "score" else {"unit": spec.unit}
    if is_built_in(metric):
        return display
    notes = (spec.title if spec.title != spec.key else "", "less is better" if spec.lower_is_better else "")
    if note := "; ".join(filter(None, notes)):
        display["note"] = note
    low, high = spec.range
    if spec.lower_is_better:
        display |= {"lower": True, "worst": high, "best": low}
    elif (low, high) != (None, None):
        display |= {"worst": low, "best": high}
    if (failed := spec.value_of_failure) != 0:
        display["failed"] = failed
        if spec.kind == "score":
            counts = "does not count" if failed is None else f"counts as {amount_text(failed, spec.unit)}"
            display["failure_note"] = f"an error {counts}"
    return display


_HEAD, _TAIL = 15_000, 5_000
_LONGEST = _HEAD + _TAIL


def without_middle(shown: object) -> str:
    """Return a text with hidden characters made visible; if it exceeds 20,000 characters, its middle is cut out."""
    text = str(shown)
    if len(text) <= _LONGEST:
        return visible(text)
    left_out = f"\n… {len(text) - _LONGEST:,} characters left out; the whole is in results.jsonl …\n"
    return visible(text[:_HEAD]) + left_out + visible(text[-_TAIL:])


def if_known(show: Callable[[Any], str], value: Any) -> str | None:
    """Return a value as text, made by ``show``; None if it is None."""
    return None if value is None else show(value)


def known_only(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without the keys whose values are None."""
    return {key: value for key, value in record.items() if value is not None}


def shown_value(value: Any) -> str:
    """Return any value, such as an output, as text; if it is not a text, as JSON."""
    return without_middle(value if isinstance(value, str) else json_text(value))


def args_text(args: Any) -> str:
    r"""Return the arguments of a call as text: one per line, multi-line texts below their name.

    Example:
        >>> print(args_text({"query": "ASK {\n}", "limit": 3}))
        query:
        ASK {
        }
        limit: 3
    """
    if not isinstance(args, Mapping):
        return "" if args is None else shown_value(args)
    lines = []
    for name, value in args.items():
        text = value if isinstance(value, str) else json_text(value)
        lines.append(f"{name}:\n{text}" if "\n" in text.strip() else f"{name}: {text}")
    return without_middle("\n".join(lines))


_QUERY_NAMES = ("query", "sparql", SPARQL_QUERY, "cypher", CYPHER_QUERY, "sql", "statement")


def call_texts(args: Any) -> dict[str, str]:
    """Return the arguments of a call as texts: ``query``, if there is one, and ``args``, the others.

    Example:
        >>> call_texts({"query": "ASK {}", "limit": 3}), call_texts({"limit": 3})
        ({'query': 'ASK {}', 'args': 'limit: 3'}, {'args': 'limit: 3'})
    """
    for name in _QUERY_NAMES if isinstance(args, Mapping) else ():
        if name in args and isinstance(query := args[name], str):
            rest = {key: value for key, value in args.items() if key != name}
            return {"query": without_middle(query), **({"args": args_text(rest)} if rest else {})}
    text = args_text(args)
    return {"args": text} if text else {}
