"""Reads results from texts other than JSON: CSV, TSV, tables drawn by tools, and W3C XML.

Every table becomes a grid: rows of cells, with the names in the first row. The forms differ only in which lines are
rows, what separates cells and how cells are quoted. ``looks_like_…`` is for texts without a declared form and strict
enough that prose never passes. ``read_…`` raises `CutOutput` if the text ends too early, and `UnreadableOutput` if it
does not have the form.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, Final
from xml.etree import ElementTree

from graphrag_eval_lc.files.rdf_graphs import rdf_term
from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark, is_prose
from graphrag_eval_lc.matching.rows.numbers_and_times import XSD_BOOLEAN
from graphrag_eval_lc.matching.rows.results import (
    UNBOUND,
    SparqlResults,
    Term,
    TermColumn,
    column_of,
    distinct_names,
    require_unicode,
    results_from_bindings,
)
from graphrag_eval_lc.texts import counted

Rows = list[list[str]]

_BLANK_LINES: Final = re.compile(r"\A\ufeff?(?:[ \t]*+[\r\n]++)*+")
_LEFT_OUT: Final = frozenset({"·", "…", "...", ".."})  # what tools print for rows or columns that they leave out


def prepared(text: str) -> str:
    """Return a text without leading blank lines; raise if it has a cut mark or a lone surrogate."""
    require_unicode([text])
    if (mark := cut_mark(text)) is not None:
        raise CutOutput(f"the text ends with {mark!r}")
    return _BLANK_LINES.sub("", text, count=1)


def _lines_of(text: str) -> list[str]:
    return [line.rstrip("\r\n") for line in io.StringIO(text, newline="")]


def _results_of_grid(rows: Rows, form: str, *, has_end: bool = False, is_w3c_tsv: bool = False) -> SparqlResults:
    """Return rows of cells as results. The first row has the names; an empty cell is unbound."""
    names, *body = rows
    width = len(names)
    while width > 1 and body and body[-1] == [""]:  # a blank line at the end
        body.pop()
    for at, row in enumerate(body, start=1):
        if len(row) != width:
            if 1 < at == len(body) and len(row) < width:
                raise CutOutput(f"the {form} breaks off in row {at}, at {''.join(row[:1]).strip()[:60]!r}")
            has = f"row {at} has {counted(len(row), 'cell')} for {counted(width, 'name')}"
            raise UnreadableOutput(f"not a {form}: {has}")
        if _LEFT_OUT.issuperset(row):
            raise CutOutput(f"the {form} leaves rows out after row {at - 1}")
    if not _LEFT_OUT.isdisjoint(names):
        raise CutOutput(f"the {form} leaves columns out")
    columns = [[row[at] for row in body] for at in range(width)]
    if width > 1 and body and not names[0] and "index" not in names:  # an index; dropped if it only counts the rows
        is_counted = columns[0] == [str(at) for at in range(len(body))]
        names, columns = (names[1:], columns[1:]) if is_counted else (["index", *names[1:]], columns)
    if not names or not all(names):
        raise UnreadableOutput(f"not a {form}: a column has no name")
    read = (lambda texts: column_of(map(term_of_turtle, texts))) if is_w3c_tsv else _column
    found = dict(zip(distinct_names(names), map(read, columns), strict=True))
    return SparqlResults(found, len(body), form=form, is_untyped=not is_w3c_tsv, has_end=has_end)


def _column(texts: list[str]) -> TermColumn:
    """Return a column of literals, blank nodes (``_:b0``) and unbound cells; of booleans if all are True or False."""
    datatype = XSD_BOOLEAN if any(texts) and {"True", "False", ""}.issuperset(texts) else None
    if all(text and text[:2] != "_:" for text in texts):
        return TermColumn(texts, ("literal", datatype, None))
    blank, literal = ("bnode", None, None), ("literal", datatype, None)
    return column_of(
        Term(text[2:], blank) if text[:2] == "_:" else Term(text, literal) if text else UNBOUND for text in texts
    )


_IDENTIFIER: Final = re.compile(r"\??\w[\w.]{0,99}")
_NAME: Final = re.compile(r"(?!urn:|\w+://)[^\W\d][^\t{}\"=]{0,99}(?<![\s.!:,;。！？])|\?\w+\?|[$#%@]\w*")
_NO_NAME: Final = re.compile(
    r"(?i)(?:error|exception|failed|failure|false|none|null|ok|traceback|true|warning)\Z"
    r"|(?:select|insert|import|return|match|with|prefix|from)\s"
)
_EVIDENT: Final = re.compile(r"[A-Za-z][\w+.\-]{1,20}:[^\s<>]+|\d{4}-\d\d-\d\d[\dT:.Z+\-]*|True|False|(?:\"\")+")
_NO_ROWS: Final = re.compile(r'(?:"[^"\n]+"[,\t])+"[^"\n]+"\r?\n|"__ASK_RETVAL"\r?\n|\w+(?:,\w+)+\r\n')


def _sign_of(text: str) -> str:
    """Return the separator of a CSV text."""
    line = re.sub('"[^"]*"', "", text.split("\n", 1)[0])
    return ";" if ";" in line and "," not in line else ","


def _separated(text: str, sign: str, *, strict: bool = True) -> Rows:
    """Return rows of cells separated by ``sign``, quoted as in RFC 4180; if not strict, broken quotes are accepted."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign, strict=strict)
    try:
        return [row or [""] for row in reader]
    except csv.Error as problem:
        if not strict:
            return []
        is_cut = "unexpected end" in str(problem)
        raise (CutOutput if is_cut else UnreadableOutput)(f"line {reader.line_num:,} of the text: {problem}") from None


