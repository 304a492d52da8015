"""The forms in which tools of SQL databases give rows, each against SPARQL JSON of the same rows."""

import datetime
import json
from typing import Any
from uuid import UUID

import pytest

from graphrag_eval_lc.matching import UnreadableOutput
from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.outputs import CutOutput
from graphrag_eval_lc.matching.rows import compare_sparql_results, read_sparql_results
from graphrag_eval_lc.matching.rows.row_steps import match_row_steps

XSD = "http://www.w3.org/2001/XMLSchema#"


def term(text: str, datatype: str = "") -> dict[str, str]:
    return {"type": "literal", "value": text, **({"datatype": f"{XSD}{datatype}"} if datatype else {})}


def results(*rows: dict[str, dict[str, str]]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {"head": {"vars": names}, "results": {"bindings": list(rows)}}


TOWNS = results({"name": term("Oslo"), "n": term("5", "integer")}, {"name": term("Bergen"), "n": term("6", "integer")})
OTHER = results({"name": term("Oslo"), "n": term("6", "integer")}, {"name": term("Bergen"), "n": term("5", "integer")})
MYSQL = "+--------+---+\n| name   | n |\n+--------+---+\n| Oslo   | 5 |\n| Bergen | 6 |\n+--------+---+"
GRID = MYSQL.replace("| Bergen", "+--------+---+\n| Bergen").replace("+\n| Oslo", "+\n| Oslo", 1)
PSQL = "  name  | n \n--------+---\n Oslo   | 5\n Bergen | 6\n(2 rows)\n"
BOX = "┌────────┬───┐\n│  name  │ n │\n├────────┼───┤\n│ Oslo   │ 5 │\n│ Bergen │ 6 │\n└────────┴───┘\n"
DUCKDB = BOX.replace("├", "│ varchar│int│\n├", 1).replace("int", "int8")

FORMS = [
    pytest.param("[('Oslo', 5), ('Bergen', 6)]", "an array of arrays as Python shows it", id="tuples"),
    pytest.param(
        "[{'name': 'Oslo', 'n': 5}, {'name': 'Bergen', 'n': 6}]", "row objects as Python shows it", id="dicts"
    ),
    pytest.param("[Row(name='Oslo', n=5), Row(name='Bergen', n=6)]", "row objects as Python shows it", id="Row"),
    pytest.param(
        "[RealDictRow({'name': 'Oslo', 'n': 5}), RealDictRow([('name', 'Bergen'), ('n', 6)])]",
        "row objects as Python shows it",
        id="psycopg",
    ),
    pytest.param(
        "[OrderedDict({'name': 'Oslo', 'n': 5}), {'name': 'Bergen', 'n': 6}]", "row objects", id="OrderedDict"
    ),
    pytest.param(
        "[(np.str_('Oslo'), np.int64(5)), ('Bergen', np.float64(6.0))]", "an array of arrays as Python", id="numpy"
    ),
    pytest.param('{"success": true, "rows": [["Oslo", 5], ["Bergen", 6]], "rowCount": 2}', "under rows", id="wrapper"),
    pytest.param(json.dumps({"result": "[('Oslo', 5), ('Bergen', 6)]"}), "under result", id="repr under a key"),
    pytest.param(
        '{"columns": ["name", "n"], "rows": [["Oslo", 5], ["Bergen", 6]], "rowCount": 2}', "rows beside", id="columns"
    ),
    pytest.param(
        '{"columns": ["name", "n"], "index": [0, 1], "data": [["Oslo", 5], ["Bergen", 6]]}', "rows beside", id="split"
    ),
    pytest.param(
        '{"fields": [{"name": "name", "dataTypeID": 25}, {"name": "n", "dataTypeID": 23}], "command": "SELECT",'
        ' "rows": [{"name": "Oslo", "n": 5}, {"name": "Bergen", "n": 6}]}',
        "rows beside",
        id="node-postgres",
    ),
    pytest.param(
        '{"schema": {"fields": [{"name": "index", "type": "integer"}, {"name": "name"}, {"name": "n"}],'
        ' "primaryKey": ["index"]}, "data": [{"index": 0, "name": "Oslo", "n": 5},'
        ' {"index": 1, "name": "Bergen", "n": 6}]}',
        "rows beside",
        id="pandas table",
    ),
    pytest.param(
        '{"schema": {"fields": [{"name": "name"}, {"name": "n"}]}, "rows": [{"f": [{"v": "Oslo"}, {"v": "5"}]},'
        ' {"f": [{"v": "Bergen"}, {"v": "6"}]}]}',
        "rows beside",
        id="BigQuery",
    ),
    pytest.param(
        '{"meta": [{"name": "name", "type": "String"}, {"name": "n", "type": "UInt8"}], "rows": 2,'
        ' "data": [["Oslo", 5], ["Bergen", 6]], "statistics": {"elapsed": 0.1}}',
        "rows beside",
        id="ClickHouse",
    ),
    pytest.param(
        '{"ok": true, "data": {"columns": ["name", "n"], "rows": [["Oslo", 5], ["Bergen", 6]]}}', "under data"
    ),
    pytest.param('{"name": ["Oslo", "Bergen"], "n": [5, 6]}', "an object of columns", id="columns of cells"),
    pytest.param('{"success": true, "data": {"name": ["Oslo", "Bergen"], "n": [5, 6]}}', "an object of columns"),
    pytest.param('{"name": {"0": "Oslo", "1": "Bergen"}, "n": {"0": 5, "1": 6}}', "an object of columns", id="pandas"),
    pytest.param("{'name': {0: 'Oslo', 1: 'Bergen'}, 'n': {0: 5, 1: 6}}", "an object of columns", id="to_dict"),
    pytest.param('{"0": {"name": "Oslo", "n": 5}, "1": {"name": "Bergen", "n": 6}}', "an object of rows", id="index"),
    pytest.param('{"name": "Oslo", "n": 5}\n{"name": "Bergen", "n": 6}\n', "JSON lines", id="lines"),
    pytest.param(MYSQL, "a table with rules as of MySQL", id="mysql"),
    pytest.param(f"{MYSQL}\n2 rows in set (0.00 sec)\n\n", "a table with rules as of MySQL", id="mysql with count"),
    pytest.param(GRID, "a table with rules as of MySQL", id="a rule below each row"),
    pytest.param(f"Here they are:\n{MYSQL}\nLet me know.", "a table with rules as of MySQL", id="in a sentence"),
    pytest.param(PSQL, "a table of psql", id="psql"),
    pytest.param(BOX, "a table in a box as of SQLite", id="sqlite box"),
    pytest.param(DUCKDB, "a table in a box as of SQLite", id="duckdb"),
    pytest.param(f"```\n{PSQL}```", "a table of psql in a code fence", id="psql in a fence"),
    pytest.param(",name,n\n0,Oslo,5\n1,Bergen,6\n", "W3C CSV", id="pandas CSV"),
    pytest.param(
        "|    | name   |   n |\n|---:|:-------|----:|\n|  0 | Oslo   |   5 |\n|  1 | Bergen |   6 |",
        "a Markdown table",
        id="pandas Markdown",
    ),
]


@pytest.mark.parametrize(("output", "form"), FORMS)
def test_rows_of_sql_match_the_same_rows_and_no_others(output: str, form: str) -> None:
    assert form in read_sparql_results(output).form
    assert compare_sparql_results(TOWNS, output).score == 1.0
    assert compare_sparql_results(output, TOWNS).score == 1.0
    assert compare_sparql_results(OTHER, output).score == 0.0


def test_the_reason_names_the_form() -> None:
    assert "It was read from a table of psql" in compare_sparql_results(TOWNS, PSQL).reason


VALUES = [
    ("Decimal('1.50')", term("1.5", "decimal"), term("1.51", "decimal")),
    ("Decimal('1E+3')", term("1000", "integer"), term("1001", "integer")),
    ("datetime.date(2020, 1, 31)", term("2020-01-31", "date"), term("2020-01-30", "date")),
    (
        repr(datetime.datetime(2020, 1, 1)),
        term("2020-01-01T00:00:00", "dateTime"),
        term("2020-01-01T00:00:01", "dateTime"),
    ),
    (
        repr(datetime.datetime(2020, 1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))),
        term("2020-01-01T00:00:00Z", "dateTime"),
        term("2020-01-01T01:00:00Z", "dateTime"),
    ),
    (
        "datetime.datetime(2020, 7, 1, 2, 0, tzinfo=zoneinfo.ZoneInfo(key='Europe/Oslo'))",
        term("2020-07-01T00:00:00Z", "dateTime"),
        term("2020-07-01T01:00:00Z", "dateTime"),
    ),
    ("Timestamp('2020-01-01 00:00:00')", term("2020-01-01T00:00:00", "dateTime"), term("2020-01-01", "date")),
    ("'2020-01-01 00:00:00.000000'", term("2020-01-01T00:00:00", "dateTime"), term("2020-01-01T00:01:00", "dateTime")),
    (repr(datetime.time(10, 30)), term("10:30:00", "time"), term("10:31:00", "time")),
    (repr(datetime.timedelta(days=1, minutes=1)), term("PT24H1M", "duration"), term("P1D", "duration")),
    (repr(datetime.timedelta(seconds=-90)), term("-PT1M30S", "duration"), term("PT1M30S", "duration")),
    (repr(UUID(int=5)), term(str(UUID(int=5))), term(str(UUID(int=6)))),
    ("b'ab'", term("ab"), term("b'ab'")),
    (repr(bytes([0, 255])), term("00FF", "hexBinary"), term("00FE", "hexBinary")),
    ("np.True_", term("true", "boolean"), term("false", "boolean")),
    ("IPv4Address('10.0.0.1')", term("10.0.0.1"), term("10.0.0.2")),
]


