"""How a Cypher query differs from the reference query, and which of its terms are missing in the graph.

Patterns, comparisons and clauses are found by their form, without a parser; anything in another form is not compared.
With OR, or functions of variables in WHERE, conditions, properties and values are not compared.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from graphrag_eval_lc.graph.query_difference import Difference, without_equal
from graphrag_eval_lc.graph.query_lint import LintRule, QueryFinding
from graphrag_eval_lc.graph.query_parts import Part, part_differences, refuse_too_large
from graphrag_eval_lc.graph.vocabulary import Vocabulary

_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_COMMENT = re.compile(r"/\*.*?\*/|(?<!:)//[^\n]*", re.DOTALL)
_NAME = re.compile(r"`[^`]+`|\w+")
_NODE = r"\(\s*(\w*)\s*((?::\s*[\w`:|&! ]+)?)\s*((?:\{[^{}()]*\})?)\s*\)"
_LINK = r"(<?)-\s*(?:\[\s*\w*\s*((?::\s*[\w`|:! ]+)?)\s*(\*?[\d.]*)\s*((?:\{[^{}()]*\})?)\s*\])?\s*-(>?)"
_NODES = re.compile(_NODE)
_LINKS = re.compile(rf"(?={_NODE}\s*{_LINK}\s*{_NODE})")
_TYPES = re.compile(r"\[\s*\w*\s*:\s*([\w`|:! ]+)")
_PROPERTY = re.compile(r"(?<=[\w)\]{,\s])\.([A-Za-z_]\w*+)(?!\s*[(.])|[{,]\s*(\w+)\s*:")
_LITERAL = r"(?:·\d+·|-?\d+(?:\.\d+)?\b|true\b|false\b|\$\w+|\[[^\[\]]*\])"
_COMPARISON = re.compile(
    rf"(\bNOT\s+)?\b(\w+)\.(\w+)\s*(=~|=|<>|<=|>=|<|>|\bCONTAINS\b|\bSTARTS\s+WITH\b|\bENDS\s+WITH\b|\bIN\b)\s*({_LITERAL})",
    re.IGNORECASE,
)
_MIRRORED = re.compile(rf"({_LITERAL})\s*(=|<>|<=|>=|<|>)\s*(\w+)\.(\w+)(?!\s*\()", re.IGNORECASE)
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_BETWEEN = re.compile(rf"({_LITERAL}\s*[<>]=?)\s*(\w+\.\w+)\s*(?=[<>])", re.IGNORECASE)
_LABEL_TEST = re.compile(r"\b(?:WHERE|AND|X?OR|NOT)\b[\s(]*(\w+)\s*((?::\s*[\w`|&!]+)+)", re.IGNORECASE)
_RELATIONSHIP_ENTRIES = re.compile(r"-\s*\[[^\[\]{}]*(\{[^{}()]*\})")
_NOT_COMPARED = re.compile(
    r"\bX?OR\b|\bCASE\b"
    r"|\bNOT\s*\(\s*\w+\.|\bNOT\s+\w+\.\w+\s+IN\b"
    r"|\b(?!(?:count|sum|avg|min|max|collect|stdev|percentile\w+)\()\w+\(\s*\w+\."
    r"|\bWHERE\b(?:(?!\b(?:RETURN|WITH|MATCH|ORDER)\b).)*?\b\w+\((?=\s*[A-Za-z_])",
    re.IGNORECASE | re.DOTALL,
)
_MAP_ENTRY = re.compile(rf"(\w+)\s*:\s*({_LITERAL})", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.*·$])-?\d+(?:\.\d+)?(?![\w.·])")
_AGGREGATE = re.compile(r"\b(count|sum|avg|min|max|collect|stdev|percentile\w+)\s*\(\s*(distinct\b)?", re.IGNORECASE)
_OF_CONDITIONS: tuple[Part, ...] = ("condition", "property", "value")
_OF_RELATIONSHIPS: tuple[Part, ...] = ("label", "relationship type")
_LIMIT = re.compile(r"\b(LIMIT|SKIP)\s+(\d+|\$\w+)", re.IGNORECASE)
_HOPS = re.compile(r"\*\s*\d*(?:\.\.\d*)?")
_JOIN = re.compile(r"\b(\w+)\.(\w+)\s*(=|<>|<=|>=|<|>)\s*(\w+)\.(\w+)(?!\s*\()")
_ALIAS = re.compile(r"([\w.]+(?:\([\w.\s]*\))?)\s+AS\s+(\w+)", re.IGNORECASE)
_DIRECTION = re.compile(r"\bORDER\s+BY\b(.*?)(?:\bLIMIT\b|\bSKIP\b|\bRETURN\b|\bWITH\b|$)", re.IGNORECASE | re.DOTALL)


def cypher_differences(reference: str, actual: str) -> list[Difference]:
    """Compare the labels, relationships, properties, comparisons and clauses of two Cypher queries.

    Raises:
        TooLargeQueryError: One of them is too large.

    Example:
        >>> reference = "MATCH (l:Line)-[:FROM]->(s {name: 'Oslo'}) RETURN l.length"
        >>> for each in cypher_differences(reference, "MATCH (x:Line)-[:TO]->(y {name: 'Oslo'}) RETURN x.km"):
        ...     print(each.sentence)
        uses the relationship type TO instead of FROM
        uses the property km instead of length
    """
    refuse_too_large(reference, actual)
    is_compared = all(_is_compared(_without_texts(each)[0]) for each in (reference, actual))
    wanted, given = (_parts(each, with_conditions=is_compared) for each in (reference, actual))
    theirs, ours = (_used(each) for each in (reference, actual))
    for parts, others in ((wanted, ours), (given, theirs)):
        for part in ("property", "value"):
            parts[part] = [each for each in parts[part] if each not in others]
    if any(sorted(wanted[part]) != sorted(given[part]) for part in _OF_RELATIONSHIPS):
        wanted, given = ({**each, "relationship": []} for each in (wanted, given))
    return without_equal(part_differences(wanted, given, _is_pair))


def lint_cypher(query: str, vocabulary: Vocabulary) -> list[QueryFinding]:
    """Find labels and relationship types of a Cypher query that the graph does not have.

    Example:
        >>> grid = Vocabulary(source="grid", classes={"Line": None}, properties={"FROM": None, "kv": None})
        >>> [str(each) for each in lint_cypher("MATCH (l:Lines)-[:FROM]->() RETURN l.kv", grid)]
        ['Lines is not a label of this graph (nearest: Line)']
    """
    parts = _parts(query)
    known: tuple[tuple[Part, LintRule, Mapping[str, int | None]], ...] = (
        ("label", "unknown_class", vocabulary.classes),
        ("relationship type", "unknown_property", vocabulary.properties),
    )
    found = []
    for part, rule, names in known:
        for name in sorted(set(parts[part])):
            if names and vocabulary.complete and name not in names:
                nearest = vocabulary.nearest(name, names)
                hint = f"nearest: {nearest[0]}" if nearest else ""
                found.append(QueryFinding(rule, f"{name} is not a {part} of this graph", hint))
    return found


def _is_pair(part: Part, old: str, new: str) -> bool:
    """Return whether two comparisons are of one property, or two relationships join the same nodes."""
    if part == "condition":
        return old.removeprefix("NOT ").split(" ")[0] == new.removeprefix("NOT ").split(" ")[0]
    if part == "relationship":
        return _ends(old) == _ends(new)
    return False


def _ends(relationship: str) -> list[str]:
    return sorted(re.split(r"-\[[^\]]*\]->?", relationship))


@dataclass(frozen=True, slots=True)
class _Node:
    """What a query says about a variable in its patterns and comparisons."""

    labels: str
    conditions: tuple[str, ...]

    def __str__(self) -> str:
        conditions = f"{{{', '.join(self.conditions)}}}" if self.conditions else ""
        return f"({' '.join(filter(None, (self.labels, conditions)))})"


def _without_texts(query: str) -> tuple[str, list[str]]:
    """Return a query without comments and with placeholders for its string literals, and these literals."""
    texts: list[str] = []

    def kept(found: re.Match[str]) -> str:
        texts.append(f"'{found[1] if found[1] is not None else found[2]}'")
        return f"·{len(texts) - 1}·"

    return _TEXT.sub(kept, _COMMENT.sub(" ", query.replace("·", "."))), texts


def _shown(text: str, texts: list[str]) -> str:
    return re.sub(r"·(\d+)·", lambda found: texts[int(found[1])], text)


def _is_compared(query: str) -> bool:
    """Return whether all conditions are on properties and are joined by AND."""
    names = "|".join(re.findall(r"\w\.\w+\s+AS\s+(\w+)", query, re.IGNORECASE))
    compared_name = rf"(?<![.\w])(?:{names})\s*(?:[=<>]|\b(?:IN|CONTAINS|STARTS|ENDS)\b)"
    return not _NOT_COMPARED.search(query) and not (names and re.search(compared_name, query, re.IGNORECASE))


def _used(query: str) -> set[str]:
    """Return the properties and values that a query has anywhere."""
    plain, texts = _without_texts(query)
    return {*texts, *_NUMBER.findall(plain), *(one or other for one, other in _PROPERTY.findall(plain))}


def _parts(query: str, *, with_conditions: bool = True) -> dict[Part, list[str]]:
    plain, texts = _without_texts(query)
    plain = _BETWEEN.sub(r"\1 \2 AND \2 ", plain)
    comparisons = list(_comparisons(plain, texts)) if with_conditions else []
    without = plain
    for pattern in (_COMPARISON, _MIRRORED, _JOIN, _MAP_ENTRY, _LIMIT, _DIRECTION, _HOPS):
        without = pattern.sub(" ", without)
    aggregates = [
        f"{name.lower()}{' of different values' if distinct else ''}" for name, distinct in _AGGREGATE.findall(plain)
    ]
    labels = [name for _, found in _labels(plain) for name in _NAME.findall(found)]
    parts: dict[Part, list[str]] = {
        "label": [name.strip("`") for name in labels],
        "relationship type": [name.strip("`") for found in _TYPES.findall(plain) for name in _NAME.findall(found)],
        "relationship": [_shown(each, texts) for each in _relationships(plain, comparisons)],
        "property": [one or other for one, other in _PROPERTY.findall(without)],
        "condition": [_shown(text, texts) for _, text in comparisons],
        "value": [_shown(each, texts) for each in re.findall(r"·\d+·", without)] + _NUMBER.findall(without),
        "join": ["OPTIONAL MATCH" for _ in re.findall(r"\bOPTIONAL\s+MATCH\b", plain, re.IGNORECASE)],
        "aggregate": aggregates,
        "order": list(_orders(plain)),
        "limit": [f"{clause.upper()} {number}" for clause, number in _LIMIT.findall(plain)],
        "distinct": ["DISTINCT" for _ in re.findall(r"\b(?:RETURN|WITH)\s+DISTINCT\b", plain, re.IGNORECASE)],
    }
    return parts if with_conditions else parts | {part: [] for part in _OF_CONDITIONS}


def _labels(query: str) -> Iterator[tuple[str, str]]:
    """Yield what patterns and WHERE say about labels: variable and labels."""
    yield from ((name, found) for name, found, _ in _NODES.findall(query))
    yield from _LABEL_TEST.findall(_NODES.sub(" ", query))


def _comparisons(query: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the comparisons of properties with constants, in WHERE and in patterns: variable and text."""
    for negated, name, key, operator, value in _COMPARISON.findall(query):
        sign = " ".join(operator.upper().split())
        if negated:
            sign, key = (_NEGATED[sign], key) if sign in _NEGATED else (sign, f"NOT {key}")
        if sign == "IN" and value.startswith("["):
            values = sorted((each.strip() for each in value[1:-1].split(",")), key=lambda each: _shown(each, texts))
            sign, value = ("=", values[0]) if len(values) == 1 and values[0] else (sign, f"[{', '.join(values)}]")
        yield name, f"{key} {sign} {value}"
    for value, operator, name, key in _MIRRORED.findall(_COMPARISON.sub(" ", query)):
        yield name, f"{key} {_MIRROR.get(operator, operator)} {value}"
    for _, key, operator, _, other in _JOIN.findall(query):
        sign = _MIRROR.get(operator, operator) if key > other or (key == other and ">" in operator) else operator
        yield "", f" {sign} ".join(sorted((key, other)))
    for name, _, entries in _NODES.findall(query):
        for text in _entries(entries):
            yield name, text
    for entries in _RELATIONSHIP_ENTRIES.findall(query):
        for text in _entries(entries):
            yield "", text


