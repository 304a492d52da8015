"""What ragas asks of one model: through openai's client, and in this package's places, retries, cache and prices."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

from openai import AsyncOpenAI
from pydantic import BaseModel

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.asked_model import AskedModel, AskingOptions
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.openai_answers import answer_texts
from graphrag_eval_lc.judges.openai_client import (
    ModelSettings,
    answer_settings,
    model_name_of,
    openai_client,
    request_settings,
)
from graphrag_eval_lc.judges.usage import usage_in

_Send = Callable[[], Awaitable[Any]]


@dataclass(slots=True)
class Account:
    """What was asked for one score.

    Attributes:
        costs: USD of each answer.
        failure: The error of the request that failed; nothing is asked after it, though instructor may try.
        times: How often each request was made: ragas asks for three questions with three equal ones.
    """

    costs: list[float | None] = field(default_factory=list)
    failure: JudgeError | None = None
    times: Counter[str] = field(default_factory=Counter)


ACCOUNT: ContextVar[Account] = ContextVar("ACCOUNT")


class RagasModel(AskedModel):
    """A model of the config as ragas asks it.

    Args:
        settings: The section of the config.
        make: Makes ragas' own object for the model from a client.
        **options: How it is asked.

    Attributes:
        added: What the config adds to each request.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(
        self, settings: ModelSettings, make: Callable[[AsyncOpenAI], Any], **options: Unpack[AskingOptions]
    ) -> None:
        bounds = {name: getattr(settings, name, None) for name in ("temperature", "max_tokens")}
        known = {**answer_settings(settings), **bounds}
        super().__init__(model_name_of(settings), settings.model, settings.provider, known, **options)
        self.added = request_settings(settings)
        self._make = make
        self._client = openai_client(settings, partial(_Client, self))
        self._made: tuple[AsyncOpenAI, Any] | None = None

    async def get(self) -> Any:
        """Give ragas' object for the model, with a client of the running loop."""
        client = await self._client.get()
        if self._made is None or self._made[0] is not client:
            self._made = client, self._make(client)
        return self._made[1]

    async def aclose(self) -> None:
        """Close its connections; a loop that ends does so as well."""
        await self._client.aclose()

    async def answer(self, path: str, body: Mapping[str, Any], form: Callable[[Any], Any], send: _Send) -> Any:
        """Give the answer to a request, kept or new, and note in the account of the score what it cost.

        Args:
            path: Such as ``/chat/completions``.
            body: The request.
            form: Gives the client's object for the JSON of an answer.
            send: Sends the request; called once for each attempt.

        Raises:
            JudgeError: There is no answer that can be used.
        """
        account = ACCOUNT.get()
        if account.failure is not None:
            raise account.failure
        digest = self._next_digest(account, path, body)
        known = self._record(digest)
        if known is not None and "ragas" in known:
            account.costs.append(self._known_cost([_usage(path, known["ragas"])]))
            return form(known["ragas"])
        paid: list[Usage] = []
        try:
            answer, content = await self._outcome(self._calls.outcome_of(partial(self._sent, path, send, paid)), paid)
        except JudgeError as problem:
            account.failure = problem
            raise
        self._keep(digest, {"ragas": content})
        account.costs.append(self._cost(paid))
        return answer

    def _next_digest(self, account: Account, path: str, body: Mapping[str, Any]) -> str:
        asked = {"ragas": path, "messages": body.get("messages"), "input": body.get("input")}
        digest = self._digest(asked)
        account.times[digest] += 1
        return self._digest({**asked, "time": account.times[digest]})

    async def _sent(self, path: str, send: _Send, paid: list[Usage]) -> tuple[BaseModel, dict[str, Any]]:
        try:
            answer = await send()
        except ValueError as problem:
            raise BrokenAnswerError(f"the endpoint's answer cannot be read: {problem}") from problem
        if not isinstance(answer, BaseModel):
            raise BrokenAnswerError("the endpoint answered with no JSON object")
        content = answer.model_dump(mode="json", exclude_unset=True)
        if content.get("choices") or content.get("data") or content.get("usage"):
            paid.append(_usage(path, content))
        if path == _CHAT:
            answer_texts(content, self.name)
        return answer, content


_CHAT = "/chat/completions"


def _usage(path: str, content: Mapping[str, Any]) -> Usage:
    usage = usage_in(content)
    return usage if path == _CHAT else replace(usage, output_tokens=0)


class _Client(AsyncOpenAI):
    """The client that ragas and instructor get: each of its requests goes through the model."""

    def __init__(self, model: RagasModel, **options: Any) -> None:
        super().__init__(**options)
        self._asked_model = model

    async def post(self, path: str, *, cast_to: Any, body: Any = None, options: Any = None, **request: Any) -> Any:
        added = self._asked_model.added
        options = dict(options or {})
        options["headers"] = {**options.get("headers", {}), **added["extra_headers"]}
        options["params"] = {**options.get("params", {}), **added["extra_query"]}
        body = {**body, **added["extra_body"]}
        send = partial(super().post, path, cast_to=cast_to, body=body, options=options, **request)
        return await self._asked_model.answer(path, body, cast_to.model_validate, send)
