import copy
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from support.machine_speed import processor_seconds
from support.planted_secrets import PLAIN_VARIABLES, SECRET_VARIABLES

from graphrag_eval_lc.masking import masked_secrets, masked_text, masked_values, remember_secret, without_masked

OPENAI_KEY = "sk-proj-" + "aB3" * 16


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"Incorrect API key provided: {OPENAI_KEY}.", "Incorrect API key provided: sk-***."),
        ("sk-abcdef1234567890abcdef", "sk-***"),
        ("sk-ant-api03-" + "a-B_" * 10, "sk-***"),
        ("sk-lf-1234abcd-12ab-34cd-56ef-1234567890ab", "sk-***"),
        ("gsk_" + "a1" * 26, "gsk_***"),
        ("hf_" + "aB" * 17, "hf_***"),
        ("ghp_" + "a1" * 18, "ghp_***"),
        ("github_pat_" + "a1_" * 18, "github_pat_***"),
        ("AIza" + "a1-_x" * 7, "AIza***"),
        ("AIza" + "aB-_x" * 7, "AIza***"),
        ("ya29." + "aB-_x" * 7 + ".aB", "ya29.***"),
        ("GOCSPX-" + "aB-_" * 7, "GOCSPX-***"),
        ("1//0" + "aB-_" * 7, "1//0***"),
        ("sb_secret_" + "aB-_" * 7, "sb_secret_***"),
        ("dckr_pat_" + "aB-" * 9, "dckr_pat_***"),
        ("figd_" + "aB-_" * 10, "figd_***"),
        ("glpat-" + "aB-_" * 5, "glpat-***"),
        ("xoxb-123456789012-abcdef", "xoxb-***"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA***"),
        ("eyJhbGciOiJI.eyJzdWIi.c2ln-_x", "eyJ***"),
        (r"'line\nsk-abcdef1234567890abcdef'", r"'line\nsk-***'"),
    ],
)
def test_provider_keys_keep_only_their_prefix(text: str, masked: str) -> None:
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abc", "Authorization: Bearer ***"),
        ("{'authorization': 'Bearer abc.def'}", "{'authorization': 'Bearer ***'}"),
        ("sent Bearer abcdef123456, refused", "sent Bearer ***, refused"),
        (f"sent Bearer {'abcdefgh' * 4}, refused", "sent Bearer ***, refused"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("proxy-authorization: Basic xyz", "proxy-authorization: Basic ***"),
        ("curl -H 'Authorization: OAuth y0_AgAAAABkT6'", "curl -H 'Authorization: OAuth ***'"),
        ('{"Authorization": "OAuth abc.def"}', '{"Authorization": "OAuth ***"}'),
        ("Authorization: Hawk abc123=", "Authorization: Hawk ***"),
        ("Authorization: Signature abc", "Authorization: Signature ***"),
        ('Authorization: Signature keyId="x",signature="abcd"', "Authorization: Signature ***"),
        ('Authorization: Digest username="x", response="abcd"', "Authorization: Digest ***"),
    ],
)
def test_authorization_keeps_its_scheme(text: str, masked: str) -> None:
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("api_key=abc, model=x", "api_key=***, model=x"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=***"),
        ("api-key: abc", "api-key: ***"),
        ("x-api-key: abc\nhost: h", "x-api-key: ***\nhost: h"),
        ('{"apiKey": "a b", "n": 1}', '{"apiKey": "***", "n": 1}'),
        (r'"{\"client_secret\": \"abc\", \"n\": 1}"', r'"{\"client_secret\": \"***\", \"n\": 1}"'),
        (r'"password": "a\"b"', '"password": "***"'),
        ('password="it\'s" user=me', 'password="***" user=me'),
        ("f(token='abc', n=1)", "f(token='***', n=1)"),
        ("(secret=abc)", "(secret=***)"),
        ("password=a,b", "password=***"),
        ("{token=abc,user=me}", "{token=***,user=me}"),
        ("token: abc123def456", "token: ***"),
        ("https://h/x?api_key=abc&access_token=def&q=1", "https://h/x?api_key=***&access_token=***&q=1"),
        ("next%3Ftoken%3Dabc", "next%3Ftoken%3D***"),
        ("DB_PASSWORD=new", "DB_PASSWORD=***"),
        ("secret: New", "secret: ***"),
        ("password: digest", "password: ***"),
        ('{"api_keys": ["abc", "d e"], "n": [1]}', '{"api_keys": ["***", "***"], "n": [1]}'),
        ("{'passwords': ['abc', '${PW}']}", "{'passwords': ['***', '${PW}']}"),
        ("NEO4J_AUTH=neo4j/letmein99", "NEO4J_AUTH=neo4j/***"),
        ("heroku api key d083408a-ec12-465f-9ffb-bc5add68c4ce", "heroku api key ***"),
        ("The api key was hidden-word-2024", "The api key was ***"),
    ],
)
def test_value_after_a_secrets_name_is_masked(text: str, masked: str) -> None:
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("http://kg:pa55@graph.example:7200/sparql", "http://kg:***@graph.example:7200/sparql"),
        ("postgres://u:p@ss@host/db", "postgres://u:***@host/db"),
        ("redis://:pa55@host", "redis://:***@host"),
    ],
)
def test_password_in_a_url_is_masked_but_not_the_host(text: str, masked: str) -> None:
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "tokens=123, max_tokens: 4096, token_count=5, total_tokens=5, token=12",
        "The token 'SELECT' is unexpected",
        "Unexpected token: 'SELECT'; unexpected token: ex:hasName2",
        "PREFIX token: <http://ex.org/token#> SELECT ?x { ?x token:hasPart ?y }",
        "a task-force of sk-learn on disk-1, risk-based and ask-someone-to-be-sure-of-it",
        "http://ex.org/id/sk-bratislava-region-2021-report http://ex.org/id/sk-Region-Bratislava-2021",
        "http://ex.org/risk-based-approach-2021",
        "http://host:8080/a@b",
        "the bearer of bad news needs Basic authentication and a Basic GraphPattern",
        "set the OPENAI_API_KEY environment variable or pass `api_key`",
        'WWW-Authenticate: Digest realm="kg", algorithm=MD5',
        "No API key: set one",
        "api key missing for azure-openai-eastus2, API key authentication-required1 for it",
        "access token provider configuration1, secret key rotation-policy-2024 applies",
        "token = new Token() NEO4J_AUTH=none NEO4J_AUTH=neo4j/${PW}",
        '{"tokens": ["SELECT", "WHERE"]}',
        "PWD=/home/kg OLDPWD=~/runs auth = BedrockSigV4AuthOfRegion(config)",
        "primary key: id, keyword=x, tokenizer=bpe",
        "api_key=None, password='', secret=null",
        "password=getpass('Password')",
        'api_key="${OPENAI_API_KEY}" password=${PW} Authorization: Bearer ${TOKEN} http://u:${PW}@host',
    ],
)
def test_words_numbers_and_references_are_unchanged(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize("name", SECRET_VARIABLES)
def test_secrets_from_the_environment_are_masked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "gr4ph(secret")
    assert masked_text("refused: <gr4ph(secret>gr4ph(secret") == "refused: <***>***"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NEO4J_AUTH", "neo4j/gr4ph(secret"),
        ("AUTH", "Bearer gr4ph(secret"),
        ("SESSION_COOKIE", "theme=dark; sid=gr4ph(secret"),
        ("API_KEYS", '["gr4ph(secret", "gr4ph(other"]'),
        ("API_TOKENS", "gr4ph(other,gr4ph(secret"),
    ],
)
def test_secret_inside_an_environment_variable_is_masked_on_its_own(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert masked_text(f"no gr4ph(secret, {value}") == "no ***, ***"


@pytest.mark.parametrize(("name", "value"), PLAIN_VARIABLES)
def test_common_environment_values_are_unchanged(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert masked_text(f"see {value} there") == f"see {value} there"


def test_password_of_letters_only_is_masked_as_a_whole_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_PASSWORD", "powergrid")
    assert masked_text("powergrid, powergrids") == "***, powergrids"


@pytest.mark.parametrize(
    "text",
    [
        "GET ?token=pa55w0rd",
        "SELECT * { SERVICE <https://kg.example/sparql?password=pa55w0rd> {} }",
        "$password = 'pa55w0rd';",
        "re.match(x); self.password = 'pa55w0rd'",
        "query: MATCH (n) RETURN n\nlogin: {password: pa55w0rd}",
        "{'query': 'MATCH (n) RETURN n', 'password': 'pa55w0rd'}",
    ],
)
def test_secret_next_to_a_query_variable_is_masked(text: str) -> None:
    assert masked_text(text) == text.replace("pa55w0rd", "***")


def test_secret_recognised_by_shape_is_masked_after_a_variable() -> None:
    assert "k3jd9fLz0qWm81aXpR7t" not in masked_text("FILTER(?token = 'k3jd9fLz0qWm81aXpR7t')")


@pytest.mark.parametrize("mask", [masked_values, masked_secrets])
def test_pwd_is_masked_unless_it_is_a_folder(mask: Callable[[Any], Any]) -> None:
    folders = {"pwd": "/home/kg", "old_pwd": "C:\\kg"}
    assert mask({"db_pwd": "swordfish", "passcode": "a1", **folders}) == {"db_pwd": "***", "passcode": "***", **folders}


def test_list_items_under_a_secrets_name_are_masked() -> None:
    data = {"password": ["swordfish", {"n": 1}], "api_keys": ["ex:Line", "k3jd9fLz0qWm81aXpR7t"]}
    assert masked_secrets(data) == {"password": ["***", {"n": 1}], "api_keys": ["ex:Line", "***"]}


def test_dotted_or_spaced_name_is_recognised_by_its_last_word() -> None:
    assert masked_values({"neo4j.password": "swordfish", " pwd ": "swordfish", "neo4j.user": "kg"}) == {
        "neo4j.password": "***",
        " pwd ": "***",
        "neo4j.user": "kg",
    }


PIECES = [
    *("sk-", OPENAI_KEY, "token", "api_key", "secret", "password", "apiKey", "authorization", "Bearer ", "Basic "),
    *("dXNlcjpwYXNz", "eyJabcdefghij", "AKIAIOSFODNN7EXAMPLE", "://", "@", "u:p", "%3D", "${X}", "***", "abcdef123456"),
    *"=: \"'\\,;)&?\n({$-_.1x",
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))


@given(texts)
def test_masking_is_idempotent(text: str) -> None:
    masked = masked_text(text)
    assert masked_text(masked) == masked


@given(st.text(alphabet=string.digits + "XYZxyz \n\t.,;-_/|äßİ\ud800"))
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.full
@pytest.mark.parametrize(
    "unit",
    ["plain words of a long message ", "sk-", "token=", 'token="', "password=\\", "eyJaaaaaaaa.", "://a:", "Basic "],
)
def test_time_is_linear_in_the_length(unit: str) -> None:
    text = unit * (500_000 // len(unit))
    with processor_seconds(5):  # quadratic code takes minutes
        masked_text(text)


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "apiKey",
        "X-API-Key",
        "Authorization",
        "DB_PASSWORD",
        "secret",
        "token",
        "accessToken",
        "client_secret",
    ],
)
def test_value_under_a_secret_key_is_masked(key: str) -> None:
    assert masked_values({key: "abc", "other": [{key: "def"}]}) == {key: "***", "other": [{key: "***"}]}
    assert masked_values({key: ["abc", "def"]}) == {key: "***"}


