"""Chat models and embedding models of judges behind OpenAI-compatible endpoints."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Literal, TypeVar, Unpack

from openai import APIConnectionError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient
from pydantic import BaseModel

from graphrag_eval_lc.config import EmbeddingConfig, GenerationConfig
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.event_loop.bounded_http import RefusedResponseError, bounded_http
from graphrag_eval_lc.judges.answer_forms import closed_schema, form_name
from graphrag_eval_lc.judges.asked_model import (
    LITELLM_OPTIONS,
    AskingOptions,
    ModelSettings,
    effective_base_url,
    extra_settings,
    given_api_key,
    model_name_of,
    usage_in,
)
from graphrag_eval_lc.judges.chat_model import Messages, StructuredJudgeModel, check_finish_reason, refused
from graphrag_eval_lc.judges.embedding_model import CachedEmbeddingModel, Vectors, check_vectors, unpacked
from graphrag_eval_lc.judges.endpoint import (
    AnswerBound,
    EndpointAbilities,
    RequestBound,
    form_parameters,
    leaves_no_room,
    messages_with_form,
)
from graphrag_eval_lc.judges.model_calls import RequestSize, most_answer_tokens, size_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, CutAnswerError, Usage
from graphrag_eval_lc.judges.text_parts import content_text
from graphrag_eval_lc.masking import masked_text, remember_secret


class OpenAIJudgeModel(StructuredJudgeModel):
    """A chat model behind an OpenAI-compatible endpoint.

    What the endpoint refuses (a JSON schema, several answers at once, a temperature) is left out from then on.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(self, generation: GenerationConfig, **options: Unpack[AskingOptions]) -> None:
        bounds = {"temperature": generation.temperature, "max_tokens": generation.max_tokens}
        settings = {**answer_settings(generation), **bounds}
        super().__init__(
            model_name_of(generation), generation.model, generation.provider, settings, has_own_clients=True, **options
        )
        self._temperature = generation.temperature
        self._bound = AnswerBound(generation.max_tokens, generation.model)
        self._generation = generation
        self._clients = openai_clients(generation)
        self._abilities = EndpointAbilities()

    @property
    def _takes_n(self) -> bool:
        return self._abilities.takes_n

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._clients.aclose()

    async def _complete(
        self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage], temperature: float | None
    ) -> list[str]:
        bound = RequestBound(self._bound)
        while True:
            abilities = self._abilities
            request = self._request(abilities, messages, form, n, bound.tokens, temperature)
            try:
                texts = await self._calls.outcome_of(
                    partial(self._answered, request), paid, partial(self._size, request)
                )
            except CutAnswerError as cut:
                if not bound.has_grown():
                    raise (bound.no_room or cut) from None
                continue
            except (APIStatusError, BrokenAnswerError) as refusal:
                check_finish_reason(self.name, getattr(refusal, "code", None))
                if leaves_no_room(refusal) and bound.has_shrunk(refusal):
                    continue
                learned = abilities.learned_from(refusal, request)
                if learned is None:
                    raise
                if self._abilities == abilities:  # else another request has learned meanwhile
                    self._abilities = learned
                continue
            bound.fits()
            if len(texts) < request.get("n", 1):
                self._abilities = replace(self._abilities, takes_n=False)
            return texts

    def _sizes(self, messages: Messages, form: type[BaseModel], n: int) -> list[RequestSize]:
        bound, takes_n = self._bound.tokens, self._abilities.takes_n
        asked, times = (n, 1) if takes_n else (1, n)
        return [self._size(self._request(self._abilities, messages, form, asked, bound))] * times

    def _size(self, request: dict[str, Any]) -> RequestSize:
        body = {**request, **request_settings(self._generation)["extra_body"]}
        return size_of(body, most_answer_tokens(body))

    def _request(
        self,
        abilities: EndpointAbilities,
        messages: Messages,
        form: type[BaseModel],
        n: int,
        bound: int,
        temperature: float | None = None,
    ) -> dict[str, Any]:
        schema = closed_schema(form)
        if self._tells_form or abilities.mode in {"json_object", "text"}:
            messages = messages_with_form(messages, schema)
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        request |= form_parameters(abilities.mode, form_name(form), schema)
        if n > 1 and abilities.takes_n:
            request["n"] = n
        if self._temperature is not None and abilities.takes_temperature:
            request["temperature"] = max(self._temperature, temperature or 0.0)
        return {**request, abilities.tokens_key: bound}

    async def _answered(self, request: dict[str, Any], paid: list[Usage]) -> list[str]:
        with (await self._clients.get()).one() as client:
            completion = await posted(client, "/chat/completions", request, self._generation)
        if completion.get("choices") or completion.get("usage"):
            paid.append(usage_in(completion))
        return answer_texts(completion, self.name)


