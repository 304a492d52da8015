"""Reading the records of a published dataset as questions, each separately."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, gold_of_value, is_sparql_results
from graphrag_eval_lc.dataset.importers import QALD, Source, read_source
from graphrag_eval_lc.dataset.query_language import STEP_NAMES, Language
from graphrag_eval_lc.dataset.source_fields import Columns, Fields, first_value, found_fields, other_values
from graphrag_eval_lc.dataset.source_shapes import (
    DEFAULT_LANGUAGE,
    Query,
    UnknownShapeError,
    answer_text,
    in_language,
    is_out_of_scope,
    opened,
    query_of,
    question_texts,
    reading,
)
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.texts import counted, listed

# What datasets say of a question next to its text and query, and what may select questions later.
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


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question.

    Attributes:
        id: Its id, as a text.
        text: What the agent is asked.
        query: The query that answers it.
        language: Its language; None if nothing shows it.
        gold: The results of that query.
        answer: The answer in words.
        response: The answer of a model, which is not gold.
        relevant_ids: What a search should find.
        template_id: The template that it belongs to.
        kept: Further keys, which are handed through.
    """

    id: str
    text: str
    query: str | None = None
    language: Language | None = None
    gold: Gold | None = None
    answer: str | None = None
    response: str | None = None
    relevant_ids: Any = None
    template_id: str | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class SourceDataset:
    """A dataset.

    Attributes:
        path: Its file.
        template_id: The template of questions that name none.
        questions: The questions that can be imported.
        problems: What is wrong with questions; those that are an error are left out, unless the text says otherwise.
        notes: Further sentences for the user.
    """

    path: str
    template_id: str
    questions: list[SourceQuestion] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_problem(self, what: str, hint: str, **place: Any) -> None:
        """Add what is wrong with a question, which is left out or lacks something."""
        self.problems.append(Problem(what, hint, path=self.path, **place))


def read_questions(
    path: str | PathLike[str], columns: Columns, languages: Sequence[str] = (), *, is_step_named: bool = False
) -> SourceDataset:
    """Read the questions of a file; what is wrong with one says so, and leaves the others alone.

    Args:
        path: The file.
        columns: The names of its columns.
        languages: The languages of the questions' texts, the preferred one first; empty: English, else the first one.
        is_step_named: Whether queries of unknown languages are read, as the user names the step that runs them.

    Raises:
        DatasetError: The file cannot be read, has another form, or lacks a column.
        MissingExtraError: A package for its form is not installed.
        OptionError: An option does not go with the file.
    """
    source = read_source(path)
    if columns.given and source.importer is QALD:
        what = f"QALD's JSON has no columns, so that the {columns.given[0]} column cannot be named"
        raise OptionError(what, hint="Leave the option out.")
    records = [record for _, _, record in source.entries if isinstance(record, Mapping)]
    fields = found_fields(source.names, records, columns, source.path, needs_all=source.importer is not QALD)
    reader = _Reader(source, fields, languages, is_step_named)
    dataset = reader.read()
    if languages and not reader.languages_there and source.importer is not QALD:
        raise OptionError("the questions of this file are in no named language", hint="Leave --language out.")
    return dataset


