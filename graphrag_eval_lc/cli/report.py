"""The command ``report``: one HTML file that shows a run."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN_DIR", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file; report.html in the run's folder by default.", metavar="FILE"),
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write the report of a run: scores, failures, and every question with its steps.

    It is one HTML file that needs nothing else, so that it can be sent to others. `run`, `score` and `demo` write it
    too. Needs the extra `graphrag-eval-lc[report]`.

    For example:

    `graphrag-eval-lc report runs/monday --open`
    """
    # Imported here so that --help does not wait for what only a report needs.
    from graphrag_eval_lc.report.writing import write_report

    path = write_report(run, output)
    typer.echo(f"Written to {path} ({path.stat().st_size / 1_000_000:,.1f} MB)")
    if opens and typer.launch(path.resolve().as_uri()):
        typer.echo("There is no browser to open it with.", err=True)
