import hashlib
import random
import string

import pytest

from graphrag_eval_lc.masking.names import looks_random

LETTERS = string.ascii_letters + string.digits


@pytest.mark.parametrize("alphabet", [LETTERS, LETTERS + "+/", LETTERS + "-_"])
@pytest.mark.parametrize(("length", "share"), [(20, 0.95), (24, 0.98), (32, 0.99), (64, 0.999)])
def test_random_strings_are_recognised(alphabet: str, length: int, share: float) -> None:
    choose = random.Random(length)
    samples = ["".join(choose.choices(alphabet, k=length)) for _ in range(1000)]
    assert sum(map(looks_random, samples)) >= share * len(samples)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "short1A",
        "1234567890123456789012345678901234567890",
        "substation-graz-220kV-line-17",
        "SharedAccessKeyNameOfRootManager",
        "getHTTPResponseCodeOfTheFirstRequest",
        "LINE_220kV_Graz-Wien_01",
        "f1769670-9aeb-11e5-91da-b8763fd99c5f",
        "_f1769670-9aeb-11e5-91da-b8763fd99c5f",
        "2026-11-23T10:00:00.123456Z",
        "http://example.org/ontology#hasVoltageLevel",
        "/var/lib/graphdb/data/repositories/kg",
        "10YAT-APG------L",
        "openai/gpt-4o-mini-2024-07-18",
    ],
)
def test_words_numbers_and_identifiers_are_not_random(value: str) -> None:
    assert not looks_random(value)


def test_digest_counts_as_random_only_on_request() -> None:
    for digest in ("md5", "sha1", "sha256"):
        value = hashlib.new(digest, b"x").hexdigest()
        assert looks_random(value)
        assert not looks_random(value, digests_are=False)


def test_percent_encoded_values_are_decoded_first() -> None:
    assert looks_random("k3jd9fLz0q%2FWm81aXpR7t%3D")
    assert looks_random("k3jd9fLz0q%252FWm81aXpR7t%253D")