def _are_names(names: Sequence[str], rows: Rows) -> bool:
    """Return whether a first line may have column names, and neither it nor the rows look like a sentence."""
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
    """Return whether a text without a declared form is a table: a line of names, and rows of the same width."""
    text = _BLANK_LINES.sub("", text, count=1)
    if _NO_ROWS.fullmatch(text):
        return True
    names, *body = _separated(text.rstrip("\r\n"), sign, strict=False) or [[]]
    width, lengths = len(names), [len(row) for row in body]
    has_index = width > 1 and not names[0] and bool(body) and body[0][0] == "0"
    if not body or lengths[0] != width or not _are_names(names[has_index:], body):
        return False
    if width == 1:  # with W3C's line ends, or with cells that are not words
        is_word = text[0] == '"' or " " not in re.sub(r" ?[(\[].*[)\]]", "", names[0])
        lines = re.sub('"[^"]*"', '""', text).split("\n")
        cells = filter(None, (line.strip("\r") for line in lines[1:]))
        has_crlf = not lines[-1] and all(line.endswith("\r") for line in lines[:-1])
        has_values = has_crlf or all(_EVIDENT.fullmatch(cell) or rdf_term(cell) for cell in cells)
        return sign == "," and is_word and has_values
    last = text.rstrip().rpartition("\n")[2]
    is_torn = lengths[-1] < width and not (" " in last and last[-1] in ".!?")
    return {width}.issuperset(lengths[:-1] if is_torn else lengths)


def _declared(text: str, rows: Rows) -> Rows:
    """Return the rows of a text with a declared form; refuse a single line that may be a sentence."""
    is_line_of_names = len(rows) == 1 and text[-1] in "\r\n" and _are_names(rows[0], [])
    if len(rows) < 2 and not (is_line_of_names and (text[0] == '"' or " " not in text)):
        raise UnreadableOutput("not a table, but one line that is not a line of names")
    if len(rows[0]) == 1 and is_prose(rows[0][0]):
        raise UnreadableOutput("not a table: its first line is a sentence")
    return rows


def looks_like_csv(text: str) -> bool:
    """Return whether a text is clearly CSV and not a sentence."""
    return _is_separated(text, _sign_of(text.lstrip()))


