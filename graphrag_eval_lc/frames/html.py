"""A small HTML table, as notebooks show it."""

from collections.abc import Iterable
from html import escape

_LEFT = ' style="text-align: left"'


def table_html(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """Give a table of names and values; whatever they hold is shown as text.

    Example:
        >>> "&lt;b&gt;" in table_html("A run", [("folder", "<b>")])
        True
    """
    cells = "".join(
        f'<tr><th scope="row"{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(value)}</td></tr>' for name, value in rows
    )
    return f"<table><caption{_LEFT}>{escape(caption)}</caption>{cells}</table>"
