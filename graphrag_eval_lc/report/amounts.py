"""Numbers as the pages show them; formats.js says the same for what is filled in by the browser."""

from collections.abc import Callable, Mapping

from graphrag_eval_lc.comparison.numbers_text import value_text
from graphrag_eval_lc.prices import dollars

NOT_MEASURED = "–"


def score_text(value: float | None) -> str:
    """Give a score with three digits after the point.

    Example:
        >>> score_text(0.5), score_text(None)
        ('0.500', '–')
    """
    return NOT_MEASURED if value is None else f"{value:.3f}"


def amount_text(value: float | None, unit: str) -> str:
    """Give a value as text, by its unit: that of a metric, as its declaration has it.

    Example:
        >>> amount_text(1234567, "tokens"), amount_text(75, "seconds"), amount_text(0.0036, "usd")
        ('1,234,567', '1 min 15 s', '$0.0036')
        >>> amount_text(0.5, "score"), amount_text(3, "count"), amount_text(2.5, "km")
        ('0.500', '3', '2.50 km')
    """
    if value is None:
        return NOT_MEASURED
    if unit in _TEXTS:
        return _TEXTS[unit](value)
    return value_text(value, unit)


def figure_text(value: float | None, unit: str) -> str:
    """Give a value as text that is not broken between number and unit."""
    return amount_text(value, unit).replace(" ", "\N{NO-BREAK SPACE}")


def seconds_text(seconds: float) -> str:
    """Give a duration as text.

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


_TEXTS: Mapping[str, Callable[[float], str]] = {
    "score": score_text,
    "tokens": "{:,.0f}".format,
    "seconds": seconds_text,
    "usd": dollars,
    "count": _number_text,
}
