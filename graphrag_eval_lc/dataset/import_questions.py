"""Reads the questions of a published dataset one by one, and collects problems and notes for the user."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.dataset.gold import BrokenGoldError, Gold, gold_of_value, is_sparql_results
from graphrag_eval_lc.dataset.import_fields import (
    DEFAULT_LANGUAGE,
    Columns,
    Query,
    UnknownShapeError,
    answer_text,
    first_value,
    found_fields,
    in_language,
    is_out_of_scope,
    opened,
    other_values,
    query_of,
    question_texts,
    reading,
)
from graphrag_eval_lc.dataset.importers import QALD, Source, read_source
from graphrag_eval_lc.dataset.query_language import STEP_NAMES, Language
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.texts import counted, listed

# Further keys of a question that are copied, because they may be used to select questions later.
_KEPT: Final = (
    "answertype", "aggregation", "onlydbo", "hybrid", "db_id", "evidence", "difficulty", "level", "query_type",
    "category", "complexityType",
)  # fmt: skip
_SHAPES: Final = {
    "question": 'A question is a text, {"string": …}, a list of {language, string}, or {language: text}.',
    "query": 'A query is a text or an object that names its language: {"sparql": …}, {"sql": …}, {"cypher": …}.',
    "answer": "An answer is a text, a number, an object with a label, a name or a value, or a list of these.",
}


@dataclass(frozen=True, slots=True)
class SourceQuestion:
    """A question of a published dataset."""

    id: str  # its id, as a text
    text: str
    query: str | None = None  # the query that answers it
    language: Language | None = None  # its language; None if nothing shows it
    gold: Gold | None = None  # the results of that query
    answer: str | None = None
    response: str | None = None  # the answer of a model, which is not gold
    relevant_ids: Any = None  # what a search should find
    template_id: str | None = None  # the template that it belongs to
    kept: Mapping[str, Any] = field(default_factory=dict)  # further keys, which are copied


def read_questions(
    path: str | PathLike[str], columns: Columns, languages: Sequence[str] = (), *, is_step_named: bool = False
) -> "SourceDataset":
    """Read the questions of a file. A broken question is reported, and the others are read.

    If no languages are named, the English text of a question is used, otherwise its first one. Queries in an unknown
    language are read only if the user names the step that runs them.
    """
    source = read_source(path)
    if columns.given and source.importer is QALD:
        what = f"QALD's JSON has no columns, so that the {columns.given[0]} column cannot be named"
        raise OptionError(what, hint="Leave the option out.")
    dataset = SourceDataset(source, columns, languages, is_step_named=is_step_named)
    dataset.read(source.entries)
    if languages and not dataset.languages_seen and source.importer is not QALD:
        raise OptionError("the questions of this file are in no named language", hint="Leave --language out.")
    return dataset


class SourceDataset:
    """The questions of a published dataset, and what is reported about them."""

    def __init__(self, source: Source, columns: Columns, languages: Sequence[str], *, is_step_named: bool) -> None:
        self.template_id = source.title or Path(source.path).stem or "imported"
        self.questions: list[SourceQuestion] = []
        self.problems: list[Problem] = []
        self.languages_seen: set[str] = set()
        self._path = source.path
        self._is_qald = source.importer is QALD
        self._languages = languages or (DEFAULT_LANGUAGE,)
        self._accepts_any_language = not languages
        self._is_step_named = is_step_named
        self._notes: dict[tuple[str, str], list[str]] = {}
        self._without_text: list[str] = []
        records = [record for _, _, record in source.entries if isinstance(record, Mapping)]
        self._fields = found_fields(source.names, records, columns, source.path, needs_all=not self._is_qald)
        for what, hint, row_line in source.problems:
            self.add_problem(what, hint, line=row_line)

    def read(self, entries: Iterable[tuple[int | None, str, Any]]) -> None:
        """Read the records of a file as questions, and collect their problems."""
        refused: dict[tuple[str, str], list[tuple[str, dict[str, Any]]]] = {}
        for number, (line, key, record) in enumerate(entries, start=1):
            given = first_value(record, self._fields.ids)[1] if isinstance(record, Mapping) else None
            identifier = (str(given).strip() if isinstance(given, str | int | float) else "") or str(number)
            try:
                self._read(identifier, record, line)
            except UnknownShapeError as problem:
                place = {"question_id": identifier, "line": line, "key": f"{key}.{problem.column}".rstrip(".")}
                what = f"no {problem.role} can be read from {problem}"
                refused.setdefault((problem.role, problem.column), []).append((what, place))
        for (role, _), problems in refused.items():  # questions refused for the same reason are reported together
            ids = [place["question_id"] for _, place in problems]
            hint = f"{_SHAPES[role]} Left out ({counted(len(ids), 'question')}): {listed(ids, 10)}."
            self.add_problem(problems[0][0], hint, **problems[0][1])
        seen = f"The languages of the dataset are {listed(sorted(self.languages_seen), 20) or 'none'}"
        for identifier in self._without_text:
            what = f"No text in {listed(list(self._languages))}, and left out"
            self.note(what, identifier, f"{seen}; --language names others.")

    def add_problem(self, what: str, hint: str, **place: Any) -> None:
        """Report a question that is left out or incomplete."""
        self.problems.append(Problem(what, hint, path=self._path, **place))

    def note(self, what: str, identifier: str, hint: str = "") -> None:
        """Add a question to the note ``what``: each note is one sentence that lists its questions."""
        self._notes.setdefault((what, hint), []).append(identifier)

    def sentences(self) -> list[str]:
        """Return the notes as sentences for the user, each with the questions that it is about."""
        return [
            f"{what} ({counted(len(ids), 'question')}): {listed(ids, 10)}.{' ' * bool(hint)}{hint}"
            for (what, hint), ids in self._notes.items()
        ]

    def _read(self, identifier: str, record: Any, line: int | None) -> None:
        """Read one record as a question; UnknownShapeError if a value has an unknown shape."""
        with reading("question", ""):
            if not isinstance(record, Mapping):
                raise UnknownShapeError(record)
        text = self._text(identifier, record, line)
        if text is None:
            return
        fields = self._fields
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
            self.note(f"`{name}` is not imported, as `{column}` says more clearly that it is gold", identifier)
        with reading("answer", fields.relevant_ids[0] if fields.relevant_ids else ""):
            relevant = opened(first_value(record, fields.relevant_ids)[1])
        is_asked = query is None or query.language == "SPARQL"
        gold = self._gold(identifier, results, line, is_asked) if query or not has_query else None
        self.questions.append(
            SourceQuestion(
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
        )

    def _text(self, identifier: str, record: Mapping[str, Any], line: int | None) -> str | None:
        """Return the text in the first wanted language; if there is none, report the question and return None."""
        column, value = first_value(record, self._fields.questions)
        with reading("question", column):
            texts = question_texts(value)
            if texts and isinstance(record.get("translations"), Mapping):  # Mintaka
                texts = [(name or DEFAULT_LANGUAGE, text) for name, text in texts]
                texts += question_texts({DEFAULT_LANGUAGE: None, **record["translations"]})
        if not texts:
            hint = "Give its question as a list of {language, string}." if self._is_qald else "Add it."
            what = f"the question has no text in {'any language' if self._is_qald else f'the column {column}'}"
            self.add_problem(what, f"{hint} The question is left out.", question_id=identifier, line=line)
            return None
        self.languages_seen |= {name for name, _ in texts if name is not None}
        found = next((text for each in self._languages if (text := in_language(texts, each))), None)
        first = f"No text in {self._languages[0]}, and imported in another"
        if found is None and self._accepts_any_language:
            self.note(f"{first} language", identifier)
            return texts[0][1]
        if found is None:
            self._without_text.append(identifier)
        elif in_language(texts, self._languages[0]) is None:
            self.note(f"{first} of the languages", identifier)
        return found

    def _query(self, identifier: str, record: Mapping[str, Any]) -> tuple[Query | None, bool]:
        """Return the query, and whether there is one, even if it cannot be used."""
        column = self._fields.query or ""
        with reading("query", column):
            query = query_of(record.get(column), column)
            if is_out_of_scope(opened(record.get(column))):
                self.note("OUT OF SCOPE is not imported as a query", identifier)
        if query is None or query.language is not None or self._is_step_named:
            return query, query is not None
        what = "The language of the query is unknown, so the query and its results are not imported"
        hint = f"It is none of {listed(list(STEP_NAMES))}; --step-name names the tool that runs it."
        self.note(what, identifier, hint)
        return None, True

    def _gold(self, identifier: str, results: Any, line: int | None, is_asked: bool) -> Gold | None:
        try:
            gold = gold_of_value(results)
        except BrokenGoldError as problem:
            hint = f"Fix them in the source{', or ask an endpoint (--endpoint)' * is_asked}."
            hint += " The question is imported without them."
            self.add_problem(f"the results are broken: {problem}", hint, question_id=identifier, line=line)
            return None
        for note in gold.notes if gold else ():
            self.note(note, identifier)
        return gold

    def _response(self, identifier: str, record: Mapping[str, Any]) -> str | None:
        """Return the answer of a model."""
        column, value = first_value(record, self._fields.responses)
        try:
            response = answer_text(value, self._languages)
        except UnknownShapeError as problem:
            self.note(f"`{column}` has no answer of a known shape, such as {problem}", identifier)
            return None
        if response is not None:
            self.note(f"`{column}` is the answer of a model, and is not imported as a reference", identifier)
        for name in other_values(record, self._fields.responses, column):
            self.note(f"`{name}` is not imported, as `{column}` is the answer of the model", identifier)
        return response

    def _template_id(self, record: Mapping[str, Any], gold: Gold | None) -> str | None:
        value = first_value(record, self._fields.templates)[1]
        if value is None and self._is_qald:
            named = record.get("answertype")
            value = (named.strip() if isinstance(named, str) else "") or (gold and gold.answer_type) or "other"
        return str(value).strip() if isinstance(value, str | int | float) else None


def _is_table(value: Any, *rows: type) -> bool:
    """Return whether a value is SPARQL results in JSON, or a list of these or of some types of rows."""
    value = opened(value)
    parts = value if isinstance(value, list) else []
    return is_sparql_results(value) or any(is_sparql_results(each) or isinstance(each, rows) for each in parts)


def unique_ids(questions: Sequence[SourceQuestion]) -> Iterator[tuple[str, SourceQuestion]]:
    """Yield each question with a unique id: the first question with an id keeps it, later ones get a number."""
    taken = {question.id for question in questions}
    seen: set[str] = set()
    for question in questions:
        identifier, number = question.id, 2
        while identifier in seen or (identifier in taken and identifier != question.id):
            identifier, number = f"{question.id}-{number}", number + 1
        seen.add(identifier)
        yield identifier, question
