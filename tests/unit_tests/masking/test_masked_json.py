"""Masking JSON text produces valid JSON and is idempotent."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.planted_secrets import MORE_SECRETS, SECRETS

from graphrag_eval_lc.masking import masked_secrets, masked_text

PIECES = [
    *("sk-", "token", "api_key", "secret", "password", "apiKey", "authorization", "Authorization: Digest ", "Bearer "),
    *("Basic ", "dXNlcjpwYXNz", "eyJabcdefghij", "://", "@", "u:p", "%3D", "${X}", "***", "abcdef123456", "sig="),
    *(
        "session",
        "key",
        "Cookie: a=",
        "cookie",
        "response=",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
    ),
    *("MIIEvQIBADANBgkqhkiG9w0", "k3jd9fLz0qWm81aXpR7t", "AC" + "0a" * 16, "OAuth ", "cohere key ", "&quot;"),
    *("api key provided: ", "\u0130", *(planted.text for planted in (*SECRETS, *MORE_SECRETS)[::4])),
    *"=: \"'\\,;)&?\n({$-_.1x[]}é…",
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(PIECES) | TEXTS, inner, max_size=4),
    max_leaves=8,
)


@settings(deadline=None)
@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_masked_json_is_valid_json(value: Any, only_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=only_ascii, indent=indent)
    masked = masked_text(text)
    json.loads(masked)
    assert masked_text(masked) == masked


@settings(deadline=None)
@example("COOKIE:0=", None)
@given(VALUES, st.sampled_from([None, 2]))
def test_masked_nested_json_is_valid_nested_json(value: Any, indent: int | None) -> None:
    text = json.dumps({"body": json.dumps(value, indent=indent), "n": 1})
    json.loads(json.loads(masked_text(text))["body"])


@settings(deadline=None)
@given(VALUES)
def test_redacting_is_idempotent(value: Any) -> None:
    masked = masked_secrets(value)
    assert masked_secrets(masked) == masked


@given(VALUES)
def test_types_are_preserved(value: Any) -> None:
    assert shape(masked_secrets(value)) == shape(value)


def shape(value: Any) -> Any:
    """Return the types of a value at any depth; a number under a password's name becomes a string."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "scalar" if isinstance(value, int | float | str) and not isinstance(value, bool) else type(value)


def test_number_under_a_passwords_name_becomes_a_string() -> None:
    assert masked_text('{"password": 12345, "n": 1}') == '{"password": "***", "n": 1}'
    assert masked_text(r'"{\"password\": 12345}"') == r'"{\"password\": \"***\"}"'


def test_sparql_column_named_like_a_secret_is_kept() -> None:
    bindings = '{"bindings": [{"token": {"type": "literal", "value": "Graz"}, "secret": {"type": "uri"}}]}'
    assert masked_text(bindings) == bindings
    assert masked_secrets(json.loads(bindings)) == json.loads(bindings)


def test_end_of_json_text_is_not_an_open_quote() -> None:
    text = '{"a": "password=", "b": "token:", "c": "x"}'
    assert masked_text(text) == text