def read_csv(text: str) -> SparqlResults:
    """Read CSV (RFC 4180), separated by commas or semicolons."""
    text = prepared(text)
    sign = _sign_of(text)
    rows = _declared(text, _separated(text, sign))
    return _results_of_grid(rows, "W3C CSV" if sign == "," else "CSV with semicolons")


def looks_like_tsv(text: str) -> bool:
    """Return whether a text is TSV: names with question marks, or names and rows of the same width."""
    has_variables = re.match(r"\ufeff?\s*\?\w+(?:\t\?\w+)*\r?\n", text) is not None
    return has_variables or ("\t" in text and _is_separated(text, "\t"))


def read_tsv(text: str) -> SparqlResults:
    """Read TSV; if the names have question marks, the cells are terms in Turtle's syntax."""
    text = prepared(text)
    rows = [line.split("\t") for line in _lines_of(text)]
    if rows and not all(name.startswith("?") for name in rows[0]):
        with suppress(UnreadableOutput):  # Turtle terms contain quotes, too
            rows = _separated(text, "\t")
        return _results_of_grid([[_plain_cell(cell) for cell in row] for row in _declared(text, rows)], "TSV")
    rows = _declared(text, rows)
    last = rows[-1][-1]
    if len(rows) > 1 and last[:1] in {'"', "<", "'"} and rdf_term(last) is None:
        raise CutOutput(f"the TSV breaks off in row {len(rows) - 1}")
    return _results_of_grid([[name.removeprefix("?") for name in rows[0]], *rows[1:]], "W3C TSV", is_w3c_tsv=True)


def term_of_turtle(text: str) -> Term:
    """Return the term in Turtle's syntax; any other text is an untyped literal, and an empty text is unbound."""
    found = rdf_term(text)
    return Term(*found) if found is not None else Term(text) if text else UNBOUND


_NULLS: Final = frozenset({"NULL", "null", "NaN", "nan", "None", "NaT", "<NA>"})
"""What databases and pandas print for a missing cell."""


def _plain_cell(text: str) -> str:
    """Return the text of a cell without spaces, backticks, or the quotes and type of a term; NULL is empty."""
    text = re.sub(r"\A`([^`]+)`\Z", r"\1", text.strip())
    if text in _NULLS:
        return ""
    return term_of_turtle(text).text if len(text) > 1 and text[0] in '"<' else text


_Table = tuple[str, Rows, int]  # a form, the rows with the names first, and the number of the line after the table
_EDGE: Final = re.compile(r"\+[-=+]+\+|\|[-+]+\||-{3,}|={3,}|[┌├╞└][─═┬┼╪┴]+[┐┤╡┘]")  # MySQL; Jena; DuckDB, polars
_RULE: Final = re.compile(r"(?=.*\|)(?=.*-)\|?(?:\s*:?-+:?\s*\|)*(?:\s*:?-+:?)?|-+(?:\+-+)+")  # Markdown; psql
_DASHES: Final = re.compile(r"-+(?: +-+)*")  # tabulate, sqlcmd; psql with one column
_TYPE: Final = re.compile(r"-{3}|[a-z][a-z0-9_ ]{0,40}(?:[(\[].{0,200}[)\]])?|")
_INDEX: Final = re.compile(r"(?:\d+|\.{2,3}) ")
_COUNT: Final = re.compile(
    r"shape: \((\d[\d_]{0,14}), \d+\)|\((\d{1,15}) rows?(?: affected)?\)|\[(\d{1,15}) rows x \d+ columns\]"
    r"|(?:Query returned )?(\d[\d,]{0,14}) (?:rows?|results?)(?: (?:in|returned)\b.{0,60}|  .{0,60})?"
    r"|.{0,40}\b\d+ of (\d[\d,]{0,14}) (?:rows|results|records)\b.{0,40}"
)
_MORE: Final = re.compile(r"only showing top \d+ rows?|.{0,40}\([\d,>? rows]+ shown\).*|(?:\.\.\.|…).*\bmore\b.*")
_EMPTY: Final = re.compile(r"\s*(?:Empty set \(\d.*|Empty DataFrame\s+Columns: \[(.*)\]\s+Index: \[\])\s*")


