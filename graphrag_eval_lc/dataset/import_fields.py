"""Finds which columns of a published dataset hold the question, query and answers, and reads their many shapes."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.dataset.query_language import Language, language_in_name, language_of
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.matching.rows.row_steps import CYPHER_QUERY, SPARQL_QUERY
from graphrag_eval_lc.texts import listed, shortened

DEFAULT_LANGUAGE: Final = "en"
# Keys that hold the text of an object, the most specific first. Keys are compared without case and punctuation.
_OF_QUESTIONS: Final = ("string", "text", "question", "content", "value")
_NO_QUERIES: Final = ("pseudo", "pseudoquery")
_OF_QUERIES: Final = ("query", "string", "text", "value", *_NO_QUERIES)
_OF_ANSWERS: Final = (
    "answertext", "text", "string", "entityname", "label", "labels", "title", "value", "answer", "answers", "name",
    "answerargument", "content", "uri", "mention",
)  # fmt: skip
_OUT_OF_SCOPE: Final = "OUT OF SCOPE"
_LANGUAGE_CODE: Final = re.compile(r"[a-z]{2}([-_]\w{2,4})?", re.I)
_WORD_END: Final = re.compile(r"[ -]|(?<=[a-z])(?=[A-Z])")
_BLOB: Final = re.compile(r"\s*(\{\s*[\"']|\[\s*[\[{\"'])")
_ALL: Final = (list, tuple, Mapping)
# One text of a NumPy list such as ['In NO1.' 'Two.'], and the spaces before the next one.
_LITERAL: Final = re.compile(r"""('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")(\s+(?=['"]))?""")
_LONGEST_LITERAL: Final = 100_000
_DEEPEST: Final = 20


class UnknownShapeError(ValueError):
    """A value is not a text, and not an object of a known shape."""

    role = column = ""

    def __init__(self, value: Any) -> None:
        super().__init__(shortened(json_text(value), 80))


@contextmanager
def reading(role: str, column: str) -> Iterator[None]:
    """Add to an UnknownShapeError what was read, and from which column."""
    try:
        yield
    except UnknownShapeError as problem:
        problem.role, problem.column = role, column
        raise


class Query(NamedTuple):
    """A query, and its language if it is known."""

    text: str
    language: Language | None


def plain_name(name: str) -> str:
    """Return the name of a column or key in lower case, with underscores."""
    return _WORD_END.sub("_", name.strip()).casefold()


def opened(value: Any) -> Any:
    """Parse a text that holds a list or an object, as JSON or as a Python literal; return anything else unchanged.

    Example:
        >>> opened('{"string": "Who?"}'), opened("['In NO1.']"), opened("[a] Who?")
        ({'string': 'Who?'}, ['In NO1.'], '[a] Who?')
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    for read in (parse_json, _literal):
        try:
            found = read(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        if isinstance(found, dict | list):
            return found
    if _BLOB.match(value):
        raise UnknownShapeError(value)
    return value


def _literal(text: str) -> Any:
    """Return the value of a Python literal. NumPy prints lists without commas; Python alone would join their texts."""
    if len(text) > _LONGEST_LITERAL:
        return None
    return ast.literal_eval(_LITERAL.sub(lambda found: found[1] + ", " * bool(found[2]), text))


def is_blank(value: Any) -> bool:
    """Return whether a cell has nothing in it."""
    if isinstance(value, float):
        return value != value  # pandas has NaN in empty cells
    return value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, _ALL) and not value)


def question_texts(value: Any) -> list[tuple[str | None, str]]:
    """Return the texts of a question, each with its language; None for a language that is not given."""
    said = _messages(value, ("user", "human"))
    words = value if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value) else ()
    if len(words) > 1 or (said is not None and len(said) != 1):
        raise UnknownShapeError(value)
    found = _texts(value if said is None else said, _OF_QUESTIONS)
    return [(language, " ".join(text.split())) for language, text in found]


def in_language(texts: Sequence[tuple[str | None, str]], language: str) -> str | None:
    """Return the first text in a language, otherwise in a variety of it, such as zh-cn for zh."""
    wanted = plain_name(language)
    named = [(plain_name(name or DEFAULT_LANGUAGE), text) for name, text in texts]
    exact = (text for each, text in named if each == wanted)
    varieties = (text for each, text in named if each.split("_")[0] == wanted)
    return next(exact, None) or next(varieties, None)


def query_of(value: Any, name: str, *, depth: int = 0) -> Query | None:
    """Return a query; None if there is none, or if the dataset's graph cannot answer the question.

    The name of its column or key may name the language.
    """
    value = opened(value)
    if is_blank(value) or is_out_of_scope(value):
        return None
    if isinstance(value, str):
        return Query(value, language_in_name(name) or language_of(value))
    if isinstance(value, list) and len(value) == 1 and depth < _DEEPEST:
        return query_of(value[0], name, depth=depth + 1)
    if not isinstance(value, Mapping) or depth >= _DEEPEST:
        raise UnknownShapeError(value)
    keys = [key for key in value if isinstance(key, str) and (language_in_name(key) or plain_name(key) in _OF_QUERIES)]
    if not keys:
        raise UnknownShapeError(value)
    key = next((key for key in keys if not is_blank(value[key])), keys[0])
    if plain_name(key) in _NO_QUERIES:
        return None
    given = f"{key} {value.get('language') or value.get('lang')}"
    return query_of(value[key], given if language_in_name(given) else name, depth=depth + 1)


def is_out_of_scope(value: Any) -> bool:
    """Return whether a value is QALD's mark for a question that no query answers."""
    texts = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(text, str) and " ".join(text.split()).upper() == _OUT_OF_SCOPE for text in texts)


