"""Numbers of a comparison as people read them."""

from math import floor, log10

from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metric_spec import Unit

_FORMATS = {"tokens": ",.0f", "seconds": ",.2f", "score": ",.3f", "count": ",.3f"}
# How many digits a number of a user's own unit has at least, and how many of them stand behind the point at most.
_DIGITS, _MOST_DECIMALS = 3, 6


def value_text(value: float, unit: Unit) -> str:
    """Give a mean as text; a unit of a user's own stands behind the number.

    Example:
        >>> value_text(0.71254, "score"), value_text(5297.4, "tokens"), value_text(0.0036, "usd")
        ('0.713', '5,297', '$0.0036')
        >>> value_text(12, "km"), value_text(-0.0123, "km"), value_text(5297.4, "km")
        ('12.0 km', '−0.0123 km', '5,297 km')
    """
    if unit == "usd":
        return f"{'−' if value < 0 else ''}{dollars(abs(value))}"
    known = _FORMATS.get(unit)
    text = format(value, known or f",.{_decimals(value)}f")
    # What rounds to nothing has no sign.
    shown = text.replace("-", "−") if _is_something(text) else text.lstrip("-")
    return shown if known else f"{shown} {unit}"


def change_text(value: float, unit: Unit) -> str:
    """Give a difference as text, with its sign.

    Example:
        >>> change_text(0.0204, "score"), change_text(-120.0, "tokens"), change_text(0.0, "seconds")
        ('+0.020', '−120', '0.00')
    """
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and _is_something(text) else text


def p_text(p_value: float) -> str:
    """Give a p-value as text.

    Example:
        >>> p_text(0.0123), p_text(0.00001), p_text(1.0)
        ('0.012', '< 0.001', '1.000')
    """
    return "< 0.001" if p_value < 0.001 else format(p_value, ".3f")


def _is_something(text: str) -> bool:
    return any(digit in text for digit in "123456789")


def _decimals(value: float) -> int:
    return min(_MOST_DECIMALS, max(0, _DIGITS - 1 - floor(log10(abs(value))))) if value else 0
