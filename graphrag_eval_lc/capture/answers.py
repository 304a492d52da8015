"""The answer in what an agent or a caller's own function gives, where no callback told of it."""

from typing import Any

from graphrag_eval_lc.capture.messages import answer_in, value_text


def plain_answer(output: Any) -> str | None:
    """Give bytes, a number or a truth value as the text of an answer; None for anything else.

    Example:
        >>> plain_answer(42), plain_answer(b"yes"), plain_answer({"a": 1})
        ('42', 'yes', None)
    """
    is_plain = isinstance(output, bytes | bytearray | memoryview | int | float)
    return value_text(output) if is_plain else None


def answer_of(output: Any) -> str | None:
    """Give the answer in any output: a text, a state, a scalar; else the whole as JSON, and None for None.

    Example:
        >>> answer_of({"answer": "yes"}), answer_of(["a", 1])
        ('yes', '["a", 1]')
    """
    if output is None:
        return None
    answer = answer_in(output)
    return value_text(output) if answer is None else answer
