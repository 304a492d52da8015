"""Makes the JSON schema of an answer for endpoints, and reads the answer from what a model writes."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.judges.model_interface import Answer

_Schema = dict[str, Any]


@lru_cache(maxsize=64)
def closed_schema(form: type[BaseModel]) -> _Schema:
    """Return the JSON schema of a form without references, in which each object has all its keys and no others.

    It has no titles and no defaults, as models must write all keys. It is cached: do not change it.

    Example:
        >>> class Verdict(BaseModel):
        ...     useful: bool = False
        >>> schema = closed_schema(Verdict)
        >>> schema["required"], schema["additionalProperties"]
        (['useful'], False)
    """
    schema = form.model_json_schema()
    return _closed(schema, schema.get("$defs", {}), ())


def _closed(schema: _Schema, definitions: dict[str, _Schema], inside: tuple[str, ...]) -> _Schema:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        if name in inside:
            raise ValueError(f"an answer's form cannot contain itself, as {name} does")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_closed(definitions[name], definitions, (*inside, name)), **_closed(beside, definitions, inside)}
    closed: _Schema = {}
    for key, value in schema.items():
        if key in {"type", "description", "enum", "minItems", "maxItems"}:
            closed[key] = value
        elif key == "const":
            closed["enum"] = [value]
        elif key == "properties":
            closed[key] = {name: _closed(part, definitions, inside) for name, part in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            closed[key] = _closed(value, definitions, inside)
        elif key in {"anyOf", "oneOf"}:
            closed["anyOf"] = [_closed(part, definitions, inside) for part in value]
    if "properties" in closed or schema.get("type") == "object":
        closed.setdefault("properties", {})
        closed["required"] = list(closed["properties"])
        closed.setdefault("additionalProperties", False)
    return closed


def form_name(form: type[BaseModel]) -> str:
    """Return a form's name as endpoints accept it: up to 64 letters, digits, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", form.__name__)[:64]


def form_in_words(schema: _Schema) -> str:
    """Return the sentence that asks for the form of an answer."""
    return f"Answer with nothing but one JSON object of this JSON schema: {json.dumps(schema, ensure_ascii=False)}"


# --- reading an answer ---

_MOST_PROBLEMS = 5
_LONGEST_PROBLEM = 200


