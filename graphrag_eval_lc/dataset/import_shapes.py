"""The shapes in which published datasets have a question, a query or an answer; a JSON object is none of them."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from graphrag_eval_lc.dataset.query_language import Language, language_in_name, language_of
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.texts import shortened

DEFAULT_LANGUAGE: Final = "en"
# Keys that hold the text of an object, the telling ones first. Names of keys are compared without case and signs.
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
# A text of a list, and the blanks between it and the next one, as in ['In NO1.' 'Two.'].
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
    """Say in an UnknownShapeError what was read, and from which column."""
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
    """Return the list or object of a text that is JSON or Python's form of it; anything else as it is.

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
    """Return the value of a Python literal, also of NumPy's without commas, whose texts Python would join."""
    if len(text) > _LONGEST_LITERAL:
        return None
    return ast.literal_eval(_LITERAL.sub(lambda found: found[1] + ", " * bool(found[2]), text))


def is_blank(value: Any) -> bool:
    """Return whether a cell has nothing in it."""
    if isinstance(value, float):
        return value != value  # pandas has NaN in empty cells
    return value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, _ALL) and not value)


def question_texts(value: Any) -> list[tuple[str | None, str]]:
    """Return the texts of a question with their languages, as far as these are named."""
    said = _messages(value, ("user", "human"))
    words = value if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value) else ()
    if len(words) > 1 or (said is not None and len(said) != 1):
        raise UnknownShapeError(value)
    found = _texts(value if said is None else said, _OF_QUESTIONS)
    return [(language, " ".join(text.split())) for language, text in found]


def in_language(texts: Sequence[tuple[str | None, str]], language: str) -> str | None:
    """Return the first text in a language, else in a variety of it, such as zh-cn for zh."""
    wanted = plain_name(language)
    named = [(plain_name(name or DEFAULT_LANGUAGE), text) for name, text in texts]
    exact = (text for each, text in named if each == wanted)
    varieties = (text for each, text in named if each.split("_")[0] == wanted)
    return next(exact, None) or next(varieties, None)


def query_of(value: Any, name: str, *, depth: int = 0) -> Query | None:
    """Return a query; None if there is none, or it is out of the scope of the dataset's graph.

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
    """Return whether a value says that no query answers the question, as QALD has it."""
    texts = value.values() if isinstance(value, Mapping) else [value]
    return any(isinstance(text, str) and " ".join(text.split()).upper() == _OUT_OF_SCOPE for text in texts)


def answer_text(value: Any, languages: Sequence[str] = (DEFAULT_LANGUAGE,)) -> str | None:
    """Return an answer in words, several joined with ``; ``; None if there is none. Labels are in the first language.

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
    """Yield the texts in a value, with their languages; of an object by languages only that in the first one wanted."""
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
    """Return the first part of an object with one of the names that has something in it; None if none has."""
    parts = {"".join(filter(str.isalnum, str(key))).casefold(): part for key, part in value.items()}
    known = [parts[name] for name in names if name in parts]
    if not known:
        raise UnknownShapeError(value)
    return next((part for part in known if not all(map(is_blank, part if isinstance(part, list) else [part]))), None)


def _is_by_language(value: Mapping[str, Any]) -> bool:
    """Return whether an object has a text, or texts, for each of several languages."""
    is_named = all(isinstance(key, str) and _LANGUAGE_CODE.fullmatch(key) for key in value)
    return is_named and (DEFAULT_LANGUAGE in value or len(value) > 1)


def _messages(value: Any, roles: tuple[str, ...]) -> list[Any] | None:
    """Return what those of some roles say in a conversation; None if a value is none."""
    parts = opened(value)
    if isinstance(parts, list) and parts and all(isinstance(each, Mapping) and "content" in each for each in parts):
        return [each["content"] for each in parts if each.get("role", each.get("type")) in roles]
    return None
