"""What is read although it is not as the standard has it, and what cannot be read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_eval_lc.matching.matchers import StepView, UnreadableOutput
from graphrag_eval_lc.matching.rows import SparqlResults, compare_sparql_results, parse_sparql_results
from graphrag_eval_lc.matching.rows.reference_check import check_rows_step
from graphrag_eval_lc.matching.rows.results import results_from_bindings
from graphrag_eval_lc.matching.rows.row_steps import ROWS
from graphrag_eval_lc.matching.rows.terms import DEEPEST_TRIPLE, MOST_PATHS

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
OSLO = {"type": "literal", "value": "Oslo"}
URN = {"type": "uri", "value": "urn:a"}


def select(variables: list[str], *bindings: Any) -> dict[str, Any]:
    return {"head": {"vars": variables}, "results": {"bindings": list(bindings)}}


def column(*cells: Any) -> SparqlResults:
    """Return results of one column ``n``."""
    return parse_sparql_results(select(["n"], *({"n": cell} for cell in cells)))


def compared(one: Any, other: Any, **options: Any) -> float:
    return compare_sparql_results(select(["n"], {"n": one}), select(["n"], {"n": other}), **options).score


@pytest.mark.parametrize(
    "cell", [None, {"type": "literal", "value": None}, {"value": None}, {"type": "triple", "value": None}]
)
def test_a_null_is_unbound_and_needs_no_note(cell: Any) -> None:
    results = column(OSLO, cell)
    assert [results.columns["n"].readable(row) for row in (0, 1)] == ["Oslo", None]
    assert results.notes == ()
    mine, others = select(["n", "m"], {"m": OSLO}), select(["n", "m"], {"n": cell, "m": OSLO})
    assert compare_sparql_results(mine, others, strict=True).score == 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [(5, "5"), (-1.5, "-1.5"), (5.0, "5.0"), (True, "true"), (float("-inf"), "-INF"), (float("nan"), "NaN")],
)
@pytest.mark.parametrize("datatype", [{}, {"datatype": f"{XSD}double"}])
def test_a_number_or_boolean_where_a_text_belongs_is_read_as_json_writes_it(
    value: Any, text: str, datatype: dict[str, str]
) -> None:
    results = column(OSLO, {"type": "literal", "value": value, **datatype})
    assert results.columns["n"].texts == ["Oslo", text]
    assert results.notes == ('1 cell whose "value" is a number or boolean instead of a text (first: "n" in row 2)',)


@pytest.mark.parametrize(
    ("cell", "kind", "text"),
    [
        ("Oslo", "literal", "Oslo"),
        ("12:30", "literal", "12:30"),
        ("http://ex.org/Oslo", "uri", "http://ex.org/Oslo"),
        ("see http://ex.org/Oslo", "literal", "see http://ex.org/Oslo"),
        ("_:b0", "bnode", "b0"),
        (5, "literal", "5"),
        (False, "literal", "false"),
    ],
)
def test_a_bare_value_is_a_term_without_a_type(cell: Any, kind: str, text: str) -> None:
    for given_cell, about in (
        (cell, "that is a bare value instead of an RDF term"),
        ({"value": cell}, 'without a "type"'),
    ):
        results = column(given_cell)
        assert (results.columns["n"].kind(0), results.columns["n"].texts) == (kind, [text])
        assert f'1 cell {about} (first: "n" in row 1)' in results.notes


def test_numbers_that_stand_bare_are_compared_by_value() -> None:
    assert compared({"type": "literal", "value": "5.0", "datatype": f"{XSD}decimal"}, 5) == 1.0
    assert compared({"type": "literal", "value": "5"}, 6) == 0.0


def test_a_cell_without_a_type_but_with_a_datatype_is_a_literal() -> None:
    assert column({"value": "http://ex.org", "datatype": f"{XSD}string"}).columns["n"].kind(0) == "literal"
    assert column({"type": "", "value": "Oslo", "xml:lang": "no"}).columns["n"].kind(0) == "literal"


def test_an_empty_object_is_unbound() -> None:
    results = column({}, OSLO, {})
    assert results.columns["n"].readable(0) is None
    assert results.notes == ('2 cells that are empty objects, read as unbound (first: "n" in row 1)',)


def test_the_notes_count_the_cells_of_all_columns() -> None:
    untyped = {"value": "Oslo"}
    results = parse_sparql_results(select(["a", "b"], {"a": OSLO, "b": untyped}, {"a": untyped, "b": untyped}))
    assert results.notes == ('3 cells without a "type" (first: "a" in row 2)',)


def test_the_language_tag_may_stand_under_lang_and_null_is_none() -> None:
    tagged = {"type": "literal", "value": "Oslo", "xml:lang": "no"}
    for same in (
        {"type": "literal", "value": "Oslo", "lang": "NO"},
        {"type": "literal", "value": "Oslo", "lang": "no", "datatype": f"{RDF}langString"},
        {"type": "literal", "value": "Oslo", "xml:lang": "no", "datatype": None},
    ):
        assert compared(tagged, same, strict=True) == 1.0
        assert column(OSLO, same).notes == ()
    assert compared(OSLO, {**OSLO, "datatype": None, "xml:lang": None}, strict=True) == 1.0
    assert compared(tagged, {"type": "literal", "value": "Oslo", "lang": "nb"}, strict=True) == 0.0


@pytest.mark.parametrize("key", ["its:dir", "direction"])
def test_a_base_direction_is_read_and_counts_where_terms_are_compared(key: str) -> None:
    tagged = {"type": "literal", "value": "Oslo", "xml:lang": "ar"}
    assert compared(tagged, tagged | {key: "rtl"}) == 1.0
    assert compared(tagged | {"its:dir": "rtl"}, tagged | {key: "rtl"}, strict=True) == 1.0
    assert compared(tagged, tagged | {key: "rtl"}, strict=True) == 0.0
    assert compared(OSLO, OSLO | {"x": {}}, strict=True) == 1.0


@pytest.mark.parametrize("head", [{}, {"head": {}}, {"head": None}, {"head": {"vars": None}}])
def test_without_variables_in_a_head_the_columns_are_those_of_the_rows(head: Any) -> None:
    results = parse_sparql_results({**head, "results": {"bindings": [{"b": OSLO}, {"a": OSLO, "b": OSLO}]}})
    assert results.variables == ("b", "a")
    assert 'no list "vars"' in results.notes[0]


def test_bindings_of_a_program_are_read_as_those_of_json() -> None:
    results = results_from_bindings(["m", "n", "m"], [{"n": OSLO}, {}], notes=["read from a table"])
    assert (results.variables, results.row_count, results.notes) == (("m", "n"), 2, ("read from a table",))
    assert results == results_from_bindings(["m", "n"], [{"n": OSLO}, {}], notes=["read from a table"])


def triple(subject: Any, predicate: Any, object_: Any, keys: str = "subject predicate object") -> dict[str, Any]:
    return {"type": "triple", "value": dict(zip(keys.split(), (subject, predicate, object_), strict=True))}


@pytest.mark.parametrize("keys", ["subject predicate object", "s p o", "subject property object"])
def test_a_triple_term_has_its_parts_as_cells_and_is_shown_as_one(keys: str) -> None:
    inner = triple({"type": "bnode", "value": "b0"}, URN, OSLO, keys)
    results = column(triple(inner, URN, {"type": "literal", "value": "5"}, keys), OSLO)
    found = results.columns["n"]
    assert found.readable(0) == '<<( <<( _:b0 urn:a "Oslo" )>> urn:a "5" )>>'
    assert {path: part.readable(0) for path, part in found.parts.items()} == {
        "o": "5",
        "p": "urn:a",
        "s": '<<( _:b0 urn:a "Oslo" )>>',
        "so": "Oslo",
        "sp": "urn:a",
        "ss": "_:b0",
    }
    assert {part.readable(1) for part in found.parts.values()} == {None}
    assert (found.kind(0), found.kind(1), found.readable(1)) == ("triple", "literal", "Oslo")


def test_the_parts_of_triples_are_read_as_leniently_as_cells() -> None:
    results = column({"value": {"s": "urn:a", "p": "urn:p", "o": 5}})
    assert results.columns["n"].readable(0) == '<<( urn:a urn:p "5" )>>'
    assert [note.split(" (")[0] for note in results.notes] == [
        '1 cell without a "type"',
        "3 cells that are bare values instead of RDF terms",
    ]


def nested(depth: int) -> Any:
    term: Any = OSLO
    for _ in range(depth):
        term = triple(URN, URN, term)
    return term


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ([1], "is a list instead of an RDF term"),
        (b"a", "is a bytes instead of an RDF term"),
        ({"type": "literal"}, 'has no text as "value"'),
        ({"type": "literal", "value": {}}, 'has no text as "value"'),
        ({"type": "literal", "value": []}, 'has no text as "value"'),
        ({"type": [], "value": "Oslo"}, 'has a "type" that is no text'),
        ({"type": 5, "value": "Oslo"}, 'has a "type" that is no text'),
        (OSLO | {"datatype": 5}, 'has a "datatype" that is no text'),
        (OSLO | {"xml:lang": []}, 'has a "xml:lang" that is no text'),
        (OSLO | {"lang": 5}, 'has a "lang" that is no text'),
        ({"type": "literal", "value": "\ud800"}, "lone surrogate"),
        pytest.param(10**5_000, "too many digits", id="digits"),
        ({"type": "triple", "value": "<<a b c>>"}, "is a triple term without its parts"),
        ({"type": "triple"}, "is a triple term without its parts"),
        (triple(URN, URN, None), "is a triple term without object"),
        (triple(URN, {}, URN), "is a triple term without predicate"),
        (triple(URN, URN, [1]), "is a list instead of an RDF term"),
        (nested(DEEPEST_TRIPLE + 1), f"nested more than {DEEPEST_TRIPLE} deep"),
    ],
)
def test_a_column_with_a_cell_that_is_no_term_is_kept_by_name_with_its_fault(cell: Any, fault: str) -> None:
    results = parse_sparql_results(select(["m", "n", "o"], {"m": OSLO, "n": OSLO}, {"m": OSLO, "n": cell}))
    assert (results.variables, tuple(results.columns)) == (("m", "n", "o"), ("m", "o"))
    assert fault in results.faults["n"]
    assert results.fault_of("n").startswith("column `n` cannot be read: its cell in row 2 ")
    assert results.fault_of("n").encode()


def test_triple_terms_may_be_nested_deep_but_not_without_bounds() -> None:
    assert compared(nested(DEEPEST_TRIPLE), nested(DEEPEST_TRIPLE)) == 1.0
    shared: Any = OSLO
    for _ in range(DEEPEST_TRIPLE):
        shared = triple(shared, URN, shared)
    assert "too many parts" in column(shared).faults["n"]
    ways = []
    for at in range(MOST_PATHS):
        term: Any = OSLO
        for step in f"{at:012b}":
            term = triple(term, URN, OSLO) if step == "0" else triple(OSLO, URN, term)
        ways.append(term)
    assert "nested in too many ways" in column(*ways).faults["n"]


def test_the_notes_of_a_column_that_cannot_be_read_do_not_count() -> None:
    results = parse_sparql_results(select(["m", "n"], {"m": OSLO, "n": 5}, {"m": OSLO, "n": [5]}))
    assert results.notes == ()


@pytest.mark.parametrize(
    "junk", [[1], {"type": "literal"}, triple(URN, URN, URN), 5, "\ud800", {"type": "", "value": "x"}]
)
def test_what_stands_in_columns_that_do_not_count_never_voids_a_comparison(junk: Any) -> None:
    reference = select(["n", "free"], {"n": OSLO, "free": junk})
    actual = select(["free", "m"], {"free": junk, "m": OSLO})
    assert compare_sparql_results(reference, actual, ["n"]).score == 1.0
    assert compare_sparql_results(reference, actual, ["n"], ordered=True, strict=True).score == 1.0
    other = select(["free", "m"], {"free": junk, "m": URN})
    found = compare_sparql_results(reference, other, ["n"])
    assert (found.score, found.unreadable) == (0.0, None)


def test_a_mismatch_names_the_columns_that_cannot_be_read() -> None:
    actual = select(["m", "n"], {"m": URN, "n": OSLO}, {"m": URN, "n": [1]})
    found = compare_sparql_results(select(["n"], {"n": OSLO}), actual)
    assert "column `n` cannot be read: its cell in row 2 is a list instead of an RDF term" in found.reason
    assert found.unreadable is None


def test_too_few_columns_that_can_be_read_are_unreadable() -> None:
    reference = select(["m", "n"], {"m": URN, "n": OSLO})
    found = compare_sparql_results(reference, select(["m", "n"], {"m": URN, "n": [1]}))
    assert found.unreadable == "column `n` cannot be read: its cell in row 1 is a list instead of an RDF term"
    assert found.unreadable in found.reason
    assert compare_sparql_results(select(["n"], {"n": OSLO}), select(["n"], {"n": [1]})).unreadable
    fewer = compare_sparql_results(reference, select(["n"], {"n": [1]}))
    assert (fewer.score, fewer.unreadable) == (0.0, None)


def test_a_required_column_that_cannot_be_read_is_the_fault_of_the_reference() -> None:
    reference = select(["m", "n"], {"m": URN, "n": [1]})
    for required in (None, ["n"]):
        found = compare_sparql_results(reference, select(["n"], {"n": OSLO}), required)
        assert found.reason.startswith("The reference output in the dataset is at fault: its column `n` cannot be read")
        assert found.unreadable is None
        step = StepView({"output": json.dumps(reference), "required_columns": required})
        assert [finding.what[:10] for finding in check_rows_step(step)] == ["column `n`"]
    assert list(check_rows_step(StepView({"output": json.dumps(reference), "required_columns": ["m"]}))) == []


def test_the_reason_of_a_match_and_of_a_mismatch_tells_the_allowances() -> None:
    reference, untyped = select(["n"], {"n": OSLO}), select(["n"], {"n": {"value": "Oslo"}})
    note = '1 cell without a "type" (first: "n" in row 1)'
    assert compare_sparql_results(reference, untyped).reason == f"The only row matches; read with allowances: {note}."
    assert compare_sparql_results(untyped, reference).reason == (
        f"The only row matches; the reference was read with allowances: {note}."
    )
    mismatch = compare_sparql_results(select(["n"], {"n": URN}), untyped)
    assert mismatch.score == 0.0
    assert mismatch.reason.endswith(f"; read with allowances: {note}.")


def test_a_drafted_step_requires_only_columns_that_can_be_read() -> None:
    assert ROWS.draft is not None
    output = select(["m", "n"], {"m": URN, "n": [1]})
    step = ROWS.draft({"name": "sparql_query", "args": {}, "output": json.dumps(output)}, [])
    assert step is not None
    assert step["required_columns"] == ["m"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(URN),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "value", "datatype", "xml:lang", "lang", "its:dir", "s", "p", "o"]),
            inner,
            max_size=4,
        )
        | st.builds(triple, inner, inner, inner)
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["", "uri", "literal", "bnode", "triple"]), "value": inner},
            optional={"datatype": inner, "xml:lang": inner},
        )
    ),
    max_leaves=8,
)
CELLS: list[Any] = [OSLO, URN, {"type": "bnode", "value": "b"}, {"type": "literal", "value": "5"}, None]
TABLES = st.lists(st.tuples(*[st.sampled_from(CELLS)] * 2), min_size=1, max_size=3)
MODES: list[dict[str, Any]] = [{}, {"ordered": True}, {"ignore_duplicates": False}, {"strict": True}]


def _rows(table: list[tuple[Any, ...]], names: str) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in zip(names, row, strict=False) if cell is not None} for row in table]


@pytest.mark.full
@given(TABLES, TABLES, st.lists(JSON, min_size=3, max_size=3), st.integers(0, 2), st.sampled_from(MODES))
def test_a_free_column_of_anything_never_turns_a_match_into_a_mismatch_nor_raises(
    mine: list[tuple[Any, ...]], others: list[tuple[Any, ...]], junk: list[Any], at: int, mode: dict[str, Any]
) -> None:
    reference = select(["a", "b"], *_rows(mine, "ab"))
    actual = select(["x", "y"], *_rows(others, "xy"))
    bindings = [{**row, "free": cell} for row, cell in zip(actual["results"]["bindings"], junk, strict=False)]
    names = ["x", "y"]
    names.insert(at, "free")
    before = compare_sparql_results(reference, actual, ["a", "b"], **mode)
    after = compare_sparql_results(reference, select(names, *bindings), ["a", "b"], **mode)
    assert after.score >= before.score  # the column may happen to hold what is wanted
    assert after.reason.encode()
    assert after.score == 1.0 or "free" in after.columns.values() or after.score == before.score
    free_reference = select(
        ["free", "a", "b"], *({**row, "free": cell} for row, cell in zip(_rows(mine, "ab"), junk, strict=False))
    )
    assert compare_sparql_results(free_reference, actual, ["a", "b"], **mode).score == before.score


@given(st.lists(JSON, min_size=1, max_size=3), st.lists(JSON, min_size=1, max_size=3), st.sampled_from(MODES))
def test_columns_of_anything_that_can_be_read_match_themselves(
    cells: list[Any], others: list[Any], mode: dict[str, Any]
) -> None:
    mine, theirs = (select(["n"], *({"n": cell} for cell in each)) for each in (cells, others))
    found = compare_sparql_results(mine, mine, **mode)
    assert (found.score == 1.0) == (not parse_sparql_results(mine).faults)
    for one, other in ((mine, theirs), (theirs, mine)):
        assert compare_sparql_results(one, other, **mode).reason.endswith(".")


@given(JSON)
def test_a_column_is_read_alike_from_text_and_from_objects(cell: Any) -> None:
    output = select(["n"], {"n": cell})
    try:
        text = json.dumps(output, allow_nan=False)
    except ValueError:
        return
    try:
        text.encode()
        read = parse_sparql_results(text)
    except UnreadableOutput:
        return
    assert read == parse_sparql_results(output)
