"""Recognises the language of a query (SPARQL, SQL or Cypher) by its text."""

import re
from typing import Final, Literal

from graphrag_eval_lc.matching.rows.row_steps import CYPHER_QUERY, SPARQL_QUERY, SQL_DB_QUERY

Language = Literal["SPARQL", "SQL", "Cypher"]
STEP_NAMES: Final[dict[Language, str]] = {"SPARQL": SPARQL_QUERY, "SQL": SQL_DB_QUERY, "Cypher": CYPHER_QUERY}
"""The names of the steps that run queries of each language."""

# Keywords inside IRIs, literals and comments do not count. Two dashes before ( > [ are a Cypher relationship.
_IRI: Final = r"<[^<>\s\"{}|^`\\]*>"
_TEXT: Final = (
    r"\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|"
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.|'')*+'|`[^`]*+`|\[[A-Za-z_][\w ]*+\](?=\.)"
)
_COMMENT: Final = r"/\*(?s:.*?)\*/|--(?!\s*[(>\[])[^\n]*|//[^\n]*|\#[^\n]*"
_PLAIN: Final = re.compile(f"(?P<iri>{_IRI})|(?P<text>{_TEXT})|(?P<comment>{_COMMENT})")
_MARKS: Final = {"iri": "<>", "text": "''", "comment": " "}
# What may be in front of a query: parentheses, EXPLAIN, the database of Cypher.
_FRONT: Final = re.compile(
    r"[\s(;]*+(?:(?:EXPLAIN(?:\s+(?:ANALYZE|QUERY\s+PLAN))?|PROFILE|CYPHER(?:\s+\d+)?(?:\s+\w+\s*=\s*\w+)*|USE\s+[\w.]+)\b[\s(;]*+)*",
    re.I,
)
# The first pattern that matches the beginning decides. If languages share a keyword, the text after it decides.
_VARIABLE: Final = r"[?$][A-Za-z_]"
_PATTERNS: Final[tuple[tuple[Language, str], ...]] = (
    ("SPARQL", r"(PREFIX\s*[\w.-]*:|BASE\s*<>|DEFINE\s+\w+:)"),
    ("SPARQL", rf"SELECT\b(?=[^{{]*\{{)(?=.*({_VARIABLE}|WHERE\s*\{{|<>|\*\s*\{{))"),
    ("SPARQL", rf"SELECT\s+((DISTINCT|REDUCED)\s+)?\(?[^;]*?{_VARIABLE}(?!.*\bFROM\s+[\w'])"),
    ("SQL", r"SELECT\b.*\bFROM\b"),
    ("SPARQL", r"(ASK|CONSTRUCT)\b[^{]*\{"),
    ("SPARQL", rf"DESCRIBE\s+(<>|\*|{_VARIABLE}|[\w.-]*:\w)"),
    ("SPARQL", r"(INSERT|DELETE)\s*(DATA|WHERE)?\s*\{|WITH\s*<>"),
    ("Cypher", r"(OPTIONAL\s+)?MATCH\s*(\w+\s*=\s*)?((ANY|ALL|SHORTEST)\b[\w\s]*)?(\w+\s*)?\(.*\b"
     r"(RETURN|CREATE|MERGE|SET|DELETE|REMOVE|CALL|FINISH)\b"),
    ("Cypher", r"(CREATE|MERGE|FOREACH|CALL)\s*(\w+\s*=\s*)?[({]"),
    ("Cypher", r"CALL\s+[\w'.]+\s*\(.*(\bYIELD\b|\bRETURN\b)|CALL\s+\w+\.[\w.]+\s*(\(|$)"),
    ("Cypher", r"UNWIND\b.*\bAS\b|LOAD\s+CSV\b|RETURN\s+([\d'(\[{$]|\w+\s*\()"),
    ("Cypher", r"(CREATE|DROP)\s+(\w+\s+)?(CONSTRAINT|INDEX)\b.*\bFOR\s*\("),
    ("SQL", r"WITH\s+(RECURSIVE\s+)?[\w'.]+\s*(\([^)]*\)\s*)?AS\s+((NOT\s+)?MATERIALIZED\s+)?\("),
    ("Cypher", r"WITH\b.*\bRETURN\b"),
    ("SQL", r"SELECT\s+[\w'(*+-]"),
    ("SQL", r"(INSERT|REPLACE|MERGE)\s+INTO\b|DELETE\s+FROM\b|UPDATE\s+[\w'.]+\s.*\bSET\b|VALUES\s*\("),
    ("SQL", r"(CREATE|ALTER|DROP)\s+(OR\s+REPLACE\s+|TEMP(ORARY)?\s+|UNIQUE\s+)*(TABLE|VIEW|INDEX)\b|PRAGMA\s+\w"),
)  # fmt: skip
_COMPILED: Final = tuple((language, re.compile(pattern, re.I | re.S)) for language, pattern in _PATTERNS)
_LONGEST: Final = 20_000


def language_of(query: str) -> Language | None:
    """Return the language of a query; None if the text does not show it.

    Example:
        >>> language_of("SELECT ?x FROM <urn:g> { ?x a ?y }"), language_of("MATCH (n) RETURN n")
        ('SPARQL', 'Cypher')
        >>> language_of("Which transformers are in Nea?") is None
        True
    """
    plain = _PLAIN.sub(lambda found: _MARKS[found.lastgroup or ""], query[:_LONGEST]).strip()
    front = _FRONT.match(plain)
    begins = front.end() if front else 0
    return next((language for language, pattern in _COMPILED if pattern.match(plain, begins)), None)


def language_in_name(name: str) -> Language | None:
    """Return the language that a column's name mentions."""
    words = re.split(r"[\W_]+", name.casefold())
    return next((language for language in STEP_NAMES if language.casefold() in words), None)
