"""A Model Context Protocol (MCP) server, with which coding agents read what failed in runs, and why.

Its tools only read. Outputs are short pages of text with secrets masked.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.benchmark.benchmark_run import load_run
from graphrag_eval_lc.compare import compare_runs
from graphrag_eval_lc.config import GraphConfig
from graphrag_eval_lc.dataset.ids import nearest_id
from graphrag_eval_lc.dataset.validation import Problem, validate_dataset
from graphrag_eval_lc.errors import GraphRAGEvalError, RunFolderError
from graphrag_eval_lc.graph.vocabulary import load_vocabulary
from graphrag_eval_lc.integrations.publishing import needed
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import COST, MAIN_METRIC
from graphrag_eval_lc.run_folder import recorded_dataset
from graphrag_eval_lc.run_store import StoredRun, list_runs
from graphrag_eval_lc.texts import counted, shortened, visible
from graphrag_eval_lc.view.failures import Failure

_PAGE: Final = 10
_LONGEST_OUTPUT: Final = 12_000
_MOST_FAILURES: Final = 100_000
_INSTRUCTIONS: Final = (
    "Reads the runs of graphrag-eval-lc: a benchmark of an agent over a knowledge graph. Begin with list_runs, then "
    "failures of a run, then explain one question. A run is named by its label or its folder; the last one is meant "
    "if none is named. Long outputs have pages."
)


def serve(folder: Path) -> None:
    """Serve the runs of a folder over standard input and output, until the client closes it.

    Raises:
        MissingExtraError: The package mcp is not installed.
        RunFolderError: The folder does not exist.
    """
    runs_server(folder).run("stdio")


def runs_server(folder: Path) -> Any:
    """Return the server for a folder of runs, or for one run."""
    fastmcp = needed("mcp.server.fastmcp", "The MCP server", "mcp")
    annotations = needed("mcp.types", "The MCP server", "mcp").ToolAnnotations(
        readOnlyHint=True, idempotentHint=True, openWorldHint=False
    )
    list_runs(folder)  # a folder that does not exist is reported at once
    server = fastmcp.FastMCP("graphrag-eval-lc", instructions=_INSTRUCTIONS, log_level="WARNING")
    tools = _Tools(folder)
    for tool in (tools.list_runs, tools.failures, tools.explain, tools.compare, tools.validate, tools.lint):
        server.add_tool(_output_of(tool), annotations=annotations, structured_output=False)  # it would repeat the text
    return server


def _output_of(tool: Callable[..., str]) -> Callable[..., str]:
    """Return a tool whose output is masked and not too long, and which returns errors of bad input as text."""

    @wraps(tool)
    def output(*args: Any, **options: Any) -> str:
        try:
            text = tool(*args, **options)
        except GraphRAGEvalError as problem:
            text = f"Error: {problem}"
        return shortened(masked_text(visible(text)), _LONGEST_OUTPUT, keeps_lines=True, counts_rest=True)

    return output


class _Tools:
    """The tools; their names, arguments and docstrings are what a client sees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_runs(self, page: int = 1) -> str:
        """List the runs, the newest first: name, start, main score, failed questions, cost."""
        runs = list(reversed(list_runs(self._folder)))
        return _paged((self._line(run) for run in runs), page, "run", "No runs yet.")

    def failures(self, run: str = "", kind: str = "", page: int = 1) -> str:
        """Show why questions of a run are not right: first the groups of like failures, then the questions.

        kind limits the questions to those of one group, by its title or kind, such as "wrong property".
        """
        view = load_run(self._run(run).path).view(most_failures=_MOST_FAILURES)
        groups = [f"{group.count} × {group.title} ({group.kind})" for group in view.groups]
        found = [each for each in view.failures if not kind or kind.lower() in f"{each.group} {each.kind}".lower()]
        lines = (f"{each.key}: {' '.join(filter(None, (each.state, _score(each))))}: {each.reason}" for each in found)
        shown = groups[:_PAGE] if page == 1 and not kind else []
        return "\n".join([str(view.headline), *shown, "", _paged(lines, page, "question", "No failures.")])

    def explain(self, question_id: str, run: str = "", repeat: int = 1) -> str:
        """Explain one question: what was asked, expected and answered, each step, and why it scored so."""
        return str(load_run(self._run(run).path).show(question_id, repeat))

    def compare(self, a: str, b: str = "", page: int = 1) -> str:
        """Compare run b (default: the last one) with the baseline a: verdict, metrics, broken and fixed questions."""
        comparison = compare_runs(self._run(a).path, self._run(b).path)
        (pair,) = comparison.view().pairs
        metrics = [f"{row.name}: {row.a} → {row.b} ({row.change}) {row.verdict}".rstrip() for row in pair.rows]
        flips = (f"{flip.question_id}: {flip.direction}: {flip.why}" for flip in pair.pair.flips)
        shown = metrics if page == 1 else []
        changed = _paged(flips, page, "changed question", "No question changed.")
        return "\n".join([pair.headline, *filter(None, [pair.doubt]), *shown, "", changed])

    def validate(self, run: str = "", page: int = 1) -> str:
        """Find mistakes in the dataset of a run, and in its responses, with the line of each."""
        stored = self._run(run)
        dataset = recorded_dataset(stored.record, stored.path)
        if dataset is None or not Path(dataset).is_file():
            raise RunFolderError("the dataset of the run is not there any more", path=stored.path)
        return _problems(validate_dataset(Path(dataset), stored.path), page)

    def lint(self, run: str = "", page: int = 1) -> str:
        """Find mistakes in the queries that the agent sent in a run: syntax, prefixes, classes and properties."""
        from graphrag_eval_lc.graph import lint_files  # needs an extra that the other tools do not

        stored = self._run(run)
        recorded = (stored.record.get("config") or {}).get("graph")
        config = GraphConfig.model_validate(recorded or {})
        path = config.vocabulary
        vocabulary = load_vocabulary(Path(path)) if path is not None and Path(path).is_file() else None
        number, problems = lint_files.lint_run(stored.path, vocabulary, prefixes=config.prefixes)
        checked = f"{counted(number, 'query', 'queries')} checked{'' if vocabulary else ', without a vocabulary'}."
        return f"{checked}\n{_problems(problems, page)}"

    def _run(self, name: str) -> StoredRun:
        """Return the run of a label or folder, only one in the served folder; the last finished one without a name."""
        runs = [run for run in list_runs(self._folder) if run.is_finished]
        found = [run for run in runs if not name or name in (run.label, run.path.name, self._name(run))]
        if found:
            return found[-1]
        near = nearest_id(name, {run.path.name: None for run in runs}.keys()) if name else None
        hint = f"Did you mean {near}?" if near else "list_runs shows them."
        raise RunFolderError(f"no finished run is called {name!r}" if name else "no run has finished", hint=hint)

    def _name(self, run: StoredRun) -> str:
        return str(run.path.relative_to(self._folder)) if run.path != self._folder else run.path.name

    @recorded_only_here()
    def _line(self, run: StoredRun) -> str:
        row = run.row()
        if not row["finished"]:
            return f"{self._name(run)}: not finished"
        score = row["scores"].get(MAIN_METRIC)
        parts = [
            row["started"],
            None if score is None else f"{MAIN_METRIC} {score['mean']:.3f}",
            f"{counted(row['questions'] or 0, 'question')}, {counted(row['errors'] or 0, 'error')}",
            None if row[COST] is None else f"${row[COST]:.2f}",
        ]
        label = "" if run.label == run.path.name else f" ({run.label})"
        return f"{self._name(run)}{label}: {' · '.join(part for part in parts if part)}"


def _score(failure: Failure) -> str:
    return "" if failure.score is None else f"({failure.metric} {failure.score:.3g})"


def _problems(problems: Sequence[Problem], page: int) -> str:
    lines = (f"{'Warning: ' if each.severity == 'warning' else ''}{each}" for each in problems)
    return _paged(lines, page, "problem", "No problems found.")


def _paged(lines: Iterable[str], page: int, what: str, nothing: str) -> str:
    """Return a page of lines, and how to get the next one."""
    every = list(lines)
    if not every:
        return nothing
    pages = -(-len(every) // _PAGE)
    page = min(max(page, 1), pages)
    shown = every[(page - 1) * _PAGE : page * _PAGE]
    more = f"; next: page={page + 1}" if page < pages else ""
    return "\n".join([*shown, f"({counted(len(every), what)}, page {page} of {pages}{more})"])
