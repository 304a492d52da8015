"""Tables of SPARQL results in texts: W3C CSV and TSV, and Markdown, each with the evidence that a text is one.

A text that nothing declares to be a table is one only if its first line has names as variables have and all rows have
as many cells. CSV needs two columns and a row; CSV of one column must have line ends of CR LF, as W3C's has, or cells
that are all IRIs, numbers or in quotes. TSV without rows needs two names with question marks. A Markdown table has its
own evidence, the line of dashes. So a sentence is never a table without rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.results import (
    SparqlResults,
    TermColumn,
    require_unicode,
    results_from_bindings,
)
from graphrag_eval_lc.matching.rows.tabular_json import INDEX, counts
from graphrag_eval_lc.matching.rows.terms import UNBOUND_SHAPE, Shape
from graphrag_eval_lc.matching.rows.xsd_numbers import XSD, XSD_BOOLEAN

_VARIABLE: Final = re.compile(r"\??\w[\w.]{0,99}")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BLANK_LINES: Final = re.compile(r"(?:[ \t]*[\r\n])++(?=[^\r\n])")
_CELL: Final = re.compile(r'(?:"([^"]*+(?:""[^"]*+)*+)"|([^",\r\n]*+))(,|\r\n|\n|\r|\Z)')
_QUOTED: Final = re.compile(r'"[^"]*+"')
_OPEN_CELL: Final = re.compile(r'"[^"]*+(?:""[^"]*+)*+\Z')
_SELF_EVIDENT: Final = re.compile(r"<?[A-Za-z][A-Za-z0-9+.\-]{1,20}:[^\s<>]+>?|[+-]?\d[\d.]*(?:[eE][+-]?\d+)?|_:\w+")
_NO_NAMES: Final = frozenset({"error", "exception", "failed", "failure", "none", "null", "ok", "traceback", "warning"})
_LONGEST_LINE_OF_NAMES: Final = 5_000

Rows = list[list[str | None]]


def read_csv(text: str) -> SparqlResults:
    r"""Read W3C CSV: a line of names, then a row on each line; RFC 4180 says how cells are quoted.

    An empty cell is unbound: CSV writes an unbound variable and an empty text in the same way. All cells but blank
    nodes are literals without a type.

    Raises:
        CutOutput: It ends before its end.
        UnreadableOutput: It is no CSV.

    Example:
        >>> read_csv('name,n\r\n"Oslo, Norway",5\r\n').row_count
        1
    """
    text = _from_first_line(text)
    _refuse_mark(text, "CSV")
    rows = list(_csv_rows(text))
    _refuse_line(text, rows, "CSV")
    return untyped_table(rows, "W3C CSV")


def guessed_csv(text: str) -> SparqlResults | None:
    """Read CSV that nothing declares; None where it is no CSV.

    Raises:
        CutOutput: It ends before its end.
    """
    start = _from_first_line(text)
    line = _first_line(start)
    names = [] if line is None else line.replace('"', "").split(",")
    has_index = len(names) > 1 and not names[0] and start[len(line or "") :].lstrip("\r\n").startswith("0,")
    if line is None or not _names_of(names[1:] if has_index else names):
        return None
    is_single = "," not in line
    if is_single and not _is_evident_column(start):
        return None
    try:
        results = read_csv(text)
    except CutOutput:
        if is_single or not _has_full_row(start):
            return None
        raise
    except UnreadableOutput:
        return None
    return results if results.row_count else None


def _from_first_line(text: str) -> str:
    """Return a text without a byte order mark, and without blank lines in front; all of it if it is blank."""
    text = text.removeprefix("\ufeff")
    blank = _BLANK_LINES.match(text)
    return text if blank is None else text[blank.end() :]


def _first_line(text: str) -> str | None:
    end = _LINE_END.search(text, 0, _LONGEST_LINE_OF_NAMES)
    return text[: end.start()] if end is not None else None


def _names_of(cells: Sequence[str]) -> bool:
    """Return whether the cells of a first line may be the names of variables."""
    if cells[0].lower() in _NO_NAMES or len(set(cells)) < len(cells):
        return False
    return all(_VARIABLE.fullmatch(cell) for cell in cells) and not all(cell[:1].isdigit() for cell in cells)


def _is_evident_column(text: str) -> bool:
    lines = _QUOTED.sub('""', text).split("\n")
    if all(line.endswith("\r") for line in lines[:-1]) and not lines[-1]:
        return len(lines) > 2
    cells = [line.strip("\r") for line in lines[1:] if line.strip("\r")]
    return bool(cells) and all(
        _SELF_EVIDENT.fullmatch(cell) or (len(cell) > 1 and cell[0] == cell[-1] == '"') for cell in cells
    )


def _has_full_row(text: str) -> bool:
    """Return whether a text has a row as wide as its names, so that a torn one after it tells of a cut."""
    rows = []
    try:
        for row in _csv_rows(text):
            rows.append(row)
            if len(rows) == 2:
                break
    except UnreadableOutput:
        pass
    is_sentence = " " in text[text.rstrip().rfind("\n") :].strip() and text.rstrip().endswith((".", "!", "?"))
    return len(rows) == 2 and len(rows[0]) == len(rows[1]) and not is_sentence


def _csv_rows(text: str) -> Iterator[list[str | None]]:
    """Yield the lines of CSV as cells; an empty cell without quotes is None, one in quotes is too, as W3C has it."""
    if '"' not in text:
        for line in lines_of(text):
            yield [cell or None for cell in line.split(",")]
        return
    at, row, length = 0, list[str | None](), len(text)
    while at < length or row:
        match = _CELL.match(text, at)
        if match is None:
            if _OPEN_CELL.match(text, at):
                raise CutOutput("the CSV breaks off inside a cell in quotes")
            raise UnreadableOutput("CSV with a quote inside a cell without quotes")
        quoted, plain, end = match.groups()
        row.append((plain if quoted is None else quoted.replace('""', '"')) or None)
        at = match.end()
        if end != ",":
            yield row
            row = []
        elif at == length:
            yield [*row, None]
            return


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without an empty one after the last line end."""
    lines = _LINE_END.split(text)
    if lines and not lines[-1]:
        lines.pop()
    return lines