class WrongFormError(ValueError):
    """An answer does not have the requested form; the message says what is wrong.

    ``breaks_schema``: whether it violates the schema, which shows that the endpoint does not enforce it. Otherwise it
    only violates a rule that the schema cannot express.
    """

    def __init__(self, problem: ValidationError) -> None:
        errors = problem.errors(include_url=False, include_context=False, include_input=False)
        texts = [": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in errors]
        super().__init__("; ".join(text[:_LONGEST_PROBLEM] for text in texts[:_MOST_PROBLEMS]))
        self.breaks_schema = any(error["type"] != "value_error" for error in errors)


def answer_in(text: str, form: type[Answer]) -> Answer:
    """Return the answer in what a model wrote: the last complete JSON object that has the form.

    Thoughts (``<think>…</think>``, harmony's analysis channel) are ignored. The object is also found in prose, in
    Markdown fences, inside a list or another object, and in a JSON string.

    Raises:
        WrongFormError: The text has no such object.

    Example:
        >>> class Verdict(BaseModel):
        ...     verdict: int
        >>> answer_in('<think>{"verdict": 0}?</think>Here it is: {"verdict": 1}', Verdict)
        Verdict(verdict=1)
    """
    try:
        return form.model_validate_json(text)
    except ValidationError as problem:
        nearest = problem
    try:
        candidates = list(_objects_in(_values_in(_without_thoughts(text))))
    except RecursionError:
        candidates = []
    for candidate in candidates:
        try:
            return form.model_validate_json(json.dumps(candidate))
        except ValidationError as problem:
            # The error of the last object with a key of the form is the most helpful.
            if nearest.errors()[0]["type"] == "json_invalid" and candidate.keys() & form.model_fields.keys():
                nearest = problem
    raise WrongFormError(nearest) from None


_CHANNEL = "<|channel|>"
_THOUGHTS_END = re.compile(r"</think(?:ing)?>|\[/THINK\]", re.IGNORECASE)
_THOUGHTS_BEGIN = re.compile(r"<think(?:ing)?>|\[THINK\]", re.IGNORECASE)
_DECODER = json.JSONDecoder(strict=False)  # accepts line breaks inside strings
_STARTS = re.compile(r'[{\[]|(?<!\\)"')


def _without_thoughts(text: str) -> str:
    """Return what a model wrote after its thoughts; empty if they never end."""
    if _CHANNEL in text:
        channels = [channel for channel in text.split(_CHANNEL)[1:] if not channel.lstrip().startswith("analysis")]
        text = channels[-1].partition("<|message|>")[2] if channels else ""
    parts = [_THOUGHTS_BEGIN.split(part)[0] for part in _THOUGHTS_END.split(text)]
    return next((part for part in reversed(parts) if part.strip()), "")


def _values_in(text: str) -> list[Any]:
    """Return the outermost complete JSON objects and lists in a text, and JSON strings that contain some."""
    found: list[Any] = []
    position = 0
    while start := _STARTS.search(text, position):
        position = start.end()
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except RecursionError:
            break  # no answer is nested so deeply
        except ValueError:
            continue
        # A quotation mark in prose does not begin a JSON string.
        if not isinstance(value, str) or ("{" in value and any(isinstance(each, dict) for each in _values_in(value))):
            found.append(value)
            position = end
    return found


def _objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield an object and the objects inside it: outer before inner, and later before earlier."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    elif isinstance(value, str) and "{" in value:
        value = _values_in(value)
    for item in reversed(value) if isinstance(value, list) else ():
        yield from _objects_in(item)


_TEXT_BLOCKS = frozenset({None, "text", "output_text"})


def content_text(content: Any) -> str:
    """Return the text of a message's content, which may be a list of blocks; thoughts and images are left out.

    Example:
        >>> content_text([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Oslo"}, " it is."])
        'Oslo it is.'
    """
    blocks = content if isinstance(content, list) else [content] if isinstance(content, str) else []
    texts = (
        block.get("text") if isinstance(block, dict) and block.get("type") in _TEXT_BLOCKS else block
        for block in blocks
    )
    return "".join(text for text in texts if isinstance(text, str))


def message_text(message: Mapping[str, Any], form: type[BaseModel]) -> str:
    """Return the text of a chat message that has the answer, wherever the model or server put it.

    These parts are tried in order: the parsed object, the arguments of each tool call, those of the older function
    call, the content. If none can be read, the first one with a text is returned; if none has a text, the reasoning.

    Example:
        >>> class Verdict(BaseModel):
        ...     verdict: int
        >>> message_text({"content": "Done.", "function_call": {"arguments": {"verdict": 1}}}, Verdict)
        '{"verdict": 1}'
    """
    calls = message.get("tool_calls")
    called = [*(calls if isinstance(calls, list) else []), message.get("function_call")]
    functions = [call.get("function", call) for call in called if isinstance(call, Mapping)]
    parts = [message.get("parsed"), *(each.get("arguments") for each in functions if isinstance(each, Mapping))]
    texts = _texts_of([*parts, message.get("content")])
    texts = texts or _texts_of([message.get("reasoning_content"), message.get("reasoning")])
    for text in texts:
        try:
            answer_in(text, form)
        except WrongFormError:
            continue
        return text
    return texts[0] if texts else ""


def _texts_of(parts: Iterable[Any]) -> list[str]:
    texts = (json.dumps(part) if isinstance(part, dict) else content_text(part) for part in parts)
    return [text for text in texts if text.strip()]
