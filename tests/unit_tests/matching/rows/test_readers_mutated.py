"""Whatever is done to an output, reading it ends soon and raises nothing but UnreadableOutput."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine_speed import processor_seconds
from pyoxigraph import Literal, NamedNode, Quad, QueryResultsFormat, Store

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.json_and_text import parse_json_output
from graphrag_eval_lc.matching.retrieval import parse_document_ids
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

ROWS = [{"name": "Oslo", "n": 5, "share": 1.5e-3}, {"name": 'Bergen, "Norway"\n', "n": None, "share": True}]
QUERY = "SELECT ?s ?p ?o { ?s ?p ?o }"


def served() -> list[str]:
    """Return what a store gives for a query, in each of its formats."""
    store = Store()
    number = "http://www.w3.org/2001/XMLSchema#decimal"
    objects = [
        Literal('Oslo, "Norway"\n', language="no"),
        Literal("5.50", datatype=NamedNode(number)),
        NamedNode("urn:a"),
    ]
    store.extend(Quad(NamedNode("urn:s"), NamedNode(f"urn:p{at}"), each) for at, each in enumerate(objects))
    formats = (QueryResultsFormat.JSON, QueryResultsFormat.XML, QueryResultsFormat.CSV, QueryResultsFormat.TSV)
    return [bytes(store.query(QUERY).serialize(format=each) or b"").decode() for each in formats]


SERVED = served()
SEEDS = [
    *SERVED,
    json.dumps(ROWS),
    repr(ROWS),
    "[(rdflib.term.URIRef('urn:a'), rdflib.term.Literal('5', datatype=rdflib.term.URIRef('urn:int')))]",
    json.dumps({"data": {"results": ROWS}}),
    json.dumps([{"type": "text", "text": SERVED[0]}]),
    json.dumps(SERVED[0]),
    f"Here are the results:\n```json\n{SERVED[0]}\n```\nLet me know.",
    f"Here: {SERVED[0]}. Let me know.",
    "| name | n |\n|---|---|\n| Oslo | 5 |\n| Bergen \\| x | |\n",
    "name,n\nOslo,5\nBergen,\n... (90 more rows)",
    "[('Oslo', Decimal('1.5'), datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), b'\\x00', np.int64(5))]",
    json.dumps({"columns": ["name", "n"], "index": [0, 1], "rows": [["Oslo", 5], ["Bergen", None]]}),
    json.dumps({"name": {"0": "Oslo"}, "n": {"0": 5}}),
    '{"name": "Oslo", "n": 5}\n{"name": "Bergen", "n": null}\n',
    "+------+---+\n| name | n |\n+------+---+\n| Oslo | 5 |\n+------+---+\n1 row in set (0.00 sec)\n",
    " name | n \n------+---\n Oslo | 5\n(1 row)\n",
    "┌──────┬───┐\n│ name │ n │\n├──────┼───┤\n│ Oslo │ 5 │\n└──────┴───┘\n",
]
PIECES = [
    *("\ufeff", "\x00", "\ud800", "\udfff", "\u2028", "𝕏", "\t", "\r", "\n", ",", "'", '"', '"""', "\\", "-", "..."),
    *("[" * 300, "]" * 300, "{" * 300, '{"a":' * 300, "(" * 300, "9" * 5_000, "1e999999", "NaN", "null", "[truncated]"),
    *("```", "\n```csv\n", "|---|", "?x\t?y\n", "_:b", "\\u12", "\\ud83d"),
    *("<!DOCTYPE a>", "<sparql>", "</sparql>", "&amp;", "&#0;", "]]>"),
]


def mutated(chance: random.Random) -> str:
    """Return a seed after one to four random changes."""
    text = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randint(0, len(text)) for _ in range(2))
        text = chance.choice(CHANGES)(chance, text, at, to)[:50_000]
    return text