@pytest.mark.parametrize(("shown", "same", "other"), VALUES)
def test_values_of_drivers_are_what_they_mean(shown: str, same: dict[str, str], other: dict[str, str]) -> None:
    output = f"[({shown}, 'Oslo')]"
    assert compare_sparql_results(results({"x": same, "name": term("Oslo")}), output).score == 1.0
    assert compare_sparql_results(results({"x": other, "name": term("Oslo")}), output).score == 0.0


def test_tuples_of_drivers_values_are_read_with_their_types_beside_sparql() -> None:
    output = "[(datetime.date(2020, 1, 31), Decimal('1.50'), 'Oslo')]"
    columns = read_sparql_results(output).columns
    types = [columns[f"column {at}"].shapes[1] for at in (1, 2)]
    assert types == [term("", name)["datatype"] for name in ("date", "decimal")]
    expected = results({"on": term("2020-01-31", "date"), "price": term("1.5", "decimal"), "name": term("Oslo")})
    assert compare_sparql_results(expected, output).score == 1.0
    other = results({"on": term("2020-01-30", "date"), "price": term("1.5", "decimal"), "name": term("Oslo")})
    assert compare_sparql_results(other, output).score == 0.0


@pytest.mark.parametrize("value", ["None", "NaT"])
def test_a_missing_value_is_unbound(value: str) -> None:
    assert compare_sparql_results(results({"name": term("Oslo")}), f"[('Oslo', {value})]").score == 1.0
    assert read_sparql_results(f"[('Oslo', {value})]").columns["column 2"].texts == [""]


