"""Laws for parsing Python reprs, and for the keys of graph values."""

import random
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.outputs import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows.graph_values import (
    GraphKeys,
    GraphReader,
    GraphRules,
    details_of_both,
    is_entity,
    readable,
    value_of_text,
)
from graphrag_eval_lc.matching.rows.python_repr import looks_like_repr, python_value

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)
NAMES = st.text("abcå/", min_size=1, max_size=3)
PROPERTIES = st.dictionaries(
    NAMES, st.integers(-9, 9) | st.sampled_from(["Oslo", "2020-01-01 10:00", "P1DT1S"]) | st.lists(st.integers(0, 9))
)


@given(PLAIN)
def test_reprs_are_parsed_back(value: Any) -> None:
    assert python_value(repr([value])) == [value]
    assert looks_like_repr(repr([(value, "a")]))


PRINTS = [
    "[('Oslo', 5, datetime.date(2020, 1, 2), Decimal('1.50'), None), {'a': [1, {2, 3}], 'b': b'x\\xff'}]",
    "[<Record n=<Node element_id='4:a:0' labels=frozenset({'City'}) properties={'name': 'Os\\'lo'}> count(*)=3>]",
    "[<QuerySolution s=<NamedNode value=urn:a> o=<Literal value=x y language=en>>, <QuerySolution s=None>]",
    "items=[RetrieverResultItem(content=\"<Record name='Hasle'>\", metadata=None)] metadata={'a': 1}",
    "ResultSet(keys: ['name', 'kv'], values: [\"Hasle\", 420],[\"Nea\", __NULL__])",
    "{'x': (rdflib.term.URIRef('urn:a'), rdflib.term.Literal('5', lang='en'))}\n{'x': neo4j.time.Time(1, 2, 3, 0)}",
    "[WGS84Point(1.0, 2.0), datetime.datetime(2020, 1, 2, 3, tzinfo=<DstTzInfo 'Europe/Oslo' CET+1:00:00 STD>)]",
]


@pytest.mark.parametrize("text", PRINTS)
def test_truncated_reprs_are_cut_and_mutated_ones_raise_no_other_error(text: str) -> None:
    assert looks_like_repr(text)
    whole = python_value(text)
    source = random.Random(1)
    for length in range(40, len(text)):
        try:
            found = python_value(text[:length])
        except CutOutput:
            continue
        except UnreadableOutput as problem:
            pytest.fail(f"{text[:length]} is unreadable: {problem}")
        assert found == whole or text[:length].strip() == text.split("\n")[0]
    for _ in range(300):
        at, sign = source.randrange(len(text)), source.choice("<>[](){}'\",:= \\\n0aN.-é")
        mutated = text[:at] + sign + text[at + source.randrange(3) :]
        try:
            python_value(mutated)
            GraphReader().read(python_value(mutated))
        except UnreadableOutput:
            continue
    assert python_value(text) == whole


@pytest.mark.parametrize(
    "text",
    [
        "[" * 99_999,
        "<Literal value=" * 9_999,
        "[-" + "1" * 99_999,
        "['" + "\\" * 99_999,
        "P" + "1" * 299,
        '(:A {"' + '"\\' * 40_000 + "})",
    ],
)
def test_hostile_texts_are_rejected(text: str) -> None:
    assert value_of_text(text) is None
    with pytest.raises(UnreadableOutput):
        python_value(text)


def key(value: Any, other: Any, *, list_order: bool = True) -> Hashable:
    return GraphKeys(details_of_both([value], [other]), GraphRules(list_order=list_order), lambda term: term).key(value)


def read(node: Any) -> Any:
    return GraphReader().read(node)


@given(PROPERTIES, st.lists(NAMES, unique=True), st.randoms())
def test_key_of_a_node_ignores_order_id_and_driver(
    properties: dict[str, Any], labels: list[str], order: random.Random
) -> None:
    items = list(properties.items())
    order.shuffle(items)
    others = [
        {"elementId": "4:b:7", "labels": labels[::-1], "properties": dict(items) | {"no": None}},
        {"Id": 3, "ElementId": "x", "Labels": labels, "Props": dict(items)},
        {"~id": "x", "~entityType": "node", "~labels": labels, "~properties": dict(items)},
        {"$type": "Node", "_value": {"_element_id": "x", "_labels": labels, "_properties": dict(items)}},
    ]
    values = list(map(read, others))
    shown = f"<Node element_id='9' labels=frozenset({{{', '.join(map(repr, labels))}}}) properties={dict(items)!r}>"
    values.append(read(python_value(shown.replace("frozenset({})", "frozenset()"))))
    values.append(value_of_text(shown.replace("frozenset({})", "frozenset()")))
    node = read({"elementId": "4:a:0", "labels": labels, "properties": properties})
    assert {key(value, node) for value in values} == {key(node, node)}
    assert key(node, properties) == key(properties, node)
    assert key(node, values[0]) != key(read({"id": 1, "labels": [*labels, "x"], "properties": properties}), node)
    changed = read({"id": 1, "labels": labels, "properties": {**properties, "name": 1.5}})
    assert key(changed, node) != key(node, changed)
    assert readable(node).startswith("(")
    assert all(map(is_entity, others))
