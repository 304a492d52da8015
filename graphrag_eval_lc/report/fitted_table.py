"""A table for a terminal that fits its width: ids are shortened and columns left out, and nothing wraps."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import rich.console as terminal
from rich.cells import cell_len, set_cell_size
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.texts import visible

_SHORTEST_ID: Final = 24  # a column is left out before ids become shorter than this
_NOTHING: Final = frozenset({"", "–"})
_PADDING = 3  # per column: a space on each side, and a rule


@dataclass(frozen=True, slots=True)
class Column:
    """A column other than the id column; its heading may break after spaces and underscores."""

    heading: str
    rank: int = 0  # columns with the highest rank are left out first if there is not enough room; 0 always stays
    nothing: frozenset[str] = _NOTHING  # texts that say nothing: a column is left out if it has no others
    longest: int | None = None  # the width to which its texts may be shortened; numbers never are


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table whose rows begin with an id; ``rich`` prints it, with a caption from the headings that are shown."""

    id_heading: str
    columns: Sequence[Column]
    rows: Sequence[tuple[str, Sequence[str]]]
    title: str | None = None
    caption: Callable[[Sequence[str]], str | None] = lambda headings: None
    totals: Sequence[tuple[str, Sequence[str]]] = ()  # in bold at the end

    def __rich_console__(self, console: terminal.Console, options: terminal.ConsoleOptions) -> terminal.RenderResult:
        """Yield the title, the table and the caption, each in the whole width."""
        rows = [cells for _, cells in (*self.rows, *self.totals)]
        has_text = [any(cells[at] not in column.nothing for cells in rows) for at, column in enumerate(self.columns)]
        places = [at for at, is_shown in enumerate(has_text) if is_shown]
        shown, is_tight = self._fitting(places, options.max_width)
        if self.title is not None:
            yield data_text(self.title, "bold")
        yield self._table(shown, options.max_width, is_tight=is_tight)
        headings = [self.columns[at].heading for at in shown]
        left_out = ", ".join(self.columns[at].heading for at in places if at not in shown)
        notes = filter(None, (self.caption(headings), left_out and f"Not enough room for: {left_out}"))
        if caption := "\n".join(notes):
            yield data_text(caption, "table.caption", keeps_lines=True)

    def _fitting(self, places: Sequence[int], width: int) -> tuple[list[int], bool]:
        """Return the indices of the columns that are shown, and whether their headings break."""
        longest = max(
            cell_len(_shown(name)) for name in (self.id_heading, *(name for name, _ in (*self.rows, *self.totals)))
        )
        for is_tight in (False, True):
            if self._left_for_ids(places, width, is_tight=is_tight) >= longest:
                return list(places), is_tight
        shown = list(places)
        while self._left_for_ids(shown, width, is_tight=True) < min(longest, _SHORTEST_ID):
            least = max(shown, key=lambda at: (self.columns[at].rank, at), default=None)
            if least is None or not self.columns[least].rank:
                break
            shown.remove(least)
        return shown, True

    def _left_for_ids(self, places: Iterable[int], width: int, *, is_tight: bool) -> int:
        return width - 2 - sum(self._width(at, is_tight=is_tight) + _PADDING for at in places)

    def _width(self, at: int, *, is_tight: bool) -> int:
        column = self.columns[at]
        cells = max((cell_len(_shown(cells[at])) for _, cells in (*self.rows, *self.totals)), default=0)
        if is_tight and column.longest is not None:
            cells = min(cells, column.longest)
        return max(cells, *map(cell_len, _heading_lines(column.heading, is_tight=is_tight)))

    def _table(self, places: Sequence[int], width: int, *, is_tight: bool) -> Table:
        table = Table(show_edge=False)
        table.add_column(self.id_heading, max_width=max(1, self._left_for_ids(places, width, is_tight=is_tight)))
        for at in places:
            column = self.columns[at]
            heading = data_text("\n".join(_heading_lines(column.heading, is_tight=is_tight)), keeps_lines=True)
            side = "right" if column.longest is None else "left"
            table.add_column(heading, justify=side, no_wrap=True, width=self._width(at, is_tight=is_tight))  # type: ignore[arg-type]
        for group, style in ((self.rows, ""), (self.totals, "bold")):
            for name, cells in group:
                shown = (Shortened(cells[at]) if self.columns[at].longest else data_text(cells[at]) for at in places)
                table.add_row(Shortened(name), *shown, style=style)
            table.add_section()
        return table


@dataclass(frozen=True, slots=True)
class Shortened:
    """An id on one line, shortened in its middle if it is too long for its column; ``rich`` prints it."""

    text: str
    style: str = ""

    def __rich_console__(self, console: terminal.Console, options: terminal.ConsoleOptions) -> terminal.RenderResult:
        """Yield the id, shortened to the available width."""
        yield Text(shortened_id(_shown(self.text), options.max_width), self.style, no_wrap=True)

    def __rich_measure__(self, console: terminal.Console, options: terminal.ConsoleOptions) -> Measurement:
        """Return its smallest and its largest width."""
        return Measurement(1, max(1, cell_len(_shown(self.text))))


def shortened_id(text: str, width: int) -> str:
    """Return a text that is at most ``width`` terminal cells wide; ``…`` replaces its middle if it is longer."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    start = len(text)
    while start and cell_len(text[start - 1 :]) <= tail:
        start -= 1
    return set_cell_size(text, max(0, width - 1 - cell_len(text[start:]))).rstrip() + "…" + text[start:]


def same_in_all(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Mapping[str, str]:
    """Return the headings of the columns whose text is the same in all rows, each with that text; none for one row."""
    if len(rows) < 2:
        return {}
    cells = zip(columns, zip(*rows, strict=True), strict=True)
    return {column.heading: each[0] for column, each in cells if len(set(each)) == 1 and each[0] not in column.nothing}


def _shown(text: str) -> str:
    return visible(text, keeps_lines=False)


def _heading_lines(heading: str, *, is_tight: bool) -> list[str]:
    shown = _shown(heading)
    return shown.replace("_", "_ ").split() or [""] if is_tight else [shown]