def test_sqlite_s_booleans_are_numbers_so_a_count_of_one_is_not_true() -> None:
    assert compare_sparql_results(results({"x": term("true", "boolean")}), "[(1,)]").score == 0.0
    assert compare_sparql_results(results({"x": term("true", "boolean")}), "[(True,)]").score == 1.0


def test_nan_is_missing_among_texts_and_a_number_among_numbers() -> None:
    missing = results({"name": term("Oslo"), "n": term("NaN", "double")}, {"n": term("5.0", "double")})
    assert compare_sparql_results(missing, '[{"name": "Oslo", "n": NaN}, {"name": NaN, "n": 5.0}]').score == 1.0


@pytest.mark.parametrize("output", ["", " \n"])
def test_an_empty_text_of_langchain_s_tool_is_no_rows(output: str) -> None:
    nothing = StepView({"name": "sql_db_query", "output": "[]"})
    found = match_row_steps(nothing, StepView({"name": "sql_db_query", "output": output}))
    assert found.score == 1.0
    assert match_row_steps(StepView({"name": "sql_db_query", "output": ""}), nothing).score == 1.0
    towns = StepView({"name": "sql_db_query", "output": TOWNS})
    assert match_row_steps(towns, StepView({"name": "sql_db_query", "output": output})).score == 0.0
    renamed = StepView({"name": "rows", "output": output}, tool="sql_db_query")
    assert match_row_steps(nothing, renamed).score == 1.0
    with pytest.raises(UnreadableOutput):
        read_sparql_results(output)
    assert match_row_steps(nothing, StepView({"name": "run_query", "output": output})).unreadable


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            "Error: (sqlite3.OperationalError) no such table: town\n[SQL: SELECT * FROM town WHERE n = :n]\n"
            "[parameters: [{'n': 5}, {'n': 6}]]\n(Background on this error at: https://sqlalche.me/e/20/e3q8)",
            "an error: (sqlite3.OperationalError) no such table: town",
        ),
        ('(psycopg2.errors.UndefinedTable) relation "town" does not exist', "an error: (psycopg2.errors.Undefined"),
        ("ERROR 1146 (42S02): Table 'a.town' doesn't exist", "an error: ERROR 1146"),
        ("Error: no such column: n", "an error: no such column: n"),
    ],
)
def test_an_error_is_never_no_rows_and_says_what_it_is(output: str, said: str) -> None:
    with pytest.raises(UnreadableOutput) as raised:
        read_sparql_results(output)
    assert said in str(raised.value)
    step = StepView({"name": "sql_db_query", "output": output})
    for reference in ("[]", "[{'n': 5}, {'n': 6}]"):
        assert match_row_steps(StepView({"name": "sql_db_query", "output": reference}), step).score == 0.0


