"""Reads results in texts that are not JSON: CSV, TSV, tables that tools draw, W3C XML, code fences and sentences.

Every table becomes a grid, the rows of cells with the names first; a form says only where its rows are, what is between
cells, and how cells are quoted. ``results_of_grid`` turns a grid into columns. ``looks_like_…`` is true only if a text
that nothing declares can be taken for the form, so that prose never is. ``read_…`` raises `CutOutput` if the text ends
before its end, else `UnreadableOutput`.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.results import (
    LITERAL_SHAPE,
    UNBOUND_SHAPE,
    Shape,
    SparqlResults,
    TermColumn,
    require_unicode,
    results_from_bindings,
)
from graphrag_eval_lc.texts import counted

ReadText = Callable[[str], SparqlResults]
Rows = list[list[str]]

OPEN_FORMS: Final = ("CSV", "TSV", "Markdown", "a table in columns", "a table of pandas")
"""Parts of the names of forms that have no end of their own, so that nothing shows whether lines are missing."""

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_BLANK_LINES: Final = re.compile(r"\A\ufeff?(?:[ \t]*+[\r\n]++)*+")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_LEFT_OUT: Final = frozenset({"·", "…", "...", ".."})  # in place of rows or columns
_NOTICE: Final = re.compile(r"^(?:!!!!>>#|## Query cancell?ed).*", re.MULTILINE)  # of QLever and Jena, after the rows


def _prepared(text: str) -> str:
    """Return a text from its first line that is not blank; a cut mark and half a character are refused."""
    require_unicode([text])
    if (mark := cut_mark(text)) is not None:
        raise CutOutput(f"the text ends with {mark!r}")
    if (notice := _NOTICE.search(text, 1)) is not None:
        raise CutOutput(f"after the results is {notice[0][:60]!r}")
    return _BLANK_LINES.sub("", text, count=1)


def _lines_of(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def results_of_grid(rows: Rows, form: str) -> SparqlResults:
    """Return the results of rows of cells, of which the first has the names; an empty cell is unbound.

    A first column without a name is an index, and left out if it only counts the rows. A name that occurs twice gets a
    number.

    Raises:
        CutOutput: The last row has too few cells, or rows or columns are left out.
        UnreadableOutput: The rows have different numbers of cells, or a column has no name.
    """
    names, *body = rows
    width = len(names)
    while width > 1 and body and body[-1] == [""]:  # blank lines at the end
        body.pop()
    for at, row in enumerate(body, start=1):
        if len(row) != width:
            if 1 < at == len(body) and len(row) < width:
                raise CutOutput(f"the {form} breaks off in row {at}, at {row[0].strip()[:60]!r}")
            raise UnreadableOutput(f"no {form}: row {at} has {len(row)} cells for {width} names")
        if _LEFT_OUT.issuperset(row):
            raise CutOutput(f"the {form} leaves rows out after row {at - 1}")
    if not _LEFT_OUT.isdisjoint(names):
        raise CutOutput(f"the {form} leaves columns out")
    columns = [[row[at] for row in body] for at in range(width)]
    if width > 1 and body and not names[0] and "index" not in names:
        is_counted = columns[0] == [str(at) for at in range(len(body))]
        names, columns = (names[1:], columns[1:]) if is_counted else (["index", *names[1:]], columns)
    if not names or not all(names):
        raise UnreadableOutput(f"no {form}: a column has no name")
    found: dict[str, TermColumn] = {}
    for name, cells in zip(names, columns, strict=True):
        numbered = (f"{name} {at}" for at in range(2, width + 1))
        found[next(each for each in (name, *numbered) if each not in found)] = _column(cells)
    return SparqlResults(found, len(body), form=form, is_untyped=True)


def _column(texts: list[str]) -> TermColumn:
    """Return a column of literals, blank nodes (``_:b0``) and unbound cells; of booleans if all are Python's."""
    literal: Shape = LITERAL_SHAPE
    if any(texts) and {"True", "False", ""}.issuperset(texts):
        literal = ("literal", f"{_XSD}boolean", None)
    if all(texts) and not any(text.startswith("_:") for text in texts):
        return TermColumn(texts, literal)
    blank: Shape = ("bnode", None, None)
    shapes = [blank if re.match("_:.", text) else literal if text else UNBOUND_SHAPE for text in texts]
    return TermColumn([text[2:] if shape is blank else text for text, shape in zip(texts, shapes, strict=True)], shapes)


