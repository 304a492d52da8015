"""The base of all chat models of judges: how the form of the answer is asked for, and how answers are read."""

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ValidationError

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.asked_model import AskedModel
from graphrag_eval_lc.judges.model_calls import RequestSize
from graphrag_eval_lc.judges.model_interface import Answer, Asked, CutAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.retrying import is_too_long

Outcome = TypeVar("Outcome")
Messages = list[dict[str, str]]


class StructuredJudgeModel(AskedModel, ABC):
    """A chat model of judges."""

    @property
    @abstractmethod
    def _takes_n(self) -> bool:
        """Whether one request may give several answers."""

    @abstractmethod
    async def _complete(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        """Return the texts of one request's answers, ``n`` or fewer, and add its usages to ``paid``."""

    async def aask(self, system: str, user: str, schema: type[Answer], *, n: int = 1) -> Asked[Answer]:
        """Ask for ``n`` answers of the form ``schema``.

        An answer that breaks the form is asked for once more, with the complaint. Failed requests add nothing to the
        cost, as nobody knows theirs.

        Raises:
            UnusableAnswerError: There is no usable answer; it has the cost.
        """
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)], "n": n}
        digest = self._digest(asked)
        known = self._known(digest, schema, n)
        if known is not None:
            return known
        return await self._shared(digest, lambda: self._asked(digest, system, user, schema, n))

    def known(self, system: str, user: str, schema: type[Answer], *, n: int = 1) -> Asked[Answer] | None:
        """Return the answers that the cache has to what ``aask`` would ask; None where it has none."""
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)], "n": n}
        return self._known(self._digest(asked), schema, n)

    async def _asked(self, digest: str, system: str, user: str, schema: type[Answer], n: int) -> Asked[Answer]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        if self._plan is not None:
            return self._planned(self._plan, digest, messages, schema, n)
        paid: list[Usage] = []
        answers = await self._outcome(self._answers(messages, schema, n, paid), paid)
        usages, cost = [asdict(usage) for usage in paid], self._cost(paid)
        self._keep(digest, {"answers": [text for text, _ in answers], "usages": usages}, cost)
        return Asked(tuple(value for _, value in answers), cost, tuple(paid))

    def _planned(self, plan: RequestPlan, digest: str, messages: Messages, form: type[Answer], n: int) -> Asked[Answer]:
        """Count the requests for answers, and return examples."""
        if not plan.is_known(digest):
            sizes = self._sizes(messages, form, n)
            plan.add(self._model, self._provider, sizes, n // len(sizes))
        try:
            example = form.model_validate(example_of(closed_schema(form)))
        except ValidationError:
            plan.notes.add(f"What {self.name} is asked after an answer of the form {form.__name__} is not counted.")
            raise JudgeError("only planned") from None
        return Asked((example,) * n, 0.0, is_planned=True)

    @abstractmethod
    def _sizes(self, messages: Messages, form: type[BaseModel], n: int) -> list[RequestSize]:
        """Return the most tokens of each request for ``n`` answers, where the endpoint refuses none."""

    def _known(self, digest: str, schema: type[Answer], n: int) -> Asked[Answer] | None:
        record = self._record(digest)
        if record is None:
            return None
        try:
            values = tuple(answer_in(text, schema) for text in record["answers"])
            usages = tuple(Usage(**usage) for usage in record["usages"])
        except (WrongFormError, KeyError, TypeError):  # of another version, or changed by hand
            return None
        if len(values) != n:
            return None
        return Asked(values, self._known_cost(usages, digest), usages, is_cached=True)

    async def _answers(
        self, messages: Messages, form: type[Answer], n: int, paid: list[Usage]
    ) -> list[tuple[str, Answer]]:
        texts = await self._texts(messages, form, n, paid)
        return await _all_of(self._usable(messages, text, form, paid) for text in texts)

    async def _texts(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        texts = (await self._complete(messages, form, n, paid))[:n] if n == 1 or self._takes_n else []
        missing = n - len(texts)
        singles = await _all_of(self._complete(messages, form, 1, paid) for _ in range(missing))
        return [*texts, *(single[0] for single in singles)]

    async def _usable(self, messages: Messages, text: str, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Return an answer as text and value; ask once more where it breaks the form."""
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = (await self._complete([*messages, *again], form, 1, paid))[0]
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            raise JudgeError(f"{self.name} gave no answer of the form that was asked for, twice: {problem}") from None


async def _all_of(coroutines: Iterable[Coroutine[Any, Any, Outcome]]) -> list[Outcome]:
    """Return all outcomes, or raise the first error once all have ended: each request is paid for."""
    outcomes = await asyncio.gather(*coroutines, return_exceptions=True)
    good = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return good


_FIRST_BOUND = 4096  # tokens, which the oldest models in use can give
_FIRST_REASONING_BOUND = 16_384  # thoughts count too
_GROWTH = 4  # once, as what does not end then may never end
_LEAST_BOUND = 256
_REASONING = re.compile(r"(?:.*[/:])?(?:o[1-9]\b|gpt-[5-9]|deepseek-r|.*(?:reason|think))", re.IGNORECASE)


class AnswerBound:
    """The longest answer that a model is asked for, so that a request's cost has a bound.

    Where the config leaves it open, it begins at 4,096 tokens (16,384 for models that think), and is four times that
    once an answer was cut off.

    Args:
        given: Tokens, by the user's word; None: open.
        model: The model's name.

    Attributes:
        tokens: Where a request begins now.
        is_open: Whether the config leaves it open.
        largest: The most that is asked for.
        longest_cut: The most at which an answer was cut off.
    """

    def __init__(self, given: int | None, model: str) -> None:
        first = _FIRST_REASONING_BOUND if _REASONING.match(model) else _FIRST_BOUND
        self.tokens = first if given is None else given
        self.is_open = given is None
        self.largest = _GROWTH * first
        self.longest_cut = 0


class RequestBound:
    """The longest answer that one request asks for: it grows after an answer that was cut off, and shrinks to fit.

    How much room a prompt leaves for its answer is its own matter: a long one does not cut off the answers to others.

    Args:
        shared: The bound of the model.

    Attributes:
        tokens: The bound now.
        no_room: The last refusal as too long; None while there was none. An answer that is cut off in the room that is
            left is no answer to texts that fit.

    Example:
        >>> bound = RequestBound(AnswerBound(None, "gpt-4o-mini"))
        >>> bound.tokens, bound.has_grown(), bound.tokens, bound.has_shrunk(ValueError("too long")), bound.tokens
        (4096, True, 16384, True, 8192)
    """

    def __init__(self, shared: AnswerBound) -> None:
        self.tokens = shared.tokens
        self.no_room: Exception | None = None
        self._shared = shared
        self._cut = 0  # tokens at which its answer was cut off
        self._room = shared.largest if shared.is_open else shared.tokens

    def has_grown(self) -> bool:
        """Return whether a longer answer can be asked for than the one that was cut off."""
        self._cut = self.tokens
        self._shared.longest_cut = max(self._shared.longest_cut, self._cut)
        if not self._shared.is_open:
            return False
        self.tokens = max(self.tokens, min(max(_GROWTH * self._cut, self._shared.tokens), self._room))
        self._shared.tokens = max(self._shared.tokens, self.tokens)
        return self.tokens > self._cut

    def has_shrunk(self, refusal: Exception) -> bool:
        """Return whether a shorter answer can be asked for than the one for which there was no room."""
        self.no_room = refusal
        shorter = max(self.tokens // 2, _LEAST_BOUND)
        if not self._shared.is_open or not self._cut < shorter < self.tokens:
            return False
        self.tokens = self._room = shorter
        return True

    def fits(self) -> None:
        """Note that the request was answered: the next ones begin with as much, as the model's room may be small."""
        if self._room < self._shared.tokens and self.tokens > self._shared.longest_cut:
            self._shared.tokens = self.tokens


Mode = Literal["json_schema", "tools", "json_object"]

_NEXT_MODE: dict[Mode, Mode] = {"json_schema": "tools", "tools": "json_object"}
_REFUSED_MODE = {
    "json_schema": re.compile(r"response.?format|json.?schema|structured.?output", re.IGNORECASE),
    "tools": re.compile(r"tool|function", re.IGNORECASE),
}
_ANSWERS_ROOM = re.compile(r"completion|max_tokens|max_output_tokens|max_new_tokens", re.IGNORECASE)
_REFUSED_N = re.compile(r"(?<![\w\\])n(?!\w)")


@dataclass(frozen=True, slots=True)
class EndpointAbilities:
    """What an endpoint takes, as far as is known.

    Attributes:
        mode: How it is asked for the form: by a strict JSON schema, a function to call, or the prompt.
        takes_n: Whether one request may ask for several answers.
        takes_temperature: Whether a request may set the temperature.
        tokens_key: The parameter that bounds the answer's tokens.
    """

    mode: Mode = "json_schema"
    takes_n: bool = True
    takes_temperature: bool = True
    tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"

    def learned_from(self, error: BaseException, request: Mapping[str, Any]) -> Self | None:
        """Return what is known after an endpoint refused a request; None where the error tells nothing new."""
        if not refuses_part(error):
            return None
        text = f"{error} ({getattr(error, 'param', None)})"
        if "max_tokens" in request and "max_completion_tokens" in text:
            return replace(self, tokens_key="max_completion_tokens")
        if "temperature" in request and "temperature" in text:
            return replace(self, takes_temperature=False)
        if self.mode in _NEXT_MODE and _REFUSED_MODE[self.mode].search(text):
            return replace(self, mode=_NEXT_MODE[self.mode])
        if request.get("n", 1) > 1 and _REFUSED_N.search(text):
            return replace(self, takes_n=False)
        return None


def refuses_part(error: BaseException) -> bool:
    """Return whether an endpoint may have refused a part of the request, which could be left out.

    Not where a text was too long, whatever else the message names.
    """
    return getattr(error, "status_code", None) in {400, 422} and not is_too_long(error)


def leaves_no_room(error: BaseException) -> bool:
    """Return whether an endpoint refused a request as too long with the room for its answer."""
    return is_too_long(error) and _ANSWERS_ROOM.search(str(error)) is not None


def form_parameters(mode: Mode, name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a chat request that asks for the form of the answer."""
    if mode == "json_schema":
        form = {"name": name, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    if mode == "tools":
        function = {"name": name, "description": "Give the answer.", "parameters": schema}
        return {
            "tools": [{"type": "function", "function": function}],
            "tool_choice": {"type": "function", "function": {"name": name}},
        }
    return {"response_format": {"type": "json_object"}}


def form_in_words(schema: dict[str, Any]) -> str:
    """Return the sentence that asks for the form of an answer.

    Example:
        >>> form_in_words({"type": "object"})
        'Answer with nothing but one JSON object of this JSON schema: {"type": "object"}'
    """
    return f"Answer with nothing but one JSON object of this JSON schema: {json.dumps(schema, ensure_ascii=False)}"


def messages_with_form(messages: list[dict[str, str]], schema: dict[str, Any]) -> list[dict[str, str]]:
    """Return messages that ask for the form in words, at the end of the system's and of the user's.

    The user's may ask for another form, and the last word weighs most.
    """
    words = form_in_words(schema)
    told = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
    return [*told, *messages[2:]]


_Schema = dict[str, Any]


@lru_cache(maxsize=64)
def closed_schema(form: type[BaseModel]) -> _Schema:
    """Return the JSON schema of a form without references, in which each object has all its keys and no others.

    It has no titles and no defaults, as models must give all keys. It is cached: do not change it.

    Raises:
        ValueError: The form contains itself.

    Example:
        >>> class Verdict(BaseModel):
        ...     useful: bool = False
        >>> schema = closed_schema(Verdict)
        >>> schema["required"], schema["additionalProperties"]
        (['useful'], False)
    """
    schema = form.model_json_schema()
    return _closed(schema, schema.get("$defs", {}), ())


def form_name(form: type[BaseModel]) -> str:
    """Return a form's name as endpoints take it: up to 64 letters, digits, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", form.__name__)[:64]


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


_FENCED = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_MOST_PROBLEMS = 5
_LONGEST_PART = 200


class WrongFormError(Exception):
    """An answer does not have the form asked for; the text says what is wrong."""


def answer_in(text: str, form: type[Answer]) -> Answer:
    """Return the answer in a text of JSON, which may stand in a Markdown fence.

    Raises:
        WrongFormError: The text has none of this form.

    Example:
        >>> class Verdict(BaseModel):
        ...     verdict: int
        >>> answer_in('{"verdict": 1}', Verdict)
        Verdict(verdict=1)
    """
    fenced = _FENCED.fullmatch(text)
    try:
        return form.model_validate_json(fenced[1] if fenced else text)
    except ValidationError as problem:
        raise WrongFormError(_problems(problem)) from None


def _problems(problem: ValidationError) -> str:
    errors = problem.errors(include_url=False, include_context=False, include_input=False)
    texts = []
    for error in errors[:_MOST_PROBLEMS]:
        place = ".".join(map(str, error["loc"]))
        texts.append(f"{place}: {error['msg']}"[:_LONGEST_PART] if place else error["msg"][:_LONGEST_PART])
    return "; ".join(texts)


_LONGEST_REFUSAL = 300
# The providers' finish reasons, in lower case.
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTER = frozenset({"content_filter", "content_filtered", "safety", "guardrail_intervened", "prohibited_content"})


def refused(name: str, text: str) -> JudgeError:
    """Return the error for a model that refused to answer."""
    return JudgeError(f"{name} refused to answer: {masked_text(text)[:_LONGEST_REFUSAL]}")


def check_finish_reason(name: str, reason: str | None) -> None:
    """Check that an answer of the model ``name`` was not cut off.

    Raises:
        CutAnswerError: It reached its most tokens.
        JudgeError: A filter stopped it.
    """
    word = reason.lower() if isinstance(reason, str) else ""
    if word in _LENGTH:
        raise CutAnswerError(
            f"{name} did not come to the end of its answer within the tokens it has ({reason})",
            hint="Set a higher max_tokens under llm.generation.",
        )
    if word in _FILTER:
        raise JudgeError(f"the answer of {name} was stopped by the provider's content filter ({reason})")
