"""Formats texts for messages: plurals, lists of names, shortened texts, and texts with hidden characters shown."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import TypeVar

T = TypeVar("T")


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
    """Return the first names and how many more there are, on one line.

    Args:
        names: All names.
        most: The largest number of names to list, at least 1.

    Example:
        >>> listed(["agent", "router"]), listed("abcdef", most=2)
        ('agent, router', 'a, b and 4 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(visible(name, keeps_lines=False) for name in names[:most]) + more


def shortened(text: str, length: int, *, keeps_lines: bool = False, counts_rest: bool = False) -> str:
    r"""Return a text on one line, cut to a length and then followed by ``…``.

    Args:
        text: The text.
        length: The largest number of characters to keep, at least 1; ``…`` and what follows it are not counted.
        keeps_lines: Whether to keep white space, including line breaks; otherwise each run of it becomes one space.
        counts_rest: Whether to add how many characters were left out.

    Example:
        >>> shortened("two\n  lines", 20), shortened("two\n  lines", 5)
        ('two lines', 'two l…')
        >>> shortened("two\nlines", 3, keeps_lines=True, counts_rest=True)
        'two… (6 characters left out)'
    """
    if not keeps_lines:
        # ``length`` words are enough, so a long text need not be split to its end.
        text = " ".join(text.split(None, length))
    if len(text) <= length:
        return text
    said = f" ({counted(len(text) - length, 'character')} left out)" if counts_rest else ""
    return f"{text[:length]}…{said}"


# All control characters but tab and newline, marks that change the direction of text, other marks without a width,
# separators of lines and paragraphs, and lone surrogates. Joiners stay: emoji and several scripts need them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_PICTURES = 0x2400  # of control characters, in their order
_SEEN_ASCII = bytes(range(0x20, 0x7F)) + b"\t\n"


def visible(text: object, *, keeps_lines: bool = True) -> str:
    r"""Return a text in which nothing hides: control characters as pictures, other unseen ones as their codes.

    No terminal obeys the result, and no bidirectional mark reorders it.

    Args:
        text: The text, or a value that ``str`` converts.
        keeps_lines: Whether to keep line breaks and tabs; otherwise they are shown as pictures too.

    Example:
        >>> visible("a\x00b\u202ec\n"), visible("a\nb", keeps_lines=False)
        ('a␀b⟨U+202E⟩c\n', 'a␊b')
    """
    shown = str(text)
    if shown.isprintable():  # as nearly all are
        return shown
    if keeps_lines and shown.isascii() and not shown.encode().translate(None, _SEEN_ASCII):
        return shown
    shown = _UNSEEN.sub(_shown_character, shown.replace("\r\n", "\n"))
    return shown if keeps_lines else shown.replace("\n", "␊").replace("\t", "␉")


# Commands that CI services obey in the output of a step: ::error:: at the start of a line; ##[error], ##vso[…] and
# ##teamcity[…] anywhere.
_COMMAND = re.compile(r"^([^\S\n]*)(:)(?=:[A-Za-z])|()(#)(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE)


_LONGEST_NAME = 200


def one_line(text: object, length: int) -> str:
    r"""Return a text on one line, cut to ``length`` characters.

    Example:
        >>> one_line("two\nlines", 5)
        'two l…'
    """
    text = str(text)
    if len(text) <= length and text.isprintable() and "  " not in text and text == text.strip(" "):
        return text  # as most are
    return visible(shortened(text, length))


def shown_name(name: object) -> str:
    """Return the id or name of a question, template, tool or metric in the form for all messages and reports."""
    if isinstance(name, str) and len(name) <= _LONGEST_NAME and name.isprintable() and " " not in name:
        return name  # as most are
    return one_line(name, _LONGEST_NAME)


def without_commands(text: str) -> str:
    r"""Return a text in which continuous integration finds no command: its first character is put into brackets.

    Example:
        >>> without_commands(" ::error::x\na::b"), without_commands("an ##[error] x")
        (' ⟨:⟩:error::x\na::b', 'an ⟨#⟩#[error] x')
    """
    if "::" not in text and "##" not in text:
        return text
    return _COMMAND.sub(lambda found: f"{found[1] or ''}⟨{found[2] or found[4]}⟩", text)


def on_one_line(text_of: Callable[[T], str]) -> Callable[[T], str]:
    """Decorate a method that returns a text, such as ``__str__``, so that the text is visible and on one line."""

    @wraps(text_of)
    def text(self: T) -> str:
        return visible(text_of(self), keeps_lines=False)

    return text


def _shown_character(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_PICTURES + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"


def shown_html(text: object) -> str:
    r"""Return a text for a page or a notebook: visible, and no markup.

    Example:
        >>> shown_html("<b> \x1b")
        '&lt;b&gt; ␛'
    """
    return escape(visible(text))


def visible_json(text: str, *, only_ascii: bool = False) -> str:
    r"""Return a JSON document in which nothing hides, as escapes of JSON: what is read from it stays the same.

    Args:
        text: The document.
        only_ascii: Whether all that is not ASCII is escaped.

    Example:
        >>> visible_json('{"name": "\x9b\u202eÅ ##[x]"}')
        '{"name": "\\u009b\\u202eÅ \\u0023#[x]"}'
    """
    shown = (_NOT_ASCII if only_ascii else _UNSEEN).sub(_escaped_character, text)
    return _COMMAND.sub(_escaped_character, shown) if "##" in shown else shown


_NOT_ASCII = re.compile("[^\t\n\x20-\x7e]")


def _escaped_character(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def edit_distance(one: str, other: str) -> int:
    """Return how many letters must be changed, added, removed or swapped with their neighbour between two words.

    Each part of a word is edited once (optimal string alignment).

    Example:
        >>> edit_distance("ouput", "output"), edit_distance("stpes", "steps"), edit_distance("same", "same")
        (1, 1, 0)
    """
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        line = [row]
        for column, of_other in enumerate(other, start=1):
            cost = min(above[column] + 1, line[-1] + 1, above[column - 1] + (letter != of_other))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == of_other:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, above = above, line
    return above[-1]


def text_of(value: object) -> str:
    """Return ``str(value)``, or the name of its type in angle brackets if that raises."""
    try:
        return str.__str__(str(value))
    except Exception:
        return f"<{type(value).__name__}>"


def error_text(error: object) -> str:
    """Return ``ExceptionType: message``, or only the type if there is no message, so that it is never empty.

    Example:
        >>> error_text(KeyError("x")), error_text(TimeoutError())
        ("KeyError: 'x'", 'TimeoutError')
    """
    if not isinstance(error, BaseException):
        return text_of(error).strip() or type(error).__name__
    message = _remote_error(error) or text_of(error).strip()
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _remote_error(error: BaseException) -> str | None:
    """Return the text of an error that a LangGraph server reported as a dict; None for other errors."""
    body = error.args[0] if type(error).__name__ == "RemoteException" and error.args else None
    if not isinstance(body, Mapping) or not body.get("error"):
        return None
    return ": ".join(text_of(body[key]) for key in ("error", "message") if body.get(key))


def range_text(least: float | None, greatest: float | None) -> str:
    """Return a range in words, if it has a bound.

    Example:
        >>> range_text(0, 1), range_text(1, None), range_text(None, 5)
        ('from 0 to 1', 'from 1', 'to 5')
    """
    bounds = [f"from {least:g}" if least is not None else "", f"to {greatest:g}" if greatest is not None else ""]
    return " ".join(filter(None, bounds))