def looks_like_table(text: str) -> bool:
    """Return whether a text has a table drawn by a tool, or in Markdown."""
    try:
        return _EMPTY.fullmatch(text) is not None or next(_tables(_lines_of(text)), None) is not None
    except UnreadableOutput:
        return True


def read_table(text: str) -> SparqlResults:
    """Read the only table in a text."""
    text = prepared(text)
    if (empty := _EMPTY.fullmatch(text)) is not None:
        names = [name for name in (empty[1] or "").split(", ") if name]
        return SparqlResults({name: TermColumn([], []) for name in names}, 0, form="an empty table", is_untyped=True)
    tables = list(_tables(_lines_of(text)))
    if len(tables) != 1:
        raise UnreadableOutput(f"{len(tables)} tables, of which one may be meant" if tables else "not a table")
    form, rows, _ = tables[0]
    results = _results_of_grid(rows, form, has_end=form in ("table with edges", "table of psql"))
    for note in (line.strip(" \t|│") for line in _lines_of(text)):
        count = _COUNT.fullmatch(note)
        said = int(re.sub(r"\D", "", count[count.lastindex or 0])) if count else results.row_count
        if said != results.row_count or _MORE.fullmatch(note):
            raise CutOutput(f"the results have {counted(results.row_count, 'row')}, and the text says {note[:60]!r}")
    return replace(results, form=f"a {form}")


def _tables(lines: Sequence[str]) -> Iterator[_Table]:
    """Yield the tables of a text, each found by its first edge, the rule under its names, or its first row."""
    at = 0
    while at < len(lines):
        line, above, table = lines[at].strip(), lines[at - 1].strip() if at else "", None
        is_jena = line[:1] == "-" and "".join(lines[at + 2 : at + 3]).lstrip()[:1] == "="
        is_first = at == 1 or (at > 1 and lines[at - 2].strip()[-1:] in ("", ":"))  # so that no part is read repeatedly
        if (line[:1] in {"+", "┌"} or is_jena) and _EDGE.fullmatch(line):
            table = _edged(lines, at)
        elif "|" in above and (_RULE.fullmatch(line) or (is_first and "|" in above[1:-1])):
            table = _barred(lines, at - 1)
        elif above and "|" not in above and _DASHES.fullmatch(line):
            table = _in_columns(lines, at)
        elif above and line and (is_first or (_INDEX.match(line) and not _INDEX.match(above))):
            table = _pandas(lines, at)
        if table is not None:
            yield table
        at = max(at + 1, table[2] if table else 0)


def _rows_from(lines: Sequence[str], start: int, is_row: Callable[[str], object]) -> tuple[Sequence[str], int]:
    end = start
    while end < len(lines) and is_row(lines[end]):
        end += 1
    return lines[start:end], end


def _split(lines: Sequence[str]) -> Rows:
    """Return the cells of lines, separated by bars; if the first line has outer bars, the others have them too."""
    bar = re.compile(r"[│┆]" if lines[0][0] == "│" else r"(?<!\\)\|")
    is_open, is_closed = (bar.fullmatch(lines[0][at]) is not None for at in (0, -1))
    rows = []
    for line in lines:
        cells = bar.split(line.strip())
        cells = cells[1:] if is_open and not cells[0] else cells
        cells = cells[:-1] if is_closed and cells and not cells[-1] else cells
        rows.append([_plain_cell(cell.replace("\\|", "|")) for cell in cells])
    return rows


