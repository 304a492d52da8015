"""Read the text of a SPARQL query without parsing it: its prefixes, the parts outside string literals, and its size."""

import re
from collections.abc import Callable, Mapping

STANDARD_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
}
UNDECLARED = "prefix:"
"""The beginning of the IRI of a name whose prefix is not declared."""
RDF_TYPE = f"<{STANDARD_PREFIXES['rdf']}type>"

_DECLARATION = re.compile(r"(?i)\bPREFIX\s+((?:[\w][\w.-]*)?):\s*<([^<>\"{}|^`\\\s]*)>")
_FULL_IRI = re.compile(r"<([^<>\s]*[#/])([\w.-]+)>")
_NAME_CHARACTER = r"(?:[\w-]|%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%])"
PREFIXED_NAME = re.compile(
    rf"(?<![\w?$@:.-])((?:[A-Za-z][\w.-]*)?):((?:{_NAME_CHARACTER}(?:[.:]*{_NAME_CHARACTER})*)?)"
)
NO_NAMES = re.compile(
    r"#[^\n]*|<[^<>\s]*>|\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.DOTALL
)
"""Comments, IRIs and texts of a query, in which nothing is a prefixed name."""
MARK = re.compile(r'<[az]:\d{3}>|"s:\d{3}"')
"""The mark with which ``with_marks`` replaces a term."""
_PLAIN_TERM = re.compile(r"<[^<>\"{}|^`\\\s]*>|[\"']([^\"'\\\n\r]*)[\"']")
_BASE = re.compile(r"(?i)\bBASE\s*<")
_MOST_MARKS = 999
_SERVICE = re.compile(r"(?i)(?<=[{}.;\s])(?=SERVICE\b)")
_ESCAPE = re.compile(r"\\([_~.\-!$&'()*+,;=/?#@%])")

# Reading takes about 3 ms per statement; comparing takes time with their square. Parsers recurse into brackets and
# long conditions.
_MOST_CHARACTERS = 100_000
_MOST_STATEMENTS = 200
_MOST_OPERATORS = 800
_MOST_VARIABLES = 2_000
_MOST_NESTED = 60
_LIST = re.compile(r"\([^(){}]*\)")
_STATEMENT_END = re.compile(r"[;,.](?=[\s}\])?$<\"'_:\[(]|$)|[{}/]")  # or a step of a path
_OPERATOR = re.compile(r"\|\||&&|[|+*!^=-]|[<>]=?|,")


def declared_prefixes(query: str) -> dict[str, str]:
    """Return the prefixes that a query declares.

    Example:
        >>> declared_prefixes("PREFIX cim: <https://cim.ucaiug.io/ns#> SELECT * {?x a cim:Line}")
        {'cim': 'https://cim.ucaiug.io/ns#'}
    """
    return dict(_DECLARATION.findall(_without_comments(query)))


def inferred_prefixes(query: str, other: str) -> dict[str, str]:
    """Return prefixes that a query uses without a declaration, as the IRIs of another query show them.

    Example:
        >>> inferred_prefixes("SELECT * {?x a cim:Line}", "SELECT * {?y a <https://cim.ucaiug.io/ns#Line>}")
        {'cim': 'https://cim.ucaiug.io/ns#'}
    """
    declared = declared_prefixes(query)
    namespaces = {local: namespace for namespace, local in _FULL_IRI.findall(other)}
    used = (found for found in PREFIXED_NAME.findall(NO_NAMES.sub(" ", query)) if found[0] not in declared)
    return {prefix: namespaces[local] for prefix, local in used if local in namespaces}


def expanded(query: str, prefixes: Mapping[str, str]) -> str:
    """Return a query with full IRIs; an IRI whose prefix is not declared begins with ``UNDECLARED``."""

    def iri(name: re.Match[str]) -> str:
        namespace = prefixes.get(name[1], f"{UNDECLARED}{name[1]}:")
        local = _ESCAPE.sub(r"\1", name[2])
        return f"<{namespace}{local}>"

    plain = outside_texts(_DECLARATION.sub(" ", _without_comments(query)), lambda part: PREFIXED_NAME.sub(iri, part))
    return outside_texts(plain, lambda part: _SERVICE.sub("\n", part))  # rdflib rejects it after a # on the same line


def with_marks(query: str) -> tuple[str, dict[str, str]]:
    """Return an expanded query with marks in place of its IRIs and texts, and what each mark means.

    Marks are sorted like their terms. A typed text, one with an escape, and rdf:type are left as they are.

    Example:
        >>> with_marks("ASK { ?x <urn:b> <urn:a>, 'Oslo'@no }")
        ('ASK { ?x <z:002> <z:001>, "s:000"@no }', {'"s:000"': '"Oslo"', '<z:001>': '<urn:a>', '<z:002>': '<urn:b>'})
    """
    found: dict[tuple[int, int], str] = {}
    for token in NO_NAMES.finditer(query):
        is_typed = query[token.start() - 2 : token.start()] == "^^" or query[token.end() : token.end() + 2] == "^^"
        plain = _PLAIN_TERM.fullmatch(token[0])
        if plain is not None and not is_typed and token[0] != RDF_TYPE:
            found[token.span()] = token[0] if plain[1] is None else f'"{plain[1]}"'
    terms = sorted(set(found.values()))
    if len(terms) > _MOST_MARKS or _BASE.search(query):
        return query, {}
    marks = {
        term: f'"s:{at:03}"' if term[0] == '"' else f"<{'a' if term < RDF_TYPE else 'z'}:{at:03}>"
        for at, term in enumerate(terms)
    }
    marked, end = "", 0
    for (start, after), term in found.items():
        marked += query[end:start] + marks[term]
        end = after
    return marked + query[end:], {mark: term for term, mark in marks.items()}


def outside_texts(query: str, change: Callable[[str], str]) -> str:
    """Return a query whose parts outside of comments, IRIs and texts are changed by a function."""
    parts: list[str] = []
    end = 0
    for opaque in NO_NAMES.finditer(query):
        parts += (change(query[end : opaque.start()]), opaque[0])
        end = opaque.end()
    return "".join((*parts, change(query[end:])))


def is_too_large(query: str) -> bool:
    """Return whether reading and comparing a query could take longer than a few seconds.

    Example:
        >>> is_too_large("ASK { ?x a ?y }"), is_too_large("ASK { " + "?x a ?y . " * 1_000 + "}")
        (False, True)
    """
    if len(query) > _MOST_CHARACTERS:
        return True
    plain = NO_NAMES.sub(" ", query)
    depth = deepest = 0
    for bracket in re.findall(r"[(){}\[\]]", plain):
        depth += 1 if bracket in "({[" else -1
        deepest = max(deepest, depth)
    return (
        deepest > _MOST_NESTED
        or len(_OPERATOR.findall(plain)) > _MOST_OPERATORS
        or plain.count("?") + plain.count("$") > _MOST_VARIABLES
        or len(_STATEMENT_END.findall(_LIST.sub("()", plain))) > _MOST_STATEMENTS
    )


def _without_comments(query: str) -> str:
    """Return a query without comments; a # in an IRI or a text does not begin one."""
    return NO_NAMES.sub(lambda found: " " if found[0].startswith("#") else found[0], query)