def answer_text(value: Any, languages: Sequence[str] = (DEFAULT_LANGUAGE,)) -> str | None:
    """Return an answer in words, several joined with ``; ``, or None. Labels are in the first language.

    Example:
        >>> answer_text(["Hasle", "Nea"]), answer_text([{"name": "Q7", "label": {"en": "Hasle", "de": "Hasle (Ort)"}}])
        ('Hasle; Nea', 'Hasle')
    """
    said = _messages(value, ("assistant", "ai"))
    found = [text for _, text in _texts(value if said is None else said[-1:], _OF_ANSWERS, languages)]
    return "; ".join(dict.fromkeys(text.strip() for text in found) if len(found) > 1 else found) or None


def _texts(
    value: Any, names: Sequence[str], languages: Sequence[str] = (), depth: int = 0
) -> Iterator[tuple[str | None, str]]:
    """Yield the texts in a value, each with its language.

    If an object has a text for each language, only the text in the first wanted language is yielded.
    """
    value = opened(value)
    if is_blank(value):
        return
    if isinstance(value, bytes):
        raise UnknownShapeError(value)
    if not isinstance(value, _ALL):
        yield None, value if isinstance(value, str) else json_text(value).strip('"')  # Parquet has dates, too
    elif depth > _DEEPEST:
        raise UnknownShapeError(value)
    elif not isinstance(value, Mapping):
        for part in value:
            yield from _texts(part, names, languages, depth + 1)
    elif _is_by_language(value):
        texts = [(name, text) for name, part in value.items() for _, text in _texts(part, names, (), depth + 1)]
        best = [(None, text) for each in (*languages, DEFAULT_LANGUAGE) if (text := in_language(texts, each))]
        yield from (best or texts)[:1] if languages else texts
    else:
        given = value.get("language") or value.get("lang")
        own = given if isinstance(given, str) and given.strip() else None
        for language, text in _texts(_part(value, names), names, languages, depth + 1):
            yield own or language, text


