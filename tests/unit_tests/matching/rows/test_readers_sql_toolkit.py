"""What LangChain's SQL toolkit returns for a real SQLite file, compared as rows."""

from pathlib import Path
from typing import Any

import pytest

from graphrag_eval_lc.matching.matchers import StepView
from graphrag_eval_lc.matching.rows.row_steps import match_row_steps

pytestmark = pytest.mark.full

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture
def query(tmp_path: Path) -> Any:
    """Return LangChain's tool sql_db_query for a table of three towns."""
    import sqlite3

    from langchain_community.utilities import SQLDatabase

    path = tmp_path / "towns.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE town (name TEXT, people INTEGER, area NUMERIC(8, 2), founded DATE, seen DATETIME, about TEXT)"
        )
        connection.executemany(
            "INSERT INTO town VALUES (?, ?, ?, ?, ?, ?)",
            [
                ("Oslo", 709_037, 480.75, "1040-01-01", "2024-05-17 10:00:00", "A capital. " * 60),
                ("Bergen's", 291_940, 464.71, "1070-01-01", "2024-05-17 11:30:00", None),
                ('"Tromsø"', 77_992, 2_521.27, "1794-06-20", "2024-05-17 12:00:00", "North"),
            ],
        )
    connection.close()
    from langchain_community.tools.sql_database.tool import QuerySQLDatabaseTool

    return QuerySQLDatabaseTool(db=SQLDatabase.from_uri(f"sqlite:///{path}"))


def score(reference: Any, tool: Any, sql: str) -> Any:
    actual = StepView({"name": tool.name, "args": {"query": sql}, "output": tool.invoke({"query": sql})})
    return match_row_steps(StepView({"name": "sql_db_query", "output": reference}), actual)


def rows(*cells: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    names = [f"c{at}" for at in range(len(cells[0]))]
    bindings = [
        {
            name: {"type": "literal", "value": text, "datatype": XSD + datatype}
            for name, (text, datatype) in zip(names, row, strict=True)
        }
        for row in cells
    ]
    return {"head": {"vars": names}, "results": {"bindings": bindings}}


TOWNS = rows(
    (("77992", "integer"), ('"Tromsø"', "string"), ("2024-05-17T12:00:00", "dateTime"), ("1794-06-20", "date")),
    (("291940", "integer"), ("Bergen's", "string"), ("2024-05-17T11:30:00", "dateTime"), ("1070-01-01", "date")),
    (("709037", "integer"), ("Oslo", "string"), ("2024-05-17T10:00:00", "dateTime"), ("1040-01-01", "date")),
)


def test_rows_match_with_columns_in_any_order(query: Any) -> None:
    assert score(TOWNS, query, "SELECT name, people, founded, seen, area FROM town").score == 1.0
    assert score(TOWNS, query, "SELECT name, people, founded, seen FROM town WHERE people > 100000").score == 0.0
    assert score(TOWNS, query, "SELECT name, people + 1, founded, seen FROM town").score == 0.0


def test_reason_reports_texts_truncated_by_the_tool(query: Any) -> None:
    about = rows((("A capital. " * 60, "string"), ("Oslo", "string")))
    found = score(about, query, "SELECT about, name FROM town WHERE name = 'Oslo'")
    assert found.score == 0.0
    assert "max_string_length" in found.reason()


def test_named_rows_and_the_toolkits_other_types_match(query: Any) -> None:
    from sqlalchemy import column, literal_column, select, table

    statement = select(literal_column("1.50").label("area"), column("name")).select_from(table("town")).limit(1)
    with_names = query.db.run(statement, include_columns=True)
    assert with_names.startswith("[{")
    actual = StepView({"name": "sql_db_query", "output": with_names})
    expected = rows((("Oslo", "string"), ("1.5", "decimal")))
    assert match_row_steps(StepView({"name": "sql_db_query", "output": expected}), actual).score == 1.0


def test_typed_columns_are_python_decimals_and_times(query: Any) -> None:
    from sqlalchemy import DATE, DATETIME, NUMERIC, column, select, table

    town = table(
        "town", column("name"), column("area", NUMERIC(8, 2)), column("founded", DATE), column("seen", DATETIME)
    )
    output = query.db.run(select(town).limit(1).where(town.c.name == "Oslo"))
    assert "Decimal(" in output
    assert "datetime.date(" in output
    seen = ("2024-05-17T10:00:00", "dateTime")
    expected = rows((("480.75", "decimal"), seen, ("1040-01-01", "date"), ("Oslo", "string")))
    actual = StepView({"name": "sql_db_query", "output": output})
    assert match_row_steps(StepView({"name": "sql_db_query", "output": expected}), actual).score == 1.0


def test_toolkits_query_tool_is_recognised(query: Any) -> None:
    assert query.name == "sql_db_query"
