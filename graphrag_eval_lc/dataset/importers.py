"""The table of importers: how each format of published datasets is recognised, and how its records become plain."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from graphrag_eval_lc.dataset.gold import is_sparql_results
from graphrag_eval_lc.dataset.import_fields import ANSWERS, QUERIES, QUESTIONS, UnknownShapeError, opened, plain_name
from graphrag_eval_lc.dataset.loading import old_keys
from graphrag_eval_lc.errors import DatasetError, MissingExtraError
from graphrag_eval_lc.files.reading import TextFile, cells_of_any_length, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.texts import counted, listed

Record = Mapping[str, Any]

_WHAT: Final = "dataset to import"
_TABLES: Final = (".csv", ".tsv", ".txt")
_PARQUET: Final = (".parquet", ".pq")
_DELIMITERS: Final = (",", ";", "\t")
_XML: Final = re.compile(r"\s*<(\?xml\b|!|dataset\b)")
_DOCTYPE: Final = re.compile(r"<!DOCTYPE", re.IGNORECASE)
# LangSmith's experiments as DataFrames have the reference in columns such as reference.answer.
_LANGSMITH: Final = re.compile(r"(input|output|reference_output|reference(?=\.))s?[._](\w+)")
_LANGSMITH_SIDES: Final = ("inputs", "outputs", "reference_outputs", "expectations")  # the last are MLflow's
# The values of an answer in XML, and in the JSON of QALD-5.
_QALD_VALUES: Final = ("uri", "string", "number", "date", "boolean")
_IRIS: Final = ("http://", "https://", "urn:")


class Importer(NamedTuple):
    """A format of published datasets."""

    name: str
    # whether a file has this format, by the key of its list ("" if the file is a list) and its first record
    is_of: Callable[[str, Record], bool]
    # returns a record with a column for each of question, query, results and answer
    plain: Callable[[Record], Record] = dict


def _of_row(record: Record) -> Record:
    """Return a row of Hugging Face's dataset viewer. A cell that the viewer cut is refused later, if it is needed."""
    row, cut = record.get("row"), record.get("truncated_cells") or ()
    parts = row.items() if isinstance(row, Mapping) else ()
    return {key: {"truncated": value} if key in cut else value for key, value in parts}


def _of_autorag(record: Record) -> Record:
    return {"question": record.get("query"), **record, "query": None}


def _of_webqsp(record: Record) -> Record:
    parses = record.get("Parses")
    parse = parses[0] if isinstance(parses, list) and parses and isinstance(parses[0], Mapping) else {}
    question = record.get("RawQuestion") or record.get("ProcessedQuestion")
    gold = {"sparql": parse.get("Sparql"), "answers": parse.get("Answers")}
    return {"id": record.get("QuestionId"), "question": question, **gold}


def _is_qald(record: Record) -> bool:
    question = record.get("question")
    inner = question.get("language") if isinstance(question, Mapping) else question
    return "body" in record or (isinstance(inner, list) and any(isinstance(each, Mapping) for each in inner))


def _of_qald(record: Record) -> Record:
    """Convert a question of any QALD version to the form of QALD-9, with ``answers`` renamed to ``results``."""
    plain = dict(record)
    if "body" in plain:  # QALD-5
        plain.setdefault("question", plain.pop("body"))
    question = plain.get("question")
    if isinstance(question, Mapping) and isinstance(question.get("language"), list):  # QALD-7
        plain |= {key: value for key, value in question.items() if key != "language"}
        texts = [each for each in question["language"] if isinstance(each, Mapping)]
        plain["question"] = [{"language": each.get("language"), "string": each.get("question")} for each in texts]
        queries = (query for each in texts for key, query in each.items() if str(key).upper() == "SPARQL" and query)
        if (query := next(queries, None)) is not None:
            plain["query"] = {"sparql": query}
    if isinstance(plain.get("query"), str):
        plain["query"] = {"sparql": plain["query"]}
    answers = plain.get("answers")
    filled = [each for each in (answers if isinstance(answers, list) else [answers]) if each]
    if filled and "results" not in plain and (_is_qald(record) or "query" in plain):
        single = [{"string": each} if isinstance(each, str) else each for each in filled]
        if all(isinstance(each, Mapping) and each.keys() <= set(_QALD_VALUES) for each in single):
            plain["results"] = _qald_results(single)
        elif is_sparql_results(filled[0]):
            plain["results"] = filled
        if "results" in plain:
            del plain["answers"]
    return plain