# CSV and TSV: the forms by what is between their cells

_SEPARATED: Final = {",": "W3C CSV", ";": "CSV with semicolons", ", ": "CSV of cypher-shell", "\t": "TSV"}
_IDENTIFIER: Final = re.compile(r"\??\w[\w.]{0,99}")
_NAME: Final = re.compile(r"(?!urn:|\w+://)[^\W\d][^\t{}\"=]{0,99}(?<![\s.!:,;。！？])|\?\w+\?|[$#%@]\w*")
_NO_NAME: Final = re.compile(
    r"(?:error|exception|failed|failure|none|null|ok|traceback|warning)\Z"
    r"|(?:select|insert|import|return|match|with|prefix|from)\s",
    re.IGNORECASE,
)
_EVIDENT: Final = re.compile(
    r'<?[A-Za-z][A-Za-z0-9+.\-]{1,20}:[^\s<>]+>?|[+-]?\d[\d.]*(?:[eE][+-]?\d+)?|_:\w+|true|false|"(?:"|.*")'
)
_SHELL_CELL: Final = r'(?:"(?:[^"\\\n]|\\.)*+"|[+-]?\d[\w.\-+:]*+|TRUE|FALSE|NULL)'
_SHELL: Final = re.compile(rf"[^\s,]+(?:, [^\s,]+)+(?:\r?\n{_SHELL_CELL}(?:, {_SHELL_CELL})*+)++\s*")


def _sign_of(text: str) -> str:
    """Return what separates the cells of a CSV."""
    line = re.sub('"[^"]*"', "", _LINE_END.split(text, maxsplit=1)[0])
    return ", " if _SHELL.fullmatch(text) else ";" if ";" in line and "," not in line else ","


def _separated(text: str, sign: str) -> tuple[Rows, bool]:
    """Return the rows of cells between signs, quoted as RFC 4180 says, and whether the text ends inside quotes."""
    of_shell: Any = {"doublequote": False, "escapechar": "\\", "skipinitialspace": True} if sign == ", " else {}
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign[0], strict=True, **of_shell)
    rows: Rows = []
    try:
        rows.extend(row or [""] for row in reader)
    except csv.Error as problem:
        if "unexpected end" not in str(problem):
            raise UnreadableOutput(f"no CSV or TSV: line {reader.line_num:,} has a quote in it ({problem})") from None
        return rows, True
    return rows, False


def _are_names(names: Sequence[str], rows: Rows) -> bool:
    """Return whether a first line may have the names of columns, and neither it nor the rows read as a sentence.

    A name that is not an identifier starts with a letter, has balanced brackets and does not end as a sentence; then
    no cell may start with a space.
    """
    if not all(names) or _NO_NAME.match(names[0]):
        return False
    if all(map(_IDENTIFIER.fullmatch, names)):
        is_prose = any(row[-1][:1] == " " and row[-1].rstrip()[-1:] in {*".!?"} for row in rows)
        return not is_prose and not all(name[0].isdigit() for name in names)
    if any(cell[:1] == " " for row in rows for cell in row) or any(": " in name for name in names):
        return False
    are_balanced = all(name.count("(") == name.count(")") and name.count("[") == name.count("]") for name in names)
    return are_balanced and all(_NAME.fullmatch(name) or _IDENTIFIER.fullmatch(name) for name in names)