class _Reader:
    """Reads records as questions, and gathers what is to be reported of them."""

    def __init__(self, source: Source, fields: Fields, languages: Sequence[str], is_step_named: bool) -> None:
        self._dataset = SourceDataset(source.path, source.title or Path(source.path).stem or "imported")
        self._source = source
        self._fields = fields
        self._languages = languages or (DEFAULT_LANGUAGE,)
        self._takes_any_language = not languages
        self._is_step_named = is_step_named
        self._ids: dict[str, list[str]] = defaultdict(list)  # by what is to be noted of these questions
        self.languages_there: set[str] = set()

    def read(self) -> SourceDataset:
        """Return the questions, with problems and notes."""
        dataset = self._dataset
        refused: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for what, hint, row_line in self._source.problems:
            dataset.add_problem(what, hint, line=row_line)
        for number, (line, key, record) in enumerate(self._source.entries, start=1):
            given = first_value(record, self._fields.ids)[1] if isinstance(record, Mapping) else None
            identifier = (str(given).strip() if isinstance(given, str | int | float) else "") or str(number)
            try:
                question = self._question(identifier, record, line)
            except UnknownShapeError as problem:
                place = {"question_id": identifier, "line": line, "key": f"{key}.{problem.column}".rstrip(".")}
                refused[problem.role, problem.column].append((f"no {problem.role} can be read from {problem}", place))
            else:
                dataset.questions += [] if question is None else [question]
        for (role, _), problems in refused.items():
            ids = [place["question_id"] for _, place in problems]
            hint = f"{_SHAPES[role]} Left out ({counted(len(ids), 'question')}): {listed(ids, 10)}."
            dataset.add_problem(problems[0][0], hint, **problems[0][1])
        dataset.notes += self._notes()
        return dataset

    def _question(self, identifier: str, record: Any, line: int | None) -> SourceQuestion | None:
        """Return a question; None if it is left out, which is noted.

        Raises:
            UnknownShapeError: One of its values has a shape that is not known.
        """
        with reading("question", ""):
            if not isinstance(record, Mapping):
                raise UnknownShapeError(record)
        text = self._text(identifier, record, line)
        if text is None:
            return None
        query, has_query = self._query(identifier, record)
        column, answer = first_value(record, self._fields.gold)
        with reading("answer", column):
            results = record.get(self._fields.results or "")
            if _is_table(answer):
                results, answer = results or opened(answer), None
            if self._fields.query is None and not _is_table(results, Mapping, list, tuple):
                results, answer = None, results if answer is None else answer
            worded = answer_text(answer, self._languages)
        for name in other_values(record, self._fields.gold, column):
            self._ids[f"`{name}` is not imported, as `{column}` says more clearly that it is gold"].append(identifier)
        is_asked = query is None or query.language == "SPARQL"
        gold = self._gold(identifier, results, line, is_asked) if query or not has_query else None
        relevant = first_value(record, self._fields.relevant_ids)[1]
        with reading("answer", self._fields.relevant_ids[0] if self._fields.relevant_ids else ""):
            relevant = opened(relevant)
        kept = {key: record[key] for key in _KEPT if isinstance(record.get(key), str | bool)}
        response, template_id = self._response(identifier, record), self._template_id(record, gold)
        language = query.language if query else None
        return SourceQuestion(
            identifier, text, query and query.text, language, gold, worded, response, relevant, template_id, kept
        )

    def _text(self, identifier: str, record: Mapping[str, Any], line: int | None) -> str | None:
        column, value = first_value(record, self._fields.questions)
        with reading("question", column):
            texts = question_texts(value)
            if texts and isinstance(record.get("translations"), Mapping):  # Mintaka
                texts = [(name or DEFAULT_LANGUAGE, text) for name, text in texts]
                texts += question_texts({DEFAULT_LANGUAGE: None, **record["translations"]})
        if not texts:
            is_qald = self._source.importer is QALD
            hint = "Give its question as a list of {language, string}." if is_qald else "Add it."
            what = f"the question has no text in {'any language' if is_qald else f'the column {column}'}"
            self._dataset.add_problem(what, f"{hint} The question is left out.", question_id=identifier, line=line)
            return None
        self.languages_there |= {name for name, _ in texts if name is not None}
        found = next((text for each in self._languages if (text := in_language(texts, each))), None)
        if found is None:
            self._ids["another language" if self._takes_any_language else "no text"].append(identifier)
            return texts[0][1] if self._takes_any_language else None
        if in_language(texts, self._languages[0]) is None:
            self._ids["another of the languages"].append(identifier)
        return found

    def _query(self, identifier: str, record: Mapping[str, Any]) -> tuple[Query | None, bool]:
        """Return the query, and whether there is one, even if it cannot be used."""
        column = self._fields.query or ""
        with reading("query", column):
            query = query_of(record.get(column), column)
            if is_out_of_scope(opened(record.get(column))):
                self._ids["OUT OF SCOPE is not imported as a query"].append(identifier)
        if query is None or query.language is not None or self._is_step_named:
            return query, query is not None
        self._ids["no language"].append(identifier)
        return None, True

    def _gold(self, identifier: str, results: Any, line: int | None, is_asked: bool) -> Gold | None:
        try:
            gold = gold_of_value(results)
        except BrokenGoldError as problem:
            hint = f"Fix them in the source{', or ask an endpoint (--endpoint)' * is_asked}."
            hint += " The question is imported without them."
            self._dataset.add_problem(f"the results are broken: {problem}", hint, question_id=identifier, line=line)
            return None
        self._dataset.notes += [f"Question {identifier}: {note}." for note in (gold.notes if gold else ())]
        return gold

    def _response(self, identifier: str, record: Mapping[str, Any]) -> str | None:
        """Return the answer of a model."""
        column, value = first_value(record, self._fields.responses)
        try:
            response = answer_text(value, self._languages)
        except UnknownShapeError as problem:
            self._ids[f"`{column}` has no answer of a known shape, such as {problem}"].append(identifier)
            return None
        if response is not None:
            self._ids[f"`{column}` is the answer of a model, and is not imported as a reference"].append(identifier)
        for name in other_values(record, self._fields.responses, column):
            self._ids[f"`{name}` is not imported, as `{column}` is the answer of the model"].append(identifier)
        return response

    def _template_id(self, record: Mapping[str, Any], gold: Gold | None) -> str | None:
        value = first_value(record, self._fields.templates)[1]
        if value is None and self._source.importer is QALD:
            named = record.get("answertype")
            value = (named.strip() if isinstance(named, str) else "") or (gold and gold.answer_type) or _OTHER_TYPE
        return str(value).strip() if isinstance(value, str | int | float) else None

    def _notes(self) -> Iterator[str]:
        languages = listed(list(self._languages))
        there = f"The languages of the dataset are {listed(sorted(self.languages_there), 20) or 'none'}"
        known = {
            "no text": (f"No text in {languages}, and left out", f"{there}; --language names others."),
            "another language": (f"No text in {languages}, and imported in another language", ""),
            "another of the languages": (
                f"No text in {self._languages[0]}, and imported in another of the languages",
                "",
            ),
            "no language": (
                "The language of the query is unknown, so the query and its results are not imported",
                f"It is none of {listed(list(STEP_NAMES))}; --step-name names the tool that runs it.",
            ),
        }
        for what, ids in sorted(self._ids.items(), key=lambda each: each[0] not in known):
            sentence, hint = known.get(what, (what, ""))
            yield from note_on(sentence, ids, hint)


