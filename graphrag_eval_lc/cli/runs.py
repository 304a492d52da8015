"""The command ``runs``: what is in a folder of runs, and how scores and costs changed over them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from graphrag_eval_lc.cli.options import JsonRows, complete_metric, option
from graphrag_eval_lc.cli.printing import output_console, print_json, say, tell
from graphrag_eval_lc.compare.metric_comparison import change_text
from graphrag_eval_lc.compare.pair_comparison import verdict_word
from graphrag_eval_lc.config.base import named
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import AGENT_COST, COST, MAIN_METRIC, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.registry.plugins import broken_plugins_left_out
from graphrag_eval_lc.report.ci_files import check_writable, make_folder_of
from graphrag_eval_lc.report.fitted_table import Column, FittedTable, same_in_all
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.trend_page import write_trend
from graphrag_eval_lc.run_store import RunTrend, list_runs
from graphrag_eval_lc.run_store import trend as trend_of
from graphrag_eval_lc.run_store.trend import TrendPoint

_SHORT = 8  # of a digest, as people see it
_STARTED = "Started (UTC)"
_DATE = 16
_LONGEST_LABEL = 24


@broken_plugins_left_out()
def runs(
    folder: Annotated[Path, typer.Argument(help="The folder in which runs are.", metavar="RUNS_DIR")] = Path("runs"),
    metrics: Annotated[
        list[str] | None,
        option(
            "--metric",
            f"Show this score; may be repeated, the first is the main one. Default: {MAIN_METRIC}.",
            "METRIC",
            autocompletion=complete_metric,
        ),
    ] = None,
    last: Annotated[int | None, option("--last", "Show only the last runs, this many.", min=1)] = None,
    trend: Annotated[
        bool, option("--trend", "Show how scores and costs changed from run to run, and what else changed.")
    ] = False,
    against: Annotated[
        str | None,
        option(
            "--against",
            "With --trend: compare each run with previous (default), first (the first run on the same dataset), best "
            "(the best earlier run by the main metric; p-values are multiplied by the number of candidates), or a run "
            "by its label, folder name or path. first and best find a loss that is small in each run. Runs of one "
            "commit that are otherwise alike are pooled, except with previous.",
            "RUN",
        ),
    ] = None,
    templates: Annotated[
        list[str] | None,
        option("--template", "With --trend: only the questions of this template; may be repeated.", "ID"),
    ] = None,
    tags: Annotated[
        list[str] | None, option("--tag", "With --trend: only runs with this tag; may be repeated.", "TAG")
    ] = None,
    html: Annotated[Path | None, option("--html", "With --trend: write it as a page.", "FILE")] = None,
    no_comparisons: Annotated[
        bool,
        option(
            "--no-comparisons",
            "With --html: do not write the comparisons to which the page links into a folder next to it. Those that "
            "are up to date are kept in any case.",
        ),
    ] = False,
    csv: Annotated[
        Path | None, option("--csv", "With --trend: write a row for each run and score as CSV.", "FILE")
    ] = None,
    as_json: JsonRows = False,
) -> None:
    """List the runs in a folder, or show the trend of their scores and costs.

    The oldest run comes first, with its commit (* if files were changed and not committed), dataset, scores and cost.
    Failed questions count as 0. Runs that did not come to their end are listed without scores.

    With --trend each run is compared with the one before it, or with --against: the difference over the questions that
    both have, with the verdict of compare, and changes of dataset, config, judge and agent. Needs the extra
    `graphrag-eval-lc[stats]`, for --html also `graphrag-eval-lc[report]`.

    For example:

    `graphrag-eval-lc runs runs/ --trend --html trend.html`
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
        raise OptionError("the folder holds no run", path=folder, hint=hint)
    shown = metrics or [MAIN_METRIC]
    rows = [run.row(shown) for run in (listed if last is None else listed[-last:])]
    if unknown := [metric for metric in metrics or () if not any(metric in row["scores"] for row in rows)]:
        known = list(dict.fromkeys(key for run in listed for key in run.metrics()))
        hint = f"{named(known, unknown[0])}." if known else "No run came to its end."
        raise OptionError(f"none of the runs has the score {unknown[0]}", path=folder, hint=hint)
    if as_json:
        print_json(rows)
    else:
        _print_runs(rows, shown, folder)


def _print_runs(rows: Sequence[dict[str, Any]], metrics: Sequence[str], folder: Path) -> None:
    console = output_console()
    columns = (
        Column("Label", 6, longest=_LONGEST_LABEL),
        Column(_STARTED, 1, longest=_DATE),
        Column("Commit", 5, longest=_DATE),
        Column("Dataset", 7, longest=_DATE),
        Column("Questions", 2),
        Column("Errors", 3),
        *(Column(metric, 1 if at else 0) for at, metric in enumerate(metrics)),
        Column("Cost", 4, nothing=frozenset({"", dollars(0)})),
    )
    cells = [list(_run_cells(row, metrics)) for row in rows]
    compared = (*metrics, _STARTED)  # shown in any case
    same = {name: text for name, text in same_in_all(columns, cells).items() if name not in compared}
    for at, column in enumerate(columns):
        for of_run in cells if column.heading in same else ():
            of_run[at] = ""
    says = [f"the same in all: {', '.join(f'{name} {text}' for name, text in same.items())}"] if same else []
    if any(row["errors"] for row in rows):
        says.insert(0, "scores are means over all questions, failed ones as 0")
    names = [str(path.relative_to(folder) if (path := Path(row["path"])) != folder else path) for row in rows]
    table = FittedTable("Run", columns, list(zip(names, cells, strict=True)), caption=lambda _: "\n".join(says))
    console.print(table)
    if not all(row["finished"] for row in rows):
        console.print("A run without scores did not come to its end.", style="dim")


def _run_cells(row: dict[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    label = "" if row["label"] == Path(row["path"]).name else row["label"]
    yield label if row["shard"] is None else f"{label} shard {row['shard']}".lstrip()
    yield (row["started"] or "").replace("T", " ")[:_DATE]
    yield (row["commit"] or "")[:_SHORT] + ("*" if row["clean"] is False else "")
    yield (row["dataset_sha256"] or "")[:_SHORT]
    yield "" if row["questions"] is None else f"{row['questions']:,}"
    yield f"{row['errors']:,}" if row["errors"] else ""
    for metric in metrics:
        score = row["scores"].get(metric)
        yield "" if score is None else f"{score['mean']:.3f}"
    yield "" if row[COST] is None else dollars(row[COST])


def _show_trend(found: RunTrend, html: Path | None, csv: Path | None, *, has_comparisons: bool, as_json: bool) -> None:
    for warning in found.warnings:
        tell(f"Warning: {warning}.")
    if as_json:
        print_json(found.rows())
    else:
        _print_trend(found)
    for path in (html, csv):
        if path is not None:
            make_folder_of(path)
    written = [] if csv is None else [found.to_csv(csv)]
    if html is not None:
        written.append(write_trend(found, html, comparisons=has_comparisons))
    for path in written:
        say(f"Written to {path}.", err=as_json)


def _print_trend(found: RunTrend) -> None:
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
        table.add_row(*map(data_text, (str(number), *_point_cells(point, found.metrics))))
    console.print(table)
    for number, point in enumerate(found.points, 1):
        for change in point.changes:
            say(f"{number}: {change}.", keeps_lines=False)


def _point_cells(point: TrendPoint, metrics: tuple[str, ...]) -> Iterator[str]:
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
