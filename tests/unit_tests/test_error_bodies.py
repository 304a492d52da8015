from typing import Any

import pytest

from graphrag_eval_lc.error_bodies import body_of, unsaid_body, words_of


class StatusError(Exception):
    def __init__(self, text: str, body: Any = None, content: bytes | None = None) -> None:
        super().__init__(text)
        self.body = body
        self.response = type("Response", (), {"_content": content})() if content is not None else None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"detail": "no tools"}, "400 no tools"),
        ({"error": "no tools"}, "400 no tools"),
        ([{"error": {"message": "no tools"}}], "400 no tools"),
        ({"detail": [{"loc": ["body", "n"], "msg": "no", "input": {"messages": "the texts"}}]}, "400 body n no"),
        ("no tools", "400 no tools"),
        (None, "400"),
    ],
)
def test_all_texts_of_a_body_are_read_except_echoed_input(body: Any, words: str) -> None:
    assert words_of(StatusError("400", body)) == words


def test_raw_response_takes_precedence_over_the_parsed_body() -> None:
    error = StatusError("400", "other", b' {"detail": "no"} ')
    assert body_of(error) == '{"detail": "no"}'
    assert unsaid_body(error) == "no"


def test_texts_in_the_message_are_not_repeated() -> None:
    assert unsaid_body(StatusError("400: Invalid token", {"error": {"message": "Invalid token"}})) == ""
