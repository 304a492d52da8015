"""The command ``trend``: how scores and costs changed over the runs in a folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_eval_lc.cli.completion import metric_names
from graphrag_eval_lc.cli.options import output_console, say, tell
from graphrag_eval_lc.registry.metrics import AGENT_COST, MAIN_METRIC, TOTAL_TOKENS
from graphrag_eval_lc.registry.plugins import broken_plugins_left_out

if TYPE_CHECKING:
    from graphrag_eval_lc.run_store import RunTrend
    from graphrag_eval_lc.run_store.trend import TrendPoint

_SHORT = 8  # of a commit, as people see it


@broken_plugins_left_out()
def trend(
    folder: Annotated[Path, typer.Argument(help="The folder in which runs are.", metavar="RUNS_DIR")] = Path("runs"),
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help=f"Show this score; may be repeated, the first is the main one. Without it: {MAIN_METRIC}.",
            metavar="METRIC",
            autocompletion=metric_names,
        ),
    ] = None,
    templates: Annotated[
        list[str] | None,
        typer.Option("--template", help="Only the questions of this template; may be repeated.", metavar="ID"),
    ] = None,
    tags: Annotated[
        list[str] | None, typer.Option("--tag", help="Only runs with this tag; may be repeated.", metavar="TAG")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Only the last runs, this many.", show_default=False)
    ] = None,
    against: Annotated[
        str,
        typer.Option(
            "--against",
            help="Compare each run with: previous, first (the first run on the same dataset), best (the best earlier "
            "run by the main metric; p-values are multiplied by the number of candidates), or a run by its label, "
            "folder name or path. first and best find a loss that is small in each run. Runs of one commit that are "
            "otherwise alike are pooled, except with previous.",
            metavar="RUN",
        ),
    ] = "previous",
    html: Annotated[Path | None, typer.Option("--html", help="Write the trend as a page.", metavar="FILE")] = None,
    no_comparisons: Annotated[
        bool,
        typer.Option(
            "--no-comparisons",
            help="Do not write the comparison of each run with the one before (or --against), to which the page links, "
            "into a folder next to it. Those that are up to date stay as they are anyway.",
        ),
    ] = False,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Write a row for each run and score as comma-separated values.", metavar="FILE"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the same rows as JSON in place of the table.")] = False,
) -> None:
    """Show how scores and costs changed from run to run, and what else changed between them.

    Runs are in the order in which they began, each compared with the one before it, or with --against: the difference
    over the questions that both have, with the verdict of compare. Failed questions count as 0. Changes of dataset,
    config, judge and agent are listed. Runs that did not come to their end are left out. Needs the extra
    `graphrag-eval-lc[stats]`, for --html also `graphrag-eval-lc[report]`.

    For example:

    `graphrag-eval-lc trend runs/ --html trend.html`

    `graphrag-eval-lc trend runs/ --metric answer_f1 --tag nightly --last 20`

    `graphrag-eval-lc trend runs/ --against first`
    """
    # Imported here so that --help does not wait for what only a trend needs.
    from graphrag_eval_lc.cli.compare import check_target
    from graphrag_eval_lc.cli.json_printing import print_json
    from graphrag_eval_lc.report.trend_page import write_trend
    from graphrag_eval_lc.run_store import trend as trend_of

    for path in (html, csv):
        check_target(path)
    found = trend_of(folder, metrics, template_ids=templates or (), tags=tags or (), last=last, against=against)
    for warning in found.warnings:
        tell(f"Warning: {warning}.")
    if as_json:
        print_json(found.rows())
    else:
        _print(found)
    written = [] if csv is None else [found.to_csv(csv)]
    if html is not None:
        written.append(write_trend(found, html, comparisons=not no_comparisons))
    for path in written:
        say(f"Written to {path}.", err=as_json)


def _print(found: "RunTrend") -> None:
    from rich.table import Table

    from graphrag_eval_lc.console import data_text

    console = output_console()
    table = Table(show_edge=False)
    for heading in ("", "Run", "Started (UTC)", "Commit"):
        table.add_column(heading, overflow="fold")
    for metric in found.metrics:
        table.add_column(data_text(metric), justify="right", overflow="fold")
        heading = "Change" if found.against == "previous" else f"Against {found.against}"
        table.add_column(data_text(heading), justify="right", overflow="fold")
    for heading in ("Tokens", "Cost"):
        table.add_column(heading, justify="right", overflow="fold")
    for number, point in enumerate(found.points, 1):
        table.add_row(*map(data_text, (str(number), *_cells(point, found.metrics))))
    console.print(table)
    for number, point in enumerate(found.points, 1):
        for change in point.changes:
            say(f"{number}: {change}.", keeps_lines=False)


def _cells(point: "TrendPoint", metrics: tuple[str, ...]) -> Iterator[str]:
    from graphrag_eval_lc.compare.metric_comparison import change_text
    from graphrag_eval_lc.compare.pair_comparison import verdict_word
    from graphrag_eval_lc.registry.metrics import metric_spec
    from graphrag_eval_lc.report.formats import amount_text

    run = point.run
    yield run.label
    yield "" if run.started is None else f"{run.started:%Y-%m-%d %H:%M}"
    yield (run.commit or "")[:_SHORT] + ("*" if run.is_clean is False else "")
    for metric in metrics:
        unit, value, difference = metric_spec(metric).unit, point.values.get(metric), point.differences.get(metric)
        interval = ""
        if value is not None and value.low is not None and value.high is not None:
            interval = f" ({amount_text(value.low, unit)} to {amount_text(value.high, unit)})"
        yield "" if value is None else f"{amount_text(value.mean, unit)}{interval}"
        yield "" if difference is None else f"{change_text(difference.difference, unit)} {verdict_word(difference)}"
    yield amount_text(point.spent.get(TOTAL_TOKENS), "tokens")
    yield amount_text(point.spent.get(AGENT_COST), "usd")
