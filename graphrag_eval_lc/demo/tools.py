"""The tools of the demo agent. A model reads their docstrings, so these say what a model must know."""

import json
from typing import Any
from uuid import UUID

from langchain_core.tools import BaseTool, ToolException, tool

from graphrag_eval_lc.demo.graph import PREFIXES, DocumentIndex, KnowledgeGraph, NameHit, NameIndex, full_iri
from graphrag_eval_lc.demo.time_series import NOW, Aggregate, TimeSeriesIndex, data_points, time_text

MAX_HITS = 50


def create_tools(graph: KnowledgeGraph, documents: DocumentIndex, time_series: TimeSeriesIndex) -> list[BaseTool]:
    """Return the agent's tools. If a tool fails, it returns a message with status error, and the run continues."""
    tools = [
        _sparql_query(graph),
        _autocomplete_search(NameIndex(graph.named_things())),
        _retrieval(documents),
        _retrieve_time_series(time_series),
        _retrieve_data_points(time_series),
        _now(),
    ]
    for each in tools:
        each.handle_tool_error = True
        each.handle_validation_error = True
    return tools


def _sparql_query(graph: KnowledgeGraph) -> BaseTool:
    @tool(parse_docstring=True)
    def sparql_query(query: str) -> str:
        """Run a SPARQL 1.1 query on the power grid graph.

        Only SELECT, ASK, DESCRIBE and CONSTRUCT are allowed, SERVICE is not. SELECT and ASK return SPARQL JSON results,
        the others Turtle. Look up IRIs with autocomplete_search first; do not guess them.

        Args:
            query: The whole query, with a PREFIX line for each prefix that it uses.
        """
        return graph.query(query)

    return sparql_query


def _autocomplete_search(names: NameIndex) -> BaseTool:
    @tool(parse_docstring=True)
    def autocomplete_search(query: str, result_class: str | None = None, limit: int = 10) -> str:
        """Find the IRIs of things in the graph by their name.

        Beginnings of words and small misspellings are found too. Gives SPARQL JSON results with the columns iri,
        name, class and rank (1 is the very name), best first; no rows when nothing fits.

        Args:
            query: A name or its beginning, such as "OSLO" or "420 HASLE".
            result_class: Only things of this class, such as "cim:Substation" or "nc:BiddingZone".
            limit: How many rows at the most, 1 to 50.
        """
        _check_in_range("limit", limit)
        return _hits_as_json(names.search(query, full_iri(result_class) if result_class else None, limit))

    return autocomplete_search


def _retrieval(documents: DocumentIndex) -> BaseTool:
    @tool(parse_docstring=True)
    def retrieval(query: str, k: int = 5) -> str:
        """Search notes on substations, outages, procedures, bidding zones, links and terms.

        Gives a JSON array of documents with id and text, best first.

        Args:
            query: Words that the document would use.
            k: How many documents at the most, 1 to 50.
        """
        _check_in_range("k", k)
        return json.dumps(documents.search(query, k), ensure_ascii=False)

    return retrieval


def _retrieve_time_series(time_series: TimeSeriesIndex) -> BaseTool:
    @tool(parse_docstring=True)
    def retrieve_time_series(mrid: str) -> str:
        """Find the time series of a generating unit (active power) or DC line (flow).

        Gives a JSON array of time series with external_id, name, unit and mrid; an empty one when there are none.

        Args:
            mrid: The mRID of the thing: its IRI without urn:uuid:.
        """
        _check_is_mrid(mrid)
        return json.dumps(
            [
                {"external_id": each.external_id, "name": each.name, "unit": each.unit, "mrid": each.mrid}
                for each in time_series.of_thing(mrid)
            ]
        )

    return retrieve_time_series


def _retrieve_data_points(time_series: TimeSeriesIndex) -> BaseTool:
    @tool(parse_docstring=True)
    def retrieve_data_points(
        external_id: str,
        start: str,
        end: str,
        aggregates: Aggregate | list[Aggregate] | None = None,
        granularity: str | None = None,
    ) -> str:
        """Get data points of a time series, from start on and before end.

        Without aggregates and granularity these are the values themselves, one every 5 minutes. Gives a JSON object
        with externalId, unit and datapoints.

        Args:
            external_id: The id of the time series, from retrieve_time_series.
            start: A relative time such as "2h-ago" if the period ends now; else ISO 8601, "2025-11-01T00:00:00Z".
            end: As start; "now" for the present.
            aggregates: What to return for each step of time: average, max or min, one or several.
            granularity: How long a step of time is, such as "15m", "1h" or "1d"; only with aggregates.
        """
        series = time_series.with_id(external_id)
        wanted = [aggregates] if isinstance(aggregates, str) else aggregates or []
        points = data_points(series, start, end, wanted, granularity)
        return json.dumps({"externalId": external_id, "unit": series.unit, "datapoints": points})

    return retrieve_data_points


def _now() -> BaseTool:
    @tool  # older versions parse no docstring without arguments
    def now() -> str:
        """Get the present date and time, ISO 8601 in UTC."""
        return time_text(NOW)

    return now


def _check_is_mrid(mrid: str) -> None:
    try:
        is_mrid = str(UUID(mrid)) == mrid
    except ValueError:
        is_mrid = False
    if not is_mrid:
        raise ToolException(f"mrid is {mrid!r:.80}, but must be a UUID in small letters, without urn:uuid: before it.")


def _check_in_range(name: str, value: int) -> None:
    if not 1 <= value <= MAX_HITS:
        raise ToolException(f"{name} is {value}, but must be from 1 to {MAX_HITS}.")


def _hits_as_json(hits: list[NameHit]) -> str:
    bindings: list[dict[str, Any]] = [
        {
            "iri": {"type": "uri", "value": hit.thing.iri},
            "name": {"type": "literal", "value": hit.thing.name},
            "class": {"type": "uri", "value": hit.thing.class_iri},
            "rank": {"type": "literal", "value": str(hit.rank), "datatype": PREFIXES["xsd"] + "double"},
        }
        for hit in hits
    ]
    return json.dumps(
        {"head": {"vars": ["iri", "name", "class", "rank"]}, "results": {"bindings": bindings}}, ensure_ascii=False
    )
