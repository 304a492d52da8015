"""Reads results in texts that are not JSON: CSV, TSV, W3C XML, code fences and sentences.

Every table, also of ``drawn_tables``, becomes a grid of cells with the names first. ``results_of_cells`` turns it into
columns: an empty cell is unbound, the others are literals without a type. ``looks_like_…`` is true only if a text that
nothing declares can be taken for the form, so that prose never is. ``read_…`` raises `CutOutput` if the text ends
before its end, else `UnreadableOutput`.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final
from xml.etree import ElementTree

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput, cut_mark
from graphrag_eval_lc.matching.rows.results import SparqlResults, TermColumn, results_from_bindings

ReadText = Callable[[str], SparqlResults]
Rows = list[list[str]]

OPEN_FORMS: Final = ("CSV", "TSV", "Markdown", "a table in columns", "a table of pandas")
"""Parts of the names of forms that have no end of their own, so that nothing shows whether lines are missing."""

_XSD: Final = "http://www.w3.org/2001/XMLSchema#"
_BLANK_LINES: Final = re.compile(r"\A\ufeff?(?:[ \t]*+[\r\n]++)*+")
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
LEFT_OUT: Final = frozenset({"·", "…", "...", "..", "⋮", ":"})
_FAILURE: Final = re.compile(
    r"\s*(?:#|!!!!>>#|<(?:!doctype|html)\b|[\w.$]*(?:error|exception|traceback|timeout|timed out)\b)", re.IGNORECASE
)
_NOTICE: Final = re.compile(
    r"\s*(?:##|!!!!>>#)[^\n]{0,40}\b(?:cancel|abort|time-?out|timed out|interrupt|error)", re.IGNORECASE
)


def prepared(text: str) -> str:
    """Return a text from its first line that is not blank; a cut mark and half a character are refused."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableOutput("results with half a character (a lone surrogate)") from None
    if (mark := cut_mark(text)) is not None:
        raise CutOutput(f"the text ends with {mark!r}")
    return _BLANK_LINES.sub("", text, count=1)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, without an empty one after the last line end."""
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def results_of_cells(rows: Rows, form: str) -> SparqlResults:
    """Return the results of rows of cells, of which the first has the names.

    A first column without a name is an index, and left out if it only counts the rows. A name that occurs twice gets a
    number.

    Raises:
        CutOutput: The last row has too few cells, an error follows the rows, or rows or columns are left out.
        UnreadableOutput: The rows have different numbers of cells.
    """
    names, body, width = rows[0], rows[1:], len(rows[0])
    if not width:
        raise UnreadableOutput(f"no {form}: it has no names")
    while width > 1 and body and body[-1] == [""]:  # blank lines at the end
        body.pop()
    for at, row in enumerate(body, start=1):
        first = row[0].strip()[:60] if row else ""
        if len(row) != width:
            if at > 1 and len(row) < width and (at == len(body) or _FAILURE.match(first)):
                raise CutOutput(f"the {form} breaks off in row {at}, at {first!r}")
            raise UnreadableOutput(f"no {form}: row {at} has {len(row)} cells for {width} names")
        if LEFT_OUT.issuperset(row) or (at > 1 and _NOTICE.match(first)):
            raise CutOutput(f"the {form} leaves rows out after row {at - 1}, at {first!r}")
    if not LEFT_OUT.isdisjoint(names):
        raise CutOutput(f"the {form} leaves columns out")
    columns = [[row[at] for row in body] for at in range(width)]
    if width > 1 and body and not names[0] and "index" not in names:
        is_counted = columns[0] == [str(at) for at in range(len(body))]
        names, columns = (names[1:], columns[1:]) if is_counted else (["index", *names[1:]], columns)
    if not all(names):
        raise UnreadableOutput(f"no {form}: a column has no name")
    found: dict[str, TermColumn] = {}
    for name, cells in zip(names, columns, strict=True):
        unique = next(each for each in (name, *(f"{name} {at}" for at in range(2, width + 1))) if each not in found)
        found[unique] = _column(cells)
    return SparqlResults(found, len(body), form=form, is_untyped=True)


def _column(texts: list[str]) -> TermColumn:
    """Return a column of literals, blank nodes (``_:b0``) and unbound cells; of booleans if all are Python's."""
    is_boolean = any(texts) and {"True", "False", ""}.issuperset(texts)
    literal: tuple[str, str | None, str | None] = ("literal", f"{_XSD}boolean" if is_boolean else None, None)
    if all(texts) and not any(text.startswith("_:") for text in texts):
        return TermColumn(texts, literal)
    blank: tuple[str, str | None, str | None] = ("bnode", None, None)
    shapes = [blank if re.match("_:.", text) else literal if text else ("", None, None) for text in texts]
    return TermColumn([text[2:] if shape is blank else text for text, shape in zip(texts, shapes, strict=True)], shapes)


