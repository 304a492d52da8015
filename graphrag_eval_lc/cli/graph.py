"""The commands on the knowledge graph: ``dataset lint``, ``refresh`` and ``generate``, and ``proxy``."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from graphrag_eval_lc.cli.dataset import refresh_state, showing_progress
from graphrag_eval_lc.cli.options import with_options
from graphrag_eval_lc.cli.printing import EXIT_FINDINGS, echo_err, print_json, say
from graphrag_eval_lc.cli.project import Config
from graphrag_eval_lc.config import GraphConfig, load_config
from graphrag_eval_lc.dataset.sparql_endpoint import EndpointError
from graphrag_eval_lc.errors import ConfigError, MissingExtraError, OptionError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.files.writing import refuse_existing, replace_file, write_data
from graphrag_eval_lc.graph.generate import generate_dataset, load_templates
from graphrag_eval_lc.graph.refresh import refresh_dataset, refresh_summary
from graphrag_eval_lc.graph.replay import ReplayProxy
from graphrag_eval_lc.graph.sources import GraphSource
from graphrag_eval_lc.report.machine_files import validation_document
from graphrag_eval_lc.texts import counted


class SplitBy(StrEnum):
    """What --split keeps together in one part; an enum, because the lowest version of typer does not know Literal."""

    template = "template"
    value = "value"


@with_options()
def lint(
    path: Path,
    config: Config = None,
    endpoint: str | None = None,
    graph: Path | None = None,
    vocabulary: Path | None = None,
    reread: bool = False,
    needs_limit: bool = False,
    timeout: float = 60.0,
    as_json: bool = False,
) -> None:
    """Find mistakes in the SPARQL queries of a dataset or a run.

    Finds syntax errors, undeclared prefixes, classes and properties that the graph does not have (with the nearest
    existing one), properties that no instance of the class has, columns that nothing binds, and patterns that nothing
    connects. The vocabulary is read from the graph once. Needs the extra `graphrag-eval-lc[graph]`.

    Exit code 0: nothing, or only warnings; 1: errors; 2: wrong usage or input.

    For example:

    `graphrag-eval-lc dataset lint qa.yaml --endpoint http://localhost:7200/repositories/grid`

    Options:
        as_json --json: Print JSON instead of text.
        path DATASET|RUN_DIR: A dataset, or the folder of a run.
        --vocabulary FILE: A JSON file with the classes and properties of the graph; written if it is missing. Default:
            graph.vocabulary of the config.
        --reread: Read the vocabulary again, and replace its file.
        --needs-limit: Report SELECT queries without LIMIT.
    """
    lint_files = _lint_files()
    settings = _graph_config(config, endpoint, graph, vocabulary)
    try:
        known = run_sync(lambda: lint_files.vocabulary_of(settings, reads_again=reread, query_timeout=timeout))
    except EndpointError as unread:
        hint = "Use --graph FILE, or a vocabulary that was saved before: --vocabulary FILE."
        raise ConfigError(f"the vocabulary of the graph cannot be read: {unread}", hint=hint) from unread
    look = lint_files.lint_run if lint_files.is_run(path) else lint_files.lint_dataset
    number, problems = look(path, known, prefixes=settings.prefixes, needs_limit=needs_limit)
    if as_json:
        print_json(validation_document(problems, None))
    else:
        for problem in problems:
            say(str(problem) if problem.severity == "error" else f"Warning: {problem}")
        against = "without a vocabulary" if known is None else f"against {known.source}"
        errors = sum(problem.severity == "error" for problem in problems)
        parts = [(errors, "error"), (len(problems) - errors, "warning")]
        found = " and ".join(counted(count, word) for count, word in parts if count) or "no problems found"
        say(f"{counted(number, 'query', 'queries')} checked {against}: {found}.")
    if any(problem.severity == "error" for problem in problems):
        raise typer.Exit(EXIT_FINDINGS)


@with_options()
def refresh(
    dataset: Path,
    config: Config = None,
    endpoint: str | None = None,
    graph: Path | None = None,
    write: Path | None = None,
    overwrite: bool = False,
    max_concurrency: int = 4,
    timeout: float = 60.0,
) -> None:
    """Run the reference queries again, and list references that are stale.

    All columns are compared, by name and by rows, whether or not they are required. With --write the new results
    replace the old ones, with `output_source` (endpoint, date, digest) next to them; comments, order and anchors of the
    file stay. Results that have become empty, and queries that fail, are reported and not changed. A refresh that was
    stopped resumes: until it is done, results are kept next to the dataset, in a file that ends in .refresh.jsonl.

    Exit code 0: all results are the same; 1: some are not; 2: wrong usage or input.

    For example:

    `graphrag-eval-lc dataset refresh qa.yaml --endpoint http://localhost:7200/repositories/grid --write qa.yaml`

    Options:
        dataset: The dataset, in YAML or JSON.
        --write -w FILE: Write the dataset with the new results here; it may be the dataset itself.
    """
    if write is not None and write != dataset:
        refuse_existing(write, overwrite=overwrite)
    settings = _graph_config(config, endpoint, graph)
    state = refresh_state(dataset)
    with showing_progress("Queries run") as show:
        options: dict[str, Any] = {"state": state, "max_concurrency": max_concurrency, "on_progress": show}
        found = run_sync(lambda: refresh_dataset(dataset, _source(settings, timeout), **options))
    for each in found.references:
        if each.state != "same":
            say(f"{dataset}, {each}")
    say(refresh_summary(found))
    if write is not None:
        if found.number("stale") or write != dataset:
            replace_file(write, [found.new_text().encode()])
        say(f"Wrote {counted(found.number('stale'), 'new result')} to {write}.")
    state.unlink(missing_ok=True)
    if not found.is_current:
        raise typer.Exit(EXIT_FINDINGS)


@with_options()
def generate(
    templates: Path,
    output: Path,
    config: Config = None,
    endpoint: str | None = None,
    graph: Path | None = None,
    seed: int = 0,
    split: SplitBy | None = None,
    test_share: float = 0.3,
    overwrite: bool = False,
    max_concurrency: int = 4,
    timeout: float = 60.0,
) -> None:
    """Make a dataset from templates and the values in a graph.

    A template has texts with {placeholders}, a query for the values, and reference steps. Each value makes a question,
    with the results of its queries. Questions whose queries return nothing, or too much, are left out and counted. The
    same templates, graph and seed produce the same dataset.

    For example:

    `graphrag-eval-lc dataset generate templates.yaml --graph grid.ttl --output qa.yaml --split value`

    Options:
        templates: The templates, in YAML or JSON.
        --seed N: Chooses values if a template has more than `most`, and the split.
        --split: Also write a part for development and one for testing, next to the dataset. No template, or no value,
            is in both.
        --test-share (min 0, max 1): The share of the test part.
    """
    parts = {} if split is None else {name: output.with_stem(f"{output.stem}-{name}") for name in ("dev", "test")}
    for path in (output, *parts.values()):
        refuse_existing(path, overwrite=overwrite)
    source = _source(_graph_config(config, endpoint, graph), timeout)
    parsed = load_templates(templates)
    by = None if split is None else split.value
    options: dict[str, Any] = {"seed": seed, "split": by, "test_share": test_share}
    with showing_progress("Questions made") as show:
        options |= {"max_concurrency": max_concurrency, "on_progress": show}
        made = run_sync(lambda: generate_dataset(parsed, source, **options))
    write_data(output, made.templates, overwrite=overwrite)
    for name, path in parts.items():
        write_data(path, made.split(name), overwrite=overwrite)
    say(f"{made}. Wrote {', '.join(map(str, (output, *parts.values())))}.")
    if made.left_out:
        raise typer.Exit(EXIT_FINDINGS)


@with_options()
def proxy(
    record: Path | None = None,
    replay: Path | None = None,
    endpoint: str | None = None,
    fill: bool = False,
    port: int = 0,
    overwrite: bool = False,
) -> None:
    """Record the calls of a SPARQL endpoint, or replay them.

    Point the agent to the printed address, and stop the proxy with Ctrl-C. A call is identified by its method, path,
    parameters, Accept header and query; white space outside texts does not matter. A call that was not recorded is
    answered with status 504. Headers such as Authorization are forwarded and not recorded. `run --replay FILE` starts
    the proxy for a run.

    For example:

    `graphrag-eval-lc proxy --record calls.jsonl --endpoint http://localhost:7200/repositories/grid --port 8765`

    Options:
        --record FILE: Forward each call to the endpoint, and append it to this file.
        --replay FILE: Replay the calls in this file, without the endpoint.
        --endpoint URL: The SPARQL endpoint.
        --fill: With --replay: forward calls that were not recorded, and record them.
        --port (min 0): The port on this machine; 0 for any free port.
    """
    if (record is None) == (replay is None):
        raise OptionError("--record and --replay exclude each other", hint="Use one: --record FILE or --replay FILE.")
    if fill and endpoint is None:
        raise OptionError("--fill needs the endpoint", hint="Add --endpoint URL.")
    if record is not None:
        refuse_existing(record, overwrite=overwrite)
    calls = record if record is not None else replay
    upstream = endpoint if record is not None or fill else None
    with ReplayProxy(Path(str(calls)), endpoint=upstream, replays=replay is not None, port=port) as server:
        say(f"Listening on {server.url}. Stop it with Ctrl-C.")
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
        _report(server)
    if server.counts.missing:
        raise typer.Exit(EXIT_FINDINGS)


@contextmanager
def replayed(calls: Path | None, name: str) -> Iterator[None]:
    """Replay the agent's SPARQL calls during a run; the variable ``name`` is set to the address of the proxy."""
    if calls is None:
        yield
        return
    before = os.environ.get(name)
    with ReplayProxy(calls, replays=True) as server:
        os.environ[name] = server.url
        try:
            yield
        finally:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before
            _report(server)