def untyped_table(rows: Rows, form: str) -> SparqlResults:
    """Return the results of rows of texts, of which the first holds the names.

    A first column without a name is pandas' index; it is left out where it only counts the rows.

    Raises:
        CutOutput: The last row has too few cells.
        UnreadableOutput: They are no rows of a table.
    """
    has_index = len(rows) > 1 and len(rows[0]) > 1 and rows[0][0] is None and INDEX not in rows[0]
    if has_index:
        rows = [[INDEX, *rows[0][1:]], *rows[1:]]
    names = _checked_names(rows, form)
    if has_index and counts([row[0] for row in rows[1:]]):
        names, rows = names[1:], [row[1:] for row in rows]
    cells = zip(*rows[1:], strict=True) if len(rows) > 1 else [()] * len(names)
    columns = dict(zip(names, map(_untyped_column, cells), strict=True))
    return SparqlResults(columns, len(rows) - 1, form=form, is_untyped=True)


_LITERAL: Final[Shape] = ("literal", None, None)
_BLANK_NODE: Final[Shape] = ("bnode", None, None)
_BOOLEAN: Final[Shape] = ("literal", XSD_BOOLEAN, None)
_BOOLEANS_OF_PYTHON: Final = frozenset({"True", "False", ""})


def _untyped_column(cells: Sequence[str | None]) -> TermColumn:
    """Return a column of literals, blank nodes (``_:b0``) and unbound cells.

    A column of nothing but True and False is one of booleans, as Python writes them.
    """
    texts = [cell or "" for cell in cells]
    if texts and texts[0] in _BOOLEANS_OF_PYTHON and _BOOLEANS_OF_PYTHON.issuperset(texts) and any(texts):
        return TermColumn(texts, [_BOOLEAN if text else UNBOUND_SHAPE for text in texts])
    if all(texts) and not any(text.startswith("_:") for text in texts):
        return TermColumn(texts, _LITERAL)
    kinds = [_BLANK_NODE if len(text) > 2 and text.startswith("_:") else _LITERAL for text in texts]
    shapes = [kind if text else UNBOUND_SHAPE for kind, text in zip(kinds, texts, strict=True)]
    labels = [text[2:] if kind is _BLANK_NODE else text for kind, text in zip(kinds, texts, strict=True)]
    return TermColumn(labels, shapes)


def _checked_names(rows: Rows, form: str) -> list[str]:
    """Return the names of the columns; all rows have as many cells, and blank lines at the end are gone.

    Raises:
        CutOutput: The last row has too few cells.
        UnreadableOutput: They are no rows of a table.
    """
    if not rows or not all(rows[0]):
        raise UnreadableOutput(f"no {form}: its first line has no names" if rows else f"no {form}: an empty text")
    names = [str(name) for name in rows[0]]
    if len(names) > 1:
        while len(rows) > 1 and not any(rows[-1]) and len(rows[-1]) == 1:  # blank lines at the end
            rows.pop()
    if len(set(names)) < len(names):
        raise UnreadableOutput(f"no {form}: two columns have the same name")
    for at, row in enumerate(rows[1:], start=1):
        if len(row) != len(names):
            if at == len(rows) - 1 and at > 1 and len(row) < len(names):
                found = f"{len(row)} of {len(names)} cells"
                raise CutOutput(f"the {form.split()[-1]} breaks off in row {at}, which has {found}")
            raise UnreadableOutput(f"no {form}: row {at} has {len(row)} cells for {len(names)} names")
    return names