class OpenAIEmbeddingModel(CachedEmbeddingModel):
    """An embedding model behind an OpenAI-compatible endpoint; vectors come as base64 where it can.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(self, embedding: EmbeddingConfig, **options: Unpack[AskingOptions]) -> None:
        settings = answer_settings(embedding)
        super().__init__(
            model_name_of(embedding), embedding.model, embedding.provider, settings, has_own_clients=True, **options
        )
        self._embedding = embedding
        self._clients = openai_clients(embedding)
        self._encoding: Literal["base64", "float"] = "base64"

    async def aclose(self) -> None:
        """Close its connections; the end of the loop does so too."""
        await self._clients.aclose()

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        size = partial(self._size, texts)
        try:
            return await self._calls.outcome_of(partial(self._answered, texts), paid, size)
        except APIStatusError as refusal:
            if refusal.status_code not in {400, 422} or self._encoding == "float" or "encoding" not in str(refusal):
                raise
        self._encoding = "float"
        return await self._calls.outcome_of(partial(self._answered, texts), paid, size)

    async def _answered(self, texts: list[str], paid: list[Usage]) -> Vectors:
        request = {"model": self._model, "input": texts, "encoding_format": self._encoding}
        with (await self._clients.get()).one() as client:
            body = await posted(client, "/embeddings", request, self._embedding)
        if body.get("data") or body.get("usage"):
            paid.append(replace(usage_in(body), output_tokens=0))
        vectors = _vectors_in(body)
        check_vectors(vectors, len(texts))
        return vectors


def _vectors_in(body: Mapping[str, Any]) -> Vectors:
    """Return the vectors of a response in the order of their indices."""
    try:
        entries = sorted(enumerate(body["data"]), key=lambda entry: entry[1].get("index", entry[0]))
        return tuple(_vector(entry["embedding"]) for _, entry in entries)
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise BrokenAnswerError(f"the endpoint gave embeddings that cannot be read: {problem}") from None


def _vector(embedding: Any) -> tuple[float, ...]:
    return unpacked(embedding) if isinstance(embedding, str) else tuple(float(number) for number in embedding)


def answer_texts(completion: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts of a completion's answers: their content, or the arguments of the function they call.

    Raises:
        BrokenAnswerError: It has no answer.
        JudgeError: An answer was refused or cut off.
    """
    choices = completion.get("choices")
    if not isinstance(choices, list) or not choices:
        raise BrokenAnswerError("the endpoint answered without choices")
    return [_answer_text(choice, name) for choice in choices]


def _answer_text(choice: Any, name: str) -> str:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BrokenAnswerError("the endpoint answered with a choice without a message")
    if message.get("refusal"):
        raise refused(name, str(message["refusal"]))
    if choice.get("error"):
        raise _error_with_200(choice["error"])
    check_finish_reason(name, choice.get("finish_reason"))
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return _arguments_text(calls[0])
    texts = (content_text(message.get(key)) for key in ("content", "reasoning_content", "reasoning"))
    return next((text for text in texts if text.strip()), "")