def _is_separated(text: str, sign: str) -> bool:
    """Return whether a text that nothing declares is a table of cells between signs: names, and rows as wide."""
    end = _LINE_END.search(text, 0, 5_000)
    try:
        names, *body = (_separated(text, sign)[0] if end else None) or [[""]]
    except UnreadableOutput:
        return False
    width = len(names)
    while width > 1 and body and body[-1] == [""]:
        body.pop()
    has_index = width > 1 and not names[0] and bool(body) and body[0][0] == "0"
    if not body or len(body[0]) != width or not _are_names(names[has_index:], body):
        return False
    if width == 1:
        return sign == "," and _is_one_column(text, names[0])
    odd = next((at for at, row in enumerate(body) if len(row) != width), None)
    last = text.rstrip().rpartition("\n")[2]
    is_sentence = " " in last and last[-1] in ".!?"
    return odd is None or (odd == len(body) - 1 and len(body[odd]) < width and not is_sentence)


def _is_one_column(text: str, name: str) -> bool:
    """Return whether lines are a column under its name: with the line ends of W3C's, or of cells that are no words."""
    is_word = text[0] == '"' or " " not in re.sub(r" ?[(\[].*[)\]]", "", name)
    lines = re.sub('"[^"]*"', '""', text).split("\n")
    has_crlf = not lines[-1] and all(line.endswith("\r") for line in lines[:-1])
    has_values = all(_EVIDENT.fullmatch(line.strip("\r")) for line in lines[1:] if line.strip("\r"))
    return is_word and (has_crlf or has_values or _NOTICE.search(text) is not None)


def _declared(text: str, rows: Rows, name: str) -> Rows:
    """Return the rows of a text, unless it is one line that may be a sentence."""
    is_line_of_names = len(rows) == 1 and text[-1] in "\r\n" and _are_names(rows[0], [])
    if len(rows) < 2 and not (is_line_of_names and (text[0] == '"' or all(map(_IDENTIFIER.fullmatch, rows[0])))):
        raise UnreadableOutput(f"no {name}: {'one line, which is no line of names' if rows else 'an empty text'}")
    return rows


def looks_like_csv(text: str) -> bool:
    """Return whether a text is CSV, with evidence enough that it is not a sentence."""
    text = _BLANK_LINES.sub("", text, count=1)
    return _is_separated(text, _sign_of(text))


def read_csv(text: str) -> SparqlResults:
    """Read CSV as RFC 4180 has it, with commas or semicolons, or with a comma and a space as cypher-shell prints it."""
    text = _prepared(text)
    sign = _sign_of(text)
    rows, is_open = _separated(text, sign)
    if is_open:
        raise CutOutput("the CSV breaks off inside a cell in quotes")
    rows = [["" if cell == "NULL" and sign == ", " else cell for cell in row] for row in rows]
    return results_of_grid(_declared(text, rows, "CSV"), _SEPARATED[sign])


def looks_like_tsv(text: str) -> bool:
    """Return whether a text is TSV: names with question marks, or names and rows as wide."""
    text = _BLANK_LINES.sub("", text, count=1)
    lines = _lines_of(text) if text[:1] == "?" else []
    if lines and all(re.fullmatch(r"\?\w+", name) for name in lines[0].split("\t")):
        return len(lines) > 1 or ("\t" in lines[0] and text != lines[0])
    return "\t" in text and _is_separated(text, "\t")


def read_tsv(text: str) -> SparqlResults:
    """Read TSV; if the names have question marks, the cells are terms as Turtle writes them."""
    text = _prepared(text)
    rows = _declared(text, [line.split("\t") for line in _lines_of(text)], "TSV")
    if not all(name.startswith("?") for name in rows[0]):
        with suppress(UnreadableOutput):  # terms of Turtle, which have quotes too
            quoted, is_open = _separated(text, "\t")
            rows = rows if is_open else quoted
        return results_of_grid([[_plain_cell(cell) for cell in row] for row in rows], "TSV")
    last = rows[-1][-1]
    if len(rows) > 1 and last[:1] in {'"', "<", "'"} and _TERM.fullmatch(last) is None:
        raise CutOutput(f"the TSV breaks off in row {len(rows) - 1}")
    table = results_of_grid([[name.removeprefix("?") for name in rows[0]], *rows[1:]], "W3C TSV")
    bindings = [
        {name: term_of_turtle(cell) for name, cell in zip(table.columns, row, strict=True) if cell}
        for row in rows[1 : table.row_count + 1]
    ]
    return replace(results_from_bindings(list(table.columns), bindings), form="W3C TSV")


