"""Laws of reading: written rows are read back, truncated output is cut, and nothing else is read or raised."""

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, get_args
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QueryResultsFormat, Store

from graphrag_eval_lc.config.sections import OutputFormat
from graphrag_eval_lc.matching import CutOutput, UnreadableOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results

XSD = "http://www.w3.org/2001/XMLSchema#"
Row = tuple[str, int, float, str | None]
NAMES = ["name", "people", "share", "note"]


# --- written rows are read back --------------------------------------------------------------------------------------


def cells(row: Row) -> list[str]:
    return ["" if cell is None else str(cell) for cell in row]


def sparql(rows: Sequence[Row]) -> dict[str, Any]:
    kinds = [{}, {"datatype": f"{XSD}integer"}, {"datatype": f"{XSD}double"}, {}]
    bindings = [
        {
            name: {"type": "literal", "value": str(cell), **kind}
            for name, cell, kind in zip(NAMES, row, kinds, strict=True)
            if cell is not None
        }
        for row in rows
    ]
    return {"head": {"vars": NAMES}, "results": {"bindings": bindings}}


def objects(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if re.search('[",\n]', cell) else cell


def tsv_term(cell: Any) -> str:
    return "" if cell is None else json.dumps(cell, ensure_ascii=False) if isinstance(cell, str) else str(cell)


def xml(rows: Sequence[Row]) -> str:
    head = "".join(f'<variable name="{name}"/>' for name in NAMES)
    results = "".join(
        "<result>"
        + "".join(
            f'<binding name="{name}"><literal>{escape(str(cell))}</literal></binding>'
            for name, cell in zip(NAMES, row, strict=True)
            if cell is not None
        )
        + "</result>"
        for row in rows
    )
    start = '<sparql xmlns="http://www.w3.org/2005/sparql-results#">'
    return f"{start}<head>{head}</head><results>{results}</results></sparql>"


def drawn(rows: Sequence[Row], edge: str, cross: str, rule: str, sides: bool) -> list[str]:
    lines = [NAMES, *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    shown = [edge.join(f" {cell:<{width}} " for cell, width in zip(line, widths, strict=True)) for line in lines]
    between = cross.join(rule * (width + 2) for width in widths)
    if not sides:
        return [shown[0], between, *shown[1:]]
    return [f"{edge}{line}{edge}" for line in shown[:1]] + [between] + [f"{edge}{line}{edge}" for line in shown[1:]]


def mysql(rows: Sequence[Row]) -> str:
    head, between, *lines = drawn(rows, "|", "+", "-", sides=True)
    return "\n".join([f"+{between}+", head, f"+{between}+", *lines, f"+{between}+"])


def box(rows: Sequence[Row]) -> str:
    head, between, *lines = drawn(rows, "│", "┼", "─", sides=True)
    return "\n".join([f"┌{between.replace('┼', '┬')}┐", head, f"├{between}┤", *lines, f"└{between.replace('┼', '┴')}┘"])


FORMS: dict[str, Callable[[Sequence[Row]], str]] = {
    "SPARQL JSON": lambda rows: json.dumps(sparql(rows)),
    "XML": xml,
    "CSV": lambda rows: "\r\n".join([",".join(NAMES), *(",".join(map(quoted, cells(row))) for row in rows), ""]),
    "CSV of pandas": lambda rows: "\n".join(
        ["," + ",".join(NAMES), *(f"{at}," + ",".join(map(quoted, cells(row))) for at, row in enumerate(rows)), ""]
    ),
    "TSV": lambda rows: (
        "\n".join(["\t".join(f"?{name}" for name in NAMES)] + ["\t".join(map(tsv_term, row)) for row in rows]) + "\n"
    ),
    "Markdown": lambda rows: "".join(f"| {' | '.join(line)} |\n" for line in (NAMES, ["---"] * 4, *map(cells, rows))),
    "row objects": lambda rows: json.dumps(objects(rows)),
    "JSON lines": lambda rows: "".join(f"{json.dumps(row)}\n" for row in objects(rows)),
    "names and rows": lambda rows: json.dumps({"columns": NAMES, "rows": rows}),
    "columns": lambda rows: json.dumps({name: [row[name] for row in objects(rows)] for name in NAMES}),
    "tuples": lambda rows: repr(list(rows)),
    "dicts": lambda rows: repr(objects(rows)),
    "in a fence": lambda rows: f"```json\n{json.dumps(objects(rows))}\n```",
    "MySQL": mysql,
    "psql": lambda rows: "\n".join([*drawn(rows, "|", "+", "-", sides=False), f"({len(rows)} rows)"]),
    "box": box,
}
WORDS_OF_CELLS = st.from_regex(r"[A-ZÆØÅ][a-zæøå]{1,6}( [a-z,'&<]{1,5}[a-z])?", fullmatch=True)
ROWS = st.lists(
    st.tuples(
        WORDS_OF_CELLS,
        st.integers(-(10**6), 10**6),
        st.integers(-999, 999).map(lambda number: number / 8),
        st.none() | WORDS_OF_CELLS,
    ),
    min_size=2,
    max_size=5,
)


@pytest.mark.parametrize("form", FORMS)
@given(rows=ROWS, at=st.integers(0, 4))
def test_each_format_round_trips_its_rows(form: str, rows: list[Row], at: int) -> None:
    expected, text = sparql(rows), FORMS[form](rows)
    for one, other in ((expected, text), (text, expected), (text, text)):
        compared = compare_sparql_results(one, other, ignore_duplicates=False)
        assert compared.score == 1.0, compared.reason
    changed = [*rows]
    changed[at % len(rows)] = ("Another", 10**7, *rows[at % len(rows)][2:])
    assert compare_sparql_results(expected, FORMS[form](changed)).outcome == "mismatch"


@pytest.mark.parametrize("form", FORMS)
def test_truncated_output_is_never_read_as_fewer_rows(form: str) -> None:
    text = FORMS[form]([("Oslo", 5, 1.5, "north, east"), ("Bergen", 6, 2.5, None), ("Trondheim", 7, 3.5, "a")]).rstrip()
    outcomes = set()
    for length in range(1, len(text)):
        try:
            results = read_sparql_results(text[:length])
        except UnreadableOutput as problem:
            outcomes.add("cut" if isinstance(problem, CutOutput) else "unreadable")
            continue
        # Formats with one line per row cannot reveal missing last lines or a truncated last cell.
        has_a_line_per_row = any(name in form for name in ("CSV", "TSV", "Markdown", "lines"))
        assert has_a_line_per_row or results.row_count == 3
    assert "cut" in outcomes or form == "psql"  # recognised by the row count below the table


# Characters allowed in XML 1.0, except those that XML changes (a carriage return).
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]) | st.sampled_from("\n\t\",;'\\<>&"))
TERMS = st.one_of(
    st.builds(Literal, TEXTS),
    st.builds(lambda text: Literal(text, language="no"), TEXTS),
    st.builds(lambda number: Literal(str(number), datatype=NamedNode(f"{XSD}integer")), st.integers()),
    st.builds(lambda text: Literal(text, datatype=NamedNode("urn:type")), TEXTS),
    st.builds(lambda number: Literal(repr(number), datatype=NamedNode(f"{XSD}double")), st.floats(-1e9, 1e9)),
    st.sampled_from([NamedNode("urn:a"), NamedNode("urn:øb"), BlankNode("b0"), BlankNode("b1")]),
)
SERVED = {"json": QueryResultsFormat.JSON, "xml": QueryResultsFormat.XML, "tsv": QueryResultsFormat.TSV}
SERVED["csv"] = QueryResultsFormat.CSV
QUERY = "SELECT ?s ?a ?b { ?s ?p ?o OPTIONAL { ?s <urn:p0> ?a } OPTIONAL { ?s <urn:p1> ?b } }"


