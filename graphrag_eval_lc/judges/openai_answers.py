"""Reading the answers in a chat completion of the OpenAI API."""

import json
from collections.abc import Mapping
from typing import Any

from graphrag_eval_lc.judges.endings import check_ending, refused
from graphrag_eval_lc.judges.judge_problems import BrokenAnswerError


def answer_texts(completion: Mapping[str, Any], name: str) -> list[str]:
    """Give the texts of a completion's answers: what they say, or the arguments of the function they call.

    Args:
        completion: The body of the response.
        name: The model, for messages.

    Raises:
        BrokenAnswerError: There is no answer in it.
        JudgeError: An answer is refused or cut off.
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
    check_ending(name, choice.get("finish_reason"))
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        return _arguments_text(calls[0])
    return _content_text(message.get("content"))


def _arguments_text(call: Any) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _content_text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""
