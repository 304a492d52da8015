"""Terminal tables of the runs in a folder, and of how their scores and costs changed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc.compare.comparison_view import verdict_word
from graphrag_eval_lc.compare.metric_comparison import change_text
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.metrics import AGENT_COST, COST, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.report.fitted_table import Column, FittedTable, same_in_all
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.run_store import RunTrend
from graphrag_eval_lc.run_store.trend import TrendPoint

_SHORT = 8  # of a digest, as people see it
_STARTED = "Started (UTC)"
_DATE = 16
_LONGEST_LABEL = 24


def runs_tables(rows: Sequence[dict[str, Any]], metrics: Sequence[str], folder: Path) -> Iterator[RenderableType]:
    """Yield the table of the runs in a folder, whose rows are those of ``StoredRun.row``."""
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
    yield FittedTable("Run", columns, list(zip(names, cells, strict=True)), caption=lambda _: "\n".join(says))
    if not all(row["finished"] for row in rows):
        yield Text("A run without scores did not come to its end.", "dim")


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


def trend_tables(found: RunTrend) -> Iterator[RenderableType]:
    """Yield the table of a trend, and what else changed between its runs."""
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
    yield table
    for number, point in enumerate(found.points, 1):
        for change in point.changes:
            yield data_text(f"{number}: {change}.")


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