# CSV and TSV

_IDENTIFIER: Final = re.compile(r"\??\w[\w.]{0,99}")
_BRACKETED: Final = re.compile(r" ?(?:\([^()]*\)|\[[^\[\]]*\])")
_NAME: Final = re.compile(r"(?!urn:|\w+://)[^\W\d][^\t{}()\[\]\"=]{0,99}(?<![\s.!:,;。！？])|\?\w+\?|[$#%@]\w*|")
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


def _delimited(text: str, sign: str) -> tuple[Rows, bool]:
    """Return the rows of cells between signs, quoted as RFC 4180 says, and whether the text ends inside quotes."""
    if '"' not in text:
        return [line.split(sign) for line in lines_of(text)], False
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


def _without_brackets(name: str) -> str:
    for _ in range(name.count("(") + name.count("[") if len(name) < 200 else 0):
        name = _BRACKETED.sub("", name)
    return name


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
    bare = [_without_brackets(name) for name in names]
    return all(_NAME.fullmatch(name) or _IDENTIFIER.fullmatch(name) for name in bare)


def _is_table(text: str, sign: str) -> bool:
    """Return whether a text that nothing declares is a table of cells between signs: names, and rows as wide."""
    text = _BLANK_LINES.sub("", text, count=1)
    end = _LINE_END.search(text, 0, 5_000)
    if end is None or sign[0] not in text[: end.start()] + "," or (sign == ", " and not _SHELL.fullmatch(text)):
        return False
    try:
        names, *body = _delimited(text, sign)[0] or [[""]]
    except UnreadableOutput:
        return False
    width = len(names)
    while width > 1 and body and body[-1] == [""]:
        body.pop()
    has_index = width > 1 and not names[0] and bool(body) and body[0][0] == "0"
    if not body or len(body[0]) != width or not _are_names(names[has_index:], body):
        return False
    if width == 1:  # a word, and line ends of CR LF, as W3C's, or cells that are no words
        lines = re.sub('"[^"]*"', '""', text).split("\n")
        has_crlf = not lines[-1] and all(line.endswith("\r") for line in lines[:-1])
        has_values = all(_EVIDENT.fullmatch(line.strip("\r")) for line in lines[1:] if line.strip("\r"))
        is_word = text[0] == '"' or " " not in _without_brackets(names[0])
        return is_word and sign == "," and (has_crlf or has_values or any(map(_NOTICE.match, lines[2:])))
    odd = next((at for at, row in enumerate(body) if len(row) != width), None)
    last = text.rstrip().rpartition("\n")[2]
    is_torn = odd == len(body) - 1 and not (" " in last and last[-1] in ".!?")
    return odd is None or (len(body[odd]) < width and (is_torn or _FAILURE.match(body[odd][0]) is not None))


def _declared(text: str, rows: Rows, name: str) -> Rows:
    """Return the rows of a text, unless it is one line that may be a sentence."""
    is_line_of_names = len(rows) == 1 and text[-1] in "\r\n" and _are_names(rows[0], [])
    if len(rows) < 2 and not (is_line_of_names and (text[0] == '"' or all(map(_IDENTIFIER.fullmatch, rows[0])))):
        raise UnreadableOutput(f"no {name}: {'one line, which is no line of names' if rows else 'an empty text'}")
    return rows


def looks_like_csv(text: str) -> bool:
    """Return whether a text is CSV, with evidence enough that it is not a sentence."""
    return any(_is_table(text, sign) for sign in (", ", ",", ";"))