def _part(value: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the first value of an object that is not empty, by the order of the names, or None."""
    parts = {"".join(filter(str.isalnum, str(key))).casefold(): part for key, part in value.items()}
    known = [parts[name] for name in names if name in parts]
    if not known:
        raise UnknownShapeError(value)
    return next((part for part in known if not all(map(is_blank, part if isinstance(part, list) else [part]))), None)


def _is_by_language(value: Mapping[str, Any]) -> bool:
    """Return whether an object maps languages to texts."""
    is_named = all(isinstance(key, str) and _LANGUAGE_CODE.fullmatch(key) for key in value)
    return is_named and (DEFAULT_LANGUAGE in value or len(value) > 1)


def _messages(value: Any, roles: tuple[str, ...]) -> list[Any] | None:
    """Return the messages of some roles in a conversation; None if the value is not a conversation."""
    parts = opened(value)
    if isinstance(parts, list) and parts and all(isinstance(each, Mapping) and "content" in each for each in parts):
        return [each["content"] for each in parts if each.get("role", each.get("type")) in roles]
    return None


# The usual names of each column, as plain_name returns them. If a dataset has several, the first one counts.
QUESTIONS: Final = (
    "question", "corrected_question", "question_text", "natural_language_question", "nl_question", "user_input",
    "input", "prompt", "utterance", "nl", "text", "messages", "inputs",
)  # fmt: skip
# If a question is blank, the text in one of these columns is used instead.
_PARAPHRASES: Final = ("paraphrased_question", "nnqt_question")
QUERIES: Final = (
    "query", "sparql", SPARQL_QUERY, "sparql_wikidata", "sparql_dbpedia18", "cypher", CYPHER_QUERY, "sql", "sql_query",
    "gold_query", "gold_sparql", "gold_sql", "gold_cypher",
)  # fmt: skip
_IDS: Final = ("id", "question_id", "_id", "uid", "qid", "instance_id", "questionid")
_TEMPLATES: Final = ("template_id", "template", "sparql_template_id")
_RESULTS: Final = ("results", "result", "answer_json")
# Results if they are rows and the record has a query; otherwise gold answers.
_GOLD_OR_RESULTS: Final = ("gold", "expected_result", "expected_results", "gold_result", "gold_results")
_TEXTS: Final = ("answer", "answers", "output", "outputs", "response", "responses")
# Names of gold answers, the clearest first: each prefix, and the full names that use it without a suffix.
_GOLD: Final = tuple(dict.fromkeys((
    "reference_answer", "reference", *(
        name
        for front, own in (
            ("reference", ()), ("ref", ()), ("expected", ("expected",)), ("gold", ("gold_label",)), ("golden", ()),
            ("ground_truth", ("ground_truth", "ground_truths")), ("groundtruth", ("groundtruth", "groundtruths")),
            ("gt", ("gt",)), ("target", ("target", "targets")), ("ideal", ("ideal",)), ("correct", ()), ("best", ()),
            ("true", ("truth", "true_label")), ("standard", ()), ("canonical", ()), ("human", ()),
        )
        for name in (*(f"{front}_{text}" for text in _TEXTS), f"answer_{front}", *own)
    ),
    "generation_gt", "label", "outputs",
)))  # fmt: skip
_RESPONSES: Final = (
    "response", "prediction", "predicted",
    *(
        f"{front}_{text}"
        for front in ("actual", "predicted", "model", "generated", "llm", "agent", "system")
        for text in _TEXTS
    ),
)  # fmt: skip
_TRUTH: Final = ("true", "false")
# Gold only if there is no column of gold answers; otherwise these are answers of a model.
_GOLD_OR_RESPONSES: Final = ("answer", "answer_text", "output")
# ragas' names of retrieved texts. If a record has them, its answer is that of the evaluated system.
_RETRIEVED: Final = ("contexts", "retrieved_contexts")
ANSWERS: Final = (*_GOLD, "answer", "answers", "output", *_RESPONSES, *_RESULTS, "text", "content", "messages")
RELEVANT_IDS: Final = ("relevant_ids", "retrieval_gt")


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a user names; None means that the column is found by its usual names."""

    question: str | None = None
    query: str | None = None  # the query that answers it
    id: str | None = None
    template: str | None = None
    results: str | None = None  # the results of the query
    answer: str | None = None

    @property
    def given(self) -> list[str]:
        """The columns whose names are given."""
        return [field.name for field in fields(self) if getattr(self, field.name) is not None]


@dataclass(frozen=True, slots=True)
class Fields:
    """The columns of a dataset that hold each field. If there are several, the first that is not empty counts."""

    questions: Sequence[str]
    query: str | None
    ids: Sequence[str]
    templates: Sequence[str]
    results: str | None
    gold: Sequence[str]
    responses: Sequence[str]
    relevant_ids: Sequence[str]


def found_fields(
    names: Sequence[str], records: Sequence[Mapping[str, Any]], given: Columns, path: str, *, needs_all: bool
) -> Fields:
    """Find the columns of each field by the names that the user gave, or by their usual names.

    With ``needs_all``, a question is required, and something to derive a reference from.
    """
    all_names = f"The columns are: {listed([name for name in names if name], 20) or 'none'}."
    taken = [getattr(given, role) for role in given.given]
    for name in taken:
        if name not in names:
            raise DatasetError(f"found no column {name}", path=path, line=1, hint=all_names)
    plain = {plain_name(name): name for name in reversed(names) if name not in taken}

    def there(usual: Sequence[str], own: str | None = None) -> list[str]:
        return [own] if own is not None else [plain[each] for each in usual if each in plain]

    questions, queries = there(QUESTIONS, given.question)[:1], there(QUERIES, given.query)
    texts = [text for record in records if isinstance(text := record.get(plain.get("query", "")), str)]
    # Some questions begin as queries do: "Select a line from the list".
    are_questions = sum(language_of(text) is None for text in texts) * 2 > len(texts)
    if not questions and queries[:1] == [plain.get("query")] and are_questions:
        questions, queries = queries[:1], queries[1:]
    if len(queries) > 1:
        queries = [name for name in queries if any(_is_query(record.get(name), name) for record in records)] or queries
    if len(queries) > 1 and needs_all:
        hint = f"Say which holds the query: --query-column {queries[0]}."
        raise DatasetError(f"the columns {listed(queries)} may all hold the query", path=path, line=1, hint=hint)
    rows = there(_GOLD_OR_RESULTS) if queries else []
    rows = [name for name in rows if not any(_is_text(record.get(name)) for record in records)]
    gold = [name for name in there((*_GOLD, *_GOLD_OR_RESULTS), given.answer) if name not in rows]
    of_queries = (*map(plain_name, rows), *(() if gold else ("output",))) if queries else ()
    results = there((*_RESULTS, *of_queries), given.results)[:1]
    doubtful = [name for name in there(_GOLD_OR_RESPONSES) if name not in results]
    responses = there(_RESPONSES)
    if gold or (not responses and there(_RETRIEVED)):
        responses += doubtful
    else:
        gold += doubtful
    gold += there(("answers",))
    relevant, questions = there(RELEVANT_IDS), questions + ([] if given.question else there(_PARAPHRASES))
    if needs_all and not (questions and (queries or results or gold or responses or relevant)):
        missing = "query" if questions else "question"
        hint = f"Name it: --{missing}-column NAME. {all_names}"
        raise DatasetError(f"found no column with the {missing}", path=path, line=1, hint=hint)
    ids, templates = there(_IDS, given.id), there(_TEMPLATES, given.template)
    return Fields(
        questions, next(iter(queries), None), ids, templates, next(iter(results), None), gold, responses, relevant
    )


def _is_query(value: Any, name: str) -> bool:
    try:
        return query_of(value, name) is not None
    except UnknownShapeError:
        return False


def _is_text(value: Any) -> bool:
    """Return whether a value is an answer in words, as opposed to rows or a truth value."""
    return isinstance(value, str) and value.strip()[:1] not in ("", "{", "[") and value.strip().casefold() not in _TRUTH


def first_value(record: Mapping[str, Any], names: Sequence[str]) -> tuple[str, Any]:
    """Return the first of some columns that is not empty, and its value."""
    filled = ((name, record[name]) for name in names if not is_blank(record.get(name)))
    return next(filled, (names[0] if names else "", None))


def other_values(record: Mapping[str, Any], names: Sequence[str], read: str) -> list[str]:
    """Return the columns that are not empty and whose value differs from that of the column which is read."""
    return [name for name in names if not is_blank(record.get(name)) and record[name] != record[read]]
