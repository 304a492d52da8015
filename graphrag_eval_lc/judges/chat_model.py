"""A chat model of judges: how the form of its answers is requested, how long they may be, and how they are read."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

from pydantic import BaseModel

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.judges.answer_forms import WrongFormError, answer_in, closed_schema, form_in_words, form_name
from graphrag_eval_lc.judges.fallbacks import EndpointAbilities, Mode, leaves_no_room
from graphrag_eval_lc.judges.model import AskedModel, AskingOptions, ModelDescription
from graphrag_eval_lc.judges.model_interface import Answer, Asked, BrokenAnswerError, CutAnswerError, Usage
from graphrag_eval_lc.judges.request_plan import RequestPlan, example_of, size_of
from graphrag_eval_lc.masking import masked_text

Messages = list[dict[str, str]]

_FIRST_TOKENS = 4096  # of an answer, which the oldest models in use can give
_FIRST_REASONING_TOKENS = 16_384  # thoughts count too
_GROWTH = 4  # once, as what does not end then may never end
_LEAST_TOKENS = 256
_REASONING = re.compile(r"(?:.*[/:])?(?:o[1-9]\b|gpt-[5-9]|deepseek-r|.*(?:reason|think))", re.IGNORECASE)


class ChatJudgeModel(AskedModel, ABC):
    """A chat model of judges.

    What the endpoint refuses (a JSON schema, a temperature) is left out from then on. If the
    settings leave the longest answer open, it begins at 4,096 tokens (16,384 for models that think), is four times
    that once an answer was cut off, and shrinks if prompt and answer are too long together.

    Args:
        described: Its names and settings.
        temperature: The temperature to send; None for none.
        max_tokens: The longest answer; None: open.
        abilities: What is known of the endpoint.
        **options: How it is asked.
    """

    def __init__(
        self,
        described: ModelDescription,
        *,
        temperature: float | None,
        max_tokens: int | None,
        abilities: EndpointAbilities,
        **options: Unpack[AskingOptions],
    ) -> None:
        super().__init__(described, **options)
        first = _FIRST_REASONING_TOKENS if _REASONING.match(described.model) else _FIRST_TOKENS
        self._temperature = temperature
        self._abilities = abilities
        self._tokens = first if max_tokens is None else max_tokens  # with which requests begin now
        self._most_tokens = _GROWTH * first if max_tokens is None else max_tokens
        self._is_open = max_tokens is None
        self._longest_cut = 0

    @abstractmethod
    async def _answered(self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]) -> str:
        """Send a request once, and return the text of its answer; add its usage to ``paid``."""

    async def aask(self, system: str, user: str, schema: type[Answer]) -> Asked[Answer]:
        """Ask for an answer of the form ``schema``; see ``JudgeModel``.

        An answer that breaks the form is requested once more, with the complaint.

        Raises:
            UnusableAnswerError: The model returned no usable answer; it has the cost.
        """
        asked = {"system": system, "user": user, "schema": [schema.__name__, closed_schema(schema)]}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]

        def read(record: Mapping[str, Any]) -> Answer:
            return answer_in(record["answer"], schema)

        async def request(paid: list[Usage]) -> tuple[dict[str, Any], Answer]:
            text = await self._complete(messages, schema, paid)
            text, value = await self._usable(messages, text, schema, paid)
            return {"answer": text}, value

        def planned(plan: RequestPlan, digest: str) -> Answer:
            body = self._request(self._abilities, messages, schema, self._tokens)
            plan.add(digest, self.described.model, self.described.provider, size_of(body))
            return schema.model_validate(example_of(closed_schema(schema)))

        return await self._through_cache(asked, read, request, planned)

    def _request(
        self, abilities: EndpointAbilities, messages: Messages, form: type[BaseModel], tokens: int
    ) -> dict[str, Any]:
        """Return the body of a request."""
        schema = closed_schema(form)
        if abilities.is_in_words:
            # At the end of the user's message too, as the last word weighs most and it may ask for another form.
            words = form_in_words(schema)
            in_words = [{**message, "content": f"{message['content']}\n\n{words}"} for message in messages[:2]]
            messages = [*in_words, *messages[2:]]
        request: dict[str, Any] = {"model": self.described.model, "messages": messages}
        request |= form_parameters(abilities.mode, form_name(form), schema)
        if self._temperature is not None and abilities.takes_temperature:
            request["temperature"] = self._temperature
        if abilities.tokens_key is not None:
            request[abilities.tokens_key] = tokens
        return request

    async def _complete(self, messages: Messages, form: type[BaseModel], paid: list[Usage]) -> str:
        """Return the text of an answer; learn what the endpoint does not accept.

        How much room a prompt leaves for its answer is its own matter: a long one does not cut off the answers to
        others. An answer that is cut off in the room that is left is not an answer to texts that fit.
        """
        tokens, most, cut = self._tokens, self._most_tokens, 0
        no_room: Exception | None = None
        while True:
            abilities = self._abilities
            request = self._request(abilities, messages, form, tokens)
            try:
                text = await self._sent(request, partial(self._answered, request, abilities.mode, form), paid)
            except CutAnswerError as problem:
                cut = tokens
                self._longest_cut = max(self._longest_cut, cut)
                tokens = min(max(_GROWTH * cut, self._tokens), most)
                if abilities.tokens_key is None or tokens <= cut:
                    raise (no_room or problem) from None
                self._tokens = max(self._tokens, tokens)
            except JudgeError:
                raise
            except Exception as refusal:
                check_finish_reason(self.name, getattr(refusal, "code", None))
                if leaves_no_room(refusal):
                    no_room = refusal
                    shorter = max(tokens // 2, _LEAST_TOKENS)
                    if self._is_open and cut < shorter < tokens:
                        tokens = most = shorter
                        continue
                learned = abilities.learned_from(refusal, request)
                if learned is None:
                    raise
                if self._abilities == abilities:  # else another request has learned meanwhile
                    self._abilities = learned
            else:
                if most < self._tokens and tokens > self._longest_cut:
                    self._tokens = tokens  # the model's room may be small
                return text

    async def _usable(self, messages: Messages, text: str, form: type[Answer], paid: list[Usage]) -> tuple[str, Answer]:
        """Return an answer as text and value; ask once more if it breaks the form."""
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            complaint = f"That answer cannot be used: {problem}. {form_in_words(closed_schema(form))}"
            is_ignored = problem.breaks_schema and bool(text.strip())
        again = [{"role": "assistant", "content": text}, {"role": "user", "content": complaint}]
        text = await self._complete([*messages, *again], form, paid)
        if is_ignored:
            self._abilities = replace(self._abilities, tells_form=True)
        try:
            return text, answer_in(text, form)
        except WrongFormError as problem:
            raise JudgeError(f"{self.name} twice returned an answer without the requested form: {problem}") from None


# --- requests and answers ---


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
    return {"response_format": {"type": "json_object"}} if mode == "json_object" else {}


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
        BrokenAnswerError: The provider failed.
        CutAnswerError: It reached its most tokens.
        JudgeError: A filter stopped it.
    """
    word = reason.lower() if isinstance(reason, str) else ""
    if word == "error":
        raise BrokenAnswerError("the provider failed while the model answered (finish_reason error)")
    if word in _LENGTH:
        raise CutAnswerError(
            f"{name} did not come to the end of its answer within the tokens it has ({reason})",
            hint="Set a higher max_tokens under llm.generation.",
        )
    if word in _FILTER:
        raise JudgeError(f"the answer of {name} was stopped by the provider's content filter ({reason})")