def _is_table(value: Any, *rows: type) -> bool:
    """Return whether a value is SPARQL results in JSON, or a list of these or of some types of rows."""
    value = opened(value)
    listed = value if isinstance(value, list) else []
    return is_sparql_results(value) or any(is_sparql_results(each) or isinstance(each, rows) for each in listed)


def note_on(what: str, ids: Sequence[str], hint: str = "") -> list[str]:
    """Return a sentence on some questions; none without any.

    Example:
        >>> note_on("Without a query", ["7", "12"])
        ['Without a query (2 questions): 7, 12.']
    """
    return [f"{what} ({counted(len(ids), 'question')}): {listed(ids, 10)}.{' ' * bool(hint)}{hint}"] if ids else []


def unique_ids(questions: Sequence[SourceQuestion]) -> Iterator[tuple[str, SourceQuestion]]:
    """Yield each question with an id that no other has: the first keeps its own, later ones get a number.

    Example:
        >>> [identifier for identifier, _ in unique_ids([SourceQuestion("7", "Who?"), SourceQuestion("7", "Why?")])]
        ['7', '7-2']
    """
    taken = {question.id for question in questions}
    seen: set[str] = set()
    for question in questions:
        identifier, number = question.id, 2
        while identifier in seen or (identifier in taken and identifier != question.id):
            identifier, number = f"{question.id}-{number}", number + 1
        seen.add(identifier)
        yield identifier, question
