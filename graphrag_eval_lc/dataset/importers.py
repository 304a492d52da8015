"""The table of importers: how each form of a published dataset is recognised, and how its records are made plain."""

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.dataset.mistaken import old_keys
from graphrag_eval_lc.dataset.qald import is_qald, plain_qald, read_qald_xml
from graphrag_eval_lc.dataset.source_fields import ANSWERS, QUERIES, QUESTIONS
from graphrag_eval_lc.dataset.source_shapes import UnknownShapeError, opened, plain_name
from graphrag_eval_lc.errors import DatasetError, MissingExtraError
from graphrag_eval_lc.files.csv_cells import cells_of_any_length
from graphrag_eval_lc.files.reading import TextFile, parse_json_at, parse_yaml, read_text
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.texts import counted, listed

Record = Mapping[str, Any]

_WHAT: Final = "dataset to import"
_TABLES: Final = (".csv", ".tsv", ".txt")
_PARQUET: Final = (".parquet", ".pq")
_DELIMITERS: Final = (",", ";", "\t")
_XML: Final = re.compile(r"\s*<(\?xml\b|!|dataset\b)")
# Of experiments, pandas has the reference in columns such as reference.answer.
_LANGSMITH: Final = re.compile(r"(input|output|reference_output|reference(?=\.))s?[._](\w+)")


class Importer(NamedTuple):
    """A form of published datasets.

    Attributes:
        name: What it is called.
        is_of: Whether a file is of it, by the key of its list (empty for a list alone) and its first record.
        plain: Returns a record with a column for each of question, query, results and answer.
    """

    name: str
    is_of: Callable[[str, Record], bool]
    plain: Callable[[Record], Record] = dict


def _of_row(record: Record) -> Record:
    """Return a row of the dataset viewer; a cell that it cut becomes an object, which is refused if it is needed."""
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


def _is_langsmith(record: Record) -> bool:
    """Return whether a record is an example of LangSmith, whose inputs and outputs may be columns of their own."""
    names = {plain_name(str(name)) for name in record}
    parts = {found[1]: found[2] for name in names if (found := _LANGSMITH.fullmatch(name))}
    return "inputs" in names or (parts.get("input") in (*QUESTIONS, "query") and len(parts) > 1)


def _of_langsmith(record: Record) -> Record:
    """Return an example with its question and its reference answer; of two outputs one is that of a model."""
    sides: dict[str, Any] = {}
    columns: dict[str, dict[str, Any]] = {}
    plain: dict[str, Any] = {}
    for key, value in record.items():
        name = plain_name(str(key))
        if name in ("inputs", "outputs", "reference_outputs", "expectations"):  # the last are MLflow's
            sides["reference_outputs" if name == "expectations" else name] = _part(value)
        elif found := _LANGSMITH.fullmatch(name):
            side = "reference_outputs" if found[1] == "reference" else f"{found[1]}s"
            columns.setdefault(side, {})[found[2]] = value
        else:
            plain[key] = value
    sides = columns | sides
    has_reference = sides.get("reference_outputs") is not None
    plain |= _side(sides, "inputs", QUESTIONS, "question")
    plain |= _side(sides, "reference_outputs" if has_reference else "outputs", ANSWERS, "reference_answer")
    if has_reference:
        plain["response"] = _side(sides, "outputs", ANSWERS, "response").get("response")
    return plain


def _part(value: Any) -> Any:
    """Return the object in a cell; a text that cannot be parsed stays, and is refused later."""
    with suppress(UnknownShapeError):
        return opened(value)
    return value


def _side(sides: Record, name: str, names: Sequence[str], role: str) -> dict[str, Any]:
    """Return the parts of the inputs or outputs, the one that is the question or the answer under that name."""
    side = sides.get(name)
    if not isinstance(side, Mapping):
        return {} if side is None else {role: side}
    by_name = {plain_name(str(key)): key for key in reversed(side)}
    has_query = bool(by_name.keys() & set(QUERIES))
    known = next((by_name[each] for each in names if each in by_name), None)
    if known is None and len(side) == 1 and (role == "question" or not has_query):
        [known] = side
    if known is None:
        return dict(side) if has_query else {name: side}  # of which nothing can be read
    return {key: value for key, value in side.items() if key != known} | {role: side[known]}


QALD: Final = Importer("QALD", lambda key, record: key == "questions" or is_qald(record), plain_qald)
IMPORTERS: Final = (
    Importer("WebQSP", lambda _, record: "Parses" in record, _of_webqsp),
    QALD,
    Importer("Hugging Face rows", lambda key, record: key == "rows" and "row" in record, _of_row),
    Importer("LangSmith", lambda _, record: _is_langsmith(record), _of_langsmith),
    Importer("AutoRAG", lambda _, record: "retrieval_gt" in record, _of_autorag),
    # ragas, deepeval, Spider, BIRD, LC-QuAD, GrailQA, Mintaka, KQA Pro, Text2Cypher: columns by their names.
    Importer("records", lambda *_: True),
)
"""The first one that recognises a file reads it. CSV, Parquet, JSON Lines and XML are records as JSON is."""


