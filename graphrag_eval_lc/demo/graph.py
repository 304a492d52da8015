"""The demo's search: read-only SPARQL over its graph, lookup of things by name, and documents ranked by BM25."""

import gzip
import json
import math
import re
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, cast

import pyoxigraph
from langchain_core.tools import ToolException


class FoundDocument(TypedDict):
    """A document as the tool ``retrieval`` returns it, with the keys of graphrag-eval's retrieval steps."""

    id: str
    text: str


class DocumentIndex:
    """The documents of a JSON Lines file (id, title, text), read once and safe to search from several threads."""

    def __init__(self, path: Path) -> None:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        self._documents = [FoundDocument(id=row["id"], text=f"{row['title']}. {row['text']}") for row in rows]
        self._ranking = BM25(tokens_of(document["text"]) for document in self._documents)

    def search(self, query: str, k: int) -> list[FoundDocument]:
        """Return the ``k`` best documents that share a word with the query, best first."""
        scores = self._ranking.scores(tokens_of(query))
        ranked = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [self._documents[index] for index in ranked[:k] if scores[index] > 0]


def tokens_of(text: str) -> list[str]:
    """Return the words of a text, case folded."""
    return re.findall(r"\w+", text.casefold())


class BM25:
    """Scores tokenised texts against a tokenised query.

    Term weights are those of Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond"
    (2009), equation 3.15: ``idf(t) · tf / (tf + k1 · (1 - b + b · length / mean length))``. The inverse document
    frequency is ``ln(1 + (N - n + 0.5) / (n + 0.5))``: theirs with 1 added, so that a term in most texts never lowers
    a score.

    Example:
        >>> [round(score, 2) for score in BM25([["power", "line"], ["power"]]).scores(["line"])]
        [0.28, 0.0]
    """

    def __init__(self, texts: Iterable[Sequence[str]], *, k1: float = 1.2, b: float = 0.75) -> None:
        self._frequencies = [Counter(text) for text in texts]
        lengths = [frequencies.total() for frequencies in self._frequencies]
        mean_length = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._dampings = [k1 * (1 - b + b * length / mean_length) for length in lengths]
        self._text_frequency = Counter(term for frequencies in self._frequencies for term in frequencies)

    def scores(self, query: Iterable[str]) -> list[float]:
        """Return the score of each text in order, 0 or more; a repeated query term counts once."""
        number, found = len(self._frequencies), self._text_frequency
        weights = {
            term: math.log(1 + (number - found[term] + 0.5) / (found[term] + 0.5)) for term in query if term in found
        }
        return [
            math.fsum(
                weight * frequencies[term] / (frequencies[term] + damping)
                for term, weight in weights.items()
                if term in frequencies
            )
            for frequencies, damping in zip(self._frequencies, self._dampings, strict=True)
        ]


PREFIXES = {
    "cim": "https://cim.ucaiug.io/ns#",
    "nc": "https://cim4.eu/ns/nc#",
    "grid": "https://example.org/grid/ns#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_OPAQUE = re.compile(  # strings, IRIs and comments, in which keywords do not count
    r'"""[\s\S]*?"""|\'\'\'[\s\S]*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|<[^<>"{}|^`\\\s]*>|#[^\n]*'
)
_SERVICE = re.compile(r"(?<![\w?$:@-])SERVICE(?![\w:-])", re.IGNORECASE)


class QueryError(ToolException):
    """A query is forbidden, wrong or too expensive; the message is for the model."""


class NamedThing(NamedTuple):
    """A thing of the graph with its name and class."""

    iri: str
    name: str
    class_iri: str


