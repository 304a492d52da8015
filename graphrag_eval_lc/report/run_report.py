"""The report of a run: collects what it shows in one pass over the results, and writes a page or CSV files."""

import gc
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc import __version__
from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_manifest import kept_notes
from graphrag_eval_lc.compare.runs import RunSource
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import MissingExtraError, OptionError
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.metrics.intervals import FEWEST_TEMPLATES
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import CSV, REPORT, exporter
from graphrag_eval_lc.registry.metrics import AGENT_COST, JUDGES_COST, TOTAL_TOKENS
from graphrag_eval_lc.report.page import render_report
from graphrag_eval_lc.report.problems import Funnel, Problems
from graphrag_eval_lc.report.questions import DetailChunks, IndexRows, Measures, detail_of
from graphrag_eval_lc.report.reported_run import ReportedRun, gate_lines, reported_run
from graphrag_eval_lc.report.steps import SampleSteps, step_views
from graphrag_eval_lc.run_store.stored_runs import part_of
from graphrag_eval_lc.texts import counted, listed, one_line, plural
from graphrag_eval_lc.view import RunView
from graphrag_eval_lc.view.run_view import RunSummary
from graphrag_eval_lc.view.samples import seen_samples


@recorded_only_here()
def write_report(
    run: RunSource,
    path: str | PathLike[str] | None = None,
    *,
    template_ids: Sequence[str] = (),
    question_ids: Sequence[str] = (),
    answered_only: bool = False,
) -> Path:
    """Write the report of a run, or of some of its questions, as one self-contained HTML file.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` returned, or a list of results.
        path: The file; None for ``report.html`` in the run's folder. An existing one is replaced as a whole. A report
            of some questions needs one.
        template_ids: Only the questions of these templates.
        question_ids: Only the questions with these ids.
        answered_only: Only the questions that have a response.

    Returns:
        The file's path.

    Raises:
        RunFolderError: The run cannot be read, or the file cannot be written.
        MissingExtraError: Jinja2 is not installed.
        OptionError: The path is a folder or its folder does not exist; no path is given although the run has no
            folder or only some questions are reported; or the run has none of the questions.
    """
    selection = Selection(template_ids=template_ids, question_ids=question_ids, answered_only=answered_only)
    if path is not None:
        target = Path(path)  # checked before the results are read, which may take long
        if target.is_dir():
            example = target / exporter(REPORT).file_name
            raise OptionError("this is a folder", path=target, hint=f"Give a file, such as {example}.")
        if not target.parent.is_dir():
            hint = "Make it first, or give a file elsewhere."
            raise OptionError("the report's folder is not there", path=target.parent, hint=hint)
    elif not selection.is_all:
        what = "a report of some questions does not take the place of that of the whole run"
        raise OptionError(what, hint="Choose another file: --output FILE (path=...).")
    reported = reported_run(run, selection)
    target = Path(path) if path is not None else reported.file_of(REPORT)
    replace_file(target, (piece.encode("utf-8") for piece in _page(reported)))
    return target


@recorded_only_here()
def report_html(
    run: RunSource,
    *,
    template_ids: Sequence[str] = (),
    question_ids: Sequence[str] = (),
    answered_only: bool = False,
) -> str:
    """Return the report of a run, or of some of its questions, as the text of an HTML page.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` returned, or a list of results.
        template_ids: Only the questions of these templates.
        question_ids: Only the questions with these ids.
        answered_only: Only the questions that have a response.

    Raises:
        RunFolderError: The run cannot be read.
        MissingExtraError: Jinja2 is not installed.
        OptionError: The run has none of the questions.
    """
    selection = Selection(template_ids=template_ids, question_ids=question_ids, answered_only=answered_only)
    return "".join(_page(reported_run(run, selection)))


def _page(run: ReportedRun) -> Iterator[str]:
    if find_spec("jinja2") is None:  # checked before the results are read, which may take long
        raise MissingExtraError("A report", "report", "jinja2")
    return render_report(report_data(run))


@recorded_only_here()
def write_csv_files(run: RunSource, path: str | PathLike[str] | None = None) -> Path:
    """Write questions.csv, steps.csv and aggregates.csv of a run.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` returned, or a list of results.
        path: The folder for them, made if missing; None for ``csv`` in the run's folder.

    Returns:
        The folder.

    Raises:
        RunFolderError: The run cannot be read, or a file cannot be written.
        OptionError: No path is given for a run without a folder.
    """
    reported = reported_run(run)
    target = Path(path) if path is not None else reported.file_of(CSV)
    results: list[Any] | None = None if reported.folder is not None else list(reported.results)
    # The file with labels may have moved since the run; the tables do not need what is computed from it.
    judges = reported.config.judges.model_copy(update={"labels": None})
    aggregates = compute_aggregates(reported.results, reported.config.model_copy(update={"judges": judges}))
    BenchmarkRun(aggregates, output_dir=reported.folder, results=results).to_csv(target)
    return target