def served(terms: list[Any], query: str = QUERY) -> dict[str, str]:
    """Return a store's response to a query over some terms, by format."""
    store = Store()
    store.extend(Quad(NamedNode(f"urn:s{at}"), NamedNode(f"urn:p{at % 2}"), term) for at, term in enumerate(terms))
    return {name: bytes(store.query(query).serialize(format=form) or b"").decode() for name, form in SERVED.items()}


@given(st.lists(TERMS, max_size=6))
def test_all_formats_of_a_store_have_the_same_terms(terms: list[Any]) -> None:
    found = served(terms)
    for name in ("xml", "tsv"):
        for results in (read_sparql_results(found[name]), read_sparql_results(found[name], format=name)):  # type: ignore[arg-type]
            compared = compare_sparql_results(found["json"], results, ignore_duplicates=False, strict=True)
            assert compared.score == 1.0, compared.reason
    texts = [str(getattr(term, "value", "")) for term in terms]
    if all(text and not text.startswith("_:") for text in texts):  # CSV cannot distinguish these
        results = read_sparql_results(found["csv"], format="csv")
        assert compare_sparql_results(found["json"], results, ignore_duplicates=False).score == 1.0


# --- other text is never read as results -----------------------------------------------------------------------------

EMPTY = {"head": {"vars": ["x"]}, "results": {"bindings": []}}


