"""Re-run the reference queries of a dataset against the graph, and find references that are out of date."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphrag_eval_lc.dataset.loading import dataset_records
from graphrag_eval_lc.dataset.query_language import Language, language_of
from graphrag_eval_lc.dataset.sparql_endpoint import DEFAULT_CONCURRENCY, EndpointError, EndpointGoneError, run_queries
from graphrag_eval_lc.errors import DatasetError
from graphrag_eval_lc.files.reading import TextFile
from graphrag_eval_lc.graph.dataset_text import Location, NewOutput, result_text, with_new_outputs
from graphrag_eval_lc.graph.sources import GraphSource
from graphrag_eval_lc.matching.rows import compare_sparql_results
from graphrag_eval_lc.texts import counted, shortened

RefreshState: TypeAlias = Literal["same", "stale", "empty", "failed"]
"""The state of a reference: its results are the same, different or empty now, or the query failed."""

_SHOWN_ROWS = 3


@dataclass(frozen=True, slots=True)
class ReferenceQuery:
    """A reference step with a SPARQL query.

    Attributes:
        question_id: Its question.
        location: Its place in the dataset.
        line: The line of its output in the file; None for a dataset without one.
        query_line: The line of its query.
        query: The query.
        output: The results in the dataset; None if there are none.
        ordered: Whether their order counts.
    """

    question_id: str
    location: Location
    line: int | None
    query_line: int | None
    query: str
    output: Any
    ordered: bool = False

    @property
    def key(self) -> str:
        """Its place, such as ``[0].questions[2].reference_steps[0][1]``."""
        return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.location)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """The current results of a reference query, compared with those in the dataset.

    Attributes:
        reference: The reference step.
        state: Its state.
        reason: What differs, or why it failed; empty if nothing does.
        results: The current results; None if it failed.
    """

    reference: ReferenceQuery
    state: RefreshState
    reason: str = ""
    results: Any = None

    def __str__(self) -> str:
        line = "" if self.reference.line is None else f"line {self.reference.line}, "
        return f"{line}question {self.reference.question_id}: {self.state}: {self.reason}"


@dataclass(frozen=True)
class Refresh:
    """The states of all references of a dataset.

    Attributes:
        references: In the order of the dataset.
        source: The endpoint or file.
        without_query: How many reference steps have an output and no SPARQL query.
        file: The dataset's text.
    """

    references: tuple[Refreshed, ...]
    source: str
    without_query: int
    file: TextFile = field(repr=False)

    def number(self, state: RefreshState) -> int:
        """Return how many references are in a state."""
        return sum(each.state == state for each in self.references)

    @property
    def is_current(self) -> bool:
        """Whether all references are the same as before."""
        return self.number("same") == len(self.references)

    def new_text(self) -> str:
        """Return the dataset with the current results, if they differ; comments, order and anchors stay.

        An output that has become empty, or whose query failed, stays as it is.

        Raises:
            DatasetError: An output cannot be replaced without changing something else.
        """
        date = datetime.now(UTC).date().isoformat()
        outputs = [
            NewOutput(each.reference.location, text, {"endpoint": self.source, "date": date, "sha256": _digest(text)})
            for each in self.references
            if each.state == "stale" and each.reference.output is not None
            for text in (result_text(each.results),)
        ]
        return with_new_outputs(self.file, outputs)


def reference_queries(
    dataset: Path, languages: Sequence[Language] = ("SPARQL",)
) -> tuple[list[ReferenceQuery], int, TextFile]:
    """Return the reference steps with a query, how many other steps have an output, and the file.

    Raises:
        DatasetError: It cannot be read, or it is in JSON Lines.
    """
    records = dataset_records(dataset)
    if records.file is None or records.has_records_by_id or records.file.format not in ("yaml", "json"):
        hint = "Give a dataset as a list of templates, in YAML or JSON."
        raise DatasetError("this form of dataset cannot be refreshed", path=dataset, hint=hint)
    if not isinstance(records.values, list):
        raise DatasetError("it is not a list of templates", path=dataset, hint="graphrag-eval-lc validate says more.")
    index = records.line_index
    found, others = [], 0
    for location, question_id, step in _steps(records.values):
        query = (step.get("args") or {}).get("query") if isinstance(step.get("args"), Mapping) else None
        if isinstance(query, str) and language_of(query) in languages:
            line, query_line = (
                None if index is None else index.line_of((*location, *keys)) for keys in (["output"], ["args", "query"])
            )
            is_ordered = bool(step.get("ordered"))
            found.append(ReferenceQuery(question_id, location, line, query_line, query, step.get("output"), is_ordered))
        elif "output" in step:
            others += 1
    return found, others, records.file


def _steps(templates: Any) -> Iterator[tuple[Location, str, Mapping[str, Any]]]:
    for at, template in _mappings(templates):
        for place, question in _mappings(template.get("questions")):
            groups = question.get("reference_steps")
            for group, steps in enumerate(groups if isinstance(groups, list) else ()):
                for number, step in _mappings(steps):
                    location = (at, "questions", place, "reference_steps", group, number)
                    yield location, str(question.get("id")), step


def _mappings(values: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the mappings in a list, with their places; ``validate`` reports anything else in it."""
    for place, each in enumerate(values if isinstance(values, list) else ()):
        if isinstance(each, Mapping):
            yield place, each


