"""A judge's chat model that is one of LangChain's."""

import inspect
import json
import re
from functools import partial
from typing import Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graphrag_eval_lc.capture.outputs import message_text
from graphrag_eval_lc.judges.answer_schema import closed_schema, form_name
from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.endings import check_ending, refused
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError
from graphrag_eval_lc.judges.model import Usage
from graphrag_eval_lc.judges.structured_judge_model import Messages, StructuredJudgeModel
from graphrag_eval_lc.judges.structured_modes import messages_with_form, refuses_part
from graphrag_eval_lc.judges.usage import usage_in, usage_of
from graphrag_eval_lc.retrying import error_text

_Mode = Literal["structured", "function_calling", "prompt"]
_NEXT_MODE: dict[_Mode, _Mode] = {"structured": "function_calling", "function_calling": "prompt"}
_REFUSED_FORM = re.compile(r"response.?format|json.?schema|structured.?output|tool|function", re.IGNORECASE)
# What LangChain's models raise on a body that is no answer.
_UNREADABLE = (json.JSONDecodeError, LookupError, AttributeError, TypeError)


class LangChainJudgeModel(StructuredJudgeModel):
    """A chat model of LangChain: structured output in the way it prefers, else by a function to call, else in words.

    Args:
        model: The chat model; its own retries come before those of this class.
        **options: How it is asked.
    """

    def __init__(
        self,
        model: BaseChatModel,
        **options: Unpack[AskingOptions],
    ) -> None:
        described = model._get_ls_params()
        provider = described.get("ls_provider")
        model_name = described.get("ls_model_name") or type(model).__name__
        super().__init__(
            f"{provider}:{model_name}" if provider else model_name,
            model_name,
            provider,
            {"model": model._get_llm_string()},  # by which LangChain's own cache knows it
            **options,
        )
        self._chat_model = model
        self._mode: _Mode = "structured"

    @property
    def _takes_n(self) -> bool:
        return False

    async def _complete(self, messages: Messages, form: type[BaseModel], n: int, paid: list[Usage]) -> list[str]:
        while True:
            model, mode = self._chat_model, self._mode
            try:
                request = partial(self._answered, model, mode, messages, form, paid)
                message = await self._calls.outcome_of(request)
            except Exception as refusal:
                if not self._has_learned_from(refusal, model, mode):
                    raise
                continue
            return [_answer_text(message)]

    def _has_learned_from(self, error: Exception, model: BaseChatModel, mode: _Mode) -> bool:
        """Leave out what the model refused; give whether it is anything that can be left out."""
        is_refused = refuses_part(error)
        if is_refused and "temperature" in str(error) and getattr(model, "temperature", None) is not None:
            if self._chat_model is model:
                self._chat_model = model.model_copy(update={"temperature": None})
            return True
        if mode not in _NEXT_MODE or not (
            isinstance(error, _CannotStructureError) or (is_refused and _REFUSED_FORM.search(str(error)))
        ):
            return False
        if self._mode == mode:
            self._mode = _NEXT_MODE[mode]
        return True

    async def _answered(
        self, model: BaseChatModel, mode: _Mode, messages: Messages, form: type[BaseModel], paid: list[Usage]
    ) -> AIMessage:
        if mode == "prompt":
            messages = messages_with_form(messages, closed_schema(form))
        runnable = _runnable(model, mode, form)
        try:
            given: Any = await runnable.ainvoke(messages)
            message = given if mode == "prompt" else given["raw"]
        except _UNREADABLE as problem:
            raise BrokenAnswerError(f"the answer cannot be read: {error_text(problem)}") from problem
        except Exception as problem:
            _check_openai_ending(self.name, problem, paid)
            raise
        if not isinstance(message, AIMessage):
            raise BrokenAnswerError(f"the model gave no message but {type(message).__name__}")
        paid.append(usage_of(message))
        self._check_ending(message)
        return message

    def _check_ending(self, message: AIMessage) -> None:
        refusal = message.additional_kwargs.get("refusal")
        if refusal:
            raise refused(self.name, str(refusal))
        for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
            check_ending(self.name, message.response_metadata.get(key))


class _CannotStructureError(Exception):
    """A model that has no structured output of this kind."""


def _runnable(model: BaseChatModel, mode: _Mode, form: type[BaseModel]) -> Any:
    if mode == "prompt":
        return model
    # The schema and not the class: langchain-openai drops an answer that breaks the class, and what it cost.
    schema = {"title": form_name(form), "description": "Give the answer.", **closed_schema(form)}
    options: dict[str, Any] = {"method": mode} if mode == "function_calling" else {}
    if mode == "structured" and "strict" in inspect.signature(model.with_structured_output).parameters:
        options["strict"] = True
    try:
        return model.with_structured_output(schema, include_raw=True, **options)
    except (NotImplementedError, TypeError, ValueError) as problem:
        raise _CannotStructureError(error_text(problem)) from problem


def _check_openai_ending(name: str, error: Exception, paid: list[Usage]) -> None:
    """Raise what the openai client's own reading of endings means; by name, as it need not be installed."""
    kind = type(error).__name__
    if kind == "LengthFinishReasonError":
        completion = getattr(error, "completion", None)
        paid.append(usage_in(completion.model_dump() if completion is not None else {}))
        check_ending(name, "length")
    if kind == "ContentFilterFinishReasonError":
        paid.append(Usage(None, None, None))
        check_ending(name, "content_filter")


def _answer_text(message: AIMessage) -> str:
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"])
    if message.invalid_tool_calls:
        return message.invalid_tool_calls[0]["args"] or ""
    return message_text(message)
