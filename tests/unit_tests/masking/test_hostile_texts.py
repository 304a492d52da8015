"""Adversarial texts: the time grows only linearly with their length."""

import pytest
from support.machine_speed import processor_seconds

from graphrag_eval_lc.masking import masked_text

UNITS = [
    *("plain words of a long message ", "a", "A1b2", "\\", '"', "'", "é", "…", "%25", "[", '{"a":', "a.b.c"),
    *("sk-", "eyJ", "eyJaaaaaaaa.", "SG.a.", "sl.", "mta", "pat", "1//0", "xoxb-", "glpat-a", "q~", "Q~aaa", "jqqj99"),
    *("AC" + "0a" * 16, "AC" + "0a" * 16 + " ", "SK" + "0a" * 16, ":AA", "123456:AA", "-us1", "azdo", "dp.st."),
    *(
        "token=",
        'token="',
        "token:",
        "token: !",
        'token: "a ',
        'token: \\"',
        "password=\\",
        "password=',",
        "password='\"",
    ),
    *("key=", "key:", "key=aB3", 'key="', "key=\\/", "\u0130key=", "sig=%3D", "session=", "secret_"),
    *('{"token":["a",', 'token":["a",', "api key is aB3", "cohere key ", "cohere ", "mistral azure together "),
    *(
        "://",
        "://a:",
        "%3A%2F%2F",
        "%3A%2F%2Fa%3A",
        "hooks.slack.com/services/",
        "Basic ",
        "Bearer ",
        "Bearer aaaaaaaa ",
    ),
    *("Cookie: a=", "cookie: a=b;", 'set-cookie: a="', "Authorization: Digest ", 'Authorization: Digest a="'),
    *("authorization:", "Digest a=b,", "OAuth a=", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----"),
    *(
        "-----BEGIN PRIVATE KEY-----a",
        "-----BEGIN PRIVATE KEY-----MIIEvQIBADANBgkqh\n",
        '-----BEGIN PRIVATE KEY-----""',
    ),
    *("Private-Lines: 1\n", "?token='a'", "WHERE {$token='a'", " n.password = 'a'", "FILTER {password: 'a',"),
]


@pytest.mark.full
@pytest.mark.parametrize("unit", UNITS)
def test_masking_a_megabyte_takes_at_most_about_a_second(unit: str) -> None:
    text = unit * (250_000 // len(unit))
    with processor_seconds(0.75):  # A quarter of one: 0.25 s on an idle machine. Quadratic code takes many seconds.
        masked_text(text)


@pytest.mark.parametrize("unit", UNITS)
def test_ten_times_the_length_does_not_take_a_hundred_times_as_long(unit: str) -> None:
    text = unit * (50_000 // len(unit))
    with processor_seconds(0.5):
        masked_text(text)