@pytest.mark.parametrize(
    "values",
    [
        {"max_tokens": 10, "total_tokens": 5, "tokenizer": "bpe", "keyword": "x", "key": "y", "eos_token": "</s>"},
        {"api_key": "${OPENAI_API_KEY}", "password": None, "token": "", "secret": False, "price_per_token": 0.1},
        {"authorization": "Bearer ${TOKEN}"},
    ],
)
def test_other_values_are_unchanged(values: dict[str, Any]) -> None:
    assert masked_values(values) == values


def test_strings_and_secret_strings_at_any_depth_are_masked() -> None:
    values = {"url": "http://u:p@h", "more": (SecretStr("abc"), [f"with {OPENAI_KEY}"])}
    assert masked_values(values) == {"url": "http://u:***@h", "more": ("***", ["with sk-***"])}


def test_circular_value_is_noted_and_not_followed() -> None:
    values: dict[str, Any] = {}
    values["me"] = values
    assert masked_values(values) == {"me": "<dict inside itself>"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(PIECES) | st.text(), inner),
)


@pytest.mark.full
@given(json_values)
def test_argument_is_not_modified(values: Any) -> None:
    before = copy.deepcopy(values)
    masked = masked_values(values)
    assert values == before
    assert masked_values(masked) == masked


# --- removing masked values ------------------------------------------------------------------------------------------


def test_masked_values_can_be_removed() -> None:
    masked = masked_values({"llm": {"generation": {"model": "m", "api_key": "abc"}, "more": [{"password": "x"}, 1]}})
    assert without_masked(masked) == {"llm": {"generation": {"model": "m"}, "more": [{}, 1]}}
    assert without_masked({"api_key": "${OPENAI_API_KEY}", "none": None}) == {
        "api_key": "${OPENAI_API_KEY}",
        "none": None,
    }


def test_registered_secret_is_masked_whatever_it_looks_like() -> None:
    assert masked_text("wrong key verysecret-abc-123") == "wrong key verysecret-abc-123"
    remember_secret("verysecret-abc-123")
    assert masked_text("wrong key verysecret-abc-123") == "wrong key ***"


def test_short_value_is_not_registered_since_any_word_may_contain_it() -> None:
    remember_secret("none")
    assert masked_text("none of these") == "none of these"


def test_secret_in_text_kept_by_another_rule_is_masked() -> None:
    inner, key = f"ghp_{'a1B2c3D4' * 3}", "k3jd9fLz0qWm81aXpR7tk3jd9fLz0qWm81aXpR7t"
    assert masked_text(f"cohere {inner} key: {key}") == "cohere ghp_*** key: ***"
