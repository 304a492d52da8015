"""Tables as the shells of databases draw them: MySQL's with rules of +---+, psql's, and boxes as of SQLite and DuckDB.

All of them mark their end: a rule below the last row, or psql's line with the number of rows. A table without it is
cut. What stands around a table does not matter, as long as there is one only.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.results import SparqlResults, require_unicode
from graphrag_eval_lc.matching.rows.text_tables import Rows, lines_of, untyped_table

_PLUS_RULE: Final = re.compile(r"[ \t]*\+(?:[-=]++\+)++[ \t]*")
_TOP_OF_BOX: Final = re.compile(r"[ \t]*[┌╭╒╔][─━═]+(?:[┬╤╦][─━═]+)*[┐╮╕╗][ \t]*")
_RULE_OF_BOX: Final = re.compile(r"[ \t]*[├╞╠╟][─━═]+(?:[┼╪╬╫][─━═]+)*[┤╡╣╢][ \t]*")
_END_OF_BOX: Final = re.compile(r"[ \t]*[└╰╘╚][─━═]+(?:[┴╧╩][─━═]+)*[┘╯╛╝][ \t]*")
_DASHES: Final = re.compile(r"-++(?:\+-++)*+[ \t]*")
_ROW_COUNT: Final = re.compile(r"[ \t]*\((\d{1,12}) rows?\)[ \t]*")
_ROWS_IN_SET: Final = re.compile(r"[ \t]*(\d{1,12}) rows? in set\b[^\n]{0,60}")
_EMPTY_SET: Final = re.compile(r"\s{0,20}Empty set(?:, \d+ warnings?)? \(\d+\.\d+ sec\)\s{0,20}")
_BARS: Final = "│┃║"
_TYPE: Final = re.compile(r"[a-z][a-z0-9_ ]{0,40}(?:\([\d, ]{1,12}\))?(?:\[\d*\])?|(?:struct|map|enum|union)\(.{1,200}")
_LEFT_OUT: Final = frozenset({"·", "…", "...", "⋮", ":"})
_NULL: Final = "NULL"


class _Table(NamedTuple):
    head: list[str]
    body: list[str]
    end: int | None  # the line after it; None where it has no end
    form: str


def may_be_ruled(text: str) -> bool:
    r"""Return whether a text may hold such a table.

    Example:
        >>> may_be_ruled(" n \n---\n 5 \n(1 row)"), may_be_ruled("Towns\n-----\nOslo"), may_be_ruled("+---+\n| n |")
        (True, False, True)
    """
    if "+-" in text or "-+" in text or "+=" in text or "┌─" in text or "╭─" in text or "╒═" in text or "╔═" in text:
        return next(_tables(lines_of(text)), None) is not None or _EMPTY_SET.fullmatch(text) is not None
    has_count = "--" in text and (" row)" in text or " rows)" in text)
    return (has_count and next(_tables(lines_of(text)), None) is not None) or _EMPTY_SET.fullmatch(text) is not None


def read_ruled(text: str) -> SparqlResults:
    r"""Read the one such table of a text; an empty cell is unbound, and NULL is where the shell writes it.

    Raises:
        CutOutput: It ends before its end.
        UnreadableOutput: There are several, or its rows are none.

    Example:
        >>> read_ruled("+------+---+\n| name | n |\n+------+---+\n| Oslo | 5 |\n+------+---+").columns["n"].texts
        ['5']
    """
    require_unicode([text])
    if _EMPTY_SET.fullmatch(text):
        return SparqlResults({}, 0, form="MySQL's empty set", is_untyped=True)
    lines = lines_of(text.removeprefix("\ufeff"))
    tables = list(_tables(lines))
    if len(tables) != 1:
        found = f"{len(tables)} tables with rules, of which one may be meant" if tables else "no table with rules"
        raise UnreadableOutput(found)
    table = tables[0]
    rows = _psql_rows(table) if table.form == _PSQL else _edged_rows(table)
    if any(len(row) != len(rows[0]) for row in rows):
        raise UnreadableOutput("a table with rules whose rows have different numbers of cells")
    left_out = next((at for at, row in enumerate(rows[1:], start=1) if set(row) <= _LEFT_OUT), None)
    if left_out is not None:
        raise CutOutput(f"the table leaves rows out after row {left_out - 1}")
    _refuse_cut(table, lines, len(rows) - 1)
    return replace(untyped_table(rows, "table"), form=table.form)


_MYSQL: Final = "a table with rules as of MySQL"
_PSQL: Final = "a table of psql"
_BOX: Final = "a table in a box as of SQLite"


def _tables(lines: Sequence[str]) -> Iterator[_Table]:
    """Yield the tables of a text, each found by its beginning."""
    at = 0
    while at < len(lines):
        table, first = None, lines[at].lstrip()[:1]
        if first == "+" and at + 1 < len(lines) and _is_row(lines[at + 1], "|") and _PLUS_RULE.fullmatch(lines[at]):
            table = _edged(lines, at, "|", _PLUS_RULE, _PLUS_RULE, _MYSQL)
        elif first in "┌╭╒╔" and first and _TOP_OF_BOX.fullmatch(lines[at]):
            table = _edged(lines, at, _BARS, _RULE_OF_BOX, _END_OF_BOX, _BOX)
        elif first == "-" and at and _DASHES.fullmatch(lines[at]):
            table = _psql(lines, at)
        if table is not None:
            yield table
        at = at + 1 if table is None else max(at + 1, len(lines) if table.end is None else table.end)


def _is_row(line: str, bars: str) -> bool:
    stripped = line.strip()
    return len(stripped) > 1 and stripped[0] in bars


def _edged(
    lines: Sequence[str], start: int, bars: str, rule: re.Pattern[str], end: re.Pattern[str], form: str
) -> _Table:
    """Take a table with an edge around it, which may have a rule below each row."""
    head: list[str] | None = None
    part: list[str] = []
    body: list[str] = []
    last_rule = None
    for at in range(start + 1, len(lines)):
        if _is_row(lines[at], bars):
            part.append(lines[at])
            continue
        is_end = end.fullmatch(lines[at]) is not None
        if not is_end and not rule.fullmatch(lines[at]):
            break
        if head is None:
            head, part = part, []
        else:
            body, part, last_rule = body + part, [], at
        if is_end and rule is not end:
            return _Table(head, body, at + 1, form)
    is_whole = head is not None and rule is end and not part
    # Without rows, MySQL's rule below the names is the last one; others draw it twice.
    stop = (last_rule or start) + 1 if is_whole and (last_rule is not None) else None
    return _Table(head if head is not None else part, body + part if head is not None else [], stop, form)


def _psql(lines: Sequence[str], rule: int) -> _Table | None:
    """Take a table of psql, which has a rule below the names and a line with the number of rows."""
    width = lines[rule].count("+")
    if not lines[rule - 1].strip() or lines[rule - 1].count("|") < width:
        return None
    for at in range(rule + 1, len(lines)):
        if _ROW_COUNT.fullmatch(lines[at]):
            return _Table([lines[rule - 1], lines[rule]], list(lines[rule + 1 : at]), at + 1, _PSQL)
        if not lines[at].startswith(" ") and lines[at].strip():
            break
    body = list(lines[rule + 1 :])
    is_evident = width and all("|" in line for line in body if line.strip())
    return _Table([lines[rule - 1], lines[rule]], body, None, _PSQL) if is_evident else None


def _psql_rows(table: _Table) -> Rows:
    names, rule = table.head
    ends = [at for at, sign in enumerate(rule) if sign == "+"]
    rows: Rows = []
    for line in (names, *(line for line in table.body if line.strip() or table.end is not None)):
        cells = line.split("|") if line.count("|") == len(ends) else _at_places(line, ends)
        if any(cell.endswith("+") and len(cell) > 1 for cell in cells) and line is not names:
            raise UnreadableOutput("a table of psql with cells of several lines")
        rows.append([cell.strip() or None for cell in cells])
    if table.end is None and len(rows[-1]) != len(rows[0]):
        raise CutOutput(f"the table breaks off in row {len(rows) - 1}")
    return rows


def _edged_rows(table: _Table) -> Rows:
    if not table.head:
        raise UnreadableOutput("a table with rules without names")
    names = _cells(table.head[0], None)
    if len(table.head) > 2 or (len(table.head) == 2 and not _are_types(_cells(table.head[1], len(names)))):
        raise UnreadableOutput("a table with rules whose names stand on several lines")
    bars = [at for at, sign in enumerate(table.head[0]) if sign in f"|{_BARS}"]
    rows: Rows = [[name or None for name in names]]
    for at, line in enumerate(table.body, start=1):
        cells = _cells(line, len(names))
        if len(cells) != len(names):
            cells = [cell.strip() for cell in _at_places(line, bars)[1:-1]]
        if len(cells) != len(names) and at == len(table.body) and table.end is None:
            raise CutOutput(f"the table breaks off in row {at}")
        rows.append([None if cell in ("", _NULL) else cell for cell in cells])
    return rows


def _are_types(cells: Sequence[str]) -> bool:
    """Return whether the second line below the top of a table has the types of the columns, as DuckDB's."""
    return all(_TYPE.fullmatch(cell) for cell in cells)