def _arguments_text(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


Thing = TypeVar("Thing")


class LoopBound(Generic[Thing]):
    """A thing made at its first use in an event loop, and closed with that loop."""

    def __init__(self, make: Callable[[], Thing], close: Callable[[Thing], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: AsyncGenerator[Thing, None] | None = None
        self._thing: Thing | None = None

    async def get(self) -> Thing:
        """Return the thing of the running loop."""
        loop = asyncio.get_running_loop()
        if self._thing is None or loop is not self._loop:
            self._life = self._living()
            self._thing, self._loop = await anext(self._life), loop
        return self._thing

    async def aclose(self) -> None:
        """Close it now; the next use makes another one."""
        life, self._life, self._thing = self._life, None, None
        if life is not None and self._loop is asyncio.get_running_loop():
            await life.aclose()

    async def _living(self) -> AsyncGenerator[Thing, None]:
        # A loop that closes ends its generators first.
        thing = self._make()
        try:
            yield thing
        finally:
            await self._close(thing)


_REQUESTS_A_CLIENT = 8


class Clients:
    """Clients of one endpoint in one event loop, each for few requests at once.

    A client looks at all of its connections before and after each request: with 64 of them that takes longer than all
    else. So another client is made where each has as many requests as it may.

    Args:
        make: Makes a client.
    """

    def __init__(self, make: Callable[[], AsyncOpenAI]) -> None:
        self._make = make
        self._clients: list[AsyncOpenAI] = []
        self._in_flight: list[int] = []

    @contextmanager
    def one(self) -> Iterator[AsyncOpenAI]:
        """Yield the client for one request."""
        number = next((each for each, count in enumerate(self._in_flight) if count < _REQUESTS_A_CLIENT), None)
        if number is None:
            number = len(self._clients)
            self._clients.append(self._make())
            self._in_flight.append(0)
        self._in_flight[number] += 1
        try:
            yield self._clients[number]
        finally:
            self._in_flight[number] -= 1

    async def aclose(self) -> None:
        """Close their connections."""
        for client in self._clients:
            await client.close()


_CLIENT_OPTIONS = frozenset({"organization", "project", "default_headers", "default_query"})
_REQUEST_OPTIONS = frozenset({"extra_headers", "extra_query", "extra_body"})
# Options of other clients, which endpoints refuse in a request.
_UNSENT_OPTIONS = LITELLM_OPTIONS | {"api_version", "max_retries", "timeout"}
# Options that say who asks, which does not change the answer.
_ASKER_OPTIONS = frozenset({"organization", "project", "default_headers", "extra_headers"})
_NOT_IN_THE_BODY = _CLIENT_OPTIONS | _REQUEST_OPTIONS | _UNSENT_OPTIONS
_SHOWN_CHARACTERS = 200


def openai_clients(settings: ModelSettings) -> LoopBound[Clients]:
    """Return the clients for a model's endpoint, without retries and timeouts.

    Raises:
        ConfigError: There is no key for OpenAI's own endpoint.
    """
    make = client_maker(settings)
    return LoopBound(lambda: Clients(make), Clients.aclose)


def client_maker(settings: ModelSettings, kind: Callable[..., AsyncOpenAI] = AsyncOpenAI) -> Callable[[], AsyncOpenAI]:
    """Return what makes a client for a model's endpoint, without retries and timeouts.

    Raises:
        ConfigError: There is no key for OpenAI's own endpoint.
    """
    base_url = effective_base_url(settings)
    key_name = f"{settings.provider.upper().replace('-', '_')}_API_KEY"  # a key goes to nobody but its provider
    key = given_api_key(settings) or os.environ.get(key_name)
    if not key and base_url is None:
        raise ConfigError(
            f"there is no API key for {model_name_of(settings)}",
            hint=f"Set the environment variable {key_name}, or api_key in the config.",
        )
    remember_secret(key)
    options = {name: value for name, value in extra_settings(settings).items() if name in _CLIENT_OPTIONS}
    # The client wants a key, even where the endpoint does not.
    return lambda: kind(
        api_key=key or "none",
        base_url=base_url,
        max_retries=0,
        timeout=None,
        http_client=DefaultAsyncHttpxClient(event_hooks=bounded_http()),
        **options,
    )


async def posted(client: AsyncOpenAI, path: str, body: Mapping[str, Any], settings: ModelSettings) -> Mapping[str, Any]:
    """Send a request, with the config's further keys for the model, and return the JSON object of the response.

    Raises:
        BrokenAnswerError: The response is no JSON object, or holds an error despite the status 200.
        RefusedResponseError: The server redirects to another host, or its response is too large.
        openai.OpenAIError: From the client.
    """
    sent = request_settings(settings)
    # Not the client's method for the endpoint, which takes broken answers for good and walks through every schema.
    try:
        text = await client.post(
            path,
            cast_to=str,
            body={**body, **sent["extra_body"]},
            options={"headers": sent["extra_headers"], "params": sent["extra_query"]},
        )
    except APIConnectionError as problem:
        if isinstance(problem.__cause__, RefusedResponseError):  # which the client wraps before its version 3
            raise problem.__cause__ from None
        raise
    return _json_object(text)


def request_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return what the config adds to each request: ``extra_body``, ``extra_headers`` and ``extra_query``."""
    extra = extra_settings(settings)
    own = {name: value for name, value in extra.items() if name not in _NOT_IN_THE_BODY}
    return {
        "extra_body": {**own, **extra.get("extra_body", {})},
        "extra_headers": extra.get("extra_headers", {}),
        "extra_query": extra.get("extra_query", {}),
    }


def answer_settings(settings: ModelSettings) -> dict[str, Any]:
    """Return the settings on which a model's answers depend, for the cache."""
    left_out = _ASKER_OPTIONS | _UNSENT_OPTIONS
    extra = {name: value for name, value in extra_settings(settings).items() if name not in left_out}
    return {**extra, "base_url": effective_base_url(settings)}


def _json_object(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise BrokenAnswerError(f"the endpoint answered with no JSON object: {masked_text(text)[:_SHOWN_CHARACTERS]!r}")
    if body.get("error"):
        raise _error_with_200(body["error"])
    return body


def _error_with_200(error: Any) -> BrokenAnswerError:
    """Return the exception for an error in a response with the status 200, which may name the status it stands for."""
    code = error.get("code") if isinstance(error, Mapping) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    shown = masked_text(json.dumps(error, ensure_ascii=False))[:_SHOWN_CHARACTERS]
    return BrokenAnswerError(
        f"the endpoint answered with an error and the status 200: {shown}", status_code=status, body=error
    )
