"""Equal rows in the forms that Python and pandas write: booleans in tables of text, JSON lines with lists."""

import pytest

from graphrag_eval_lc.matching import compare_sparql_results, match_steps
from graphrag_eval_lc.matching.outputs import UnreadableOutput
from graphrag_eval_lc.matching.rows.readers import read_sparql_results

BOOLEANS = '[{"name": "Oslo", "live": true}, {"name": "Bergen", "live": false}]'


def _score(reference: str, actual: str) -> float:
    return compare_sparql_results(read_sparql_results(reference), read_sparql_results(actual)).score


@pytest.mark.parametrize(
    "table",
    [
        "name,live\nOslo,True\nBergen,False\n",
        "name\tlive\nOslo\tTrue\nBergen\tFalse\n",
        "| name | live |\n|---|---|\n| Oslo | True |\n| Bergen | False |\n",
        "  name  | live  \n--------+-------\n Oslo   | True  \n Bergen | False \n(2 rows)\n",
    ],
)
def test_booleans_as_python_writes_them_in_a_table_are_booleans(table: str) -> None:
    assert _score(BOOLEANS, table) == 1.0
    assert _score(table, BOOLEANS) == 1.0
    assert _score(BOOLEANS.replace("false", "true"), table) == 0.0


def test_an_unbound_cell_may_stand_among_the_booleans() -> None:
    assert _score('[{"a": 1, "b": true}, {"a": 2, "b": null}]', "a,b\n1,True\n2,\n") == 1.0


@pytest.mark.parametrize("table", ["name,b\nOslo,True\n", "| name | b |\n|---|---|\n| Oslo | True |\n"])
def test_true_in_a_table_still_equals_the_text_that_is_written_so(table: str) -> None:
    assert _score('[{"name": "Oslo", "b": "True"}]', table) == 1.0
    assert _score('[{"name": "Oslo", "b": "False"}]', table) == 0.0


def test_true_among_other_texts_is_a_text() -> None:
    results = read_sparql_results("name,b\nOslo,True\nBergen,Maybe\n")
    assert results.columns["b"].texts == ["True", "Maybe"]


def test_json_lines_may_have_lists_and_maps_in_their_cells() -> None:
    lines = '{"name": "Oslo", "tags": ["a", "b"], "at": {"n": 1}}\n{"name": "Bergen", "tags": [], "at": null}\n'
    rows = '[{"name": "Oslo", "tags": ["a", "b"], "at": {"n": 1}}, {"name": "Bergen", "tags": [], "at": null}]'
    assert read_sparql_results(lines).form == "JSON lines"
    assert _score(rows, lines) == 1.0
    assert _score(rows, lines.replace('"b"', '"c"')) == 0.0


def test_two_results_on_two_lines_are_no_rows() -> None:
    with pytest.raises(UnreadableOutput):
        read_sparql_results('{"head": {}, "boolean": true}\n{"head": {}, "boolean": false}\n')


@pytest.mark.parametrize(
    ("output", "score"), [("", 1.0), ("[]", 1.0), (" \n", 1.0), ("[(1,)]", 0.0), ("Error: no", 0.0)]
)
def test_the_empty_text_of_sql_db_query_is_no_rows_as_a_reference_too(output: str, score: float) -> None:
    actual = {"name": "sql_db_query", "args": {}, "id": "1", "status": "success", "output": output}
    assert match_steps([[{"name": "sql_db_query", "output": ""}]], [actual]).steps_score == score


@pytest.mark.parametrize(
    "output", ['{"columns": ["a"], "data": []}', '{"head": {"vars": ["x"]}, "results": {"bindings": []}}']
)
def test_named_columns_without_rows_are_worth_something_beside_a_reference_that_names_none(output: str) -> None:
    actual = {"name": "cypher_query", "args": {}, "id": "1", "status": "success", "output": output}
    match = match_steps([[{"name": "cypher_query", "output": "[]"}]], [actual], grading="graded")
    assert match.steps_score == 0.5
    own = match_steps([[{"name": "cypher_query", "output": "[]"}]], [{**actual, "output": "[]"}], grading="graded")
    assert own.steps_score == 1.0


@pytest.mark.parametrize("blank", ["\n", " \r\n\t\n", "\ufeff\n\n"])
@pytest.mark.parametrize(
    "table", ["name,n\nurn:a,1\n", "name\tn\nurn:a\t1\n", "?name\t?n\n<urn:a>\t1\n", "?name\nurn:a\n", "name\nurn:a\n"]
)
def test_a_table_may_follow_blank_lines(blank: str, table: str) -> None:
    assert _score(table, blank + table) == 1.0
    assert read_sparql_results(blank + table).row_count == 1


XML = (
    '<sparql xmlns="http://www.w3.org/2005/sparql-results#"><head><variable name="n"/></head><results><result>'
    '<binding name="n"><literal>1</literal></binding></result></results></sparql>'
)


@pytest.mark.parametrize("text", [f"{XML}\nThat is 1 row.", f'<?xml version="1.0"?>{XML} Done', f"Here: {XML} Done"])
def test_xml_may_stand_in_front_of_a_sentence(text: str) -> None:
    assert _score(XML, text) == 1.0
    with pytest.raises(UnreadableOutput):
        read_sparql_results(f"{text} {XML}")
    with pytest.raises(UnreadableOutput, match=r"no XML|without results"):
        read_sparql_results(f"{text.replace('</results>', '')} end")
