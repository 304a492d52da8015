"""Amounts of money as people read them."""

from math import floor, log10


def dollars(amount: float) -> str:
    """Give USD as text: cents, and below 10 cents two digits that say something.

    Example:
        >>> dollars(1234.5), dollars(0.12), dollars(0.0036), dollars(0)
        ('$1,234.50', '$0.12', '$0.0036', '$0.00')
    """
    places = 2 if amount == 0 or abs(amount) >= 0.1 else min(1 - floor(log10(abs(amount))), 10)
    return f"${amount:,.{places}f}"
