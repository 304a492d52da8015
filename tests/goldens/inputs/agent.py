"""A LangGraph agent without a language model: its steps for each question are listed here."""

import json
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.graph import END, START, MessagesState, StateGraph

from graphrag_eval_lc.matching import register_matcher

OSLO, BERGEN, HASLE = "urn:uuid:0510", "urn:uuid:beb6", "urn:uuid:4a51"
ICING = [
    {"id": "note-1", "text": "Icing broke the line at Hasle in the winter of 2021."},
    {"id": "note-2", "text": "Ice on insulators is looked for each December."},
    {"id": "note-9", "text": "The canteen is closed on Fridays."},
]


def table(*rows: dict[str, str | int]) -> str:
    """Return rows as SPARQL JSON results."""
    head = list(dict.fromkeys(column for row in rows for column in row)) or ["x"]
    return json.dumps({"head": {"vars": head}, "results": {"bindings": [_binding(row) for row in rows]}})


def _binding(row: dict[str, str | int]) -> dict[str, Any]:
    return {
        column: {"type": "uri" if str(value).startswith("urn:") else "literal", "value": str(value)}
        for column, value in row.items()
    }


OUTPUTS = {
    "select transformers of oslo": table({"t": "urn:t1", "n": "OSLO T1"}, {"t": "urn:t2", "n": "OSLO T2"}),
    "select transformers of bergen": table({"t": "urn:t3", "n": "BERGEN T1"}, {"t": "urn:t4", "n": "BERGEN T2"}),
    "select some transformers of bergen": table({"t": "urn:t3", "n": "BERGEN T1"}, {"t": "urn:t9", "n": "OSLO T9"}),
    "select nothing": table(),
    "count lines": "12",
}


@tool
def sparql_query(query: str) -> str:
    """Run a query."""
    if query not in OUTPUTS:
        raise ToolException("a prefix is used that no PREFIX line declares")
    return OUTPUTS[query]


@tool
def autocomplete_search(query: str) -> str:
    """Find IRIs by name."""
    return table({"iri": {"OSLO": OSLO, "BERGEN": BERGEN, "HASLE": HASLE}[query], "name": query})


@tool
def search_notes(query: str, k: int = 3) -> str:
    """Find notes."""
    notes = ICING if "ic" in query else ICING[::-1]
    return json.dumps(notes[:k])


@tool
def retrieve_time_series(mrid: str, limit: int = 10) -> str:
    """Find time series."""
    return json.dumps([{"id": f"series of {mrid}"}])


@tool
def retrieve_data_points(external_id: str, start: str, end: str, granularity: str, aggregates: str) -> str:
    """Get data points."""
    return json.dumps([{"timestamp": start, "average": 4.5}])


@tool
def count_rows(of: str) -> str:
    """Count."""
    return "12 rows"


TOOLS: dict[str, BaseTool] = {
    each.name: each
    for each in (
        sparql_query,
        autocomplete_search,
        search_notes,
        retrieve_time_series,
        retrieve_data_points,
        count_rows,
    )
}
for each in TOOLS.values():
    each.handle_tool_error = True

Plan = tuple[list[tuple[str, dict[str, Any]]], str]
POINTS = {"external_id": "flow-1", "end": "now", "granularity": "15m", "aggregates": "average"}
PLANS: dict[str, Plan] = {
    "Which transformers are in substation OSLO?": (
        [("autocomplete_search", {"query": "OSLO"}), ("sparql_query", {"query": "select transformers of oslo"})],
        "OSLO T1 and OSLO T2.",
    ),
    "Which transformers are in substation BERGEN?": (
        [
            ("autocomplete_search", {"query": "BERGEN"}),
            ("sparql_query", {"query": "select broken"}),
            ("sparql_query", {"query": "select some transformers of bergen"}),
            ("sparql_query", {"query": "select some transformers of bergen"}),
        ],
        "BERGEN T1 and OSLO T9.",
    ),
    "Which lines end in HASLE?": ([("autocomplete_search", {"query": "HASLE"})], ""),
    "How many lines are there?": ([("count_rows", {"of": "lines"})], "There are 12 lines."),
    "What do the notes say about icing?": (
        [("search_notes", {"query": "icing", "k": 2})],
        "Icing broke a line, and ice on insulators is looked for.",
    ),
    "What do the notes say about oil?": ([("search_notes", {"query": "oil", "k": 2})], "Oil is not mentioned."),
    "Is there a note on avalanches?": ([("sparql_query", {"query": "select nothing"})], "No."),
    "How much flowed over FEDA in the last two hours?": (
        [
            ("retrieve_time_series", {"mrid": "urn:uuid:feda", "limit": 5}),
            ("retrieve_data_points", {**POINTS, "start": "2h-ago"}),
        ],
        "4.5 MW on average.",
    ),
}
BETTER: dict[str, Plan] = {
    "Which transformers are in substation BERGEN?": (
        [("autocomplete_search", {"query": "BERGEN"}), ("sparql_query", {"query": "select transformers of bergen"})],
        "BERGEN T1 and BERGEN T2.",
    ),
    "What do the notes say about icing?": ([("search_notes", {"query": "snow", "k": 1})], "Nothing."),
}


def _graph(plans: dict[str, Plan], tokens: int) -> Any:
    async def answer(state: MessagesState) -> dict[str, Any]:
        question = str(state["messages"][-1].content)
        calls, text = plans[question]
        for number, (name, args) in enumerate(calls):
            await TOOLS[name].ainvoke({"name": name, "args": args, "id": f"call-{number}", "type": "tool_call"})
        usage: Any = {"input_tokens": tokens + len(question), "output_tokens": 100, "total_tokens": 0}
        usage["total_tokens"] = usage["input_tokens"] + 100
        message = AIMessage(text, usage_metadata=usage, response_metadata={"model_name": "model-of-the-agent"})
        given = await GenericFakeChatModel(messages=iter([message])).ainvoke(question)
        if not text:
            raise ValueError("the agent does not know lines")
        return {"messages": [given]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile()


def make_agent() -> Any:
    return _graph(PLANS, 1000)


def make_better_agent() -> Any:
    """Return an agent that is better at transformers and worse at notes, and uses more tokens."""
    return _graph({**PLANS, **BETTER}, 1500)


@register_matcher(name="count_rows")
def match_counts(reference: Any, actual: Any) -> float:
    return float(str(actual["output"]).startswith(str(reference["output"])))