def read_csv(text: str) -> SparqlResults:
    """Read CSV as RFC 4180 has it, with commas or semicolons, or with a comma and a space as cypher-shell prints it."""
    text = prepared(text)
    line = re.sub('"[^"]*"', "", _LINE_END.split(text, maxsplit=1)[0])
    sign = ", " if _SHELL.fullmatch(text) else ";" if ";" in line and "," not in line else ","
    rows, is_open = _delimited(text, sign)
    if is_open:
        raise CutOutput("the CSV breaks off inside a cell in quotes")
    rows = [["" if cell == "NULL" and sign == ", " else cell for cell in row] for row in rows]
    form = {",": "W3C CSV", ";": "CSV with semicolons", ", ": "CSV of cypher-shell"}[sign]
    return results_of_cells(_declared(text, rows, "CSV"), form)


def looks_like_tsv(text: str) -> bool:
    """Return whether a text is TSV: names with question marks, or names and rows as wide."""
    start = _BLANK_LINES.sub("", text, count=1)
    lines = lines_of(start) if start[:1] == "?" else []
    if lines and all(re.fullmatch(r"\?\w+", name) for name in lines[0].split("\t")):
        return len(lines) > 1 or ("\t" in lines[0] and start != lines[0])
    return "\t" in start and _is_table(start, "\t")


def read_tsv(text: str) -> SparqlResults:
    """Read TSV; if the names have question marks, the cells are terms as Turtle writes them."""
    text = prepared(text)
    rows = [line.split("\t") for line in lines_of(text)]
    if not rows or not all(name.startswith("?") for name in rows[0]):
        if any(cell.startswith('"') for row in rows for cell in row):
            with suppress(UnreadableOutput):  # terms of Turtle, which have quotes too
                quoted, is_open = _delimited(text, "\t")
                rows = rows if is_open else quoted
        return results_of_cells([[plain_cell(cell) for cell in row] for row in _declared(text, rows, "TSV")], "TSV")
    names, *body = _declared(text, rows, "TSV")
    last = body[-1][-1] if body else ""
    if last[:1] in {'"', "<", "'"} and _TERM.fullmatch(last) is None:
        raise CutOutput(f"the TSV breaks off in row {len(body)}")
    table = results_of_cells([[name.removeprefix("?") for name in names], *body], "W3C TSV")
    bindings = [
        {name: term_of_turtle(cell) for name, cell in zip(table.columns, row, strict=True) if cell}
        for row in body[: table.row_count]
    ]
    return replace(results_from_bindings(list(table.columns), bindings), form="W3C TSV")


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


def plain_cell(text: str) -> str:
    """Return the text of a cell: without spaces around it, without the quotes and the type of a term; NULL is empty."""
    text = text.strip()
    if len(text) > 1 and text[0] in '"<':
        return str(term_of_turtle(text)["value"])
    return "" if text in ("NULL", "null") else text


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
    text = prepared(text).strip()
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
    namespace, _, name = root.tag.rpartition("}")
    if name != "sparql" or namespace not in ("", "{http://www.w3.org/2005/sparql-results#"):
        raise UnreadableOutput(f"XML whose element {name[:40]} is none of SPARQL results")
    boolean, results = root.find("{*}boolean"), root.find("{*}results")
    if boolean is not None and (boolean.text or "").strip() in ("true", "false", "1", "0"):
        return SparqlResults({}, 0, (boolean.text or "").strip() in ("true", "1"), form="W3C XML")
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
        return {
            "type": kind,
            "value": {part.tag.rpartition("}")[2]: _xml_term(part[0]) for part in element if len(part)},
        }
    text = "".join(element.itertext())
    tags = {key: element.get(name) for name, key in _XML_TAGS.items() if element.get(name) is not None}
    return {"type": kind, "value": text if kind == "literal" else text.strip(), **tags}


# Results in a longer text

_MOST_PIECES: Final = 20
_FENCE: Final = re.compile(r"(?:^|\n)[ \t]{0,10}(```+|~~~+)[ \t]{0,5}([\w+\-/.]{0,40})[^\n`]{0,80}\n")
_QUERIES: Final = frozenset({"bash", "console", "cypher", "rq", "sh", "sparql", "sql", "ttl", "turtle"})
_BY_LANGUAGE: Final[dict[str, ReadText]] = {"csv": read_csv, "tsv": read_tsv, "xml": read_xml}
_PIECE: Final = re.compile(r"""[\[{]\s{0,100}+["'\[{(<]|\(\s{0,100}+[\[{(]|<(?:\?xml[\s>]|(?:\w{1,30}:)?sparql[\s>])""")
_XML_END: Final = re.compile(r"</(?:\w{1,30}:)?sparql\s{0,20}>")
_TOKEN: Final = re.compile(r"""("(?:[^"\\]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')|([\[({])|[\])}]""", re.DOTALL)


