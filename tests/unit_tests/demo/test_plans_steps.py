import pytest

from graphrag_eval_lc.demo.plans import Call, Observation, found, queried

NOTHING = Observation('{"head": {"vars": ["iri"]}, "results": {"bindings": []}}', succeeded=True)
HIT = Observation('{"results": {"bindings": [{"iri": {"type": "uri", "value": "urn:a"}}]}}', succeeded=True)
ERROR = Observation("not valid SPARQL", succeeded=False)


def run(plan, *observations):
    """Return the calls that a plan makes when it sees these observations, and what it returns."""
    calls = [next(plan)]
    for observation in observations:
        try:
            calls.append(plan.send([observation]))
        except StopIteration as end:
            return calls, end.value
    raise AssertionError("the plan is not at its end")


def searches(*names):
    return [[Call("autocomplete_search", {"query": name})] for name in names]


def test_rows_are_the_values_by_column():
    assert HIT.rows == [{"iri": "urn:a"}]


def test_an_error_has_no_rows():
    assert ERROR.rows == []


@pytest.mark.parametrize(("name", "plain"), [("Tromsø", "TROMSO"), ("Luleå", "LULEA"), ("Göteborg", "GOTEBORG")])
def test_a_name_that_is_not_found_is_tried_without_nordic_letters(name, plain):
    assert run(found(name, None), NOTHING, HIT) == (searches(name, plain), "urn:a")


def test_a_name_that_is_found_is_not_tried_again():
    assert run(found("Tromsø", None), HIT) == (searches("Tromsø"), "urn:a")


def test_a_name_that_is_not_found_at_all_gives_none():
    assert run(found("OSLO", None), NOTHING) == (searches("OSLO"), None)


def test_a_query_without_prefixes_is_sent_again_with_them_after_the_error():
    calls, seen = run(queried("ASK { ?s a cim:Line }", forgets_prefix=True), ERROR, HIT)
    assert [call.args["query"].splitlines()[0][:6] for [call] in calls] == ["ASK { ", "PREFIX"]
    assert seen is HIT
