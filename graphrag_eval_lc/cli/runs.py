"""The command ``runs``: what is in a folder of runs."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from graphrag_eval_lc.cli.completion import metric_names
from graphrag_eval_lc.cli.options import output_console
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.registry.metrics import COST, MAIN_METRIC
from graphrag_eval_lc.registry.plugins import broken_plugins_left_out

_SHORT = 8  # of a digest, as people see it
_STARTED = "Started (UTC)"
_DATE = 16
_LONGEST_LABEL = 24


@broken_plugins_left_out()
def runs(
    folder: Annotated[Path, typer.Argument(help="The folder in which runs are.", metavar="RUNS_DIR")] = Path("runs"),
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help=f"Show this score; may be repeated. Without it: {MAIN_METRIC}.",
            metavar="METRIC",
            autocompletion=metric_names,
        ),
    ] = None,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Show only the last runs, this many.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a list with an object for each run.")] = False,
) -> None:
    """List the runs in a folder, the oldest first: when, of which commit and dataset, how good, at what cost.

    Means of scores count failed questions as 0, as in the report. A * behind the commit says that files were changed
    and not committed. Runs that did not come to their end are listed without scores.

    For example:

    `graphrag-eval-lc runs runs/`

    `graphrag-eval-lc runs runs/ --metric answer_f1 --last 10`
    """
    # Imported here so that --help does not wait for what only the list needs.
    from graphrag_eval_lc.cli.json_printing import print_json
    from graphrag_eval_lc.config.base import named
    from graphrag_eval_lc.run_store import list_runs

    found = list_runs(folder)
    if not found:
        hint = "Write some with run, score or demo: --output RUNS_DIR/NAME."
        raise OptionError("the folder holds no run", path=folder, hint=hint)
    shown = metrics or [MAIN_METRIC]
    rows = [run.row(shown) for run in (found if last is None else found[-last:])]
    if unknown := [metric for metric in metrics or () if not any(metric in row["scores"] for row in rows)]:
        known = list(dict.fromkeys(key for run in found for key in run.metrics()))
        hint = f"{named(known, unknown[0])}." if known else "No run came to its end."
        raise OptionError(f"none of the runs has the score {unknown[0]}", path=folder, hint=hint)
    if as_json:
        print_json(rows)
        return
    _print(rows, shown, folder)


def _print(rows: Sequence[dict[str, Any]], metrics: Sequence[str], folder: Path) -> None:
    from graphrag_eval_lc.prices import dollars
    from graphrag_eval_lc.report.fitted_table import Column, FittedTable, same_in_all

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
    cells = [list(_cells(row, metrics)) for row in rows]
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


def _cells(row: dict[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    from graphrag_eval_lc.prices import dollars

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
