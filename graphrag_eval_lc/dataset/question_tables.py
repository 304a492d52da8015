"""Reading tables of questions and queries: CSV, tab-separated values, and JSON lists of records."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, gold_of_text
from graphrag_eval_lc.dataset.source_questions import SourceDataset, SourceQuestion
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.csv_cells import cells_of_any_length
from graphrag_eval_lc.files.reading import TextFile
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.matching.rows.media_types import CYPHER_QUERY, SPARQL_QUERY
from graphrag_eval_lc.matching.rows.sql_texts import SQL_DB_QUERY
from graphrag_eval_lc.texts import counted, listed

# The usual names of each column, plain: lower case, with underscores.
_USUAL: Final = {
    "question": (
        "question",
        "corrected_question",
        "question_text",
        "natural_language_question",
        "nl_question",
        "text",
        "nl",
        "utterance",
    ),
    "query": (
        "query",
        "sparql",
        SPARQL_QUERY,
        "sparql_wikidata",
        "sparql_dbpedia18",
        "cypher",
        CYPHER_QUERY,
        "sql",
        "sql_query",
        "gold_query",
    ),
    "id": ("id", "question_id", "_id", "uid", "qid", "instance_id"),
    "template": ("template_id", "template", "sparql_template_id"),
    "results": ("results", "result", "output", "gold"),
    "answer": ("reference_answer", "answer"),
}
# The name of the step that runs the queries of a column, by what the column's name begins or ends with.
_STEP_NAMES: Final = {"sparql": SPARQL_QUERY, "cypher": CYPHER_QUERY, "sql": SQL_DB_QUERY}
_DELIMITERS: Final = (",", ";", "\t")


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns; None: found by their usual names.

    Attributes:
        question: What the agent is asked.
        query: The query that answers it.
        id: The question's id.
        template: Its template.
        results: The results of the query.
        answer: The answer in words.
    """

    question: str | None = None
    query: str | None = None
    id: str | None = None
    template: str | None = None
    results: str | None = None
    answer: str | None = None

    @property
    def given(self) -> list[str]:
        """The columns whose names are given."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]


Row = tuple[int | None, Mapping[str, Any]]


def read_question_table(file: TextFile, records: Any, columns: Columns) -> SourceDataset:
    """Read the questions of a table; what is wrong with one says so, and leaves the others alone.

    Args:
        file: The file.
        records: Its records where it is JSON; None reads its text as CSV.
        columns: The names of the columns.

    Raises:
        DatasetError: A column is missing, or is not the only one that it may be; or CSV cannot be read.
    """
    path = file.path or ""
    dataset = SourceDataset(path, Path(path).stem or "imported", SPARQL_QUERY)
    names, rows = _csv_rows(file, dataset) if records is None else _record_rows(records, dataset)
    found = _found_columns(names, columns, path)
    query_column = found.query or ""
    words = _plain(query_column).split("_")
    dataset.step_name = next((name for word, name in _STEP_NAMES.items() if word in words), SPARQL_QUERY)
    dataset.is_sparql = dataset.step_name == SPARQL_QUERY
    for place, (line, row) in enumerate(rows, start=1):
        _read_row(dataset, found, place, line, row)
    return dataset


def _read_row(dataset: SourceDataset, columns: Columns, place: int, line: int | None, row: Mapping[str, Any]) -> None:
    cells = {field.name: _text(row.get(getattr(columns, field.name) or "")) for field in fields(columns)}
    identifier = (cells["id"] or str(place)).strip()
    if cells["question"] is None:
        what = f"the question has no text in the column {columns.question}"
        dataset.add_problem(what, "Add it. The question is left out.", question_id=identifier, line=line)
        return
    if row.get(columns.answer or "") in ([], {}):
        cells["answer"] = None
    gold: Gold | None = None
    try:
        gold = gold_of_text(cells["results"]) if cells["results"] is not None else None
    except BrokenGoldError as problem:
        what = f"the results are broken: {problem}"
        hint = "Mend them. The question is imported without them."
        dataset.add_problem(what, hint, question_id=identifier, line=line)
    text = " ".join(cells["question"].split())
    question = SourceQuestion(identifier, text, cells["query"], gold, cells["answer"], cells["template"])
    dataset.questions.append(question)


def _text(value: Any) -> str | None:
    """Return the text of a cell; None where it is blank."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return value if isinstance(value, str) else json_text(value)


