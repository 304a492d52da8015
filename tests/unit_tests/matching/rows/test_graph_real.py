"""Results of real queries in ladybug, and real objects of the Neo4j driver, in the formats that tools return."""

import json
from itertools import product
from typing import Any

import pytest

from graphrag_eval_lc.matching.rows import compare_sparql_results

pytestmark = pytest.mark.full


def ladybug_forms(query: str, *, age: int = 5) -> dict[str, Any]:
    import ladybug

    connection = ladybug.Connection(ladybug.Database(":memory:"))
    for statement in (
        "CREATE NODE TABLE P(name STRING, age INT64, t TIMESTAMP, d DATE, dur INTERVAL, tags STRING[],"
        " m MAP(STRING,INT64), s STRUCT(a INT64,b STRING), u UUID, f DOUBLE, dec DECIMAL(10,2),"
        " tz TIMESTAMP_TZ, PRIMARY KEY(name))",
        "CREATE REL TABLE K(FROM P TO P, since INT64)",
        f"CREATE (:P {{name:'Oslo',age:{age},t:timestamp('2020-01-01 01:02:03'),d:date('2020-01-01'),"
        "dur:interval('3 days 5 seconds'),tags:['a','b'],m:map(['x'],[1]),s:{a:1,b:'q'},"
        "u:uuid('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'),f:1.5,dec:CAST('1.50' AS DECIMAL(10,2)),"
        "tz:CAST('2020-01-01 01:02:03+01' AS TIMESTAMP_TZ)})",
        "CREATE (:P {name:'Bergen',age:6})",
        "MATCH (a:P {name:'Oslo'}),(b:P {name:'Bergen'}) CREATE (a)-[:K {since:2020}]->(b)",
    ):
        connection.execute(statement)
    rows = connection.execute(query).get_all()
    objects = list(connection.execute(query).rows_as_dict())
    return {
        "rows": rows,
        "objects": objects,
        "rows as Python shows them": repr(rows),
        "objects as Python shows them": repr(objects),
        "rows as JSON": json.dumps(rows, default=str),
        "objects as JSON": json.dumps(objects, default=str),
    }


@pytest.mark.parametrize(
    "query",
    [
        "MATCH (a:P) RETURN a",
        "MATCH p=(a:P)-[k:K]->(b) RETURN a.name, k, p",
        "MATCH (a:P)-[k:K*1..2]->(b) RETURN a, k, collect(b.name)",
        "MATCH (a:P) RETURN a.age, a.t, a.d, a.dur, a.tz, a.u, a.f, a.dec, a.m, a.s, a.tags",
    ],
)
def test_ladybug_results_match_in_every_format_and_only_there(query: str) -> None:
    found, others = ladybug_forms(query), ladybug_forms(query, age=7)
    for one, other in product(found, found):
        compared = compare_sparql_results(found[one], found[other], ignore_duplicates=False)
        assert compared.score == 1.0, (one, other, compared.reason)
        if "a.name" not in query:
            assert compare_sparql_results(found[one], others[other]).score == 0.0


def driver_values() -> dict[str, list[Any]]:
    import pytz
    from neo4j import spatial, time
    from neo4j.graph import Graph, Node, Path

    graph = Graph()
    oslo = Node(
        graph, "4:a:0", 0, ["City", "Capital"], {"name": "Os'l\"o", "since": time.Date(1048, 1, 1), "tags": ["a", "b"]}
    )
    bergen = Node(graph, "4:a:1", 1, ["City"], {"name": "Bergen", "at": spatial.WGS84Point((5.3, 60.4)), "x": 1.5})
    near = graph.relationship_type("NEAR")(graph, "5:a:0", 0, {"km": 463})
    near._start_node, near._end_node = oslo, bergen
    moment = time.DateTime(2020, 1, 1, 3, 4, 5, 123456789)
    return {
        "nodes": [oslo, bergen],
        "a relationship": [near],
        "a path": [Path(oslo, near)],
        "a local time": [moment],
        "a time with an offset": [time.DateTime(2020, 1, 1, 3, 4, 5, 0, tzinfo=pytz.FixedOffset(60))],
        "a time with a zone": [pytz.timezone("Europe/Oslo").localize(time.DateTime(2020, 7, 1, 3, 4, 5, 0))],
        "a date": [time.Date(2020, 1, 1)],
        "times of day": [time.Time(1, 2, 3, 4000), time.Time(1, 2, 3, 0, tzinfo=pytz.FixedOffset(-90))],
        "durations": [time.Duration(years=1, months=2, days=3, seconds=4.5), time.Duration(seconds=-1.5)],
        "points": [spatial.WGS84Point((1.0, 2.0)), spatial.CartesianPoint((1, 2, 3))],
        "lists and maps": [[1, 2.5, {"a": bergen, "b": [moment]}]],
    }


def driver_forms(values: list[Any]) -> dict[str, Any]:
    from neo4j import Record
    from neo4j.graph import Path

    records = [Record({"v": value}) for value in values]
    data = [record.data() for record in records]
    printed = {"records as Python shows them": repr(records)} if not isinstance(values[0], Path) else {}
    return printed | {
        "records": [Record({"v": value}) for value in values] if not any(isinstance(v, list) for v in values) else data,
        "objects": [{"v": value} for value in values],
        "data": data,
        "data as Python shows it": repr(data),
        "the MCP server's JSON": json.dumps(data, default=str),
    }


def test_driver_objects_match_in_every_format_and_only_there() -> None:
    values = driver_values()
    forms = {name: driver_forms(each) for name, each in values.items()}
    for name, found in forms.items():
        for one, other in product(found, found):
            compared = compare_sparql_results(found[one], found[other])
            assert compared.score == 1.0, (name, one, other, compared.reason)
        for another in forms.keys() - {name, "a relationship", "a path"}:
            assert compare_sparql_results(found["data"], forms[another]["the MCP server's JSON"]).score == 0.0