def _cells(line: str, width: int | None) -> list[str]:
    cells = [
        cell.strip() for cell in re.split(rf"[|{_BARS}]" if line.strip()[0] == "|" else rf"[{_BARS}]", line.strip())
    ]
    del width
    return cells[1:-1] if not cells[-1] else cells[1:]


def _at_places(line: str, places: Sequence[int]) -> list[str]:
    """Return the cells of a line in which a sign between them stands in cells too, by the places of the signs."""
    if not places or any(at >= len(line) or line[at] not in f"|{_BARS}" for at in places):
        return []
    ends = [-1, *places, len(line)]
    return [line[start + 1 : end] for start, end in pairwise(ends)]


def _refuse_cut(table: _Table, lines: Sequence[str], row_count: int) -> None:
    """Refuse a table that has no end, or fewer rows than the shell counted.

    Raises:
        CutOutput: It is cut.
    """
    if table.end is None:
        raise CutOutput(f"the table breaks off after row {row_count}")
    line = lines[table.end - 1] if table.form == _PSQL else lines[table.end] if table.end < len(lines) else ""
    counted = (_ROW_COUNT if table.form == _PSQL else _ROWS_IN_SET).fullmatch(line)
    if counted is not None and int(counted[1]) != row_count:
        raise CutOutput(f"the table has {row_count} rows, and the line below it counts {int(counted[1]):,}")
