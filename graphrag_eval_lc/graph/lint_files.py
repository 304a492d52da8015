"""Find the mistakes in the queries of a dataset, or in those that an agent wrote in a run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.config import GraphConfig
from graphrag_eval_lc.dataset.query_language import Language, language_of
from graphrag_eval_lc.dataset.validation import Problem
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.graph.cypher_queries import lint_cypher
from graphrag_eval_lc.graph.query_lint import LintRule, QueryFinding, lint_query
from graphrag_eval_lc.graph.refresh import reference_queries
from graphrag_eval_lc.graph.sources import DEFAULT_TIMEOUT, GraphSource
from graphrag_eval_lc.graph.vocabulary import (
    Vocabulary,
    is_neo4j,
    load_vocabulary,
    read_neo4j,
    read_ontology,
    read_vocabulary,
    save_vocabulary,
)
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE
from graphrag_eval_lc.run_folder.journal import journal_lines, key_of

_LANGUAGES: tuple[Language, ...] = ("SPARQL", "Cypher")
_ERRORS: tuple[LintRule, ...] = ("syntax", "undeclared_prefix", "unknown_class", "unknown_property", "unbound_variable")


async def vocabulary_of(
    config: GraphConfig, *, reads_again: bool = False, query_timeout: float = DEFAULT_TIMEOUT
) -> Vocabulary | None:
    """Return the vocabulary of a graph: from its file, else from the graph, and then the file is written.

    Args:
        config: The section ``graph``.
        reads_again: Whether the graph is queried even if the file exists.
        query_timeout: The longest time for a query, in seconds.

    Returns:
        The vocabulary with the terms of the ontology; None if the configuration names none of them.

    Raises:
        ConfigError: A file cannot be read.
        EndpointError: The endpoint does not answer.
        MissingExtraError: The endpoint is that of Neo4j, whose driver is not installed.
    """
    path = None if config.vocabulary is None else Path(config.vocabulary)
    vocabulary = None
    if path is not None and path.is_file() and not reads_again:
        vocabulary = load_vocabulary(path)
    elif config.endpoint is not None or config.file is not None:
        file = None if config.file is None else Path(config.file)
        if config.endpoint is not None and is_neo4j(config.endpoint):
            vocabulary = await read_neo4j(config.endpoint, query_timeout)
        else:
            async with GraphSource(config.endpoint, file, query_timeout).open() as graph:
                vocabulary = await read_vocabulary(graph)
        if config.ontology is not None:
            vocabulary = vocabulary.with_ontology(await _ontology(config.ontology))
        if path is not None:
            save_vocabulary(vocabulary, path)
    elif config.ontology is not None:
        vocabulary = await _ontology(config.ontology)
    return vocabulary


async def _ontology(path: str) -> Vocabulary:
    async with GraphSource(file=Path(path)).open() as graph:
        return await read_ontology(graph)


def is_run(path: Path) -> bool:
    """Return whether a path is the folder of a run."""
    return (path / RUN_FILE).is_file() or (path / RESPONSES_FILE).is_file()


def lint_dataset(
    dataset: Path, vocabulary: Vocabulary | None, *, prefixes: Mapping[str, str], needs_limit: bool = False
) -> tuple[int, list[Problem]]:
    """Return how many reference queries a dataset has, and what is wrong with them.

    Raises:
        DatasetError: The dataset cannot be read.
    """
    references, _, _ = reference_queries(dataset, _LANGUAGES)
    found = [
        _problem(each, dataset, reference.query_line, reference.question_id, reference.key)
        for reference in references
        for each in _linted(reference.query, vocabulary, prefixes=prefixes, needs_limit=needs_limit)
    ]
    return len(references), found


def lint_run(
    folder: Path, vocabulary: Vocabulary | None, *, prefixes: Mapping[str, str], needs_limit: bool = False
) -> tuple[int, list[Problem]]:
    """Return how many queries the agent sent in a run, and what is wrong with them.

    If the endpoint answered a query, its syntax and prefixes are taken to be right.

    Raises:
        RunFolderError: The responses cannot be read.
    """
    path = folder / RESPONSES_FILE
    if not path.is_file():
        raise RunFolderError(f"the folder holds no {RESPONSES_FILE}", path=folder)
    last = {key_of(line.record): line for line in journal_lines(path) if line.record is not None}
    number, found = 0, []
    for line in last.values():
        for name, step, query in _queries(line.record):
            number += 1
            was_answered = step.get("status", "success") == "success"
            options = {"prefixes": prefixes, "was_answered": was_answered, "needs_limit": needs_limit}
            for each in _linted(query, vocabulary, **options):
                question_id = str((line.record or {}).get("question_id"))
                found.append(_problem(each, path, line.number, question_id, name))
    return number, found


def _linted(query: str, vocabulary: Vocabulary | None, **options: Any) -> list[QueryFinding]:
    if language_of(query) == "Cypher":
        return [] if vocabulary is None else lint_cypher(query, vocabulary)
    return lint_query(query, vocabulary, **options)


def _queries(response: Any) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield the queries of a response: the id of the call, the step and the query."""
    for index, step in enumerate(response.get("actual_steps") or ()):
        args = step.get("args")
        query = args.get("query") if isinstance(args, Mapping) else None
        if isinstance(query, str) and language_of(query) in _LANGUAGES:
            yield str(step.get("id", index)), step, query


def _problem(found: QueryFinding, path: Path, line: int | None, question_id: str, key: str) -> Problem:
    severity = "error" if found.rule in _ERRORS else "warning"
    return Problem(str(found), "", str(path), line, question_id, key, severity)  # type: ignore[arg-type]