Change = Callable[[random.Random, str, int, int], str]
CHANGES: list[Change] = [
    lambda chance, text, at, to: text[:at],
    lambda chance, text, at, to: text[at:],
    lambda chance, text, at, to: text[:at] + text[to:],
    lambda chance, text, at, to: text[:to] + text[at:],
    lambda chance, text, at, to: text[:at] + chance.choice(PIECES) + text[at:],
    lambda chance, text, at, to: text[:at] + chr(chance.randrange(0x250)) + text[at + 1 :],
    lambda chance, text, at, to: json.dumps(text),
    lambda chance, text, at, to: json.dumps({"result": text}),
    lambda chance, text, at, to: repr([text]),
    lambda chance, text, at, to: text + chance.choice(SEEDS),
    lambda chance, text, at, to: text[:at] + chance.choice(SEEDS) + text[at:],
    lambda chance, text, at, to: f"```\n{text}\n```",
]


READERS: list[Callable[[str], object]] = [
    read_sparql_results,
    *(partial(read_sparql_results, format=format) for format in get_args(OutputFormat)),
    parse_json_output,
    parse_document_ids,
]


def check(text: str) -> None:
    """Read a text in all ways, each of which may only refuse it."""
    for read in READERS:
        with suppress(UnreadableOutput):
            read(text)
    compared = compare_sparql_results(SERVED[0], text)
    assert compared.reason.encode()  # without halves of characters, which could not be written
    assert (compared.outcome == "undecided") == (compared.cut is not None)


@pytest.mark.full
def test_ten_thousand_mutated_outputs() -> None:
    chance = random.Random(1_701)
    with processor_seconds(180):
        for _ in range(10_000):
            check(mutated(chance))


@given(st.text(alphabet=st.sampled_from("[]{}()'\"\\,:|-\n\t\r `<>?_.@^ab1\ufeff\ud800"), max_size=60))
def test_any_text_of_signs(text: str) -> None:
    check(text)


WORDS = st.sampled_from(
    ["no", "rows", "Error", "found", "Oslo", "5", "1.5", "name", "urn:a", "none", "?", "[1]", "{x}"]
)
SIGNS = st.sampled_from([" ", ", ", ",", ". ", ": ", "\n", "\n\n", "\r\n", "\t", "!", " - ", "; "])


@given(st.lists(st.tuples(WORDS, SIGNS), max_size=12))
def test_no_prose_is_ever_read_as_no_rows(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{word}{sign}" for word, sign in pairs)
    with suppress(UnreadableOutput):
        assert read_sparql_results(text).row_count > 0
    empty = {"head": {"vars": ["x"]}, "results": {"bindings": []}}
    assert compare_sparql_results(empty, text).score == 0.0


HUGE = {
    "brackets": "[" * 100_000,
    "spaced brackets": "[ " * 100_000,
    "braces": "{" * 100_000,
    "round brackets": "(" * 100_000,
    "objects": '{"a":' * 100_000,
    "objects closed": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "arrays closed": "[" * 5_000 + "]" * 5_000,
    "reprs": "[{'a': " * 20_000,
    "open texts": '[{"' * 50_000,
    "quotes": '"' * 100_000,
    "escapes": '"' + "\\" * 100_001 + '"',
    "digits": "9" * 100_000,
    "digits in JSON": f'[{{"a": {"9" * 100_000}}}]',
    "digits in a repr": f"[{{'a': {'9' * 100_000}}}]",
    "cells": "a,b\n" + '"x,' * 50_000,
    "open cell": 'a,b\n1,"' + '""' * 50_000,
    "rows": "a,b\n" * 10_000,
    "rules": "|-|\n" * 50_000,
    "pipes": "|" * 200_000,
    "terms": "?x\t?y\n" + '"a\\' * 50_000,
    "fences": "```\n" * 50_000,
    "elements": "<sparql>" * 50_000,
    "many keys": json.dumps([{f"k{at}": 1} for at in range(5_000)]),
    "marks": "... (1 more " * 20_000,
    "marks in JSON": '{"a": [truncated ' * 10_000,
    "minus": "[" + "-" * 50_000 + "1]",
    "spaces": " " * 200_000,
    "nested reprs of texts": repr(repr(repr(repr("[{'a': 1}]")))),
}


@pytest.mark.full
@pytest.mark.parametrize("name", HUGE)
def test_huge_and_deep_outputs(name: str) -> None:
    check(HUGE[name])


def test_deep_values_that_are_parsed_already() -> None:
    deep: object = []
    for _ in range(100_000):
        deep = {"result": [deep]} if not isinstance(deep, dict) else {"result": deep}
    with pytest.raises(UnreadableOutput):
        read_sparql_results(deep)