def _qald_results(answers: list[Record]) -> Record:
    """Return answers that are single values as SPARQL JSON results."""
    values = [value for each in answers for value in each.values()]
    if len(values) == 1 and ("boolean" in answers[0] or str(values[0]).strip().casefold() in ("true", "false")):
        return {"head": {}, "boolean": values[0]}
    rows = []
    for each in answers:
        row = {}
        for kind, value in each.items():
            text = value.strip() if isinstance(value, str) else value
            is_iri = kind == "uri" or (isinstance(text, str) and text.startswith(_IRIS) and " " not in text)
            row["answer" if len(each) == 1 else kind] = {"type": "uri" if is_iri else "literal", "value": text}
        rows.append(row)
    return {"results": {"bindings": rows}}


def _is_langsmith(record: Record) -> bool:
    """Return whether a record is a LangSmith example; its inputs and outputs may be spread over columns."""
    names = {plain_name(str(name)) for name in record}
    parts = {found[1]: found[2] for name in names if (found := _LANGSMITH.fullmatch(name))}
    return "inputs" in names or (parts.get("input") in (*QUESTIONS, "query") and len(parts) > 1)


def _of_langsmith(record: Record) -> Record:
    """Return an example with its question and reference answer. If it has two outputs, one is that of a model."""
    sides: dict[str, Any] = {}
    columns: dict[str, dict[str, Any]] = {}
    plain: dict[str, Any] = {}
    for key, value in record.items():
        name = plain_name(str(key))
        if name in _LANGSMITH_SIDES:
            side = "reference_outputs" if name == "expectations" else name
            sides[side] = value
            with suppress(UnknownShapeError):  # a text that cannot be parsed is refused later
                sides[side] = opened(value)
        elif found := _LANGSMITH.fullmatch(name):
            columns.setdefault("reference_outputs" if found[1] == "reference" else f"{found[1]}s", {})[found[2]] = value
        else:
            plain[key] = value
    sides = columns | sides
    has_reference = sides.get("reference_outputs") is not None
    plain |= _langsmith_side(sides, "inputs", QUESTIONS, "question")
    gold = "reference_outputs" if has_reference else "outputs"
    plain |= _langsmith_side(sides, gold, ANSWERS, "reference_answer")
    if has_reference:
        plain["response"] = _langsmith_side(sides, "outputs", ANSWERS, "response").get("response")
    return plain


def _langsmith_side(sides: Record, name: str, names: Sequence[str], role: str) -> dict[str, Any]:
    """Return the inputs or outputs as a dict, with the question or the answer under the key ``name``."""
    side = sides.get(name)
    if not isinstance(side, Mapping):
        return {} if side is None else {role: side}
    by_name = {plain_name(str(key)): key for key in reversed(side)}
    has_query = bool(by_name.keys() & set(QUERIES))
    known = next((by_name[each] for each in names if each in by_name), None)
    if known is None and len(side) == 1 and (role == "question" or not has_query):
        [known] = side
    if known is None:
        return dict(side) if has_query else {name: side}  # nothing in it can be read
    return {key: value for key, value in side.items() if key != known} | {role: side[known]}


QALD: Final = Importer("QALD", lambda key, record: key == "questions" or _is_qald(record), _of_qald)
IMPORTERS: Final = (
    Importer("WebQSP", lambda _, record: "Parses" in record, _of_webqsp),
    QALD,
    Importer("Hugging Face rows", lambda key, record: key == "rows" and "row" in record, _of_row),
    Importer("LangSmith", lambda _, record: _is_langsmith(record), _of_langsmith),
    Importer("AutoRAG", lambda _, record: "retrieval_gt" in record, _of_autorag),
    # Formats that the names of their columns describe: ragas, deepeval, Spider, BIRD, LC-QuAD, GrailQA, Mintaka, …
    Importer("records", lambda *_: True),
)
"""The first one that recognises a file reads it. CSV, Parquet, JSON Lines and XML are records as JSON is."""


