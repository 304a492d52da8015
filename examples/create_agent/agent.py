"""An agent from LangChain's ``create_agent`` that answers questions over an RDF graph.

The chat model is a script, so that the example runs without a key. To use a real one, replace ``ScriptedModel()`` with
``init_chat_model("openai:gpt-4o-mini")`` (from ``langchain.chat_models``).
"""

import json
import re
from pathlib import Path
from typing import Any

import pyoxigraph
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

store = pyoxigraph.Store()
store.load(path=Path(__file__).with_name("grid.ttl"), format=pyoxigraph.RdfFormat.TURTLE)


def results_of(query: str) -> str:
    """Run a query and return its results as SPARQL JSON."""
    results: Any = store.query("PREFIX : <https://grid.example/> " + query)
    return str(results.serialize(format=pyoxigraph.QueryResultsFormat.JSON).decode())


@tool
def find_iri(name: str) -> str:
    """Find the IRI of a substation by its name."""
    return results_of(f'SELECT ?iri {{ ?iri :name "{name}" }}')


@tool
def run_sparql(query: str) -> str:
    """Run a SPARQL query over the grid. The prefix : is declared."""
    return results_of(query)


class ScriptedModel(BaseChatModel):
    """Finds the substation, lists its transformers, and answers with the list, whatever the question."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Return the model unchanged; its script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        outputs = [message.text for message in messages if message.type == "tool"]
        return ChatResult(generations=[ChatGeneration(message=next_message(messages[0].text, outputs))])


def next_message(question: str, outputs: list[str]) -> AIMessage:
    """Return the next tool call for a question, or the answer."""
    if not outputs:
        name = re.findall("[A-Z]{4,}", question)[0]
        return AIMessage("", tool_calls=[{"name": "find_iri", "args": {"name": name}, "id": "call_1"}])
    rows = [list(row.values()) for row in json.loads(outputs[-1])["results"]["bindings"]]
    values = [cell["value"] for row in rows for cell in row]
    if len(outputs) == 1:
        query = f"SELECT ?name {{ ?transformer :in <{values[0]}> ; :name ?name }} ORDER BY ?name"
        return AIMessage("", tool_calls=[{"name": "run_sparql", "args": {"query": query}, "id": "call_2"}])
    return AIMessage(", ".join(values))


agent = create_agent(ScriptedModel(), [find_iri, run_sparql])