class KnowledgeGraph:
    """A Turtle file in memory, read once and safe to query from several threads."""

    def __init__(self, path: Path, *, time_limit: float = 10.0, max_rows: int = 1000) -> None:
        self._time_limit = time_limit
        self._max_rows = max_rows
        self._store = pyoxigraph.Store()
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            self._store.load(file.read(), format=pyoxigraph.RdfFormat.TURTLE)

    def query(self, query: str) -> str:
        """Return SPARQL 1.1 JSON results for SELECT and ASK, Turtle for DESCRIBE and CONSTRUCT."""
        _refuse_service(query)  # updates are refused by store.query
        return _within(self._time_limit, lambda gave_up: self._run(query, gave_up))

    def named_things(self) -> list[NamedThing]:
        """Return all things that have a name, sorted by name."""
        query = "SELECT ?iri ?name ?class { ?iri cim:IdentifiedObject.name ?name ; a ?class } ORDER BY ?name ?iri"
        rows = cast("pyoxigraph.QuerySolutions", self._store.query(query, prefixes=PREFIXES))
        return [NamedThing(row["iri"].value, row["name"].value, row["class"].value) for row in rows]

    def _run(self, query: str, gave_up: threading.Event) -> str:
        try:
            results = self._store.query(query)
            if isinstance(results, pyoxigraph.QueryBoolean):
                return json.dumps({"head": {}, "boolean": bool(results)})
            rows = list(self._limited(results, gave_up))
        except SyntaxError as error:
            message = " ".join(str(error).split())
            place = re.search(r"at (\d+):(\d+)", message)
            where = f" at line {place[1]}, column {place[2]}" if place else ""
            what = (
                "a prefix is used that no PREFIX line declares." if "Prefix not found" in message else f"{message:.200}"
            )
            raise QueryError(f"The query is not valid SPARQL{where}: {what}") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise QueryError(f"The query cannot be evaluated: {error}") from error
        if isinstance(results, pyoxigraph.QueryTriples):
            text = pyoxigraph.serialize(rows, format=pyoxigraph.RdfFormat.TURTLE, prefixes=PREFIXES)
            return text.decode() if text else ""
        columns = [variable.value for variable in results.variables]
        bindings = [{column: _json_term(row[column]) for column in columns if row[column] is not None} for row in rows]
        return json.dumps({"head": {"vars": columns}, "results": {"bindings": bindings}}, ensure_ascii=False)

    def _limited(
        self, results: pyoxigraph.QuerySolutions | pyoxigraph.QueryTriples, gave_up: threading.Event
    ) -> Iterator[Any]:
        for count, row in enumerate(results):
            if count == self._max_rows:
                raise QueryError(
                    f"The query returns more than {self._max_rows} rows. Narrow it down, aggregate, or add a LIMIT."
                )
            if gave_up.is_set():
                return
            yield row


def _within(seconds: float, work: Callable[[threading.Event], str]) -> str:
    """Return the result of ``work``, or raise QueryError after ``seconds``.

    pyoxigraph cannot be interrupted while it looks for the next row. The abandoned thread is a daemon: it ends with
    its query or with the process.
    """
    outcome: Future[str] = Future()
    gave_up = threading.Event()

    def run() -> None:
        try:
            outcome.set_result(work(gave_up))
        except Exception as error:
            # The frames hold pyoxigraph's iterators, which must not be dropped in the caller's thread.
            traceback.clear_frames(error.__traceback__)
            outcome.set_exception(error)

    threading.Thread(target=run, name="sparql-query", daemon=True).start()
    try:
        return outcome.result(timeout=seconds)
    except TimeoutError:
        gave_up.set()
        raise QueryError(
            f"The query took longer than {seconds:g} seconds. Join its triple patterns through shared variables."
        ) from None


def _refuse_service(query: str) -> None:
    if _SERVICE.search(_OPAQUE.sub(" ", query)):
        raise QueryError("SERVICE is not allowed: queries stay inside this graph.")


def _json_term(term: Any) -> dict[str, str]:
    """Return a term as in SPARQL 1.1 JSON results."""
    if isinstance(term, pyoxigraph.NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, pyoxigraph.BlankNode):
        return {"type": "bnode", "value": term.value}
    binding = {"type": "literal", "value": term.value}
    if term.language:
        binding["xml:lang"] = term.language
    elif term.datatype.value != PREFIXES["xsd"] + "string":
        binding["datatype"] = term.datatype.value
    return binding


_CLOSE_ENOUGH = 0.85


class NameHit(NamedTuple):
    """A thing whose name matches a search, and its rank: above 0, and at most 1 for exactly this name."""

    thing: NamedThing
    rank: float


class NameIndex:
    """The names of a graph, safe to search from several threads."""

    def __init__(self, things: Iterable[NamedThing]) -> None:
        self._entries = [(thing, tokens_of(thing.name)) for thing in things]

    def search(self, query: str, class_iri: str | None, limit: int) -> list[NameHit]:
        """Return the ``limit`` best hits, best first.

        Each word of the query must equal, begin or nearly equal a word of the name. Names with more words rank lower.
        """
        wanted = tokens_of(query)
        hits = [
            NameHit(thing, rank)
            for thing, tokens in self._entries
            if class_iri in (None, thing.class_iri) and (rank := _rank(wanted, tokens)) > 0
        ]
        return sorted(hits, key=lambda hit: (-hit.rank, hit.thing.name, hit.thing.iri))[:limit]


def full_iri(class_name: str) -> str:
    """Return the bare IRI of ``cim:Substation``, ``<https://…#Substation>`` or a bare IRI."""
    prefix, _, local = class_name.partition(":")
    return PREFIXES[prefix] + local if prefix in PREFIXES else class_name.strip("<>")


def _rank(wanted: list[str], tokens: list[str]) -> float:
    if not wanted or not tokens:
        return 0.0

    def closeness_of(word: str, token: str) -> float:
        if word == token:
            return 1.0
        if token.startswith(word):
            return 0.9 * len(word) / len(token)
        ratio = SequenceMatcher(None, word, token).ratio()
        return 0.8 * ratio if ratio >= _CLOSE_ENOUGH else 0.0

    closeness = [max(closeness_of(word, token) for token in tokens) for word in wanted]
    if min(closeness) == 0:
        return 0.0
    return round(sum(closeness) / max(len(wanted), len(tokens)), 4)
