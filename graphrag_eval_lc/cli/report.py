"""The command report, and the report that other commands write into a run's folder."""

import contextlib
import os
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.benchmark.score_options import ScoreRunOptions
from graphrag_eval_lc.cli.options import SELECTING, keywords, option, with_fields_of
from graphrag_eval_lc.cli.printing import say
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.report.run_report import write_report


@with_fields_of(ScoreRunOptions, only=SELECTING)
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN_DIR", show_default=False)],
    output: Annotated[
        Path | None, option("--output -o", "The file; report.html in the run's folder by default.", "FILE")
    ] = None,
    opens: Annotated[bool, option("--open", "Open it in the browser.")] = False,
    **options: Any,
) -> None:
    """Write the HTML report of a run: scores, failures, and each question's steps.

    The report is one file without dependencies, which you can send to others. `run`, `score` and `demo` write it too.
    Needs the extra `graphrag-eval-lc[report]`. A report of only some questions says so, and needs --output, so that it
    does not replace that of the whole run.

    For example:

    `graphrag-eval-lc report runs/monday --open`
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
    """Hide what a browser, another process with the same stderr, writes as it starts."""
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