def test_a_text_that_the_tool_cut_is_told_in_the_reason() -> None:
    long = "A town by the sea. " * 30
    cut = str([(long[:297].rsplit(" ", 1)[0] + "...",)])
    step = StepView({"name": "sql_db_query", "output": cut})
    found = match_row_steps(StepView({"name": "sql_db_query", "output": str([(long,)])}), step)
    assert found.score == 0.0
    assert "max_string_length" in str(found.reason())
    assert match_row_steps(step, step).score == 1.0


@pytest.mark.parametrize(
    "output",
    [
        '{"columns": ["a"], "rows": [[1]], "data": [[2]]}',
        '{"columns": ["a", "b"], "rows": [[1, 2], [3]]}',
        '{"a": [1, 2], "b": [3]}',
        '{"a": {"0": 1}, "b": {"x": 1}}',
        '{"0": {"0": 1}}',
        '{"messages": []}',
        '{"error": ["no such table"]}',
        '{"text": ["Oslo"]}',
        '{"a": 1}\nOslo is a town.\n{"a": 2}',
        f"{MYSQL}\n\n{MYSQL}",
        "Towns\n-----\nOslo\nBergen",
        "Towns | people\n------+-------\n",
        "a +---+ sign and | bars",
        "[(__import__('os'),)]",
        "[(Decimal('1E+999999999'),)]",
        "[(Decimal('x'),)]",
        "[(datetime.date(2020, 2, 31),)]",
        "[(datetime.datetime(2020, 1, 1, tzinfo='x'),)]",
        "[(datetime.timedelta(days=99999999999),)]",
        "[(zoneinfo.ZoneInfo(key='../../etc/passwd'),)]",
        "[(<memory at 0x7f0>,)]",
        "[(UUID(5),)]",
        "Empty set of towns",
    ],
)
def test_what_is_no_table_stays_unreadable(output: str) -> None:
    with pytest.raises(UnreadableOutput):
        read_sparql_results(output)


@pytest.mark.parametrize("table", [MYSQL, f"{MYSQL}\n2 rows in set (0.00 sec)", PSQL, BOX, DUCKDB])
def test_no_beginning_of_a_shell_s_table_is_read_as_fewer_rows(table: str) -> None:
    cuts = 0
    for length in range(1, len(table)):
        try:
            found = read_sparql_results(table[:length])
        except CutOutput:
            cuts += 1
        except UnreadableOutput:
            pass
        else:
            assert found.row_count == 2
    assert cuts


@pytest.mark.parametrize(
    "output",
    [
        MYSQL.replace("| Oslo   | 5 |\n", "") + "\n2 rows in set (0.00 sec)",
        PSQL.replace(" Oslo   | 5\n", ""),
        BOX.replace("│ Bergen │ 6 │", "│   ·    │ · │"),
        '{"name": "Oslo", "n": 5}\n{"name": "Bergen", "n": 6}\n{"name": "Tro',
        "[('Oslo', datetime.date(2020, 1",
        "[('Oslo', Decimal('1.",
    ],
)
def test_tables_that_lack_rows_are_cut(output: str) -> None:
    with pytest.raises(CutOutput):
        read_sparql_results(output)


@pytest.mark.parametrize(
    "output",
    [
        '{"columns": ["name"], "rows": []}',
        '{"columns": [], "rows": [], "rowCount": 0}',
        " name \n------\n(0 rows)\n",
        "Empty set (0.00 sec)",
        '{"success": true, "rows": [], "rowCount": 0}',
    ],
)
def test_no_rows_are_told_by_their_form(output: str) -> None:
    assert read_sparql_results(output).row_count == 0
    assert compare_sparql_results("[]", output).score == 1.0


def test_bars_in_cells_of_shells_are_told_from_edges_by_their_place() -> None:
    mysql = "+-------+---+\n| name  | n |\n+-------+---+\n| O | o | 5 |\n+-------+---+"
    psql = " name  | n \n-------+---\n O | o | 5\n(1 row)\n"
    for output in (mysql, psql):
        assert compare_sparql_results([["O | o", 5]], output).score == 1.0


def test_null_is_unbound_where_shells_write_it() -> None:
    assert read_sparql_results(MYSQL.replace("| 6", "|NULL")).columns["n"].texts == ["5", ""]
