"""Reading reference datasets and recorded responses from YAML, JSON and JSON Lines."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from graphrag_eval_lc.errors import DatasetError, GraphRAGEvalError, ResponsesError
from graphrag_eval_lc.reading import Source, TextFile, parse_json, parse_jsonl, read_text
from graphrag_eval_lc.records import Question, Response, ResponseModel, Template, TemplateModel
from graphrag_eval_lc.safe_yaml import line_of, parse_yaml

_TEMPLATES = TypeAdapter(list[TemplateModel])
_RESPONSES = TypeAdapter(list[ResponseModel])


def load_dataset(source: Source) -> list[Template]:
    r"""Read a reference dataset: a list of templates, each with its questions.

    Args:
        source: A path (.yaml, .yml, .json, .jsonl with one template a line), or a file open for reading.

    Returns:
        The templates in the file's order, every key kept. A template may have no questions.

    Raises:
        DatasetError: The file cannot be read or breaks the format; with file, line, question id and key.

    Example:
        >>> import io
        >>> load_dataset(io.StringIO("- template_id: t\n  questions: [{id: q1, question_text: Why?}]"))
        [{'template_id': 't', 'questions': [{'id': 'q1', 'question_text': 'Why?'}]}]
    """
    what = "reference dataset"
    file = read_text(source, DatasetError, what=what)
    lines: list[int] | None = None
    if file.format == "jsonl":
        rows = parse_jsonl(file, DatasetError, what=what)
        values, lines = [row.value for row in rows], [row.line for row in rows]
    else:
        values = _parsed(file, DatasetError, what)
    check_dataset(values, file=file, lines=lines)
    return _with_text_ids(values)


def load_responses(source: Source) -> dict[str, Response]:
    """Read recorded responses.

    Args:
        source: A path (.jsonl with one response a line, .json, .yaml: a list of responses, or a mapping of
            question ids to responses), or a file open for reading.

    Returns:
        The responses by question id. Of several lines of one question the last one wins, as in a run's journal.

    Raises:
        ResponsesError: The file cannot be read or breaks the format; with file, line, question id and key.
    """
    what = "file of responses"
    file = read_text(source, ResponsesError, what=what)
    lines: list[int] | None = None
    if file.format == "jsonl":
        rows = parse_jsonl(file, ResponsesError, what=what)
        values, lines = [row.value for row in rows], [row.line for row in rows]
    else:
        values = _parsed(file, ResponsesError, what)
        if isinstance(values, dict):
            values = _listed(values)
    _check(_RESPONSES, values, ResponsesError, file, lines)
    return {str(response["question_id"]): response for response in values}


def _parsed(file: TextFile, error: type[GraphRAGEvalError], what: str) -> Any:
    if file.format == "json":
        return parse_json(file.text, error, what=what, path=file.path)
    return parse_yaml(file, error, what=what)


def _listed(by_id: dict[Any, Any]) -> list[Any]:
    """Give the responses of a mapping, each with the question id that is its key."""
    if "question_id" in by_id:
        return [by_id]
    return [{"question_id": str(key), **value} if isinstance(value, dict) else value for key, value in by_id.items()]


def check_dataset(values: Any, *, file: TextFile | None = None, lines: Sequence[int] | None = None) -> None:
    """Check that ``values`` is a list of templates as graphrag-eval's format has them.

    Raises:
        DatasetError: With the first thing that is wrong, and how many more there are.
    """
    _check(_TEMPLATES, values, DatasetError, file, lines)


def questions_of(dataset: Iterable[Template]) -> Iterable[tuple[Template, Question]]:
    """Give each question of a dataset with its template, in the dataset's order."""
    for template in dataset:
        for question in template.get("questions") or ():
            yield template, question


def _with_text_ids(templates: list[dict[str, Any]]) -> list[Template]:
    for template in templates:
        template["template_id"] = str(template["template_id"])
        for question in template.get("questions") or ():
            question["id"] = str(question["id"])
    return cast("list[Template]", templates)


def _check(
    records: TypeAdapter[Any],
    values: Any,
    error: type[GraphRAGEvalError],
    file: TextFile | None,
    lines: Sequence[int] | None,
) -> None:
    try:
        records.validate_python(values)
    except ValidationError as problem:
        raise _format_error(problem, values, error, file, lines) from None


def _format_error(
    problem: ValidationError,
    values: Any,
    error: type[GraphRAGEvalError],
    file: TextFile | None,
    lines: Sequence[int] | None,
) -> GraphRAGEvalError:
    first = problem.errors()[0]
    location = first["loc"]
    more = problem.error_count() - 1
    what, mend = _described(first["type"], location, first["msg"], first["input"])
    if more:
        mend += f" ({more} more {'mistake' if more == 1 else 'mistakes'} of the format)"
    line = None
    if lines and location and isinstance(location[0], int):
        line = lines[location[0]]
    elif file:
        line = line_of(file, location)
    return error(
        what,
        path=file.path if file else None,
        line=line,
        question_id=_question_id_at(values, location),
        key=_key_text(location) or None,
        mend=mend,
    )


def _described(kind: str, location: tuple[int | str, ...], message: str, value: Any) -> tuple[str, str]:
    """Give what is wrong and how to mend it, in the format's words instead of pydantic's."""
    if not location:
        return (
            f"a list is needed at the top, not {type(value).__name__}",
            "Begin each entry with a dash (YAML), or put the entries into [ ] (JSON).",
        )
    name = location[-1]
    if kind == "missing":
        return f"the key {name} is missing", f"Add {name}."
    if kind in {"model_type", "dict_type"}:
        return f"a mapping of keys to values is needed here, not {type(value).__name__}", "Check the indentation."
    if kind == "list_type":
        mend = "Groups of reference steps are a list of lists." if "reference_steps" in location else "Make it a list."
        return f"a list is needed here, not {type(value).__name__}", mend
    if kind == "string_type":
        return f"{value!r:.80} is not a text", "Put it in quotes."
    return f"{value!r:.80} is not allowed here", f"{message}."


def _key_text(location: tuple[int | str, ...]) -> str:
    """Write a location as a path: ``[0].questions[2].id``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")


def _question_id_at(values: Any, location: tuple[int | str, ...]) -> str | None:
    """Give the id of the question in which a location lies."""
    found: str | None = None
    for part in location:
        try:
            values = values[part]
        except (KeyError, IndexError, TypeError):
            break
        if isinstance(values, dict):
            identifier = values.get("question_id", values.get("id") if "question_text" in values else None)
            found = str(identifier) if identifier is not None else found
    return found
