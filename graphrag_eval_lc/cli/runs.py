"""The commands on finished runs: ``report`` writes a report, ``runs`` lists the runs in a folder or their trend."""

import contextlib
import os
import webbrowser
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions
from graphrag_eval_lc.cli.options import SELECTING, keywords, with_options
from graphrag_eval_lc.cli.printing import echo_err, output_console, print_json, say
from graphrag_eval_lc.config.base import named
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.report.machine_files import check_writable, make_folder_of
from graphrag_eval_lc.report.run_report import write_report
from graphrag_eval_lc.report.runs import runs_tables, trend_tables, write_trend
from graphrag_eval_lc.run_store import RunTrend, list_runs
from graphrag_eval_lc.run_store import trend as trend_of


@with_options()
def runs(
    folder: Path = Path("runs"),
    metrics: list[str] | None = None,
    last: int | None = None,
    trend: bool = False,
    against: str | None = None,
    templates: list[str] | None = None,
    tags: list[str] | None = None,
    html: Path | None = None,
    no_comparisons: bool = False,
    csv: Path | None = None,
    as_json: bool = False,
) -> None:
    """List the runs in a folder, or show the trend of their scores and costs.

    The oldest run is first, with its commit (* if there were uncommitted changes), dataset, scores and cost. Failed
    questions count as 0. Runs that were not completed are listed without scores.

    With --trend each run is compared with the previous one, or with --against: the difference over the questions that
    both have, with the verdict of compare, and changes of dataset, config, judge and agent. Needs the extra
    `graphrag-eval-lc[stats]`, for --html also `graphrag-eval-lc[report]`.

    For example:

    `graphrag-eval-lc runs runs/ --trend --html trend.html`

    Options:
        --metric METRIC: Show this score; may be repeated, the first is the main one. Default: steps_score.
        as_json --json: Print JSON instead of text.
        folder RUNS_DIR: The folder of runs.
        --last (min 1): Show only this many runs, the last ones.
        --trend: Show how scores and costs changed from run to run, and what else changed.
        --against RUN: With --trend: compare each run with previous (default), first (the first run on the same
            dataset), best (the best earlier run by the main metric; p-values are multiplied by the number of
            candidates), or a run by its label, folder name or path. first and best find a slow regression, small in
            each run. Runs of one commit that are otherwise alike are pooled, except with previous.
        --template ID: With --trend: only the questions of this template; may be repeated.
        --tag TAG: With --trend: only runs with this tag; may be repeated.
        --html FILE: With --trend: write it as a page.
        --no-comparisons: With --html: do not write the comparisons that the page links to into a folder next to it.
            Existing ones that are up to date are kept.
        --csv FILE: With --trend: write a row for each run and score as CSV.
    """
    if trend:
        for path in (html, csv):
            check_writable(path)
        against = against or "previous"
        found = trend_of(folder, metrics, template_ids=templates or (), tags=tags or (), last=last, against=against)
        _show_trend(found, html, csv, has_comparisons=not no_comparisons, as_json=as_json)
        return
    listed = list_runs(folder)
    if not listed:
        hint = "Write some with run, score or demo: --output RUNS_DIR/NAME."
        raise OptionError("the folder has no runs", path=folder, hint=hint)
    shown = metrics or [MAIN_METRIC]
    rows = [run.row(shown) for run in (listed if last is None else listed[-last:])]
    if unknown := [metric for metric in metrics or () if not any(metric in row["scores"] for row in rows)]:
        known = list(dict.fromkeys(key for run in listed for key in run.metrics()))
        hint = f"{named(known, unknown[0])}." if known else "No run was completed."
        raise OptionError(f"none of the runs has the score {unknown[0]}", path=folder, hint=hint)
    if as_json:
        print_json(rows)
    else:
        _print(runs_tables(rows, shown, folder))


def _show_trend(found: RunTrend, html: Path | None, csv: Path | None, *, has_comparisons: bool, as_json: bool) -> None:
    for warning in found.warnings:
        echo_err(f"Warning: {warning}.")
    if as_json:
        print_json(found.rows())
    else:
        _print(trend_tables(found))
    for path in (html, csv):
        if path is not None:
            make_folder_of(path)
    written = [] if csv is None else [found.to_csv(csv)]
    if html is not None:
        written.append(write_trend(found, html, comparisons=has_comparisons))
    for path in written:
        say(f"Written to {path}.", err=as_json)


def _print(tables: Iterable[RenderableType]) -> None:
    console = output_console()
    for each in tables:
        console.print(each)


@with_options(ScoreRunOptions, only=SELECTING)
def report(run: Path, output: Path | None = None, opens: bool = False, **options: Any) -> None:
    """Write the HTML report of a run: scores, failures, and each question's steps.

    The report is one file without dependencies, which you can send to others. `run`, `score` and `demo` write it too.
    Needs the extra `graphrag-eval-lc[report]`. A report of only some questions says so, and needs --output, so that it
    does not replace that of the whole run.

    For example:

    `graphrag-eval-lc report runs/monday --open`

    Options:
        run RUN_DIR: The folder of a run.
        --output -o FILE: The file; report.html in the run's folder by default.
        --open: Open it in the browser.
    """
    recovered(run)
    if selected := {name: value for name, value in keywords(ScoreRunOptions, options).items() if value}:
        path = write_report(run, output, **selected)
    else:
        path = exporter(REPORT).export(run, output)
    say(f"Written to {path} ({path.stat().st_size / 1_000_000:,.1f} MB)")
    if opens:
        address = path.resolve().as_uri()
        with _silent_stderr():
            is_open = webbrowser.open(address)
        if not is_open:
            say(f"No browser could be opened. The report is at {address}", err=True)


def recovered(folder: Path, *, is_quiet: bool = False) -> None:
    """Recover the runs of a killed pytest session in a folder, and print their folders."""
    if (folder / ".pytest-parts").is_dir():
        # Imported here so that other commands do not wait for it.
        from graphrag_eval_lc.benchmark.pytest_runs import recover_killed_session

        for note in recover_killed_session(folder):
            say(note, err=is_quiet)


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide what a browser writes to our stderr when it starts."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
