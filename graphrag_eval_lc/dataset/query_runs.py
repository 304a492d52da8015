"""Run the queries of a dataset on a graph: several at once, and each result kept in a file, so that a run resumes."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError, EndpointGoneError
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.files.writing import AppendFile, json_line

STATE_SUFFIX = ".refresh.jsonl"
"""What the name of the file of results ends in, next to the dataset."""
DEFAULT_CONCURRENCY = 4


class Graph(Protocol):
    """What answers queries."""

    @property
    def name(self) -> str:
        """The URL without a password, or the path."""

    async def results(self, query: str) -> Any:
        """Return SPARQL 1.1 JSON results."""


async def run_queries(
    graph: Graph,
    queries: Iterable[str],
    *,
    state: Path | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Run queries, each once."""
    outcomes: dict[str, Any] = dict.fromkeys(queries)
    known = {} if state is None else _known_results(state)
    limit = asyncio.Semaphore(max_concurrency)
    gone: EndpointGoneError | None = None
    done = 0
    journal = None if state is None else _journal(state)

    async def run(query: str) -> None:
        nonlocal done, gone
        key = hashlib.sha256(f"{graph.name}\n{query}".encode()).hexdigest()
        async with limit:
            if gone is not None:
                outcomes[query] = gone
                return
            try:
                if key not in known:
                    known[key] = await graph.results(query)
                    if journal is not None:
                        journal.append(json_line({"key": key, "results": known[key]}))
                outcomes[query] = known[key]
            except EndpointError as problem:
                outcomes[query] = problem
                gone = gone or (problem if isinstance(problem, EndpointGoneError) else None)
        done += 1
        if on_progress is not None:
            on_progress(done, len(outcomes))

    try:
        async with asyncio.TaskGroup() as group:
            for query in outcomes:
                group.create_task(run(query))
    except* GraphRAGEvalError as problems:
        raise problems.exceptions[0] from None
    finally:
        if journal is not None:
            journal.close()
    return outcomes


def _journal(state: Path) -> AppendFile:
    """Open the file of results; a last line that a kill cut off gets an end of its line."""
    journal = AppendFile(state, is_private=False)
    if journal.length and not state.read_bytes().endswith(b"\n"):
        journal.append(b"\n")
    return journal


def _known_results(state: Path) -> dict[str, Any]:
    """Return the results that an earlier run has written; the last line may be cut off."""
    known = {}
    try:
        lines = state.read_bytes().split(b"\n")
    except OSError:
        return {}
    for line in lines:
        try:
            record = json.loads(line)
            known[record["key"]] = record["results"]
        except (ValueError, KeyError, TypeError):
            continue
    return known
