"""Reading the records of a published dataset as questions, each separately."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, gold_of_value, is_sparql_results
from graphrag_eval_lc.dataset.importers import QALD, read_source
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


class Notes:
    """Sentences for the user, each with the questions that it is about."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], list[str]] = {}

    def add(self, what: str, identifier: str, hint: str = "") -> None:
        """Add a question to a sentence."""
        self._ids.setdefault((what, hint), []).append(identifier)

    def sentences(self) -> list[str]:
        """Return the sentences.

        Example:
            >>> notes = Notes()
            >>> notes.add("Without a query", "7")
            >>> notes.sentences()
            ['Without a query (1 question): 7.']
        """
        return [
            f"{what} ({counted(len(ids), 'question')}): {listed(ids, 10)}.{' ' * bool(hint)}{hint}"
            for (what, hint), ids in self._ids.items()
        ]


@dataclass(slots=True)
class SourceDataset:
    """A dataset.

    Attributes:
        path: Its file.
        template_id: The template of questions that name none.
        questions: The questions that can be imported.
        problems: What is wrong with questions; those with an error are left out, unless the text says otherwise.
        notes: Further sentences for the user.
    """

    path: str
    template_id: str
    questions: list[SourceQuestion] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: Notes = field(default_factory=Notes)

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
    is_qald = source.importer is QALD
    if columns.given and is_qald:
        what = f"QALD's JSON has no columns, so that the {columns.given[0]} column cannot be named"
        raise OptionError(what, hint="Leave the option out.")
    records = [record for _, _, record in source.entries if isinstance(record, Mapping)]
    fields = found_fields(source.names, records, columns, source.path, needs_all=not is_qald)
    dataset = SourceDataset(source.path, source.title or Path(source.path).stem or "imported")
    for what, hint, row_line in source.problems:
        dataset.add_problem(what, hint, line=row_line)
    reader = _Reader(dataset, fields, languages, is_qald=is_qald, is_step_named=is_step_named)
    for number, (line, key, record) in enumerate(source.entries, start=1):
        reader.read(number, record, line, key)
    reader.finish()
    if languages and not reader.languages_there and not is_qald:
        raise OptionError("the questions of this file are in no named language", hint="Leave --language out.")
    return dataset