def looks_like_fence(text: str) -> bool:
    """Return whether a code fence begins in a text."""
    return ("```" in text or "~~~" in text) and _FENCE.search(text) is not None


def read_fence(text: str, read_text: ReadText) -> SparqlResults:
    """Read the results in the one code fence that has some; fences of queries are passed over."""
    found: list[SparqlResults] = []
    problems: list[UnreadableOutput] = []
    at = 0
    while len(problems) + len(found) < _MOST_PIECES and (opening := _FENCE.search(text, at)):
        end = text.find(f"\n{opening[1]}", opening.end() - 1)
        at = len(text) if end < 0 else end + 1 + len(opening[1])
        if opening[2].lower() in _QUERIES:
            continue
        read = _BY_LANGUAGE.get(opening[2].lower(), read_text)
        try:
            results = read(text[opening.end() : len(text) if end < 0 else end + 1])
            if end < 0 and any(form in results.form for form in OPEN_FORMS):
                raise CutOutput("the code fence has no end")
            found.append(results)
        except UnreadableOutput as problem:
            problems.append(problem)
    if not found:
        problems.sort(key=lambda problem: not isinstance(problem, CutOutput))
        raise problems[0] if problems else UnreadableOutput("a text whose code fences hold no results")
    if len(found) > 1:
        raise UnreadableOutput(f"a text with results in {len(found)} code fences, of which one may be meant")
    return replace(found[0], form=f"{found[0].form} in a code fence")


def looks_like_sentence(text: str) -> bool:
    """Return whether an object, an array of objects or texts, or XML may stand somewhere in a text."""
    return _PIECE.search(text) is not None


def read_sentence(text: str, read_text: ReadText) -> SparqlResults:
    """Read the one value or XML in a text that is results; ``read_text`` reads the text of a value alone."""
    found: list[SparqlResults] = []
    problem = UnreadableOutput("a text without results")
    at = end = 0
    for _ in range(_MOST_PIECES):
        piece = _PIECE.search(text, at)
        if piece is None:
            break
        at = _end_of_piece(text, piece.start())
        read = read_xml if piece[0][0] == "<" else read_text
        try:
            results = read(text[piece.start() : at])
        except CutOutput:
            raise
        except UnreadableOutput as refused:
            problem = refused
            continue
        if results.row_count or results.boolean is not None or not results.is_untyped:
            found.append(results)
            end = at
    if not found:
        raise problem
    if len(found) > 1:
        raise UnreadableOutput(f"a text with {len(found)} things that may be the results")
    if (mark := cut_mark(text[end:])) is not None:
        raise CutOutput(f"after the results stands {mark!r}")
    return replace(found[0], form=f"{found[0].form} beside a sentence")


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


_NEBULA: Final = re.compile(r"\s*ResultSet\(keys: \[(.*?)\], values: (.*)\)\s*", re.DOTALL)


def looks_like_library_print(text: str) -> bool:
    """Return whether a text is Nebula's ResultSet as Python prints it."""
    return _NEBULA.fullmatch(text) is not None


def read_library_print(text: str) -> SparqlResults:
    """Read Nebula's ResultSet, whose cells are plain values."""
    keys, values = found.groups() if (found := _NEBULA.fullmatch(text)) else ("", "[]")
    names = re.findall(r"'((?:[^'\\]|\\.)*)'", keys)
    try:
        rows = [[json.dumps(cell, ensure_ascii=False) for cell in row] for row in json.loads(f"[{values}]")]
        bindings = [
            {name: term_of_turtle(cell) for name, cell in zip(names, row, strict=True) if cell != "null"}
            for row in rows
        ]
    except (ValueError, TypeError, RecursionError):
        raise UnreadableOutput(f"a ResultSet of Nebula whose rows are not {len(names)} plain values each") from None
    return replace(results_from_bindings(names, bindings), form="a ResultSet of Nebula")
