"""Chat models of judges that are asked through LangChain."""

import inspect
import json
from typing import Any, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graphrag_eval_lc.event_loop.http_connections import close_connections_of_resting_loops
from graphrag_eval_lc.judges.answer_forms import closed_schema, form_name, message_text
from graphrag_eval_lc.judges.chat_model import ChatJudgeModel, check_finish_reason, refused
from graphrag_eval_lc.judges.fallbacks import EndpointAbilities, Mode
from graphrag_eval_lc.judges.model import AskingOptions, ModelDescription, usage_in, usage_of
from graphrag_eval_lc.judges.model_interface import BrokenAnswerError, Usage
from graphrag_eval_lc.retrying import masked_error_text

# Names under which chat models keep the longest answer.
_TOKENS_FIELDS = ("max_tokens", "max_output_tokens", "num_predict", "max_completion_tokens", "max_new_tokens")
# Raised by LangChain's models on a body that is no answer.
_UNREADABLE = (json.JSONDecodeError, LookupError, AttributeError, TypeError)


class LangChainJudgeModel(ChatJudgeModel):
    """A chat model of LangChain, asked for structured output, else by a function to call, else in words.

    Its own retries come before those of this class.
    """

    def __init__(self, model: BaseChatModel, **options: Unpack[AskingOptions]) -> None:
        described = model._get_ls_params()
        provider = described.get("ls_provider")
        model_name = described.get("ls_model_name") or type(model).__name__
        temperature = getattr(model, "temperature", None)
        fields = type(model).model_fields
        self._tokens_field = next((name for name in _TOKENS_FIELDS if name in fields), None)
        tokens = getattr(model, self._tokens_field) if self._tokens_field is not None else None
        settings = {"model": model._get_llm_string()}  # the key in LangChain's own cache
        super().__init__(
            ModelDescription(f"{provider}:{model_name}" if provider else model_name, model_name, provider, settings),
            temperature=temperature if isinstance(temperature, int | float) else None,
            max_tokens=tokens if isinstance(tokens, int) and tokens > 0 else None,
            # It knows itself under which name to send the longest answer.
            abilities=EndpointAbilities(tokens_key=None if self._tokens_field is None else "max_completion_tokens"),
            **options,
        )
        self._chat_model = model

    async def _answered(self, request: dict[str, Any], mode: Mode, form: type[BaseModel], paid: list[Usage]) -> str:
        close_connections_of_resting_loops()  # the class may share its HTTP client with other loops
        try:
            given: Any = await self._runnable(request, mode, form).ainvoke(request["messages"])
            message, parsed = (given["raw"], given.get("parsed")) if isinstance(given, dict) else (given, None)
        except _UNREADABLE as problem:
            raise BrokenAnswerError(f"the answer cannot be read: {masked_error_text(problem)}") from problem
        except Exception as problem:
            _check_openai_finish_reason(self.name, problem, paid)
            raise
        if not isinstance(message, AIMessage):
            raise BrokenAnswerError(f"the model returned no message but {type(message).__name__}")
        paid.append(usage_of(message))
        refusal = message.additional_kwargs.get("refusal")
        if refusal:
            raise refused(self.name, str(refusal))
        for key in ("finish_reason", "stop_reason", "stopReason", "done_reason"):
            check_finish_reason(self.name, message.response_metadata.get(key))
        return _answer_text(message, parsed, form)

    def _runnable(self, request: dict[str, Any], mode: Mode, form: type[BaseModel]) -> Any:
        """Return what is asked: the chat model, with the settings of a request and structured output."""
        update: dict[str, Any] = {}
        if self._temperature is not None:
            update["temperature"] = request.get("temperature")  # None if the endpoint refuses one
        if self._tokens_field is not None:
            update[self._tokens_field] = request.get("max_completion_tokens")
        changed = {name: value for name, value in update.items() if getattr(self._chat_model, name) != value}
        model = self._chat_model.model_copy(update=changed) if changed else self._chat_model
        if mode in {"json_object", "text"}:
            return model
        # The schema and not the class: langchain-openai drops an answer that breaks the class, and what it cost.
        schema = {"title": form_name(form), "description": "Give the answer.", **closed_schema(form)}
        options: dict[str, Any] = {"method": "function_calling"} if mode == "tools" else {}
        if mode == "json_schema" and "strict" in inspect.signature(model.with_structured_output).parameters:
            options["strict"] = True
        try:
            return model.with_structured_output(schema, include_raw=True, **options)
        except (NotImplementedError, TypeError, ValueError) as problem:
            # As an endpoint that does not accept this mode.
            what = "response_format and tools are not supported"
            raise BrokenAnswerError(f"{what}: {masked_error_text(problem)}", status_code=400) from None


def _check_openai_finish_reason(name: str, error: Exception, paid: list[Usage]) -> None:
    """Raise the error for a finish reason that the openai client raised; by name, as it need not be installed."""
    kind = type(error).__name__
    if kind == "LengthFinishReasonError":
        completion = getattr(error, "completion", None)
        paid.append(usage_in(completion.model_dump() if completion is not None else {}))
        check_finish_reason(name, "length")
    if kind == "ContentFilterFinishReasonError":
        paid.append({})
        check_finish_reason(name, "content_filter")


def _answer_text(message: AIMessage, parsed: Any, form: type[BaseModel]) -> str:
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    parts = {"tool_calls": [{"arguments": call["args"]} for call in calls], "content": str(message.text)}
    return message_text({**message.additional_kwargs, "parsed": parsed, **parts}, form)
