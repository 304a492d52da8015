"""Reading the records of a published dataset as questions, each by itself."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, NoReturn

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, gold_of_value, is_sparql_results
from graphrag_eval_lc.dataset.importers import QALD, Record, Source, read_source
from graphrag_eval_lc.dataset.query_language import STEP_NAMES
from graphrag_eval_lc.dataset.source_fields import (
    Columns,
    Fields,
    first_value,
    found_fields,
    require_fields,
    unread_gold,
)
from graphrag_eval_lc.dataset.source_questions import SourceDataset, SourceQuestion, note_on
from graphrag_eval_lc.dataset.source_shapes import (
    DEFAULT_LANGUAGE,
    Query,
    UnknownShapeError,
    answer_text,
    in_language,
    is_blank,
    is_out_of_scope,
    opened,
    query_of,
    question_texts,
)
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.texts import counted, listed

# What datasets say of a question beside its text and query, and what may select questions later.
_KEPT: Final = (
    "answertype", "aggregation", "onlydbo", "hybrid", "db_id", "evidence", "difficulty", "level", "query_type",
    "category", "complexityType",
)  # fmt: skip
_OTHER_TYPE: Final = "other"
_SHAPES: Final = {
    "question": 'A question is a text, {"string": …}, a list of {language, string}, or {language: text}.',
    "query": 'A query is a text or an object that names its language: {"sparql": …}, {"sql": …}, {"cypher": …}.',
    "answer": "An answer is a text, a number, an object with a label, a name or a value, or a list of these.",
}


class _LeftOutError(Exception):
    """A question is left out, which is told already."""


class _Reader:
    """Reads records as questions, and gathers what is to be told of them.

    Args:
        source: The records.
        fields: Their columns.
        languages: The languages of texts that are wanted, the preferred one first; none: English, else the first.
        is_step_named: Whether the user names the step, so that queries of any language are good.
    """

    def __init__(self, source: Source, fields: Fields, languages: Sequence[str], is_step_named: bool) -> None:
        self.dataset = SourceDataset(source.path, source.title or Path(source.path).stem or "imported")
        self._source = source
        self._fields = fields
        self._languages = languages or (DEFAULT_LANGUAGE,)
        self._takes_any = not languages
        self._is_step_named = is_step_named
        self._told: dict[str, list[str]] = defaultdict(list)
        self._refused: dict[tuple[str, str], list[Problem]] = defaultdict(list)
        self._there: set[str] = set()

    def read(self) -> SourceDataset:
        """Return the questions, with problems and notes.

        Raises:
            OptionError: Languages are wanted, and no text names one.
        """
        for what, hint, line in self._source.problems:
            self.dataset.add_problem(what, hint, line=line)
        for place, record in enumerate(self._source.records):
            try:
                self.dataset.questions.append(self._question(place, record))
            except _LeftOutError:
                continue
        if not self._takes_any and not self._there and self._source.importer is not QALD:
            raise OptionError("the questions of this file are in no named language", hint="Leave --language out.")
        for (role, _), problems in self._refused.items():
            ids = [problem.question_id or "?" for problem in problems]
            hint = f"{_SHAPES[role]} Left out ({counted(len(ids), 'question')}): {listed(ids, 10)}."
            first = problems[0]
            self.dataset.problems.append(
                Problem(first.what, hint, first.path, first.line, first.question_id, first.key)
            )
        self.dataset.notes += self._notes()
        return self.dataset

    def _question(self, place: int, record: Record | UnknownShapeError) -> SourceQuestion:
        """Return a question.

        Raises:
            _LeftOutError: It cannot be read.
        """
        if isinstance(record, UnknownShapeError):
            line, key = self._source.places[place]
            what = f"{key} is {record}, no question"
            self.dataset.add_problem(what, "It is left out.", line=line)
            raise _LeftOutError
        fields = self._fields
        given = first_value(record, fields.ids)[1]
        identifier = (str(given).strip() if isinstance(given, str | int | float) else "") or str(place + 1)
        column, value = first_value(record, fields.questions)
        text = self._text(place, identifier, column, value, record)
        query = self._query(place, identifier, record)
        answer_column, answer = first_value(record, fields.gold)
        results = record.get(fields.results or "")
        try:
            if is_sparql_results(told := opened(answer)) or (
                isinstance(told, list) and any(map(is_sparql_results, told))
            ):
                results, answer = (results or told), None
            if fields.query is None and isinstance(opened(results), str) and answer is None:  # no rows, and of no query
                results, answer = None, results
            worded = answer_text(answer, self._languages)
        except UnknownShapeError as problem:
            self._refuse(place, identifier, "answer", answer_column or fields.results or "", problem)
        if worded is not None:
            for name in unread_gold(record, fields.gold, answer_column):
                self._told[f"`{name}` has another reference answer than `{answer_column}`, which counts"].append(
                    identifier
                )
        gold = self._gold(place, identifier, results)
        response_column, response = first_value(record, fields.responses)
        try:
            said = answer_text(response, self._languages)
        except UnknownShapeError as problem:
            self._told[f"`{response_column}` has no answer of a known shape, such as {problem}"].append(identifier)
            said = None
        if said is not None:
            self._told[f"`{response_column}` is the answer of a model, and no reference"].append(identifier)
        relevant = opened(first_value(record, fields.relevant_ids)[1])
        kept = {key: record[key] for key in _KEPT if isinstance(record.get(key), str | bool)}
        template_id = self._template_id(record, gold)
        return SourceQuestion(
            identifier, text, *(query or (None, None)), gold, worded, said, relevant, template_id, kept
        )

    def _text(self, place: int, identifier: str, column: str, value: Any, record: Record) -> str:
        try:
            texts = question_texts(value)
            if texts and isinstance(record.get("translations"), Mapping):
                texts = [(name or DEFAULT_LANGUAGE, text) for name, text in texts]
                texts += question_texts({DEFAULT_LANGUAGE: None, **record["translations"]})
        except UnknownShapeError as problem:
            self._refuse(place, identifier, "question", column, problem)
        if not texts:
            line, key = self._source.places[place]
            is_qald = self._source.importer is QALD
            where = "any language" if is_qald else f"the column {column}"
            hint = "Give its question as a list of {language, string}." if is_qald else "Add it."
            what = f"the question has no text in {where}"
            self.dataset.add_problem(what, f"{hint} The question is left out.", question_id=identifier, line=line)
            raise _LeftOutError
        self._there |= {name for name, _ in texts if name is not None}
        found = ((index, text) for index, name in enumerate(self._languages) if (text := in_language(texts, name)))
        index, text = next(found, (1, texts[0][1]) if self._takes_any else (-1, ""))
        if index:
            self._told["in another" if index > 0 else "without text"].append(identifier)
        if index < 0:
            raise _LeftOutError
        return text

    def _query(self, place: int, identifier: str, record: Record) -> Query | None:
        column = self._fields.query
        value = record.get(column or "")
        if column is None or is_blank(value):
            return None
        try:
            query = query_of(value, column)
            if is_out_of_scope(opened(value)):
                self._told["OUT OF SCOPE stands for a query, so that there is none"].append(identifier)
        except UnknownShapeError as problem:
            self._refuse(place, identifier, "query", column, problem)
        if query is None or query.language is not None or self._is_step_named:
            return query
        self._told["no language"].append(identifier)
        return None

    def _gold(self, place: int, identifier: str, results: Any) -> Gold | None:
        try:
            gold = gold_of_value(results)
        except BrokenGoldError as problem:
            hint = "Fix them in the source, or ask an endpoint (--endpoint). The question is imported without them."
            what, line = f"the results are broken: {problem}", self._source.places[place][0]
            self.dataset.add_problem(what, hint, question_id=identifier, line=line)
            return None
        for note in gold.notes if gold is not None else ():
            self.dataset.notes.append(f"Question {identifier}: {note}.")
        return gold

    def _template_id(self, record: Record, gold: Gold | None) -> str | None:
        value = first_value(record, self._fields.templates)[1]
        if value is None and self._source.importer is QALD:
            named = record.get("answertype")
            value = (
                (named.strip() if isinstance(named, str) else "") or (gold.answer_type if gold else None) or _OTHER_TYPE
            )
        return None if value is None else value.strip() if isinstance(value, str) else json_text(value)

    def _refuse(self, place: int, identifier: str, role: str, column: str, problem: UnknownShapeError) -> NoReturn:
        """Leave out a question one of whose values has no known shape.

        Raises:
            _LeftOutError: Always.
        """
        line, key = self._source.places[place]
        at = f"{key}.{column}"
        what = f"no {role} can be read from {problem}"
        self._refused[role, column].append(Problem(what, "", self.dataset.path, line, identifier, at))
        raise _LeftOutError

    def _notes(self) -> Iterator[str]:
        languages, told = listed(list(self._languages)), self._told
        there = listed(sorted(self._there), 20) or "none"
        hint = f"The languages of the dataset are {there}; --language names others."
        yield from note_on(f"No text in {languages}, and left out", told.pop("without text", ()), hint)
        other = "another language" if self._takes_any else "another of the languages"
        yield from note_on(f"No text in {self._languages[0]}, and taken in {other}", told.pop("in another", ()))
        hint = f"It is none of {listed(list(STEP_NAMES))}; --step-name names the tool that runs it."
        what = "The language of the query cannot be told, and it is not imported"
        yield from note_on(what, told.pop("no language", ()), hint)
        for what, ids in told.items():
            hint = "--responses FILE writes it." if "answer of a model" in what else ""
            yield from note_on(what, ids, hint)


def read_questions(
    path: str | PathLike[str], columns: Columns, languages: Sequence[str] = (), *, is_step_named: bool = False
) -> SourceDataset:
    """Read the questions of a file; what is wrong with one says so, and leaves the others alone.

    Args:
        path: The file.
        columns: The names of its columns.
        languages: The languages of the questions' texts, the preferred one first; empty: English, else the first one.
        is_step_named: Whether queries of unknown languages are taken, as the user names the step that runs them.

    Raises:
        DatasetError: The file cannot be read, has another form, or lacks a column.
        MissingExtraError: A package for its form is not installed.
        OptionError: An option does not go with the file.
    """
    source = read_source(path)
    if columns.given and not source.importer.has_columns:
        what = f"{source.importer.name}'s JSON has no columns, so that the {columns.given[0]} column cannot be named"
        raise OptionError(what, hint="Leave the option out.")
    records = [record for record in source.records if isinstance(record, Mapping)]
    fields = found_fields(source.names, records, columns, source.path)
    if source.importer is not QALD:
        require_fields(fields, source.names, source.path)
    return _Reader(source, fields, languages, is_step_named).read()