class _Reader:
    """Reads records as questions of a dataset, and gathers what is to be reported of them."""

    def __init__(
        self, dataset: SourceDataset, fields: Fields, languages: Sequence[str], *, is_qald: bool, is_step_named: bool
    ) -> None:
        self._dataset = dataset
        self._fields = fields
        self._languages = languages or (DEFAULT_LANGUAGE,)
        self._accepts_any_language = not languages
        self._is_qald = is_qald
        self._is_step_named = is_step_named
        self._refused: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        self._without_text: list[str] = []
        self.languages_there: set[str] = set()

    def read(self, number: int, record: Any, line: int | None, key: str) -> None:
        """Add a record as a question, or what is wrong with it."""
        given = first_value(record, self._fields.ids)[1] if isinstance(record, Mapping) else None
        identifier = (str(given).strip() if isinstance(given, str | int | float) else "") or str(number)
        try:
            with reading("question", ""):
                if not isinstance(record, Mapping):
                    raise UnknownShapeError(record)
            if (text := self._text(identifier, record, line)) is not None:
                self._dataset.questions.append(self._question(identifier, text, record, line))
        except UnknownShapeError as problem:
            place = {"question_id": identifier, "line": line, "key": f"{key}.{problem.column}".rstrip(".")}
            what = f"no {problem.role} can be read from {problem}"
            self._refused[problem.role, problem.column].append((what, place))

    def finish(self) -> None:
        """Report the questions that are refused for one reason together, and those in no wanted language."""
        for (role, _), problems in self._refused.items():
            ids = [place["question_id"] for _, place in problems]
            hint = f"{_SHAPES[role]} Left out ({counted(len(ids), 'question')}): {listed(ids, 10)}."
            self._dataset.add_problem(problems[0][0], hint, **problems[0][1])
        there = f"The languages of the dataset are {listed(sorted(self.languages_there), 20) or 'none'}"
        for identifier in self._without_text:
            what = f"No text in {listed(list(self._languages))}, and left out"
            self._dataset.notes.add(what, identifier, f"{there}; --language names others.")

    def _question(self, identifier: str, text: str, record: Mapping[str, Any], line: int | None) -> SourceQuestion:
        """Return a question; UnknownShapeError if one of its values has a shape that is not known."""
        fields, notes = self._fields, self._dataset.notes
        query, has_query = self._query(identifier, record)
        column, answer = first_value(record, fields.gold)
        with reading("answer", column):
            results = record.get(fields.results or "")
            if _is_table(answer):
                results, answer = results or opened(answer), None
            if fields.query is None and not _is_table(results, Mapping, list, tuple):
                results, answer = None, results if answer is None else answer
            worded = answer_text(answer, self._languages)
        for name in other_values(record, fields.gold, column):
            notes.add(f"`{name}` is not imported, as `{column}` says more clearly that it is gold", identifier)
        with reading("answer", fields.relevant_ids[0] if fields.relevant_ids else ""):
            relevant = opened(first_value(record, fields.relevant_ids)[1])
        is_asked = query is None or query.language == "SPARQL"
        gold = self._gold(identifier, results, line, is_asked) if query or not has_query else None
        return SourceQuestion(
            identifier,
            text,
            query=query.text if query else None,
            language=query.language if query else None,
            gold=gold,
            answer=worded,
            response=self._response(identifier, record),
            relevant_ids=relevant,
            template_id=self._template_id(record, gold),
            kept={key: record[key] for key in _KEPT if isinstance(record.get(key), str | bool)},
        )

    def _text(self, identifier: str, record: Mapping[str, Any], line: int | None) -> str | None:
        """Return the text in the first wanted language; None if the question is left out, which is reported."""
        column, value = first_value(record, self._fields.questions)
        with reading("question", column):
            texts = question_texts(value)
            if texts and isinstance(record.get("translations"), Mapping):  # Mintaka
                texts = [(name or DEFAULT_LANGUAGE, text) for name, text in texts]
                texts += question_texts({DEFAULT_LANGUAGE: None, **record["translations"]})
        if not texts:
            hint = "Give its question as a list of {language, string}." if self._is_qald else "Add it."
            what = f"the question has no text in {'any language' if self._is_qald else f'the column {column}'}"
            self._dataset.add_problem(what, f"{hint} The question is left out.", question_id=identifier, line=line)
            return None
        self.languages_there |= {name for name, _ in texts if name is not None}
        found = next((text for each in self._languages if (text := in_language(texts, each))), None)
        first = f"No text in {self._languages[0]}, and imported in another"
        if found is None and self._accepts_any_language:
            self._dataset.notes.add(f"{first} language", identifier)
            return texts[0][1]
        if found is None:
            self._without_text.append(identifier)
        elif in_language(texts, self._languages[0]) is None:
            self._dataset.notes.add(f"{first} of the languages", identifier)
        return found

    def _query(self, identifier: str, record: Mapping[str, Any]) -> tuple[Query | None, bool]:
        """Return the query, and whether there is one, even if it cannot be used."""
        column = self._fields.query or ""
        with reading("query", column):
            query = query_of(record.get(column), column)
            if is_out_of_scope(opened(record.get(column))):
                self._dataset.notes.add("OUT OF SCOPE is not imported as a query", identifier)
        if query is None or query.language is not None or self._is_step_named:
            return query, query is not None
        what = "The language of the query is unknown, so the query and its results are not imported"
        hint = f"It is none of {listed(list(STEP_NAMES))}; --step-name names the tool that runs it."
        self._dataset.notes.add(what, identifier, hint)
        return None, True

    def _gold(self, identifier: str, results: Any, line: int | None, is_asked: bool) -> Gold | None:
        try:
            gold = gold_of_value(results)
        except BrokenGoldError as problem:
            hint = f"Fix them in the source{', or ask an endpoint (--endpoint)' * is_asked}."
            hint += " The question is imported without them."
            self._dataset.add_problem(f"the results are broken: {problem}", hint, question_id=identifier, line=line)
            return None
        for note in gold.notes if gold else ():
            self._dataset.notes.add(note, identifier)
        return gold

    def _response(self, identifier: str, record: Mapping[str, Any]) -> str | None:
        """Return the answer of a model."""
        notes = self._dataset.notes
        column, value = first_value(record, self._fields.responses)
        try:
            response = answer_text(value, self._languages)
        except UnknownShapeError as problem:
            notes.add(f"`{column}` has no answer of a known shape, such as {problem}", identifier)
            return None
        if response is not None:
            notes.add(f"`{column}` is the answer of a model, and is not imported as a reference", identifier)
        for name in other_values(record, self._fields.responses, column):
            notes.add(f"`{name}` is not imported, as `{column}` is the answer of the model", identifier)
        return response

    def _template_id(self, record: Mapping[str, Any], gold: Gold | None) -> str | None:
        value = first_value(record, self._fields.templates)[1]
        if value is None and self._is_qald:
            named = record.get("answertype")
            value = (named.strip() if isinstance(named, str) else "") or (gold and gold.answer_type) or _OTHER_TYPE
        return str(value).strip() if isinstance(value, str | int | float) else None


def _is_table(value: Any, *rows: type) -> bool:
    """Return whether a value is SPARQL results in JSON, or a list of these or of some types of rows."""
    value = opened(value)
    parts = value if isinstance(value, list) else []
    return is_sparql_results(value) or any(is_sparql_results(each) or isinstance(each, rows) for each in parts)


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