@dataclass(frozen=True, slots=True)
class Source:
    """The records of a file."""

    path: str
    importer: Importer  # the format of the file
    # each record: its line if that is known, the path of its value, and the plain record
    entries: Sequence[tuple[int | None, str, Any]]
    names: Sequence[str]
    title: str | None  # what the dataset calls itself
    problems: Sequence[tuple[str, str, int]]  # broken rows: what is wrong, the hint, and the line


def read_source(source: str | PathLike[str]) -> Source:
    """Read a file, recognise its format, and convert its records to plain ones."""
    path, suffix = str(source), Path(source).suffix.lower()
    problems: list[tuple[str, str, int]] = []
    lines: list[int] = []
    head: list[str] = []
    value: Any
    if suffix in _PARQUET:
        value = _parquet(path)
    else:
        file = read_text(source, DatasetError, what=_WHAT)
        if suffix == ".xml" or (suffix not in _TABLES and _XML.match(file.text)):
            value = _xml(file.text, path)
        elif suffix in _TABLES or (file.format == "yaml" and suffix not in (".yaml", ".yml")):
            head, lines, value = _table(file, problems)
        else:
            lines, value = _json(file)
    key, records = _list_in(value, path)
    first = next((record for record in records if isinstance(record, Mapping)), {})
    importer = next(each for each in IMPORTERS if each.is_of(key, first))
    plain = [importer.plain(record) if isinstance(record, Mapping) else record for record in records]
    entries = [(lines[number] if lines else None, f"{key}[{number}]", record) for number, record in enumerate(plain)]
    names = dict.fromkeys(str(name) for record in plain if isinstance(record, Mapping) for name in record)
    about = value.get("dataset") if isinstance(value, Mapping) else None
    title = about.get("id") if isinstance(about, Mapping) else about
    is_titled = isinstance(title, str | int) and bool(title)
    return Source(path, importer, entries, list(names) or head, str(title) if is_titled else None, problems)


def _list_in(value: Any, path: str) -> tuple[str, list[Any]]:
    """Return the list of records in parsed JSON, and its key; columns become records."""
    if (mistaken := old_keys(value)) is not None:
        raise DatasetError(mistaken.what, path=path, hint=mistaken.hint)
    if isinstance(value, list):
        if any(isinstance(each, Mapping) and "template_id" in each and "questions" in each for each in value):
            hint = "Use it as it is: validate checks it."
            raise DatasetError("this is a reference dataset, which needs no import", path=path, hint=hint)
        return "", value
    whole: Record = value if isinstance(value, Mapping) else {}
    lists = {str(key): each for key, each in whole.items() if isinstance(each, list)}
    if "questions" in whole and "questions" not in lists:
        raise DatasetError("questions is not a list", path=path, key="questions", hint="Give QALD's JSON as it is.")
    of_records = [key for key, each in lists.items() if any(isinstance(one, Mapping) for one in each)]
    for key in ("questions", "rows", *(of_records if len(of_records) == 1 else ())):
        if key in lists:
            return key, lists[key]
    if any(plain_name(str(key)) in QUESTIONS for key in whole):
        is_columns = len(lists) == len(whole) and len(set(map(len, lists.values()))) == 1
        columns = zip(*lists.values(), strict=True) if is_columns else ()
        return "", [dict(zip(lists, row, strict=True)) for row in columns] or [whole]
    what = "this is not QALD's JSON or a list of records"
    hint = "QALD's JSON is an object with `questions`; other questions are a list of objects, or CSV."
    raise DatasetError(what, path=path, hint=hint)


def _json(file: TextFile) -> tuple[list[int], Any]:
    """Parse JSON, or JSON Lines with the line of each value."""
    first, _, rest = file.text.strip().partition("\n")
    is_lines = False
    with suppress(ValueError, RecursionError):  # Hugging Face's to_json writes JSON Lines to .json files
        is_lines = file.format == "json" and bool(rest.strip()) and isinstance(parse_json(first), Mapping)
    if file.format == "jsonl" or is_lines:
        lines = [(number, line) for number, line in enumerate(file.text.split("\n"), start=1) if line.strip()]
        parsed = [parse_json_at(line, DatasetError, what=_WHAT, path=file.path, line=number) for number, line in lines]
        return [number for number, _ in lines], parsed
    if file.format == "json":
        return [], parse_json_at(file.text, DatasetError, what=_WHAT, path=file.path)
    if (mistaken := old_keys(parse_yaml(file, DatasetError, what=_WHAT))) is not None:
        raise DatasetError(mistaken.what, path=file.path, hint=mistaken.hint)
    hint = "Published datasets are JSON, CSV, XML or Parquet; a reference dataset needs no import."
    raise DatasetError("YAML is not imported", path=file.path, hint=hint)