# Terms of Turtle

_TERM: Final = re.compile(
    r"""<(?P<iri>[^<>"\s]*+)>|_:(?P<bnode>\S+)"""
    r"""|(?:"(?P<double>(?:[^"\\]|\\.)*+)"|'(?P<single>(?:[^'\\]|\\.)*+)')"""
    r"""(?:@(?P<lang>[A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^(?:<(?P<datatype>[^<>"\s]*+)>|xsd:(?P<xsd>\w+)))?"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+)|(?P<decimal>[+-]?\d*\.\d+)|(?P<integer>[+-]?\d+)"""
    r"""|(?P<boolean>true|false)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U(00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


def term_of_turtle(text: str) -> dict[str, Any]:
    """Return a term as Turtle writes it, as in SPARQL 1.1 JSON; another text is a literal without a type."""
    match = _TERM.fullmatch(text)
    if match is None:
        return {"type": "literal", "value": text}
    if match["iri"] is not None:
        return {"type": "uri", "value": _unescaped(match["iri"])}
    if match["bnode"] is not None:
        return {"type": "bnode", "value": match["bnode"]}
    quoted = match["double"] if match["double"] is not None else match["single"]
    if quoted is None:
        return {"type": "literal", "value": text, "datatype": _XSD + str(match.lastgroup).replace("number", "double")}
    datatype = f"{_XSD}{match['xsd']}" if match["xsd"] else _unescaped(match["datatype"] or "")
    tags = {"xml:lang": match["lang"], "datatype": datatype}
    return {"type": "literal", "value": _unescaped(quoted), **{key: tag for key, tag in tags.items() if tag}}


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[3], found[3]) or chr(int(found[1] or found[2], 16)), text)


def _plain_cell(text: str) -> str:
    """Return the text of a cell: without spaces around it, without the quotes and the type of a term; NULL is empty."""
    text = text.strip()
    if len(text) > 1 and text[0] in '"<':
        return str(term_of_turtle(text)["value"])
    return "" if text in ("NULL", "null") else text


# Tables that tools draw: a rule is below the names, an index left of pandas' rows


class _Table(NamedTuple):
    """A table in a text: its rows with the names first, its first line, the line after it, and what is wrong."""

    form: str
    rows: Rows
    start: int
    end: int
    problem: UnreadableOutput | None = None
    note: str = ""  # a line in it that counts its rows


_EDGE: Final = re.compile(r"\+[-=+]+\+|\|[-+]+\||[┌├╞└][─═┬┼╪┴]+[┐┤╡┘]")  # MySQL, cypher-shell; DuckDB, polars, SQLite
_DASHES: Final = re.compile(r"-+(?:\+-+)*|-+(?: +-+)+ *")  # psql; tabulate, sqlcmd
_MARKDOWN_RULE: Final = re.compile(r"(?=.*\|)\|?(?:\s*:?-+:?\s*\|)*(?:\s*:?-+:?)?")
_BAR: Final = re.compile(r"(?<!\\)\|")
_TYPE: Final = re.compile(r"-{3}|[a-z][a-z0-9_ ]{0,40}(?:[(\[].{0,200}[)\]])?|")
_INDEX: Final = re.compile(r"(?:\d+|\.{2,3})(?= )")
_COUNT: Final = re.compile(
    r"shape: \((\d[\d_]{0,14}), \d+\)|[(\[]?(?:Query returned )?(\d[\d,]{0,14}) (?:rows?|results?)"
    r"(?: (?:in|returned|affected|x)\b.{0,60}|  .{0,60})?[)\]]?"
)
_MORE: Final = re.compile(r"only showing top \d+ rows?|.{0,40}\([\d,>? rows]+ shown\).*|(?:\.\.\.|…).*\bmore\b.*")
_EMPTY: Final = re.compile(
    r"\s*(?:Empty set(?:, \d+ warnings?)? \(\d+\.\d+ sec\)|Empty DataFrame\s+Columns: \[(.*)\]\s+Index: \[\])\s*"
)


def looks_like_table(text: str) -> bool:
    """Return whether a text has a table as a tool draws it, or as Markdown does."""
    return _EMPTY.fullmatch(text) is not None or next(_tables(text), None) is not None


def read_table(text: str) -> SparqlResults:
    """Read the one table that is drawn in a text; lines next to it must not say that it lacks rows."""
    text = _prepared(text)
    if (empty := _EMPTY.fullmatch(text)) is not None:
        names = [name for name in (empty[1] or "").split(", ") if name]
        return SparqlResults({name: TermColumn([], []) for name in names}, 0, form="an empty table", is_untyped=True)
    tables = list(_tables(text))
    if len(tables) != 1:
        raise UnreadableOutput(f"{len(tables)} tables, of which one may be meant" if tables else "no table")
    [table] = tables
    if table.problem is not None:
        raise table.problem
    results = results_of_grid(table.rows, table.form)
    lines = _lines_of(text)
    after = [line for line in lines[table.end :] if line.strip()][:2]
    for note in map(str.strip, (table.note, *lines[: table.start][-1:], *after)):
        count = _COUNT.fullmatch(note)
        said = int(re.sub(r"\D", "", count[1] or count[2])) if count else results.row_count
        if said != results.row_count or _MORE.fullmatch(note):
            rows = counted(results.row_count, "row")
            raise CutOutput(f"the {table.form} has {rows}, and {note[:60]!r} next to it")
    return replace(results, form=f"a {table.form}")


def read_markdown(text: str) -> SparqlResults:
    """Read the one Markdown table of a text."""
    results = read_table(text)
    if "Markdown" not in results.form:
        raise UnreadableOutput(f"no Markdown table, but {results.form}")
    return results


def _tables(text: str) -> Iterator[_Table]:
    """Yield the tables of a text, each found by its first edge, the rule under its names, or its first row."""
    lines, at = _lines_of(text), 0
    while at < len(lines):
        line, table = lines[at].strip(), None
        if line[:1] in ("+", "┌") and _EDGE.fullmatch(line):
            table = _edged(lines, at)
        elif at and lines[at - 1].strip() and line:
            if "|" in lines[at - 1] and _MARKDOWN_RULE.fullmatch(line):
                table = _markdown(lines, at)
            elif _DASHES.fullmatch(line):
                table = _ruled(lines, at)
            elif line[0].isdigit():
                table = _pandas(lines, at)
        if table is not None:
            yield table
        at = max(at + 1, table.end if table else 0)


def _rows_from(lines: Sequence[str], start: int, is_row: Callable[[str], object]) -> Sequence[str]:
    end = start
    while end < len(lines) and is_row(lines[end]):
        end += 1
    return lines[start:end]


def _cells(line: str, signs: str, places: Sequence[int]) -> list[str]:
    """Return the cells of a line between signs at places, or, where wide letters move them, wherever the signs are."""
    if all((line[at : at + 1] or " ") in signs for at in places):
        cells = [line[start + 1 : end] for start, end in pairwise([-1, *places, len(line)])]
    else:
        cells = re.split(r"\s{2,}" if signs == " " else f"[{signs}]", line.strip() if signs == " " else line)
    return [_plain_cell(cell) for cell in cells]


def _broken_off(form: str, rows: Rows) -> CutOutput:
    return CutOutput(f"the {form} breaks off in row {len(rows) - 1}")


def _edged(lines: Sequence[str], top: int) -> _Table | None:
    """Take a table with edges: its names are between the first two, its rows between the others."""

    def is_part(line: str) -> bool:
        line = line.strip()
        return line[:1] in {*"|│┆"} or (line[:1] != "┌" and _EDGE.fullmatch(line) is not None)

    block = [line.strip() for line in (lines[top], *_rows_from(lines, top + 1, is_part))]
    edges = [at for at, line in enumerate(block) if _EDGE.fullmatch(line)]
    head, *groups = [block[start + 1 : end] for start, end in pairwise([*edges, len(block)])]
    rest = groups.pop() if groups else []  # what follows the last edge
    if not head or (not groups and block[-1][0] == "└"):
        return None
    bars = "|" if head[0][0] == "|" else "│┆"
    form = "table with rules as of MySQL" if bars == "|" else "table in a box as of SQLite"
    footer = groups[-1][0].strip(bars + " ") if len(groups) > 1 and len(groups[-1]) == 1 else ""
    if is_counted := _COUNT.match(footer) is not None:  # as DuckDB has it
        groups.pop()
    places = [found.start() for found in re.finditer(f"[{bars}]", head[0])]
    names, *rows = [_cells(line, bars, places)[1:-1] for line in (*head, *(line for group in groups for line in group))]
    types, rows = rows[: len(head) - 1], [names, *rows[len(head) - 1 :]]
    problem: UnreadableOutput | None = None
    if rest or not groups or block[-1][0] in "├╞":
        problem = _broken_off(form, rows)
    elif not all(_TYPE.fullmatch(cell) for row in types for cell in row):
        problem = UnreadableOutput(f"a {form} with names of several lines")
    elif len(groups) > 1 and any(len(group) != 1 for group in groups):
        problem = UnreadableOutput(f"a {form} with cells of several lines")
    elif types and any(cell.endswith("…") for row in rows for cell in row):
        problem = CutOutput(f"the {form} shortens texts")
    return _Table(form, rows, top, top + len(block), problem, footer if is_counted else "")


def _ruled(lines: Sequence[str], rule: int) -> _Table | None:
    """Take a table with names above dashes: psql's, with bars and a count of its rows, or one in columns."""
    places = [found.end() for found in re.finditer("-+", lines[rule].rstrip())][:-1]
    is_psql = " " not in lines[rule].strip()

    def is_row(line: str) -> bool:
        line = line.strip()
        return bool(line) and not _COUNT.fullmatch(line) and not _DASHES.fullmatch(line)

    body = _rows_from(lines, rule + 1, is_row)
    end = rule + 1 + len(body)
    rows = [_cells(line, "|" if is_psql else " ", places) for line in (lines[rule - 1], *body)]
    if len(rows[0]) != len(places) + 1 or not all(rows[0][1:]):
        return None
    if not is_psql:
        return _Table("table in columns", rows, rule - 1, end) if body else None
    if end < len(lines) and _COUNT.fullmatch(lines[end].strip()):
        is_folded = any(cell.endswith("+") and len(cell) > 1 for row in rows[1:] for cell in row)
        problem = UnreadableOutput("a table of psql with cells of several lines") if is_folded else None
        return _Table("table of psql", rows, rule - 1, end, problem)
    if not body or not places or not all("|" in line for line in body[:-1]):
        return None
    return _Table("table of psql", rows, rule - 1, end, _broken_off("table of psql", rows))


def _markdown(lines: Sequence[str], rule: int) -> _Table:
    """Take the Markdown table around a rule; the edges of its names are those of its rows."""
    head = lines[rule - 1].strip()
    has_edges = head.startswith("|"), head.endswith("|")

    def split(line: str) -> list[str]:
        cells = _BAR.split(line.strip())
        return [_markdown_cell(cell) for cell in cells[has_edges[0] : len(cells) - has_edges[1]]]

    body = _rows_from(lines, rule + 1, re.compile(r".*\|").match)
    rows = [split(line) for line in (head, *body)]
    end = rule + 1 + len(body)
    is_torn = end == len(lines) and len(split(lines[end - 1])) < len(rows[0])
    problem = _broken_off("Markdown table", rows) if is_torn else None
    return _Table("Markdown table", rows, rule - 1, end, problem)


def _markdown_cell(text: str) -> str:
    text = text.strip().replace("\\|", "|")
    if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        text = text[1:-1]
    return _plain_cell(text) if text[:1] == "<" else text


def _pandas(lines: Sequence[str], first: int) -> _Table | None:
    """Take a DataFrame as pandas prints it: an index of numbers on the left, and columns with straight right edges."""
    head = lines[first - 1].rstrip()
    body = [] if _INDEX.match(head) else _rows_from(lines, first, _INDEX.match)
    end = first + len(body)
    if not body or (end < len(lines) and lines[end].strip()):
        return None
    width = max(map(len, body))
    shift = width - len(head)  # a tool may have taken the spaces before the first name
    names = list(re.finditer(r"\S+(?: \S+)*", head))
    rows = [["", *(name[0] for name in names)]]
    for at, line in enumerate(body):
        index = _INDEX.match(line)
        if index is None or shift < 0 or (shift and not line.startswith(f"{at}  ")):
            return None
        parts = [line[start:stop] for start, stop in pairwise([index.end(), *(name.end() + shift for name in names)])]
        cells = [part.strip() for part in parts]
        is_straight = all(not part[:1].strip() and part.endswith(cell) for part, cell in zip(parts, cells, strict=True))
        if not is_straight or not any(cells) or (cells[-1] and len(line) < width):
            return None
        rows.append([index[0], *("" if cell in ("NaN", "None", "NaT", "<NA>") else cell for cell in cells)])
    problem: UnreadableOutput | None = None
    if head.endswith("\\"):
        problem = UnreadableOutput("a table of pandas whose columns are in several blocks")
    elif any(len(cell) == 49 and cell.endswith("...") for row in rows for cell in row):  # as long as pandas leaves them
        problem = CutOutput("the table of pandas shortens texts")
    return _Table("table of pandas", rows, first - 1, end, problem)


# W3C SPARQL Query Results XML

_XML: Final = re.compile(r"\s{0,100}(?:<\?xml\s|<!|<(?:\w{1,30}:)?sparql[\s>])")
_ROOT: Final = re.compile(r"<(?:\w{1,30}:)?sparql[\s>]")
_RESULT: Final = re.compile(r"<(?:\w{1,30}:)?result[\s>]")
_XML_TAGS: Final = {"datatype": "datatype", "{http://www.w3.org/XML/1998/namespace}lang": "xml:lang"}


def looks_like_xml(text: str) -> bool:
    """Return whether a text begins as SPARQL results in XML."""
    text = text.removeprefix("\ufeff")
    return _XML.match(text) is not None and _ROOT.search(text, 0, 5_000) is not None


def read_xml(text: str) -> SparqlResults:
    """Read the results of a SELECT or ASK query in XML, without a DTD and entities of its own."""
    text = _prepared(text).strip()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UnreadableOutput("XML with a DTD, which is not read")
    parser = ElementTree.XMLParser()
    try:
        parser.feed(text)
    except ElementTree.ParseError as problem:
        raise UnreadableOutput(f"no XML ({problem})") from None
    try:
        root = parser.close()
    except ElementTree.ParseError:
        raise CutOutput(f"the XML breaks off in row {len(_RESULT.findall(text))}") from None
    if root.tag not in ("sparql", "{http://www.w3.org/2005/sparql-results#}sparql"):
        raise UnreadableOutput(f"XML whose element {root.tag[:60]} is none of SPARQL results")
    answer, results = (root.findtext("{*}boolean") or "").strip(), root.find("{*}results")
    if answer in ("true", "false", "1", "0"):
        return SparqlResults({}, 0, answer in ("true", "1"), form="W3C XML")
    if results is None:
        raise UnreadableOutput("XML without results and without a boolean")
    names = dict.fromkeys(variable.get("name", "") for variable in root.iterfind("{*}head/{*}variable"))
    try:
        bindings = [
            {cell.get("name", ""): _xml_term(cell[0]) for cell in result.iterfind("{*}binding") if len(cell)}
            for result in results.iterfind("{*}result")
        ]
        return replace(results_from_bindings(list(names), bindings), form="W3C XML")
    except RecursionError:
        raise UnreadableOutput("XML that is nested too deeply") from None


def _xml_term(element: ElementTree.Element) -> dict[str, Any]:
    kind = element.tag.rpartition("}")[2]
    if kind == "triple":
        parts = {part.tag.rpartition("}")[2]: _xml_term(part[0]) for part in element if len(part)}
        return {"type": kind, "value": parts}
    text = "".join(element.itertext())
    tags = {key: element.get(name) for name, key in _XML_TAGS.items() if element.get(name) is not None}
    return {"type": kind, "value": text if kind == "literal" else text.strip(), **tags}


# Results in a longer text: the one piece of it that can be read

_MOST_PIECES: Final = 20
_FENCE: Final = re.compile(r"(?:^|\n)[ \t]{0,10}(```+)[ \t]{0,5}([\w+\-/.]{0,40})[^\n`]{0,80}\n")
_QUERIES: Final = frozenset({"bash", "console", "cypher", "rq", "sh", "sparql", "sql", "ttl", "turtle"})
_BY_LANGUAGE: Final[dict[str, ReadText]] = {"csv": read_csv, "tsv": read_tsv, "xml": read_xml}
_PIECE: Final = re.compile(r"""[\[{]\s{0,100}+["'\[{(<]|\(\s{0,100}+[\[{(]|<(?:\?xml[\s>]|(?:\w{1,30}:)?sparql[\s>])""")
_XML_END: Final = re.compile(r"</(?:\w{1,30}:)?sparql\s{0,20}>")
_TOKEN: Final = re.compile(r"""("(?:[^"\\]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|([\[({])|[\])}]""", re.DOTALL)


def looks_like_fence(text: str) -> bool:
    """Return whether a code fence begins in a text."""
    return "```" in text and _FENCE.search(text) is not None


def read_fence(text: str, read_text: ReadText) -> SparqlResults:
    """Read the results in the one code fence that has some; fences of queries are passed over."""

    def read_open(piece: str) -> SparqlResults:
        results = read_text(piece)
        if any(form in results.form for form in OPEN_FORMS):
            raise CutOutput("the code fence has no end")
        return results

    def pieces() -> Iterator[tuple[str, ReadText]]:
        at = 0
        while opening := _FENCE.search(text, at):
            end = text.find(f"\n{opening[1]}", opening.end() - 1)
            at = len(text) if end < 0 else end + 1 + len(opening[1])
            if opening[2].lower() not in _QUERIES:
                read = _BY_LANGUAGE.get(opening[2].lower(), read_text)
                yield text[opening.end() : len(text) if end < 0 else end + 1], read_open if end < 0 else read

    return _one_of(pieces(), "in a code fence")


def looks_like_sentence(text: str) -> bool:
    """Return whether an object, an array of objects or texts, or XML may be somewhere in a text."""
    return _PIECE.search(text) is not None


def read_sentence(text: str, read_text: ReadText) -> SparqlResults:
    """Read the one value or XML in a text that is results; ``read_text`` reads the text of a value alone."""
    text = _prepared(text)

    def read(piece: str) -> SparqlResults:
        results = read_xml(piece) if piece[0] == "<" else read_text(piece)
        if not results.row_count and results.boolean is None and results.is_untyped:
            raise UnreadableOutput("a sentence with an empty value in it")
        return results

    def pieces() -> Iterator[tuple[str, ReadText]]:
        at = 0
        while piece := _PIECE.search(text, at):
            at = _end_of_piece(text, piece.start())
            yield text[piece.start() : at], read

    return _one_of(pieces(), "beside a sentence")


def _one_of(pieces: Iterable[tuple[str, ReadText]], place: str) -> SparqlResults:
    """Return the results of the one piece of a text that has some; a piece that is cut makes all cut."""
    found: list[SparqlResults] = []
    problem: UnreadableOutput | None = None
    for piece, read in islice(pieces, _MOST_PIECES):
        try:
            found.append(read(piece))
        except CutOutput:
            raise
        except UnreadableOutput as refused:
            problem = problem or refused
    if len(found) > 1:
        raise UnreadableOutput(f"a text with {len(found)} things that may be the results")
    if not found:
        raise problem or UnreadableOutput("a text without results")
    return replace(found[0], form=f"{found[0].form} {place}")


def _end_of_piece(text: str, start: int) -> int:
    """Return where the brackets or the XML that begin at a place end; the end of the text if they never do."""
    if text[start] == "<":
        closing = _XML_END.search(text, start)
        return closing.end() if closing else len(text)
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += 0 if token[1] else 1 if token[2] else -1
        if not depth:
            return token.end()
    return len(text)
