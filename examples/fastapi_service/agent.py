"""A function that answers questions over a SQLite database with SQL.

Its query writer is a table, so that the example runs without a key. To use a real model, let ``write_query`` return
what ``init_chat_model("openai:gpt-4o-mini").invoke(…)`` writes for the question.
"""

import sqlite3

from langchain_core.tools import tool

database = sqlite3.connect(":memory:", check_same_thread=False)
database.executescript(
    """
    CREATE TABLE plant (name TEXT PRIMARY KEY, zone TEXT, installed_mw REAL, available_mw REAL);
    INSERT INTO plant VALUES ('Sima', 'NO5', 1120, 1000), ('Kvilldal', 'NO2', 1240, 1240), ('Tonstad', 'NO2', 960, 800);
    """
)

QUERIES = {
    "in NO2": "SELECT name FROM plant WHERE zone = 'NO2'",
    "largest": "SELECT name, installed_mw FROM plant ORDER BY installed_mw DESC LIMIT 1",
    "available": "SELECT SUM(installed_mw) FROM plant",  # the wrong column
}


@tool
def run_sql(query: str) -> str:
    """Run a SQL query over the power plants."""
    return str(database.execute(query).fetchall())


def write_query(question: str) -> str:
    """Return the query for a question."""
    return next(query for words, query in QUERIES.items() if words in question)


def agent(question: str) -> str:
    """Answer a question with the rows of one query."""
    return f"The database says: {run_sql.invoke({'query': write_query(question)})}"
