"""A proxy between client and endpoint: recorded calls are replayed without the endpoint."""

import json
from pathlib import Path

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphrag_eval_lc.errors import GraphRAGEvalWarning, OptionError, RunFolderError
from graphrag_eval_lc.graph.replay import NOT_RECORDED, ReplayProxy, call_of, folded_query

from .conftest import Endpoint

QUERY = "SELECT ?name { ?s <urn:grid#name> ?name } ORDER BY ?name"
JSON = {"Accept": "application/sparql-results+json"}


def client() -> httpx.Client:
    return httpx.Client(trust_env=False, headers=JSON)


def test_recorded_calls_are_replayed(endpoint: Endpoint, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    wrong = "SELECT ?x {"
    with ReplayProxy(calls, endpoint=endpoint.url) as proxy, client() as http:
        recorded = [
            http.get(proxy.url, params={"query": QUERY}),
            http.post(proxy.url, data={"query": QUERY}),
            http.post(proxy.url, content=QUERY, headers={"Content-Type": "application/sparql-query"}),
            http.get(proxy.url, params={"query": wrong}),
        ]
        assert proxy.url.endswith("/sparql")
        assert str(proxy.counts) == "4 calls recorded"
    assert [answer.status_code for answer in recorded] == [200, 200, 200, 400]
    number = len(endpoint.queries)
    spaced = QUERY.replace(" ", "\n   ") + " # the same"
    with ReplayProxy(calls, replays=True) as proxy, client() as http:
        replayed = [
            http.get(proxy.url, params={"query": spaced}),
            http.post(proxy.url, data={"query": spaced}),
            http.post(proxy.url, content=spaced, headers={"Content-Type": "application/sparql-query"}),
            http.get(proxy.url, params={"query": wrong}),
        ]
    assert [(call.status_code, call.content, call.headers["Content-Type"]) for call in replayed] == [
        (call.status_code, call.content, call.headers["Content-Type"]) for call in recorded
    ]
    assert len(endpoint.queries) == number


def test_unrecorded_call_is_an_error_or_is_recorded(endpoint: Endpoint, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    calls.touch()
    with ReplayProxy(calls, replays=True) as proxy, client() as http:
        missing = http.get(proxy.url, params={"query": QUERY})
        assert (missing.status_code, missing.headers["X-Replay"]) == (NOT_RECORDED, "not recorded")
        assert missing.json()["query"] == QUERY
        assert dict(proxy.counts.missing) == {QUERY: 1}
        assert str(proxy.counts) == "1 call was not recorded"
    with ReplayProxy(calls, endpoint=endpoint.url, replays=True) as proxy, client() as http:
        for _ in range(2):
            assert http.get(proxy.url, params={"query": QUERY}).status_code == 200
        assert str(proxy.counts) == "1 call replayed, 1 call recorded"
    assert len(endpoint.queries) == 1
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 1


def test_different_answers_are_replayed_in_order_and_the_last_one_repeats(endpoint: Endpoint, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    answers = iter([(503, "busy"), None])
    endpoint.fails = lambda _: next(answers)
    with ReplayProxy(calls, endpoint=endpoint.url) as proxy, client() as http:
        for _ in range(2):
            http.get(proxy.url, params={"query": QUERY})
    with ReplayProxy(calls, replays=True) as proxy, client() as http:
        statuses = [http.get(proxy.url, params={"query": QUERY}).status_code for _ in range(3)]
    assert statuses == [503, 200, 200]


def test_nondeterministic_query_is_a_warning_and_secrets_are_not_recorded(endpoint: Endpoint, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with ReplayProxy(calls, endpoint=endpoint.url) as proxy:
        headers = {"Authorization": "Bearer secret-123", **JSON}
        with pytest.warns(GraphRAGEvalWarning, match="uses NOW"):
            proxy.answer("GET", "/sparql?query=SELECT+%28NOW%28%29+AS+%3Fn%29+%7B%7D", headers, b"")
        proxy.answer("GET", "/sparql?query=ASK+%7B+%3Fs+%3Fp+%22NOW%28%29%22+%7D", headers, b"")
    assert "secret" not in calls.read_text(encoding="utf-8")


def test_unreachable_endpoint_is_a_502(tmp_path: Path) -> None:
    with ReplayProxy(tmp_path / "calls.jsonl", endpoint="http://127.0.0.1:9/sparql") as proxy, client() as http:
        answer = http.get(proxy.url, params={"query": QUERY})
        assert answer.status_code == 502
        assert "does not answer" in answer.json()["error"]
        assert proxy.counts.unreached == 1
    assert (tmp_path / "calls.jsonl").read_bytes() == b""


def test_invalid_use_is_an_error(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with pytest.raises(OptionError, match="no endpoint to record is given"):
        ReplayProxy(calls)
    with pytest.raises(OptionError, match="not a URL"):
        ReplayProxy(calls, endpoint="ftp://host/")
    with pytest.raises(RunFolderError, match=r"Record calls first"):
        ReplayProxy(calls, replays=True)
    calls.write_text('{"key": 1}\n{}\n', encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"line 1.*not a recorded call"):
        ReplayProxy(calls, replays=True)
    calls.write_text('{"key": "cut o', encoding="utf-8")
    with ReplayProxy(calls, replays=True):
        pass


@pytest.mark.parametrize(
    ("call", "other", "is_same"),
    [
        ("SELECT ?x{?x ?p 1}", "SELECT ?x{?x ?p\t1}\n", True),
        ("ASK { ?x ?p 'a b' }", "ASK { ?x ?p 'a  b' }", False),
        ("ASK { <urn:a#b> ?p 1 } # c", "ASK { <urn:a#b> ?p 1 }", True),
        ('ASK { ?x ?p """a\n b""" }', 'ASK { ?x ?p """a b""" }', False),
        ("ASK # c\n{}", "ASK {}", True),
    ],
)
def test_whitespace_outside_strings_is_ignored(call: str, other: str, is_same: bool) -> None:
    assert (folded_query(call) == folded_query(other)) is is_same


def test_key_of_a_call() -> None:
    def key(target: str, accept: str = "*/*", method: str = "GET") -> str:
        return call_of(method, target, {"Accept": accept}, b"").key

    assert key("/q?query=ASK+%7B%7D&infer=false&a=1") == key("/q?a=1&query=ASK+%7B%7D&infer=false")
    base = key("/q?query=ASK+%7B%7D&default-graph-uri=urn:a")
    assert key("/q?default-graph-uri=urn:a&query=ASK++%7B%7D") == base
    others = [
        key("/q?query=ASK+%7B%7D&default-graph-uri=urn:b"),
        key("/r?query=ASK+%7B%7D&default-graph-uri=urn:a"),
        key("/q?query=ASK+%7B%7D&default-graph-uri=urn:a", "text/csv"),
        key("/q?query=ASK+%7B%7D&default-graph-uri=urn:a", method="POST"),
    ]
    assert len({base, *others}) == 5


@given(st.text(alphabet="?x{} \n\t#'\"<>a", max_size=40))
@example("'\n'#'")
def test_folding_is_idempotent(text: str) -> None:
    folded = folded_query(text)
    assert folded_query(folded) == folded


def test_records_are_json_lines(endpoint: Endpoint, tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    with ReplayProxy(calls, endpoint=endpoint.url) as proxy, client() as http:
        http.get(proxy.url, params={"query": QUERY})
    (record,) = map(json.loads, calls.read_text(encoding="utf-8").splitlines())
    assert (record["method"], record["path"], record["query"], record["status"]) == ("GET", "/sparql", QUERY, 200)


def test_header_names_are_case_insensitive_and_endpoint_parameters_are_kept(endpoint: Endpoint, tmp_path: Path) -> None:
    call = call_of("GET", "/q?query=ASK+%7B%7D", {"accept": "text/csv"}, b"")
    assert call == call_of("GET", "/q?query=ASK+%7B%7D", {"Accept": "text/csv"}, b"")
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert call_of("POST", "/q", form, b"query=ASK+%7B%7D").query == "ASK {}"
    with ReplayProxy(tmp_path / "calls.jsonl", endpoint=f"{endpoint.url}?infer=false") as proxy, client() as http:
        assert http.get(proxy.url, params={"query": QUERY}).status_code == 200
    assert endpoint.queries == [QUERY]