def _edged(lines: Sequence[str], top: int) -> _Table | None:
    """Read a table with edges: the names between the first two edges, and the rows between the others."""
    is_part = re.compile(r"\s*(?:[|│┆├╞└]|\+[-=+]+\+|-{3,}\s*$|={3,}\s*$)").match
    body, end = _rows_from(lines, top + 1, is_part)
    groups: list[list[str]] = [[]]  # the lines between edges
    for line in map(str.strip, body):
        if _EDGE.fullmatch(line):
            groups.append([])
        else:
            groups[-1].append(line)
    head, *groups = groups
    if not head or (len(groups) == 1 and body[-1].strip()[0] == "└"):
        return None
    if len(groups) < 2 or groups.pop() or body[-1].strip()[0] in "├╞":
        raise CutOutput("a table with edges breaks off")
    if len(groups) > 1 and _COUNT.match("".join(groups[-1]).strip("| │")):  # DuckDB counts the rows in the last one
        groups.pop()
    if len(groups) > 1 and any(len(group) != 1 for group in groups):
        raise UnreadableOutput("a table with cells of several lines")
    names, *rows = _split([*head, *chain(*groups)])
    types, rows = rows[: len(head) - 1], rows[len(head) - 1 :]  # DuckDB and polars have them, and shorten texts
    if not all(_TYPE.fullmatch(cell) for row in types for cell in row):
        raise UnreadableOutput("a table with names of several lines")
    if types and any(cell.endswith("…") for row in rows for cell in row):
        raise CutOutput("the table leaves out parts of its cells or rows")
    return "table with edges", [names, *rows], end


def _barred(lines: Sequence[str], head: int) -> _Table | None:
    """Read names and rows with bars, with a rule between them (Markdown, psql, rdflib) or without one (scripts)."""
    below = lines[head + 1].strip()
    rule = below if _RULE.fullmatch(below) or _DASHES.fullmatch(below) else ""
    body, end = _rows_from(lines, head + 1 + bool(rule), lambda line: "|" in line)
    names, *rows = _split([lines[head].strip(), *body])
    dashes = len(re.findall("-+", rule))
    if "+" in rule:
        form, is_table = "table of psql", _COUNT.fullmatch("".join(lines[end : end + 1]).strip()) is not None
    elif "|" in rule:
        is_torn = lines[head].strip()[-1] == "|" != lines[end - 1].rstrip()[-1]
        if end == len(lines) and (is_torn or (len(rows[-1]) if rows else dashes) < len(names)):
            raise CutOutput("a Markdown table breaks off")
        form, is_table = "Markdown table", True
    else:
        are_rows = {len(names)} == set(map(len, rows)) and lines[head].lstrip()[0] != "|"
        form, is_table, dashes = "table with bars", are_rows and all(map(_IDENTIFIER.fullmatch, names)), len(names)
        if all(cell[:1] in {'"', "<", "-", "_"} for line in body for cell in map(str.strip, line.split("|"))):
            rows = [["" if cell == "-" else cell for cell in row] for row in rows]  # rdflib's unbound cells
    return (form, [names, *rows], end) if is_table and dashes == len(names) else None


def _in_columns(lines: Sequence[str], rule: int) -> _Table | None:
    """Read a table with dashes below each name and cells below the dashes; with one column, a row count must follow."""
    places = [found.end() for found in re.finditer("-+", lines[rule].rstrip())][:-1]
    is_end = re.compile(rf"\s*(?:{_COUNT.pattern}|{_DASHES.pattern})?\s*").fullmatch
    body, end = _rows_from(lines, rule + 1, lambda line: is_end(line) is None)
    table = [lines[rule - 1], *body]
    is_known = bool(body) if places else _COUNT.fullmatch("".join(lines[end : end + 1]).strip()) is not None
    is_known = is_known or (
        bool(body) and all(_EVIDENT.fullmatch(cell) or rdf_term(cell) for cell in map(str.strip, body))
    )
    if not is_known or any(line[at : at + 1].strip() for line in table for at in places):
        return None
    rows = [[_plain_cell(line[start:stop]) for start, stop in pairwise([0, *places, len(line)])] for line in table]
    return ("table in columns", rows, end) if all(rows[0][1:]) else None