def _parquet(path: str) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as problem:
        raise MissingExtraError("A Parquet file", "parquet", "pyarrow") from problem
    try:
        rows: list[dict[str, Any]] = parquet.ParquetFile(path).read().to_pylist()
    except (OSError, ArrowException, ValueError) as problem:
        what = f"the {_WHAT} cannot be read as Parquet: {problem!s:.200}"
        raise DatasetError(what, path=path, hint="Check the file and its path.") from problem
    return rows


def _xml(text: str, path: str) -> dict[str, Any]:
    """Convert QALD's XML to its JSON. Document types are refused, so that nothing is expanded or fetched."""
    if (found := _DOCTYPE.search(text)) is not None:
        what, line = "the XML has a document type, which is not read", text.count("\n", 0, found.start()) + 1
        raise DatasetError(what, path=path, line=line, hint="Remove it.")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        what = f"the {_WHAT} is not valid XML: {str(problem).split(':')[0]}"
        raise DatasetError(what, path=path, line=problem.position[0], hint="Fix the XML here.") from problem
    if root.tag != "dataset":
        what = f"the XML begins with <{root.tag[:40]}>, and QALD's with <dataset>"
        raise DatasetError(what, path=path, hint="Give QALD's XML, or its questions as JSON or CSV.")
    return {"dataset": {"id": root.get("id")}, "questions": [_xml_question(each) for each in root.iter("question")]}


def _xml_question(element: ElementTree.Element) -> Record:
    texts = [{"language": each.get("lang") or "en", "string": each.text} for each in element.findall("string")]
    answers = [
        {part.tag: part.text for part in each if part.tag in _QALD_VALUES} or {"string": (each.text or "").strip()}
        for each in element.iterfind("answers/answer")
    ]
    answers = [each for each in answers if any(each.values())]
    query = next((each.text for each in element.findall("query") if each.text), None)
    return {**element.attrib, "question": texts, "query": query, "answers": answers}


def _table(file: TextFile, problems: list[tuple[str, str, int]]) -> tuple[list[str], list[int], list[Record]]:
    """Return the names, the lines and the rows of CSV or tab-separated values."""
    found = list(_csv_rows(file))
    if not found:
        raise DatasetError("the table has only empty rows", path=file.path, hint="Add the names of its columns.")
    first, head = found[0]
    names = [name.strip() for name in head]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DatasetError(f"two columns are called {listed(twice)}", path=file.path, line=first, hint="Rename one.")
    rows: list[tuple[int, Record]] = []
    for line, row in found[1:]:
        if len(row) == len(names):
            # A column without a name is the index that pandas writes.
            rows.append((line, {name: cell for name, cell in zip(names, row, strict=True) if name}))
        else:
            what = f"the row has {counted(len(row), 'cell')}, and the first row {len(names)}"
            hint = 'Write a cell that holds a delimiter or a line break as "…". The row is left out.'
            problems.append((what, hint, line))
    return names, [line for line, _ in rows], [row for _, row in rows]


def _csv_rows(file: TextFile) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with their lines."""
    text = file.text.lstrip("\ufeff")
    head = text.lstrip().split("\n", 1)[0]
    delimiter = "\t" if (file.path or "").lower().endswith(".tsv") else max(_DELIMITERS, key=head.count)
    line = 1
    with cells_of_any_length():
        # strict, because otherwise a lone quotation mark silently swallows the rows after it.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as problem:
            hint = 'Write a cell that begins with a quotation mark as "…", with each mark in it doubled.'
            raise DatasetError(f"the row cannot be read: {problem}", path=file.path, line=line, hint=hint) from problem
