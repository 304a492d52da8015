"""A judge's chat model behind an OpenAI-compatible endpoint."""

from dataclasses import replace
from functools import partial
from typing import Any, Protocol, Unpack

from openai import APIStatusError
from pydantic import BaseModel

from graphrag_eval_lc.judges.answer_schema import closed_schema, form_name
from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.endings import check_ending
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.openai_answers import answer_texts
from graphrag_eval_lc.judges.openai_client import (
    ModelSettings,
    answer_settings,
    model_name_of,
    openai_client,
    posted,
)
from graphrag_eval_lc.judges.structured_judge_model import Messages, StructuredJudgeModel
from graphrag_eval_lc.judges.structured_modes import EndpointAbilities, form_parameters, messages_with_form
from graphrag_eval_lc.judges.usage import usage_in


class GenerationSettings(ModelSettings, Protocol):
    """The chat model of the config: ``GenerationConfig``."""

    @property
    def temperature(self) -> float | None: ...  # noqa: D102

    @property
    def max_tokens(self) -> int | None: ...  # noqa: D102


class OpenAIJudgeModel(StructuredJudgeModel):
    """A chat model behind an OpenAI-compatible endpoint.

    What the endpoint does not take (a JSON schema, several answers at once, a temperature) is found out at the first
    request that is refused for it, and then left out.

    Args:
        generation: The section ``llm.generation`` of the config.
        **options: How it is asked.

    Raises:
        ConfigError: There is no API key.
    """

    def __init__(
        self,
        generation: GenerationSettings,
        **options: Unpack[AskingOptions],
    ) -> None:
        bounds = {"temperature": generation.temperature, "max_tokens": generation.max_tokens}
        super().__init__(
            model_name_of(generation),
            generation.model,
            generation.provider,
            {**answer_settings(generation), **bounds},
            **options,
        )
        self._bounds = bounds
        self._generation = generation
        self._client = openai_client(generation)
        self._abilities = EndpointAbilities()

    @property
    def _takes_n(self) -> bool:
        return self._abilities.takes_n

    async def aclose(self) -> None:
        """Close its connections; a loop that ends does so as well."""
        await self._client.aclose()

    async def _complete(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        while True:
            abilities = self._abilities
            request = self._request(abilities, messages, form, n)
            try:
                texts = await self._calls.outcome_of(partial(self._answered, request, paid))
            except APIStatusError as refusal:
                check_ending(self.name, refusal.code)
                learned = abilities.learned_from(refusal, request)
                if learned is None:
                    raise
                if self._abilities == abilities:  # else another request has learned something meanwhile
                    self._abilities = learned
                continue
            if len(texts) < request.get("n", 1):
                self._abilities = replace(self._abilities, takes_n=False)
            return texts

    def _request(
        self, abilities: EndpointAbilities, messages: Messages, form: type[BaseModel], n: int
    ) -> dict[str, Any]:
        schema = closed_schema(form)
        if abilities.mode == "json_object":
            messages = messages_with_form(messages, schema)
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        request |= form_parameters(abilities.mode, form_name(form), schema)
        if n > 1 and abilities.takes_n:
            request["n"] = n
        if self._bounds["temperature"] is not None and abilities.takes_temperature:
            request["temperature"] = self._bounds["temperature"]
        if self._bounds["max_tokens"] is not None:
            request[abilities.tokens_key] = self._bounds["max_tokens"]
        return request

    async def _answered(self, request: dict[str, Any], paid: list[Usage]) -> list[str]:
        client = await self._client.get()
        completion = await posted(client, "/chat/completions", request, self._generation)
        if completion.get("choices") or completion.get("usage"):
            paid.append(usage_in(completion))
        return answer_texts(completion, self.name)