def _refuse_line(text: str, rows: Rows, form: str) -> None:
    """Refuse a line alone that may be a sentence: names without rows end with a line end, and are names."""
    if len(rows) == 1 and not (text.endswith(("\n", "\r")) and _names_of([cell or "" for cell in rows[0]])):
        raise UnreadableOutput(f"no {form}: one line, which is no line of names")


def _refuse_mark(text: str, form: str) -> None:
    """Refuse a text that says that it was cut, or that has half a character."""
    mark = cut_mark(text)
    if mark is not None:
        raise CutOutput(f"the {form} ends with {mark!r}")
    require_unicode([text])


_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}
_TERM: Final = re.compile(
    r"""<(?P<iri>[^<>"\s]*+)>|_:(?P<bnode>\S+)"""
    r"""|(?:"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"|'(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)')"""
    r"""(?:@(?P<language>[A-Za-z]+(?:-[A-Za-z0-9]+)*)|\^\^(?:<(?P<datatype>[^<>"\s]*+)>|xsd:(?P<xsd>\w+)))?"""
    r"""|(?P<double_number>[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+)|(?P<decimal>[+-]?\d*\.\d+)|(?P<integer>[+-]?\d+)"""
    r"""|(?P<boolean>true|false)"""
)


def read_tsv(text: str) -> SparqlResults:
    r"""Read W3C TSV: names with question marks, and terms as Turtle writes them; an empty cell is unbound.

    Without question marks the cells are texts without a type.

    Raises:
        CutOutput: It ends before its end.
        UnreadableOutput: It is no TSV.

    Example:
        >>> read_tsv('?city\t?n\n<urn:oslo>\t5\n').columns["n"].shapes[1]
        'http://www.w3.org/2001/XMLSchema#integer'
    """
    text = _from_first_line(text)
    _refuse_mark(text, "TSV")
    rows: Rows = [[cell or None for cell in line.split("\t")] for line in lines_of(text)]
    names = rows[0] if rows else []
    if not names or not all(name and name.startswith("?") for name in names):
        _refuse_line(text, rows, "TSV")
        return untyped_table(rows, "TSV")
    last = rows[-1][-1] or ""
    if len(rows) > 1 and last[:1] in {'"', "<", "'"} and _TERM.fullmatch(last) is None:
        raise CutOutput(f"the TSV breaks off in row {len(rows) - 1}")
    rows[0] = [name.removeprefix("?") if name else name for name in names]
    columns = _checked_names(rows, "W3C TSV")
    bindings = [
        {name: turtle_term(cell) for name, cell in zip(columns, row, strict=True) if cell is not None}
        for row in rows[1:]
    ]
    return replace(results_from_bindings(columns, bindings), form="W3C TSV")


def guessed_tsv(text: str) -> SparqlResults | None:
    """Read TSV that nothing declares; None where it is no TSV.

    Raises:
        CutOutput: It ends before its end.
    """
    start = _from_first_line(text)
    line = _first_line(start)
    names = [] if line is None else line.split("\t")
    if not names or not _names_of(names):
        return None
    is_marked = all(name.startswith("?") and len(name) > 1 for name in names)
    if len(names) == 1 and not is_marked:
        return None
    try:
        results = read_tsv(text)
    except CutOutput:
        raise
    except UnreadableOutput:
        return None
    return results if results.row_count or (is_marked and len(names) > 1) else None


def turtle_term(text: str) -> dict[str, Any]:
    """Return a term as Turtle writes it, as in SPARQL 1.1 JSON; another text is a literal without a type."""
    match = _TERM.fullmatch(text)
    if match is None:
        return {"type": "literal", "value": text}
    kind = match.lastgroup
    found = match.groupdict()
    if found["iri"] is not None:
        return {"type": "uri", "value": _unescaped(found["iri"])}
    if found["bnode"] is not None:
        return {"type": "bnode", "value": found["bnode"]}
    for group, name in (("double_number", "double"), ("decimal", "decimal"), ("integer", "integer")):
        if kind == group:
            return {"type": "literal", "value": text, "datatype": f"{XSD}{name}"}
    if kind == "boolean":
        return {"type": "literal", "value": text, "datatype": XSD_BOOLEAN}
    term = {"type": "literal", "value": _unescaped(found["double"] if found["double"] is not None else found["single"])}
    if found["language"]:
        term["xml:lang"] = found["language"]
    elif found["datatype"] is not None:
        term["datatype"] = _unescaped(found["datatype"])
    elif found["xsd"]:
        term["datatype"] = f"{XSD}{found['xsd']}"
    return term


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "\\" in text else text


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    if code is None:
        return _ESCAPES.get(match[3], match[3])
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match[0]


