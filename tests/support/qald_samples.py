"""A dataset in QALD format with any number of questions, generated from a few patterns."""

import random
from typing import Any

XSD = "http://www.w3.org/2001/XMLSchema#"
Binding = dict[str, dict[str, str]]


def uri(number: int) -> dict[str, str]:
    return {"type": "uri", "value": f"http://example.org/entity/Q{number}"}


def typed(value: object, datatype: str) -> dict[str, str]:
    return {"type": "literal", "value": str(value), "datatype": f"{XSD}{datatype}"}


def in_language(value: str, language: str) -> dict[str, str]:
    return {"type": "literal", "value": value, "xml:lang": language}


def table(columns: list[str], rows: list[Binding]) -> dict[str, Any]:
    return {"head": {"vars": columns}, "results": {"bindings": rows}}


def gold(number: int, chance: random.Random) -> tuple[str, dict[str, Any]]:
    """Return the query and results of a question. No two rows are equal."""
    some = chance.sample(range(10_000), chance.randint(1, 12))
    match number % 7:
        case 0:
            return "SELECT DISTINCT ?uri WHERE { ?uri a :Thing }", table(["uri"], [{"uri": uri(n)} for n in some])
        case 1:
            return f"ASK {{ :Q{number} :p ?o }}", {"head": {}, "boolean": chance.random() < 0.5}
        case 2:
            return "SELECT (COUNT(?x) AS ?c) WHERE { ?x :p ?y }", table(["c"], [{"c": typed(some[0], "integer")}])
        case 3:
            rows = [{"uri": uri(n), "height": typed(n / 8, "decimal")} for n in some]
            return "SELECT ?uri ?height WHERE {\n  ?uri :height ?height\n}\nORDER BY ?uri", table(
                ["uri", "height"], rows
            )
        case 4:
            rows = [{"name": in_language(f"Åse {n}", "no" if n % 2 else "en")} for n in some]
            return 'SELECT ?name WHERE { ?x :name ?name . FILTER(LANG(?name) != "de") }', table(["name"], rows)
        case 5:
            dates = [f"{1900 + n % 100}-{1 + n % 12:02}-{1 + n // 100 % 28:02}" for n in some]
            rows = [{"date": typed(day, "date")} for day in dict.fromkeys(dates)]
            return "SELECT ?date WHERE { :x :date ?date }", table(["date"], rows)
        case _:
            rows = [{"s": uri(n), "label": in_language(f"thing {n}", "en"), "n": typed(n, "integer")} for n in some]
            for row in rows[::3]:
                del row["n"]  # an OPTIONAL without a binding
            return "SELECT ?s ?label ?n WHERE { ?s :label ?label OPTIONAL { ?s :n ?n } }", table(
                ["s", "label", "n"], rows
            )


def qald(count: int, seed: int = 7) -> dict[str, Any]:
    """Return a dataset in QALD-10's format."""
    chance = random.Random(seed)
    questions = []
    for number in range(count):
        query, answer = gold(number, chance)
        texts = [{"language": "en", "string": f"Which is {number}?"}, {"language": "zh-cn", "string": f"哪个 {number}"}]
        questions.append({"id": number, "question": texts, "query": {"sparql": query}, "answers": [answer]})
    return {"dataset": {"id": "sample"}, "questions": questions}