def _csv_rows(file: TextFile, dataset: SourceDataset) -> tuple[list[str], list[Row]]:
    """Return the names of the columns, and the rows with their lines."""
    head = file.text.lstrip("\ufeff").split("\n", 1)[0]
    delimiter = "\t" if (file.path or "").lower().endswith(".tsv") else max(_DELIMITERS, key=head.count)
    found: list[tuple[int, list[str]]] = []
    line = 1
    with cells_of_any_length():
        # strict: else a lone quotation mark silently swallows the rows after it.
        reader = csv.reader(io.StringIO(file.text, newline=""), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    found.append((line, row))
                line = reader.line_num + 1
        except csv.Error as problem:
            hint = 'Write a cell that begins with a quotation mark as "…", with each mark in it doubled.'
            raise DatasetError(f"the row cannot be read: {problem}", path=file.path, line=line, hint=hint) from problem
    names = [name.strip() for name in found[0][1]]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DatasetError(f"two columns are called {listed(twice)}", path=file.path, line=1, hint="Rename one.")
    rows: list[Row] = []
    for line, row in found[1:]:
        if len(row) == len(names):
            rows.append((line, dict(zip(names, row, strict=True))))
        else:
            what = f"the row has {counted(len(row), 'cell')}, and the first row {len(names)}"
            hint = 'Write a cell that holds a delimiter or a line break as "…". The row is left out.'
            dataset.add_problem(what, hint, line=line)
    return names, rows


def _record_rows(records: Any, dataset: SourceDataset) -> tuple[list[str], list[Row]]:
    """Return the keys of all records, and the records."""
    if not isinstance(records, list):
        what = "this is neither QALD's JSON nor a list of records"
        hint = "QALD's JSON is an object with `questions`; other questions are a list of objects, or CSV."
        raise DatasetError(what, path=dataset.path, hint=hint)
    rows: list[Row] = []
    for place, record in enumerate(records, start=1):
        if isinstance(record, Mapping):
            rows.append((None, record))
        else:
            dataset.add_problem(f"record {place} is no object", "It is left out.")
    return list(dict.fromkeys(str(name) for _, record in rows for name in record)), rows


def _found_columns(names: Sequence[str], given: Columns, path: str) -> Columns:
    """Return the columns that there are, by the given names or the usual ones.

    Raises:
        DatasetError: A given column is missing, the question's column is, or several may be the query's.
    """
    plain = {_plain(name): name for name in reversed(names)}
    found: dict[str, str | None] = {}
    for role, usual in _USUAL.items():
        name = getattr(given, role)
        if name is not None and name not in names:
            raise DatasetError(f"there is no column {name}", path=path, line=1, hint=f"The columns are: {_all(names)}.")
        there = [plain[each] for each in usual if each in plain and plain[each] not in _given_names(given)]
        if name is None and role == "query" and len(there) > 1:
            hint = f"Say which holds the query: --query-column {there[0]}."
            raise DatasetError(f"the columns {listed(there)} may all hold the query", path=path, line=1, hint=hint)
        found[role] = name if name is not None else next(iter(there), None)
    if found["question"] is None:
        hint = f"Name it: --question-column NAME. The columns are: {_all(names)}."
        raise DatasetError("there is no column with the question", path=path, line=1, hint=hint)
    if found["query"] is None and found["results"] is None and found["answer"] is None:
        hint = f"Name it: --query-column NAME. The columns are: {_all(names)}."
        raise DatasetError("there is no column with the query", path=path, line=1, hint=hint)
    return Columns(**found)


def _given_names(columns: Columns) -> Iterator[str]:
    """Yield the names that are given."""
    return (getattr(columns, role) for role in columns.given)


def _all(names: Sequence[str]) -> str:
    return listed([name for name in names if name], 20) or "none"


def _plain(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")
