"""Numbers of a comparison as people read them."""

from typing import Literal

from graphrag_eval_lc.prices import dollars

Unit = Literal["score", "tokens", "seconds", "usd"]


def unit_of(metric: str) -> Unit:
    """Give the unit of a metric, which its name tells.

    Example:
        >>> unit_of("total_tokens"), unit_of("agent_cost"), unit_of("elapsed_sec"), unit_of("steps_score")
        ('tokens', 'usd', 'seconds', 'score')
    """
    if metric.endswith("_tokens"):
        return "tokens"
    if metric.endswith("_sec"):
        return "seconds"
    return "usd" if metric.endswith("_cost") else "score"


def value_text(value: float, unit: Unit) -> str:
    """Give a mean as text.

    Example:
        >>> value_text(0.71254, "score"), value_text(5297.4, "tokens"), value_text(0.0036, "usd")
        ('0.713', '5,297', '$0.0036')
    """
    if unit == "usd":
        return f"{'−' if value < 0 else ''}{dollars(abs(value))}"
    text = format(value, {"tokens": ",.0f", "seconds": ",.2f", "score": ",.3f"}[unit])
    # What rounds to nothing has no sign.
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text.lstrip("-")


def change_text(value: float, unit: Unit) -> str:
    """Give a difference as text, with its sign.

    Example:
        >>> change_text(0.0204, "score"), change_text(-120.0, "tokens"), change_text(0.0, "seconds")
        ('+0.020', '−120', '0.00')
    """
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and any(digit in text for digit in "123456789") else text


def p_text(p_value: float) -> str:
    """Give a p-value as text.

    Example:
        >>> p_text(0.0123), p_text(0.00001), p_text(1.0)
        ('0.012', '< 0.001', '1.000')
    """
    return "< 0.001" if p_value < 0.001 else format(p_value, ".3f")