_WARNING: Final = 1_000
_LIMIT: Final = re.compile(r"Recursion limit of (\d+)")


def report_data(run: ReportedRun) -> dict[str, Any]:
    """Return what the page of a report is rendered from, in one pass; all texts are plain text.

    ``view`` is the view of the run, ``index`` has the rows of the question list, ``chunks`` their packed details, and
    ``turned`` the keys of the samples that broke or were fixed since an earlier run. All other keys are sections and
    texts.
    """
    config, metrics = run.config, run.metrics()
    names = part_of(run.record, "dataset").get("step_names")  # of the whole dataset; the results may have only some
    seen = RunSummary(config, metrics, most_failures=0)
    funnel, views = Funnel(), step_views(config)
    functions = part_of(run.record, "judges").get("functions") or ()
    problems = Problems(config, functions, map(str, names) if isinstance(names, list) else ())
    index, chunks, measures = IndexRows(), DetailChunks(), Measures(config, metrics)
    with _collecting_new_objects_only():
        for sample in seen_samples(run.results, metrics):
            verdict, failure = seen.add(sample)
            steps = SampleSteps(sample.result, config, views)
            problems.add(sample, steps)
            funnel.add(sample, steps)
            index.add(sample, steps, chunks.add(sample.key, detail_of(sample, steps, measures)), verdict, failure)
    view = seen.view(gate_lines(run.checked_gates()), run.earlier(), run.record.get("judges"))
    errors, changes = problems.errors(), view.headline.changes
    turned = {} if changes is None else {"broken": changes.broken, "fixed": changes.fixed}
    folder = None if run.folder is None else run.folder.absolute()
    about = {"title": run.title, "run_id": run.record.get("run_id"), "folder": folder}
    return {
        "title": run.title,
        "generated": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "what_ran": run.what_ran(_measured(view, errors)),
        "warnings": [one_line(text, _WARNING) for text in (*_warnings(run, problems, view), *view.notes)],
        "view": view,
        "funnel": funnel.record(),
        "matrix": funnel.matrix(),
        "errors": errors,
        "capture_warnings": problems.of("warning"),
        "tools": list(index.tools),
        "groups": [masked_text(title) for title in index.groups],
        "run": {key: one_line(value, _WARNING) for key, value in about.items() if value is not None},
        "again": run.again_command,
        "dataset": run.dataset_argument or "DATASET.yaml",
        "prefixes": index.prefixes,
        "turned": {way: [key for each in ids for key in index.keys[each]] for way, ids in turned.items()},
        "samples_word": f"{view.headline.noun}s",
        "index_json": index,
        "chunks": chunks.packed(),
    }


@contextmanager
def _collecting_new_objects_only() -> Iterator[None]:
    """Keep the garbage collector from scanning existing objects: results are so many objects that it runs often."""
    is_ours = gc.get_freeze_count() == 0
    if is_ours:
        gc.freeze()
    try:
        yield
    finally:
        if is_ours:
            gc.unfreeze()


def _measured(view: RunView, errors: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return facts that only the results have: the total cost, and the questions that hit the recursion limit."""
    costs = [line for line in view.spent if line.metric in (AGENT_COST, JUDGES_COST)]
    parts = [f"{line.name[0].lower()}{line.name[1:]} {dollars(line.total)}" for line in costs if len(costs) > 1]
    tokens = [f"; {line.total:,.0f} tokens of the agent" for line in view.spent if line.metric == TOTAL_TOKENS]
    unpriced = ["the agent's is not known"] if tokens and costs and costs[0].metric != AGENT_COST else []
    about = ", ".join([*parts, *unpriced, *(line.note for line in costs if line.note)])
    measured = {}
    if costs or tokens:
        measured["Total cost"] = "".join([view.headline.cost_text, f" ({about})" if about else "", *tokens])
    for error in errors:
        if error["where"] == "question" and error["kind"] == "GraphRecursionError":
            limit = _LIMIT.search(error["example"])
            reached = f"reached by {counted(error['count'], view.headline.noun)}: {listed(error['questions'])}"
            measured["Recursion limit"] = f"{limit[1]}, {reached}" if limit else reached
    return measured


def _warnings(run: ReportedRun, problems: Problems, view: RunView) -> Iterator[str]:
    if stopped := part_of(run.record, "stopped"):
        left_out = counted(stopped.get("left_out") or 0, "sample was", "samples were")
        yield f"The run was stopped: {stopped.get('message')}; {left_out} not asked."
    yield from kept_notes(run.record)
    # A run in memory has reported its unknown tools already.
    yield from dict.fromkeys([*run.warnings, *map(str, problems.unknown_tools.found())])
    templates = view.headline.templates
    if not view.headline.samples:
        yield "The run has no results."
    elif templates < FEWEST_TEMPLATES:
        count = plural(templates, "is only one template", f"are only {templates} templates")
        alike = "questions of one template resemble each other"
        yield f"There {count}: {alike}, so with fewer than {FEWEST_TEMPLATES} intervals are too narrow."
