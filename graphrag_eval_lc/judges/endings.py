"""The errors for answers that ended otherwise than with their last word; none of them is asked again."""

from graphrag_eval_lc.errors import JudgeError
from graphrag_eval_lc.masking import masked_text

_LONGEST_REFUSAL = 300
# The providers' words for it, in lower case.
_LENGTH = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
_FILTER = frozenset({"content_filter", "content_filtered", "safety", "guardrail_intervened", "prohibited_content"})


def refused(name: str, text: str) -> JudgeError:
    """Give the error for a model that refused to answer."""
    return JudgeError(f"{name} refused to answer: {masked_text(text)[:_LONGEST_REFUSAL]}")


def check_ending(name: str, reason: str | None) -> None:
    """Do nothing where an answer ended well.

    Args:
        name: The model.
        reason: Why the answer ended, as the provider says it.

    Raises:
        JudgeError: It is cut off.
    """
    word = reason.lower() if isinstance(reason, str) else ""
    if word in _LENGTH:
        raise JudgeError(
            f"{name} did not come to the end of its answer within the tokens it has ({reason})",
            mend="Set a higher max_tokens under llm.generation.",
        )
    if word in _FILTER:
        raise JudgeError(f"the answer of {name} was stopped by the provider's content filter ({reason})")
