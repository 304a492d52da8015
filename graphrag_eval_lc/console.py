"""The one way to print for people: data is text, never markup, an emoji code or something that a terminal obeys."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from graphrag_eval_lc.texts import visible, without_commands


class DataConsole(Console):
    r"""A console of ``rich`` whose texts all pass ``visible``; only its own styles and cursor moves reach the terminal.

    Neither ``[brackets]`` nor ``:names:`` mean anything to it, and it colours nothing by what a text looks like. The
    cursor stays visible, so that a killed process does not leave a terminal without one.

    Args:
        **options: The options of ``rich``'s console.

    Example:
        >>> import io
        >>> console = DataConsole(file=io.StringIO(), width=40)
        >>> console.print("[red] urn:a:x \x1b[2J")
        >>> console.file.getvalue()
        '[red] urn:a:x ␛[2J\n'
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, markup=False, emoji=False, highlight=False)

    def show_cursor(self, show: bool = True) -> bool:
        """Leave the cursor as it is, and say so."""
        return False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a string as a text in which nothing hides."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield what is to be written; whatever a renderable gives, its texts are visible."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """Return the lines as they are written; the layout of a cell may put any text at the start of a line."""
        return without_commands(super()._render_buffer(buffer))


def data_text(value: object, style: str = "", *, keeps_lines: bool = False) -> Text:
    r"""Return data as a text for a cell of a table, safe on any console of ``rich``.

    Args:
        value: The data.
        style: A style of ``rich`` for all of it.
        keeps_lines: Whether its line breaks and tabs stay; else they are shown as signs.

    Example:
        >>> data_text("urn:a:x\n[red]").plain
        'urn:a:x␊[red]'
    """
    return Text(visible(value, keeps_lines=keeps_lines), style)