async def refresh_dataset(
    dataset: Path,
    source: GraphSource,
    *,
    state: Path | None = None,
    max_concurrency: int = DEFAULT_CONCURRENCY,
    on_progress: Callable[[int, int], None] | None = None,
) -> Refresh:
    """Run all reference queries again and compare all columns of their results, names and rows.

    Args:
        dataset: The path of the dataset.
        source: The graph.
        state: A file to which each result is appended, so that a refresh that was stopped resumes; None: no such file.
        max_concurrency: How many queries are run at the same time.
        on_progress: Called with the number of queries that are done, and of all.

    Raises:
        DatasetError: The dataset cannot be read, or nothing answers at the endpoint.
        OptionError: The source names no graph.
        RunFolderError: The state cannot be written.
    """
    references, without_query, file = reference_queries(dataset)
    queries = [reference.query for reference in references]
    options: dict[str, Any] = {"max_concurrency": max_concurrency, "on_progress": on_progress}
    async with source.open() as graph:
        outcomes = await run_queries(graph, queries, state=state, **options)
    gone = next((each for each in outcomes.values() if isinstance(each, EndpointGoneError)), None)
    if gone is not None:
        what = f"{graph.name} cannot be reached any more: {gone}"
        raise DatasetError(what, hint="Run the command again: it resumes.") from gone
    found = [
        Refreshed(each, "failed", shortened(str(outcome), 300))
        if isinstance(outcome := outcomes[each.query], EndpointError)
        else compared(each, outcome)
        for each in references
    ]
    return Refresh(tuple(found), graph.name, without_query, file)


def compared(reference: ReferenceQuery, results: Any) -> Refreshed:
    """Compare the current results with those of the dataset: the names of the columns, and all rows."""
    old = reference.output
    if old is None:
        return Refreshed(reference, "stale", "the reference has no output", results)
    try:
        before = json.loads(old) if isinstance(old, str) else old
    except ValueError:
        return Refreshed(reference, "stale", "the output in the dataset is not JSON", results)
    if before == results:
        return Refreshed(reference, "same", "", results)
    had, has = _columns(before), _columns(results)
    if isinstance(results, Mapping) and "boolean" not in results and not _rows(results):
        is_same = not _rows(before) and had == has
        return Refreshed(reference, "same" if is_same else "empty", "" if is_same else "there are no rows", results)
    if had != has:
        reason = f"columns: {_names(has - had, 'new')}{_names(had - has, 'gone')}".rstrip("; ")
        return Refreshed(reference, "stale", reason, results)
    comparison = compare_sparql_results(before, results, ordered=reference.ordered, ignore_duplicates=False)
    if comparison.score == 1.0:
        return Refreshed(reference, "same", "", results)
    return Refreshed(reference, "stale", comparison.reason, results)


def _rows(results: Any) -> Sequence[Any]:
    found = results.get("results") if isinstance(results, Mapping) else None
    rows = found.get("bindings") if isinstance(found, Mapping) else None
    return rows if isinstance(rows, list) else []


def _columns(results: Any) -> set[str]:
    head = results.get("head") if isinstance(results, Mapping) else None
    names = head.get("vars") if isinstance(head, Mapping) else None
    return set(names) if isinstance(names, list) else set()


def _names(names: set[str], word: str) -> str:
    return f"{', '.join(sorted(names))} {word}; " if names else ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def refresh_summary(refresh: Refresh) -> str:
    """Return one line on a refresh.

    Example:
        >>> refresh_summary(Refresh((), "grid.ttl", 0, TextFile("", None, "yaml")))
        '0 reference queries run against grid.ttl: all results are the same.'
    """
    total = counted(len(refresh.references), "reference query", "reference queries")
    parts = [f"{number} {state}" for state in ("stale", "empty", "failed") if (number := refresh.number(state))]
    outcome = ", ".join(parts) if parts else "all results are the same"
    return f"{total} run against {refresh.source}: {outcome}."