def _orders(query: str) -> Iterator[str]:
    """Yield what each ORDER BY sorts by, without names of variables."""
    aliases = {alias: value for value, alias in _ALIAS.findall(query)}
    for found in _DIRECTION.findall(query):
        parts = []
        for part in found.split(","):
            value = re.sub(r"(?i)\b(?:ASC|DESC)(?:ENDING)?\b", "", part).strip()
            value = aliases.get(value, value)
            direction = "DESC" if re.search(r"(?i)\bDESC", part) else "ASC"
            parts.append(f"{re.sub(r'[A-Za-z_0-9]+[.]', '', value) if '.' in value else ''} {direction}".strip())
        yield ", ".join(parts)


def _entries(entries: str) -> Iterator[str]:
    """Yield the comparisons that ``{name: 'Oslo'}`` means."""
    for key, value in _MAP_ENTRY.findall(entries):
        yield f"{key} = {value}"


def _relationships(query: str, comparisons: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the relationships, from left to right, with what the query says about their ends."""
    labels: dict[str, str] = {}
    for name, own in _labels(query):
        if name and own.strip():
            labels[name] = " ".join(sorted({*labels.get(name, "").split(), *_NAME.findall(own)}))
    for found in _LINKS.finditer(query):
        left, right = (
            _Node(
                labels.get(name, " ".join(sorted(_NAME.findall(own)))),
                tuple(
                    sorted(
                        {text for of, text in comparisons if of == name != ""}
                        | set(_entries(entries) if comparisons else ())
                    )
                ),
            )
            for name, own, entries in ((found[1], found[2], found[3]), (found[9], found[10], found[11]))
        )
        back, types, length, forward = found[4], found[5] or "", found[6] or "", found[8]
        kind = "|".join(sorted(_NAME.findall(types)))
        link = f"-[{':' if kind else ''}{kind}{length}]-"
        if back and not forward:
            yield f"{right}{link}>{left}"
        elif forward and not back:
            yield f"{left}{link}>{right}"
        else:
            yield link.join(sorted((str(left), str(right))))
