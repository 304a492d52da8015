"""How a SQL or Cypher query differs from the reference query: SQL by its parts (with sqlglot), Cypher by its words.

Less is known of these than of SPARQL: what stands in one query and not in the other is reported, whatever it is
connected with.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, Literal, TypeAlias

from graphrag_eval_lc.errors import MissingExtraError
from graphrag_eval_lc.graph.query_difference import Difference, DifferenceKind
from graphrag_eval_lc.graph.query_lint import LintRule, QueryFinding
from graphrag_eval_lc.graph.vocabulary import Vocabulary

_Part: TypeAlias = Literal[
    "table",
    "label",
    "relationship type",
    "column",
    "property",
    "condition",
    "join",
    "group",
    "aggregate",
    "order",
    "limit",
    "distinct",
    "value",
]
_KINDS: Mapping[_Part, DifferenceKind] = {
    "table": "class",
    "label": "class",
    "relationship type": "property",
    "property": "property",
    "column": "columns",
    "value": "value",
    "aggregate": "aggregate",
    "condition": "filter",
    "join": "filter",
    "group": "aggregate",
    "order": "order",
    "limit": "limit",
    "distinct": "distinct",
}
_Parts: TypeAlias = Mapping[_Part, Counter[str]]


def sql_differences(reference: str, actual: str) -> list[Difference]:
    """Compare two SQL queries. Names of tables stand for their aliases; case and white space do not matter.

    Raises:
        MissingExtraError: sqlglot is not installed.
        ValueError: One of them cannot be parsed.

    Example:
        >>> reference = "SELECT l.name FROM lines l WHERE l.kv > 300"
        >>> for each in sql_differences(reference, "select x.title from LINES x where x.kv > 400"):
        ...     print(each.sentence)
        returns lines.title instead of lines.name
        filters by lines.kv > 400 instead of lines.kv > 300
    """
    return list(_differences(_sql_parts(reference), _sql_parts(actual)))


def cypher_differences(reference: str, actual: str) -> list[Difference]:
    """Compare the labels, relationship types, properties, values and clauses of two Cypher queries.

    Example:
        >>> reference = "MATCH (l:Line)-[:FROM]->(s {name: 'Oslo'}) RETURN l.length"
        >>> for each in cypher_differences(reference, "MATCH (x:Line)-[:TO]->(y {name: 'Oslo'}) RETURN x.km"):
        ...     print(each.sentence)
        uses the relationship type TO instead of FROM
        uses the property km instead of length
    """
    return list(_differences(_cypher_parts(reference), _cypher_parts(actual)))


def lint_cypher(query: str, vocabulary: Vocabulary) -> list[QueryFinding]:
    """Find labels and relationship types of a Cypher query that the graph does not have.

    Example:
        >>> grid = Vocabulary(source="grid", classes={"Line": None}, properties={"FROM": None, "kv": None})
        >>> [str(each) for each in lint_cypher("MATCH (l:Lines)-[:FROM]->() RETURN l.kv", grid)]
        ['Lines is not a label of this graph (nearest: Line)']
    """
    parts = _cypher_parts(query)
    known: tuple[tuple[_Part, LintRule, Mapping[str, int | None]], ...] = (
        ("label", "unknown_class", vocabulary.classes),
        ("relationship type", "unknown_property", vocabulary.properties),
    )
    found = []
    for part, rule, names in known:
        for name in sorted(parts[part]):
            if names and vocabulary.complete and name not in names:
                nearest = vocabulary.nearest(name, names)
                hint = f"nearest: {nearest[0]}" if nearest else ""
                found.append(QueryFinding(rule, f"{name} is not a {part} of this graph", hint))
    return found


def _differences(wanted: _Parts, given: _Parts) -> Iterator[Difference]:
    for part, kind in _KINDS.items():
        missing = sorted((wanted[part] - given[part]).elements()) if part in wanted else []
        extra = sorted((given[part] - wanted[part]).elements()) if part in given else []
        for place in range(max(len(missing), len(extra))):
            old = missing[place] if place < len(missing) else None
            new = extra[place] if place < len(extra) else None
            yield Difference(_kind(kind, old, new), _sentence(part, old, new), old, new)


def _kind(kind: DifferenceKind, old: str | None, new: str | None) -> DifferenceKind:
    if kind == "filter" and old is None:
        return "extra_filter"
    return "missing_filter" if kind == "filter" and new is None else kind


def _sentence(part: _Part, old: str | None, new: str | None) -> str:
    if part == "distinct":
        return "lacks DISTINCT" if new is None else "adds DISTINCT"
    verbs = {
        "column": ("returns", "does not return"),
        "condition": ("filters by", "does not filter by"),
        "join": ("has", "lacks"),
        "group": ("groups by", "does not group by"),
        "aggregate": ("computes", "does not compute"),
        "order": ("sorts by", "does not sort by"),
        "limit": ("has LIMIT", "lacks LIMIT"),
    }
    does, does_not = verbs.get(part, (f"uses the {part}", f"does not use the {part}"))
    if new is None:
        return f"{does_not} {old}"
    return f"{does} {new}" if old is None else f"{does} {new} instead of {old}"


def _sql_parts(query: str) -> _Parts:
    try:
        sqlglot: Any = import_module("sqlglot")
    except ImportError as problem:
        raise MissingExtraError("Comparing SQL queries", "sql", "sqlglot") from problem
    exp = sqlglot.exp
    try:
        tree = sqlglot.parse_one(query)
    except sqlglot.errors.SqlglotError as problem:
        raise ValueError(str(problem)) from problem
    if not isinstance(tree, exp.Query):
        raise ValueError("it is not a SELECT")
    tables = {table.alias_or_name.lower(): table.name.lower() for table in tree.find_all(exp.Table)}
    only = next(iter(tables.values())) if len(tables) == 1 else ""
    for column in tree.find_all(exp.Column):
        table = tables.get(column.table.lower(), column.table.lower()) or only
        column.set("this", exp.to_identifier(column.name.lower()))
        column.set("table", exp.to_identifier(table) if table else None)

    def texts(nodes: Iterable[Any]) -> Counter[str]:
        return Counter(node.unalias().sql(comments=False) for node in nodes)

    def conjuncts(condition: Any) -> Counter[str]:
        parts = condition.flatten() if isinstance(condition, exp.And) else [condition]
        return Counter(_ordered(part, exp) for part in parts)

    selects = list(tree.find_all(exp.Select))
    returned = [each for select in selects for each in select.expressions]
    found: dict[_Part, Counter[str]] = {"table": Counter(tables.values())}
    found["aggregate"] = texts(each for each in returned if each.find(exp.AggFunc))
    found["column"] = texts(each for each in returned if not each.find(exp.AggFunc))
    conditions = [*tree.find_all(exp.Where), *tree.find_all(exp.Having)]
    joins = list(tree.find_all(exp.Join))
    of_joins = [join.args["on"] for join in joins if join.args.get("on") is not None]
    # A condition of an inner join is one of WHERE, and tables with a comma between them are joined.
    found["condition"] = sum(map(conjuncts, [each.this for each in conditions] + of_joins), Counter())
    found["join"] = Counter(f"{join.side} JOIN" for join in joins if join.side)
    found["group"] = texts(each for group in tree.find_all(exp.Group) for each in group.expressions)
    aliases = {each.alias.lower(): each.unalias().sql() for each in returned if each.alias}

    def sorted_by(value: Any) -> str:
        if isinstance(value, exp.Literal) and value.is_int and 0 < int(value.name) <= len(returned):
            return str(returned[int(value.name) - 1].unalias().sql())  # ORDER BY 1 is the first column
        return str(aliases.get(value.name.lower(), value.sql()))

    orders = (each for order in tree.find_all(exp.Order) for each in order.expressions)
    found["order"] = Counter(f"{sorted_by(each.this)} {'DESC' if each.args.get('desc') else 'ASC'}" for each in orders)
    found["limit"] = Counter(each.expression.sql() for each in tree.find_all(exp.Limit))
    found["distinct"] = Counter("DISTINCT" for select in selects if select.args.get("distinct"))
    return found


def _ordered(condition: Any, exp: Any) -> str:
    """Return a condition as text; the sides of an equation are in order."""
    mirrored = {exp.GT: "<", exp.GTE: "<=", exp.LT: ">", exp.LTE: ">="}.get(type(condition))
    if mirrored is not None and isinstance(condition.this, exp.Literal):  # 3 < x is x > 3
        return f"{condition.expression.sql()} {mirrored} {condition.this.sql()}"
    if isinstance(condition, exp.Or):
        return " OR ".join(sorted(_ordered(part, exp) for part in condition.flatten()))
    if isinstance(condition, exp.EQ | exp.NEQ):
        sides = sorted(
            (condition.this.sql(), condition.expression.sql()), key=lambda text: (text[:1] in "'0123456789", text)
        )
        return f" {'=' if isinstance(condition, exp.EQ) else '<>'} ".join(sides)
    return str(condition.sql(comments=False))


_CYPHER_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_CYPHER_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_LABELS = re.compile(r"\(\s*\w*\s*((?:[:|&!]\s*(?:`[^`]+`|\w+)\s*)+)")
_TYPES = re.compile(r"\[\s*\w*\s*:\s*((?:[:|]?\s*(?:`[^`]+`|\w+)\s*)+)")
_NAME = re.compile(r"`[^`]+`|\w+")
_PROPERTY = re.compile(r"(?<=[\w)\]])\.([A-Za-z_]\w*+)(?!\s*[(.])|[{,]\s*(\w+)\s*:")
_NUMBER = re.compile(r"(?<![\w.*])-?\d+(?:\.\d+)?(?![\w.])")
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|collect|stdev|percentile\w+)\s*\(", re.IGNORECASE)
_LIMIT = re.compile(r"\bLIMIT\s+(\d+|\$\w+)", re.IGNORECASE)
_DIRECTION = re.compile(r"\bORDER\s+BY\b(.*?)(?:\bLIMIT\b|\bSKIP\b|\bRETURN\b|\bWITH\b|$)", re.IGNORECASE | re.DOTALL)


def _cypher_parts(query: str) -> _Parts:
    query = _CYPHER_COMMENT.sub(" ", query)
    texts = Counter(f"'{one or other}'" for one, other in _CYPHER_TEXT.findall(query))
    query = _CYPHER_TEXT.sub("''", query)
    orders = Counter(
        "DESC" if re.search(r"\bDESC(?:ENDING)?\b", part, re.IGNORECASE) else "ASC"
        for found in _DIRECTION.findall(query)
        for part in found.split(",")
    )
    limits = Counter(_LIMIT.findall(query))
    without_limits = re.sub(r"\*\s*\d*(?:\.\.\d*)?", "*", _LIMIT.sub(" ", query))
    return {
        "label": Counter(name.strip("`") for found in _LABELS.findall(query) for name in _NAME.findall(found)),
        "relationship type": Counter(
            name.strip("`") for found in _TYPES.findall(query) for name in _NAME.findall(found)
        ),
        "property": Counter(one or other for one, other in _PROPERTY.findall(query)),
        "value": texts + Counter(_NUMBER.findall(without_limits)),
        "aggregate": Counter(name.lower() for name in _AGGREGATE.findall(query)),
        "order": orders,
        "limit": limits,
        "distinct": Counter("DISTINCT" for _ in re.findall(r"\bDISTINCT\b", query, re.IGNORECASE)),
    }
