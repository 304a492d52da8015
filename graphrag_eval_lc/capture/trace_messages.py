"""What the messages of a run tell that no callback told: tool calls, their answers, and model calls."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage

from graphrag_eval_lc.capture.seen_messages import NewMessage


def _without_superseded(messages: Sequence[NewMessage]) -> Sequence[NewMessage]:
    """Leave out the tool messages after which another one answers the same call of the same model's message."""
    if len(messages) < 2:
        return messages
    kept: list[NewMessage] = []
    answered: set[str] = set()
    for each in reversed(messages):
        if isinstance(each.message, AIMessage):
            answered.clear()
        elif each.message.tool_call_id in answered:
            continue
        else:
            answered.add(each.message.tool_call_id)
        kept.append(each)
    kept.reverse()
    return kept
