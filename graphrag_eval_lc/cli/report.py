"""The command report, and the report that other commands write into a run's folder."""

import contextlib
import os
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.benchmark.option_fields import COMMON
from graphrag_eval_lc.cli.model_options import SELECTING, keywords, scoring_model, with_fields_of
from graphrag_eval_lc.cli.options import say
from graphrag_eval_lc.registry.exporters import REPORT, exporter


@with_fields_of(scoring_model, only=SELECTING)
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN_DIR", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; report.html in the run's folder by default.", metavar="FILE"),
        COMMON,
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser."), COMMON] = False,
    **options: Any,
) -> None:
    """Write the report of a run: scores, failures, and every question with its steps.

    It is one HTML file that needs nothing else, so that it can be sent to others. `run`, `score` and `demo` write it
    too. Needs the extra `graphrag-eval-lc[report]`. A report of only some questions says so, and needs --output, so
    that it does not take the place of that of the whole run.

    For example:

    `graphrag-eval-lc report runs/monday --open`

    `graphrag-eval-lc report runs/monday --template longest_lines --output lines.html`
    """
    recovered(run)
    if selected := {name: value for name, value in keywords(scoring_model()[0], options).items() if value}:
        # Imported here so that --help does not wait for it.
        from graphrag_eval_lc.report.run_report import write_report

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
    """Make runs of what a session of pytest that was killed left in a folder, and say where they are."""
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