ROWS_OF_SEEDS: list[Row] = [("Oslo", 5, 1.5, 'the "north"'), ("Bergen", 6, 2.5, None)]
SEEDS = [
    *(write(ROWS_OF_SEEDS) for write in FORMS.values()),
    *served([Literal('Oslo, "Norway"\n', language="no"), Literal("5.5"), NamedNode("urn:a")]).values(),
    "[(rdflib.term.URIRef('urn:a'), rdflib.term.Literal('5', datatype=rdflib.term.URIRef('urn:int')))]",
    "[('Oslo', Decimal('1.5'), datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc), b'\\x00', np.int64(5))]",
    "[<Record n=<Node element_id='4:a:0' labels=frozenset({'City'}) properties={'x': 1}> d=neo4j.time.Date(1, 2, 3)>]",
    json.dumps({"data": {"results": [{"name": "Oslo"}]}}),
    json.dumps([{"type": "text", "text": "[[1, 2]]"}]),
    "name,n\nOslo,5\nBergen,\n... (90 more rows)",
]
PIECES = [
    *("\ufeff", "\x00", "\ud800", "\udfff", "\u2028", "𝕏", "\t", "\r", "\n", ",", "'", '"', '"""', "\\", "-", "..."),
    *("[" * 300, "]" * 300, "{" * 300, '{"a":' * 300, "(" * 300, "9" * 5_000, "1e999999", "NaN", "null", "[truncated]"),
    *("```", "\n```csv\n", "|---|", "?x\t?y\n", "_:b", "\\u12", "\\ud83d", "Node", "<Record ", "true"),
    *("<!DOCTYPE a>", "<sparql>", "</sparql>", "&amp;", "&#0;", "]]>"),
]
READERS: list[Callable[[Any], object]] = [
    read_sparql_results,
    *(partial(read_sparql_results, format=name) for name in get_args(OutputFormat)),
]


def mutated(chance: random.Random) -> str:
    """Return a seed text after one to four random changes."""
    text = chance.choice(SEEDS)
    for _ in range(chance.randint(1, 4)):
        at, to = sorted(chance.randint(0, len(text)) for _ in range(2))
        piece, seed = chance.choice(PIECES), chance.choice(SEEDS)
        shorter = [text[:at], text[at:], text[:at] + text[to:], text[:to] + text[at:]]
        longer = [text[:at] + piece + text[at:], text[:at] + chr(chance.randrange(0x250)) + text[at + 1 :], text + seed]
        wrapped = [json.dumps(text), json.dumps({"result": text}), repr([text]), f"```\n{text}\n```"]
        text = chance.choice([*shorter, *longer, *wrapped])[:50_000]
    return text


def check(value: Any) -> None:
    """Read a value in every format; reading may only be rejected."""
    for read in READERS:
        with suppress(UnreadableOutput):
            read(value)
    compared = compare_sparql_results(EMPTY, value)
    assert compared.reason.encode()  # no lone surrogates, which could not be written
    assert (compared.outcome == "undecided") == (compared.cut is not None)
    assert compare_sparql_results(value, value).reason.encode()


@pytest.mark.parametrize("count", [300, pytest.param(3_000, marks=pytest.mark.full)])
def test_mutated_outputs_raise_no_other_error(count: int) -> None:
    chance = random.Random(1_701 + count)
    for _ in range(count):
        check(mutated(chance))


KEYS = [
    "type",
    "value",
    "datatype",
    "xml:lang",
    "head",
    "vars",
    "results",
    "bindings",
    "boolean",
    "labels",
    "properties",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["uri", "triple", "Node", "a", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYS, "s", "_ID", "$type"]), inner),
    max_leaves=12,
)


@given(JSON)
def test_any_json_value_raises_no_other_error(value: Any) -> None:
    check(value)
    check([{"n": value}])
    check({"head": {"vars": ["n"]}, "results": {"bindings": [{"n": value}]}})


HUGE = {
    "brackets": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "arrays closed": "[" * 5_000 + "]" * 5_000,
    "reprs": "[{'a': " * 20_000,
    "escapes": '"' + "\\" * 100_001 + '"',
    "digits": f'[{{"a": {"9" * 100_000}}}]',
    "open cell": 'a,b\n1,"' + '""' * 50_000,
    "rules": "|-|\n" * 50_000,
    "pipes": "a | b\n" * 100_000,
    "fences": "```\n" * 50_000,
    "elements": "<sparql>" * 50_000,
    "marks": "... (1 more " * 20_000,
    "minus": "[" + "-" * 50_000 + "1]",
    "sentences": "The quick brown fox, jumps over the dog.\n" * 25_000,
    "words": "[1] see {x} " * 90_000,
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_and_deep_outputs_are_rejected_quickly(name: str) -> None:
    start = time.process_time()
    with suppress(UnreadableOutput):
        read_sparql_results(HUGE[name])
    assert time.process_time() - start < 5


def test_unknown_format_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="unknown format 'yaml'; the formats are json, xml, csv"):
        read_sparql_results("[]", format="yaml")  # type: ignore[arg-type]