@dataclass(frozen=True, slots=True)
class Source:
    """The records of a file.

    Attributes:
        path: The file.
        importer: What it is.
        entries: The line of each record, if it is known, the path of its value, and what it is, made plain.
        names: The names of the columns.
        title: What the dataset calls itself.
        problems: What is wrong with single rows: what, the hint, and the line.
    """

    path: str
    importer: Importer
    entries: Sequence[tuple[int | None, str, Any]]
    names: Sequence[str]
    title: str | None
    problems: Sequence[tuple[str, str, int]]


def read_source(source: str | PathLike[str]) -> Source:
    """Read a file, recognise what it is, and make its records plain.

    Raises:
        DatasetError: The file cannot be read, or holds no records.
        MissingExtraError: It is Parquet, and pyarrow is not installed.
    """
    path, suffix = str(source), Path(source).suffix.lower()
    problems: list[tuple[str, str, int]] = []
    lines: list[int] = []
    names: list[str] = []
    value: Any
    if suffix in _PARQUET:
        value = _parquet(path)
    else:
        file = read_text(source, DatasetError, what=_WHAT)
        if suffix == ".xml" or (suffix not in _TABLES and _XML.match(file.text)):
            value = read_qald_xml(file.text, path)
        elif suffix in _TABLES or (file.format == "yaml" and suffix not in (".yaml", ".yml")):
            names, lines, value = _table(file, problems)
        else:
            lines, value = _json(file)
    key, records = _list_in(value, path)
    first = next((record for record in records if isinstance(record, Mapping)), {})
    importer = next(each for each in IMPORTERS if each.is_of(key, first))
    entries = [
        (
            lines[place] if lines else None,
            f"{key}[{place}]",
            importer.plain(record) if isinstance(record, Mapping) else record,
        )
        for place, record in enumerate(records)
    ]
    there = (str(name) for _, _, record in entries if isinstance(record, Mapping) for name in record)
    about = value.get("dataset") if isinstance(value, Mapping) else None
    title = about.get("id") if isinstance(about, Mapping) else about
    named = str(title) if isinstance(title, str | int) and title else None
    return Source(path, importer, entries, list(dict.fromkeys(there)) or names, named, problems)


def _list_in(value: Any, path: str) -> tuple[str, list[Any]]:
    """Return the list of records in parsed JSON, and its key; columns become records.

    Raises:
        DatasetError: There is none, or it is a reference dataset.
    """
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
        raise DatasetError("questions is no list", path=path, key="questions", hint="Give QALD's JSON as it is.")
    of_records = [key for key, each in lists.items() if any(isinstance(one, Mapping) for one in each)]
    for key in ("questions", "rows", *(of_records if len(of_records) == 1 else ())):
        if key in lists:
            return key, lists[key]
    if any(plain_name(str(key)) in QUESTIONS for key in whole):
        is_columns = len(lists) == len(whole) and len(set(map(len, lists.values()))) == 1
        columns = zip(*lists.values(), strict=True) if is_columns else ()
        return "", [dict(zip(lists, row, strict=True)) for row in columns] or [whole]
    what = "this is neither QALD's JSON nor a list of records"
    hint = "QALD's JSON is an object with `questions`; other questions are a list of objects, or CSV."
    raise DatasetError(what, path=path, hint=hint)


def _json(file: TextFile) -> tuple[list[int], Any]:
    """Return parsed JSON, or the lines and values of JSON Lines.

    Raises:
        DatasetError: It cannot be parsed, or is YAML.
    """
    first, _, rest = file.text.strip().partition("\n")
    is_lines = False
    with suppress(ValueError, RecursionError):  # datasets of Hugging Face are written to .json as JSON Lines
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
    """Return the rows of a Parquet file.

    Raises:
        DatasetError: It cannot be read.
        MissingExtraError: pyarrow is not installed.
    """
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


def _table(file: TextFile, problems: list[tuple[str, str, int]]) -> tuple[list[str], list[int], list[Record]]:
    """Return the names, the lines and the rows of CSV or tab-separated values.

    Raises:
        DatasetError: It cannot be read, or two columns have one name.
    """
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
    """Yield the rows that are not blank, with their lines.

    Raises:
        DatasetError: A row cannot be read.
    """
    text = file.text.lstrip("\ufeff")
    head = text.lstrip().split("\n", 1)[0]
    delimiter = "\t" if (file.path or "").lower().endswith(".tsv") else max(_DELIMITERS, key=head.count)
    line = 1
    with cells_of_any_length():
        # strict: else a lone quotation mark silently swallows the rows after it.
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as problem:
            hint = 'Write a cell that begins with a quotation mark as "…", with each mark in it doubled.'
            raise DatasetError(f"the row cannot be read: {problem}", path=file.path, line=line, hint=hint) from problem
