"""Texts for people: numbers with their nouns, lists of names, and texts cut to a length."""

from collections.abc import Sequence


def plural(number: int, one: str, many: str | None = None) -> str:
    """Return a noun, verb or pronoun in the form that goes with a number.

    Args:
        number: How many there are.
        one: The word for one.
        many: The word for other numbers; by default ``one`` with an s.

    Example:
        >>> plural(1, "row"), plural(0, "row"), plural(2, "it", "them")
        ('row', 'rows', 'them')
    """
    return one if number == 1 else many or f"{one}s"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun; the arguments are those of ``plural``.

    Example:
        >>> counted(1, "error"), counted(2000, "error"), counted(2, "retry", "retries")
        ('1 error', '2,000 errors', '2 retries')
    """
    return f"{number:,} {plural(number, one, many)}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names, and how many more there are.

    Args:
        names: All names.
        most: The largest number of names to list, at least 1.

    Example:
        >>> listed(["agent", "router"]), listed("abcdef", most=2)
        ('agent, router', 'a, b and 4 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shortened(text: str, length: int, *, keeps_lines: bool = False, tells: bool = False) -> str:
    r"""Return a text on one line, cut to a length and then followed by ``…``.

    Args:
        text: The text.
        length: The largest number of characters to keep, at least 1; ``…`` and what follows it come on top.
        keeps_lines: Whether white space stays, line breaks too; else each run of it becomes one space.
        tells: Whether to add how many characters are left out.

    Example:
        >>> shortened("two\n  lines", 20), shortened("two\n  lines", 5)
        ('two lines', 'two l…')
        >>> shortened("two\nlines", 3, keeps_lines=True, tells=True)
        'two… (6 characters left out)'
    """
    if not keeps_lines:
        # As many words as characters to keep are enough, so that a long text is not split to its end.
        text = " ".join(text.split(None, length))
    if len(text) <= length:
        return text
    said = f" ({counted(len(text) - length, 'character')} left out)" if tells else ""
    return f"{text[:length]}…{said}"