def _report(server: ReplayProxy) -> None:
    echo_err(f"Proxy: {server.counts}.")
    for query, number in server.counts.missing.most_common(3):
        echo_err(f"Not recorded ({counted(number, 'time')}): {query[:200]}")


def _lint_files() -> Any:
    """Import the module that lints, which needs rdflib."""
    try:
        from graphrag_eval_lc.graph import lint_files
    except ImportError as problem:
        raise MissingExtraError("Checking queries", "graph", "rdflib") from problem
    return lint_files


def _graph_config(
    config: Path | None, endpoint: str | None, graph: Path | None, vocabulary: Path | None = None
) -> GraphConfig:
    """Return the config's section ``graph``, overridden by the command line."""
    settings = load_config(config, has_llm=True, has_embeddings=True).graph
    if endpoint is not None and graph is not None:
        raise OptionError("--endpoint and --graph exclude each other", hint="Use one of them.")
    changes: dict[str, Any] = {}
    if endpoint is not None or graph is not None:
        changes |= {"endpoint": endpoint, "file": None if graph is None else str(graph), "vocabulary": None}
    if vocabulary is not None:
        changes["vocabulary"] = str(vocabulary)
    return settings.model_copy(update=changes)


def _source(settings: GraphConfig, timeout: float) -> GraphSource:
    return GraphSource(settings.endpoint, None if settings.file is None else Path(settings.file), timeout)