def _pandas(lines: Sequence[str], first: int) -> _Table | None:
    """Read a DataFrame printed by pandas: columns that are right-aligned in all lines, below an index or without one.

    Without an index names have no spaces, so that no lines of text are a table.
    """
    width = len(lines[first])
    body, end = _rows_from(lines, first, lambda line: len(line) == width and not line.isspace())
    has_index, is_counted = all(map(_INDEX.match, body)), all(line.startswith(f"{at} ") for at, line in enumerate(body))
    head, is_apart = lines[first - 1].rstrip(), not "".join(lines[end : end + 1]).strip()
    if is_counted or (first == 1 and not has_index):
        head = head.rjust(width)  # the first line of a text may have lost its indentation
    if len(head) != width or (has_index and not (is_apart and head[0] == " ")):
        return None
    table, start = [head, *body], max(line.index(" ") for line in body) if has_index else 0
    words = [{word.end() for word in re.compile(r"\S+").finditer(line, start)} for line in table]
    places = sorted(set.intersection(*words))
    edges = [0, start, *places] if has_index else [0, *places]
    names, *rows = [[line[at:to].strip() for at, to in pairwise(edges)] for line in table]
    is_unclear = head.endswith("\\") or any("  " in cell for row in (names, *rows) for cell in row)
    are_words = len(names) > 1 and not names[0][:1].isdigit() and all(map(_IDENTIFIER.fullmatch, names))
    if not has_index and (is_unclear or not are_words or "\t" in head):
        return None
    if is_unclear or (has_index and any(all(line[at] == " " != line[at + 1] for line in table) for at in places[:-1])):
        raise UnreadableOutput("a table of pandas whose columns cannot be separated")
    if any(len(cell) == 49 and cell.endswith("...") for row in rows for cell in row):  # pandas' longest cell
        raise CutOutput("the table of pandas shortens texts")
    return "table of pandas", [names, *(["" if cell in _NULLS else cell for cell in row] for row in rows)], end


looks_like_xml: Final = re.compile(r"\ufeff?\s{0,100}<(?:\?xml|(?:\w{1,30}:)?sparql)[\s>]").match


def read_xml(text: str) -> SparqlResults:
    """Read the results of a SELECT or ASK query in XML, without a DTD or entities."""
    text = prepared(text).strip()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise UnreadableOutput("XML with a DTD, which is not read")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        if problem.code in (3, 5, 20):  # no element found, unclosed token or CDATA section
            tail = text.rpartition(">")[2].strip().split("\n")[0]
            raise CutOutput(f"the XML breaks off in row {text.count('<result>')}, at {tail[:60]!r}") from None
        raise UnreadableOutput(f"not XML ({problem})") from None
    if root.tag not in ("sparql", "{http://www.w3.org/2005/sparql-results#}sparql"):
        raise UnreadableOutput(f"XML whose element {root.tag[:60]} is not that of SPARQL results")
    answer, results = (root.findtext("{*}boolean") or "").strip(), root.find("{*}results")
    if answer in ("true", "false", "1", "0"):
        return SparqlResults({}, 0, answer in ("true", "1"), form="W3C XML")
    if results is None:
        raise UnreadableOutput("XML without results and without a boolean")
    names = [variable.get("name", "") for variable in root.iterfind("{*}head/{*}variable")]
    bindings = [
        {cell.get("name", ""): _xml_term(cell[0]) for cell in result.iterfind("{*}binding") if len(cell)}
        for result in results.iterfind("{*}result")
    ]
    return replace(results_from_bindings(names, bindings), form="W3C XML")


def _xml_term(element: ElementTree.Element) -> dict[str, Any]:
    kind = element.tag.rpartition("}")[2]
    if kind == "triple":
        parts = {part.tag.rpartition("}")[2]: _xml_term(part[0]) for part in element if len(part)}
        return {"type": kind, "value": parts}
    text = "".join(element.itertext())
    tags = {"datatype": element.get("datatype"), "xml:lang": element.get("{http://www.w3.org/XML/1998/namespace}lang")}
    value = text if kind == "literal" else text.strip()
    return {"type": kind, "value": value, **{key: tag for key, tag in tags.items() if tag}}
