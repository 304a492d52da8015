"""A LangGraph agent that answers questions over a property graph with Cypher.

Its query writer is a table, so that the example runs without a key. To use a real model, let ``write_query`` return
what ``init_chat_model("openai:gpt-4o-mini").invoke(…)`` writes for the question.
"""

from typing import Any

import ladybug
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

graph: Any = ladybug.Connection(ladybug.Database(":memory:"))
graph.execute("CREATE NODE TABLE Substation(name STRING, kv DOUBLE, PRIMARY KEY(name))")
graph.execute("CREATE REL TABLE LINE(FROM Substation TO Substation, km DOUBLE)")
for name, kv in (("Hasle", 420.0), ("Sylling", 420.0), ("Nea", 300.0)):
    graph.execute(f"CREATE (:Substation {{name: '{name}', kv: {kv}}})")
for one, other, km in (("Hasle", "Sylling", 90.0), ("Hasle", "Nea", 350.0)):
    ends = f"MATCH (a:Substation {{name: '{one}'}}), (b:Substation {{name: '{other}'}})"
    graph.execute(f"{ends} CREATE (a)-[:LINE {{km: {km}}}]->(b)")

QUERIES = {
    "voltage": "MATCH (s:Substation) RETURN s.name, s.kv",
    "connected to Hasle": "MATCH (:Substation {name: 'Hasle'})-[:LINE]-(s) RETURN s.name",
    "longer than": "MATCH (a)-[l:LINE]->(b) RETURN a.name, b.name, l.km",  # without the filter: a mistake
}


@tool
def run_cypher(query: str) -> str:
    """Run a Cypher query over the grid."""
    return str(list(graph.execute(query).rows_as_dict()))


def write_query(question: str) -> str:
    """Return the query for a question."""
    return next(query for words, query in QUERIES.items() if words in question)


def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Answer the last message with the rows of one query."""
    rows = run_cypher.invoke({"query": write_query(state["messages"][-1].text)})
    return {"messages": [AIMessage(f"The graph says: {rows}")]}


agent = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
