"""Reads the tables that tools draw in texts: Markdown, and those of databases' shells and of libraries.

A table is found by the rule under its names, pandas' by its index. It becomes a grid of cells; what marks its end, and
lines next to it that count its rows, say whether it is whole. A table whose cells have several lines is refused.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn
from graphrag_eval_lc.matching.rows.text_forms import (
    LEFT_OUT,
    Rows,
    lines_of,
    plain_cell,
    prepared,
    results_of_cells,
)
from graphrag_eval_lc.texts import counted


class _Grid(NamedTuple):
    """A table of a text: its rows with the names first, its first line, and the line after it."""

    form: str
    rows: Rows
    start: int
    end: int | None  # None: it has no end, so that it is cut
    notes: Sequence[str] = ()  # lines in it that count its rows
    fault: str = ""


_BARS: Final = "|│┃║┆"
_TOP: Final = re.compile(r"\+[-=+]+\+|[┌╭╒╔┏][─━═┬╤╦┳]+[┐╮╕╗┓]")
_RULE: Final = re.compile(r"[+|][-=+]+[+|]|[├╞╠┡┣][─━═┼╪╬╇╋┴]+[┤╡╣┩┫]")
_BOTTOM: Final = re.compile(r"[└╰╘╚┗][─━═┴╧╩┻]+[┘╯╛╝┛]")
_DASHES: Final = re.compile(r"-+(?:\+-+)*|-+(?: +-+)+ *")
_MARKDOWN_RULE: Final = re.compile(r"(?=.*\|)\|?(?:\s*:?-+:?\s*\|)*(?:\s*:?-+:?)?")
_PIPE: Final = re.compile(r"(?<!\\)\|")
_TYPE: Final = re.compile(r"-{3}|[a-z][a-z0-9_ ]{0,40}(?:[(\[].{0,200}[)\]])?")
_INDEX: Final = re.compile(r"(?:\d+|\.{2,3})(?= )")
_WORDS: Final = re.compile(r"\S+(?: \S+)*")
_COUNT: Final = re.compile(
    r"\((\d{1,15}) rows?(?: affected)?\)"
    r"|(?:Query returned )?(\d[\d,]{0,14}) (?:rows?|results?)(?: (?:in|returned|affected)\b.{0,60}|  .{0,60})?"
)
_MISSING: Final = frozenset({"NaN", "None", "NaT", "<NA>"})
_SHAPE: Final = re.compile(r"(?:shape: \(|\[)(\d[\d_,]{0,14})(?:, | rows x )(\d{1,9})(?:\)| columns\])")
_MORE: Final = re.compile(r"only showing top \d+ rows?|.{0,40}\([\d,>? rows]+ shown\).*|(?:\.\.\.|…).*\bmore\b.*")
_EMPTY: Final = re.compile(
    r"\s*(?:Empty set(?:, \d+ warnings?)? \(\d+\.\d+ sec\)|Empty DataFrame\s+Columns: \[(.*)\]\s+Index: \[\])\s*"
)


def looks_like_markdown(text: str) -> bool:
    """Return whether a text has a Markdown table, known by the line of dashes under its names."""
    return "|" in text and "-" in text and next(_grids(text, _markdown), None) is not None


def read_markdown(text: str) -> SparqlResults:
    """Read the one Markdown table of a text."""
    return _results_of_one(prepared(text), _markdown, "Markdown table")


def looks_like_drawn_table(text: str) -> bool:
    """Return whether a text has a table as a tool draws it."""
    return _EMPTY.fullmatch(text) is not None or next(_grids(text, _drawn), None) is not None


def read_drawn_table(text: str) -> SparqlResults:
    """Read the one table of a text as a tool draws it; NULL is unbound, and cells in quotes are read without them."""
    text = prepared(text)
    if (empty := _EMPTY.fullmatch(text)) is not None:
        names = [name for name in (empty[1] or "").split(", ") if name]
        return SparqlResults({name: TermColumn([], []) for name in names}, 0, form="an empty table", is_untyped=True)
    return _results_of_one(text, _drawn, "drawn table")


def _grids(text: str, take: Callable[[list[str], int], _Grid | None]) -> Iterator[_Grid]:
    """Yield the tables of a text, each from the line by which it is found."""
    lines, at = lines_of(text), 0
    while at < len(lines):
        grid = take(lines, at)
        if grid is not None:
            yield grid
        at = at + 1 if grid is None else max(at + 1, len(lines) if grid.end is None else grid.end)


def _results_of_one(text: str, take: Callable[[list[str], int], _Grid | None], name: str) -> SparqlResults:
    """Return the results of the one table of a text; lines next to it must not say that it lacks rows."""
    grids = list(_grids(text, take))
    if len(grids) != 1:
        raise UnreadableOutput(f"{len(grids)} {name}s, of which one may be meant" if grids else f"no {name}")
    [grid] = grids
    if grid.end is None:
        raise CutOutput(f"the {grid.form} breaks off in row {len(grid.rows) - 1}")
    if grid.fault:
        raise UnreadableOutput(f"a {grid.form} {grid.fault}")
    results = results_of_cells(grid.rows, grid.form)
    lines = lines_of(text)
    before, after = lines[: grid.start][-1:], [line for line in lines[grid.end :] if line.strip()][:2]
    for note in map(str.strip, (*grid.notes, *before, *after)):
        shape, count = _SHAPE.fullmatch(note), _COUNT.fullmatch(note)
        said = shape[1] if shape else (count[1] or count[2]) if count else str(results.row_count)
        is_narrower = shape is not None and int(shape[2]) != len(grid.rows[0]) - ("pandas" in grid.form)
        if is_narrower or _MORE.fullmatch(note) or int(re.sub(r"\D", "", said)) != results.row_count:
            rows = counted(results.row_count, "row")
            raise CutOutput(f"the {grid.form} has {rows}, and {note[:60]!r} next to it")
    return replace(results, form=f"a {grid.form}")


def _cells(line: str, signs: str, places: Sequence[int]) -> list[str]:
    """Return the cells of a line between signs at places, or, where wide letters move them, wherever the signs are."""
    if all((line[at : at + 1] or " ") in signs for at in places):
        cells = [line[start + 1 : end] for start, end in pairwise([-1, *places, len(line)])]
    else:
        cells = re.split(r"\s{2,}" if signs == " " else f"[{signs}]", line.strip() if signs == " " else line)
    return [plain_cell(cell) for cell in cells]


def _drawn(lines: list[str], at: int) -> _Grid | None:
    """Take the table that is found at a line, if any."""
    line, above = lines[at].strip(), lines[at - 1].strip() if at else ""
    if _TOP.fullmatch(line) and "".join(lines[at + 1 : at + 2]).strip()[:1] in {*_BARS}:
        return _edged(lines, at)
    if above and _DASHES.fullmatch(line):
        return _ruled(lines, at)
    return _pandas(lines, at) if above and line[0:1].isdigit() else None


def _edged(lines: Sequence[str], top: int) -> _Grid | None:
    """Take a table with edges: its names stand between two rules, and a rule below the last row ends it."""
    groups, end = [list[str]()], None
    for at in range(top + 1, len(lines)):
        line = lines[at].strip()
        is_bottom = _BOTTOM.fullmatch(line) is not None
        if is_bottom or _RULE.fullmatch(line):
            is_bottom |= line[0] == "+" and len(groups) > 1 and "".join(lines[at + 1 : at + 2]).strip()[:1] != "|"
            groups.append([])
        elif line[:1] in {*_BARS}:
            groups[-1].append(line)
        else:
            break
        if is_bottom:
            end = at + 1
            break
    head, *groups = [groups[0], *(group for group in groups[1:] if group)]
    if not head:
        return None
    signs = "|" if head[0][0] == "|" else _BARS[1:]
    places = [match.start() for match in re.finditer(f"[{signs}]", head[0])]
    footers = [line.strip(_BARS + " ") for line in (groups[-1] if groups else []) if len(groups[-1]) == 1]
    notes = [footer for footer in footers if _COUNT.match(footer) and " row" in footer and len(head) > 1]
    groups = groups[:-1] if notes else groups
    rows = [_cells(line, signs, places)[1:-1] for line in (*head, *(line for group in groups for line in group))]
    types, rows[1 : len(head)] = rows[1 : len(head)], []
    if types and any(cell.endswith("…") for row in rows for cell in row):  # DuckDB and polars shorten texts
        notes.append("… more in a cell")
    is_typed = all(
        _TYPE.fullmatch(cell) or name in LEFT_OUT for row in types for name, cell in zip(rows[0], row, strict=False)
    )
    fault = "" if is_typed else "with names of several lines"
    if len(groups) > 1 and any(len(group) > 1 for group in groups):
        fault = "with cells of several lines"
    form = "table with rules as of MySQL" if signs == "|" else "table in a box as of SQLite"
    return _Grid(form, rows, top, end, notes, fault)


def _rows_from(lines: Sequence[str], start: int, is_row: Callable[[str], object]) -> Sequence[str]:
    end = start
    while end < len(lines) and is_row(lines[end]):
        end += 1
    return lines[start:end]


def _is_row(line: str) -> bool:
    """Return whether a line goes on a table without edges, rather than to end it or to be the rule of another."""
    line = line.strip()
    return bool(line) and not _COUNT.fullmatch(line) and not (line[0] == "-" == line[-1] and _DASHES.fullmatch(line))


def _ruled(lines: Sequence[str], rule: int) -> _Grid | None:
    """Take a table with names above dashes: psql's, with bars and a count of its rows, or tabulate's."""
    places = [match.end() for match in re.finditer("-+", lines[rule].rstrip())][:-1]
    body = _rows_from(lines, rule + 1, _is_row)
    end = rule + 1 + len(body)
    is_psql = " " not in lines[rule].strip()
    rows = [_cells(line, "|" if is_psql else " ", places) for line in (lines[rule - 1], *body)]
    if len(rows[0]) != len(places) + 1 or not all(rows[0][1:]):
        return None
    if not is_psql:
        return _Grid("table in columns", rows, rule - 1, end) if body else None
    is_counted = _COUNT.fullmatch("".join(lines[end : end + 1]).strip()) is not None
    if not is_counted and not (body and places and all("|" in line for line in body[:-1])):
        return None
    is_folded = any(cell.endswith("+") and len(cell) > 1 for row in rows[1:] for cell in row)
    fault = "with cells of several lines" if is_folded else ""
    return _Grid("table of psql", rows, rule - 1, end if is_counted else None, (), fault)


def _pandas(lines: Sequence[str], first: int) -> _Grid | None:
    """Take a DataFrame as pandas prints it: an index of numbers on the left, and columns with straight right edges."""
    head = lines[first - 1].rstrip()
    body = [] if _INDEX.match(head) else _rows_from(lines, first, _INDEX.match)
    if not body or "".join(lines[first + len(body) : first + len(body) + 1]).strip():
        return None
    end = max(map(len, body))
    shift = end - len(head)  # a tool may have taken the spaces before the first name
    ends = [match.end() + shift for match in _WORDS.finditer(head)]
    rows, notes = [["", *_WORDS.findall(head)]], list[str]()
    for at, line in enumerate(body):
        index = _INDEX.match(line)
        if index is None or shift < 0 or (shift and not line.startswith(f"{at}  ")):
            return None
        parts = [line[start:stop] for start, stop in pairwise([index.end(), *ends])]
        cells = [part.strip() for part in parts]
        is_straight = all(
            part[:1].strip() == "" and part.endswith(cell) for part, cell in zip(parts, cells, strict=True)
        )
        if not is_straight or not any(cells) or (cells[-1] and len(line) < end):
            return None
        rows.append([index[0], *("" if cell in _MISSING else cell for cell in cells)])
        notes += ["... more in a cell" for cell in cells if len(cell) == 49 and cell.endswith("...")]  # as pandas cuts
    fault = "whose columns stand in several blocks" if head.endswith("\\") else ""
    return _Grid("table of pandas", rows, first - 1, first + len(body), notes, fault)


def _markdown(lines: Sequence[str], rule: int) -> _Grid | None:
    """Take the Markdown table around a rule; its rows may lack the edges of its names, or have edges more."""
    head = lines[rule - 1].strip() if rule else ""
    if "|" not in head or not _MARKDOWN_RULE.fullmatch(lines[rule].strip()):
        return None
    is_open, is_closed = head.startswith("|"), head.endswith("|")

    def split(line: str, width: int) -> list[str]:
        cells = _PIPE.split(line.strip())
        is_wider = len(cells) > width > 0
        cells = cells[1:] if not cells[0] and (is_open or is_wider) else cells
        return cells[:-1] if cells and not cells[-1] and (is_closed or is_wider) else cells

    width = len(split(head, 0))
    body = _rows_from(lines, rule + 1, re.compile(r".*\|").match)
    rows = [[_markdown_cell(cell) for cell in split(line, width)] for line in (head, *body)]
    end, last = rule + 1 + len(body), (body or [lines[rule]])[-1].rstrip()
    is_torn = len(split(last, width)) < width or (is_closed and not last.endswith("|"))
    return _Grid("Markdown table", rows, rule - 1, None if end == len(lines) and is_torn else end)


def _markdown_cell(text: str) -> str:
    text = text.strip().replace("\\|", "|")
    if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        text = text[1:-1]
    return plain_cell(text) if text[:1] == "<" else text