_RULE_CELL: Final = re.compile(r"\s*:?-+:?\s*")
_PIPE: Final = re.compile(r"(?<!\\)\|")
_LINK: Final = re.compile(r"<([A-Za-z][A-Za-z0-9+.\-]{0,30}:[^<>\s]*)>")


def has_markdown_rule(text: str) -> bool:
    """Return whether a line of a text is that of dashes under the names of a Markdown table."""
    return "|" in text and "-" in text and any(map(_is_rule, lines_of(text)))


def _is_rule(line: str) -> bool:
    if "|" not in line or "-" not in line or not set(line) <= set("|:- \t"):
        return False
    return all(map(_RULE_CELL.fullmatch, _pipe_cells(line)))


def _pipe_cells(line: str) -> list[str]:
    cells = _PIPE.split(line.strip())
    if cells and not cells[0].strip():
        cells = cells[1:]
    if len(cells) > 1 and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def read_markdown(text: str) -> SparqlResults:
    r"""Read the one Markdown table of a text; an empty cell is unbound, the others are literals without a type.

    Raises:
        CutOutput: It ends before its end.
        UnreadableOutput: There is none, or there are several.

    Example:
        >>> read_markdown("Found:\n| name | n |\n|---|---|\n| Oslo | 5 |\n").variables
        ('name', 'n')
    """
    lines = lines_of(text.removeprefix("\ufeff"))
    rules = [at for at, (names, line) in enumerate(pairwise(lines), start=1) if "|" in names and _is_rule(line)]
    if len(rules) != 1:
        found = f"{len(rules)} Markdown tables, of which one may be meant" if rules else "no Markdown table"
        raise UnreadableOutput(found)
    rule = rules[0]
    body = []
    for line in lines[rule + 1 :]:
        if "|" not in line:
            break
        body.append(line)
    is_last = rule + 1 + len(body) == len(lines)
    names = [_markdown_cell(cell) for cell in _pipe_cells(lines[rule - 1])]
    may_be_cut = is_last and not text.endswith(("\n", "\r"))
    cells_of_rows = [
        _row_cells(line, lines[rule - 1], len(names), may_be_cut=may_be_cut and at == len(body))
        for at, line in enumerate(body, start=1)
    ]
    rows: Rows = [names, *([_markdown_cell(cell) for cell in cells] for cells in cells_of_rows)]
    if len(_pipe_cells(lines[rule])) != len(names) or (len(rows[-1]) != len(names) and not is_last):
        raise UnreadableOutput("no Markdown table: its rows have different numbers of cells")
    if body and all(cell in {"...", "…"} for cell in rows[-1]):
        raise CutOutput(f"the Markdown table leaves rows out after row {len(rows) - 2}")
    has_edges = lines[rule - 1].rstrip().endswith("|")
    if is_last and not body and has_edges and not lines[rule].rstrip().endswith("|"):
        raise CutOutput("the Markdown table breaks off under its names")
    is_torn = len(rows[-1]) < len(names) or (has_edges and not lines[-1].rstrip().endswith("|"))
    if is_last and body and is_torn:
        raise CutOutput(f"the Markdown table breaks off in row {len(body)}")
    _refuse_mark(text, "Markdown table")
    return replace(untyped_table(rows, "Markdown table"), form="a Markdown table")


def _row_cells(line: str, names: str, width: int, *, may_be_cut: bool) -> list[str]:
    """Return the cells of a row; without edges around the table, a sign at the edge stands beside an empty cell."""
    cells, line, names = _pipe_cells(line), line.strip(), names.strip()
    if len(cells) < width and line.startswith("|") and not names.startswith("|"):
        cells.insert(0, "")
    if len(cells) < width and line.endswith("|") and not names.endswith("|") and not may_be_cut:
        cells.append("")
    return cells


def _markdown_cell(text: str) -> str | None:
    text = text.strip().replace("\\|", "|")
    if len(text) > 2 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        text = text[1:-1]
    link = _LINK.fullmatch(text)
    return (link[1] if link else text) or None
