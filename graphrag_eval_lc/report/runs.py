"""How the runs of a folder are shown: tables on the terminal, and their trend as an HTML page with comparisons."""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graphrag_eval_lc import __version__
from graphrag_eval_lc.compare import compare_runs
from graphrag_eval_lc.compare.comparison_view import verdict_word
from graphrag_eval_lc.compare.metric_comparison import change_text
from graphrag_eval_lc.compare.runs import run_names
from graphrag_eval_lc.console import data_text
from graphrag_eval_lc.errors import ComparisonError, cannot_write
from graphrag_eval_lc.files.writing import replace_file
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.registry.metrics import AGENT_COST, COST, ELAPSED_SEC, TOTAL_TOKENS, metric_spec
from graphrag_eval_lc.report.comparison_page import write_comparison
from graphrag_eval_lc.report.fitted_table import Column, FittedTable, same_in_all
from graphrag_eval_lc.report.formats import amount_text
from graphrag_eval_lc.report.page import relative_address, render_page
from graphrag_eval_lc.run_folder import RESULTS_FILE
from graphrag_eval_lc.run_store.baselines import PREVIOUS
from graphrag_eval_lc.run_store.stored_runs import StoredRun
from graphrag_eval_lc.run_store.trend import RunTrend, TrendPoint, TrendValue
from graphrag_eval_lc.texts import listed

_SCRIPTS = ("scroll_boxes.js", "trend.js")
_SHORT = 8  # of a digest, as people see it
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")

# A point of a chart in percent of its width and height.
Mark = dict[str, Any]


@recorded_only_here()
def write_trend(trend: RunTrend, path: str | PathLike[str], *, comparisons: bool = True) -> Path:
    """Write a trend as one HTML file, and the comparison of each run with its baseline.

    The comparisons are in a folder next to the file, named like it with ``_comparisons`` at the end. Existing ones that
    were made from the same results are kept.

    Raises:
        MissingExtraError: Jinja2 or scipy is not installed.
        RunFolderError: A run cannot be read, or a file cannot be written.
    """
    target = Path(path)
    folder, pages = target.parent, dict(_comparison_pages(trend, target)) if comparisons else {}
    addresses = {path: relative_address(page, folder) for path, page in pages.items()}
    names = run_names((point.run.label, point.run.path) for point in trend.points)
    runs = [
        _run(number, name, point, folder)
        for number, (name, point) in enumerate(zip(names, trend.points, strict=True), 1)
    ]
    html = render_page(
        "trend.html.j2",
        _SCRIPTS,
        trend=trend,
        runs=runs,
        metrics=[_metric(trend, metric, runs, addresses) for metric in trend.metrics],
        version=__version__,
        generated=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    replace_file(target, [html.encode("utf-8")])
    return target


def _comparison_pages(trend: RunTrend, target: Path) -> Iterator[tuple[Path, Path]]:
    """Write the comparisons that are missing or out of date; yield each with the folder of its later run."""
    folder = target.parent / f"{target.stem}_comparisons"
    for point in trend.points:
        if point.baseline is None:
            continue
        runs = (*point.baseline.runs, point.run)
        page, stamp = folder / _name(runs), _stamp(runs, point.baseline.chosen_from)
        if _is_made_of(page, stamp):
            yield point.run.path, page
            continue
        try:
            comparison = compare_runs(point.baseline, point.run.path)
        except ComparisonError:  # the runs share no question or no metric
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_comparison(comparison, page)
            with page.open("ab") as file:
                file.write(b"\n" + stamp)
        except OSError as problem:
            raise cannot_write(page, problem) from problem
        yield point.run.path, page


def _name(runs: Sequence[StoredRun]) -> str:
    """Return the name of a comparison's file: the names of both runs, and a digest of their paths."""
    names = [_NOT_IN_NAMES.sub("_", run.path.resolve().name)[:40] for run in (runs[0], runs[-1])]
    paths = "\0".join(str(run.path.resolve()) for run in runs)
    return f"{'__'.join(names)}-{hashlib.sha256(paths.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.html"


def _stamp(runs: Sequence[StoredRun], chosen_from: int) -> bytes:
    """Return the end of a comparison's file, which identifies the results that it was made from without file times."""
    known = [(run.path / RESULTS_FILE).lstat() for run in runs if (run.path / RESULTS_FILE).is_file()]
    of_choice = f" chosen from {chosen_from}" if chosen_from > 1 else ""
    return f"<!-- results {[(each.st_size, each.st_mtime_ns) for each in known]}{of_choice} -->\n".encode()


def _is_made_of(page: Path, stamp: bytes) -> bool:
    try:
        with page.open("rb") as file:
            file.seek(-len(stamp), os.SEEK_END)
            return file.read() == stamp
    except OSError:  # it is missing, or shorter
        return False


def _run(number: int, name: str, point: TrendPoint, folder: Path) -> dict[str, Any]:
    run = point.run
    report = run.path / exporter(REPORT).file_name
    return {
        "number": number,
        "label": name,
        "path": str(run.path),
        "report": relative_address(report, folder) if report.is_file() else None,
        "started": "–" if run.started is None else f"{run.started.astimezone(UTC):%Y-%m-%d %H:%M}",
        "commit": "–" if run.commit is None else _commit_text(run.commit, run.is_clean),
        "dataset": (run.dataset_digest or "–")[:_SHORT],
        "questions": f"{point.number_of_questions:,}",
        "errors": f"{point.number_of_errors:,}",
        "tokens": amount_text(point.spent.get(TOTAL_TOKENS), "tokens"),
        "dollars": amount_text(point.spent.get(AGENT_COST), "usd"),
        "seconds": amount_text(point.spent.get(ELAPSED_SEC), "seconds"),
        "changes": list(point.changes),
    }


def _metric(
    trend: RunTrend, metric: str, runs: Sequence[Mapping[str, Any]], comparisons: Mapping[Path, str]
) -> dict[str, Any]:
    spec = metric_spec(metric)
    values = [point.values.get(metric) for point in trend.points]
    known = [value for value in values if value is not None]
    ends = [end for value in known for end in (value.mean, value.low, value.high) if end is not None]
    low, high = spec.shown_range(ends)
    failure = spec.value_of_failure
    notes = dict.fromkeys(value.note for value in known if value.note)
    last, latest = trend.points[-1], None
    if (difference := last.differences.get(metric)) is not None and last.baseline is not None:
        other = "the one before" if trend.against == PREVIOUS else listed([run.label for run in last.baseline.runs], 3)
        latest = f"The last run (B) compared with {other} (A): {difference.sentence}"
    return {
        "name": metric,
        "direction": "Lower is better" if spec.lower_is_better else "Higher is better",
        "failures": "left out" if failure is None else f"as {failure:g}",
        "top": amount_text(high, spec.unit),
        "bottom": amount_text(low, spec.unit),
        "latest": latest,
        "has_changes": any(point.changes for point in trend.points),
        "marks": list(_marks(trend, metric, values, low, high)),
        "rows": [_row(metric, run, point, comparisons) for run, point in zip(runs, trend.points, strict=True)],
        "notes": list(notes),
        "templates": _templates(trend, metric),
    }


def _row(metric: str, run: Mapping[str, Any], point: TrendPoint, comparisons: Mapping[Path, str]) -> dict[str, Any]:
    unit, value, difference = metric_spec(metric).unit, point.values.get(metric), point.differences.get(metric)
    return {
        "number": run["number"],
        "label": run["label"],
        "report": run["report"],
        "mean": amount_text(None if value is None else value.mean, unit),
        "interval": _interval(value, unit),
        "note": None if value is None else value.note,
        "answered": amount_text(None if value is None else value.answered, unit),
        "questions": "–" if value is None else f"{value.number_of_questions:,}",
        "difference": "–" if difference is None else change_text(difference.difference, unit),
        "verdict": "–" if difference is None else verdict_word(difference),
        "comparison": comparisons.get(point.run.path),
    }


def _interval(value: TrendValue | None, unit: str) -> str:
    if value is None or value.low is None or value.high is None:
        return "–"
    return f"{amount_text(value.low, unit)} to {amount_text(value.high, unit)}"


def _marks(
    trend: RunTrend, metric: str, values: Sequence[TrendValue | None], low: float, high: float
) -> Iterator[Mark]:
    """Yield the points of a chart; runs without a value leave their place empty.

    A line joins a run with the one before only if both have questions in common.
    """
    width = 100 / len(values)

    def height(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(100 - 100 * min(max(share, 0.0), 1.0), 2)

    at: tuple[float, float] | None = None
    for index, (point, value) in enumerate(zip(trend.points, values, strict=True)):
        if value is None:
            at = None
            continue
        difference = point.differences.get(metric)
        x = round((index + 0.5) * width, 2)
        yield {
            "x": x,
            "between": round(index * width, 2),
            "y": height(value.mean),
            "low": None if value.low is None else height(value.low),
            "high": None if value.high is None else height(value.high),
            "from": None if difference is None else at,
            "changed": bool(point.changes),
            "verdict": "" if difference is None else difference.verdict if difference.can_tell else "",
        }
        at = x, height(value.mean)


def _templates(trend: RunTrend, metric: str) -> list[dict[str, Any]]:
    """Return the rows of the templates, the largest change for the worse of the last run first."""
    spec = metric_spec(metric)
    rows = []
    for template_id in trend.templates(metric):
        values = [point.templates.get(metric, {}).get(template_id) for point in trend.points]
        known = [value for value in values if value is not None]
        low, high = spec.shown_range([value.mean for value in known])
        last, before = values[-1], values[-2] if len(values) > 1 else None
        change = None if last is None or before is None else last.mean - before.mean
        marks = [
            {**mark, "low": None, "changed": False, "verdict": ""} for mark in _marks(trend, metric, values, low, high)
        ]
        row = {
            "template": template_id,
            "questions": "–" if last is None else f"{last.number_of_questions:,}",
            "first": amount_text(known[0].mean, spec.unit),
            "before": amount_text(None if before is None else before.mean, spec.unit),
            "last": amount_text(None if last is None else last.mean, spec.unit),
            "interval": _interval(last, spec.unit),
            "change": "–" if change is None else change_text(change, spec.unit),
            "marks": marks,
        }
        better = 0.0 if change is None else -change if spec.lower_is_better else change
        rows.append(((change is None, better), row))
    return [row for _, row in sorted(rows, key=lambda each: each[0])]


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
        yield Text("Runs without scores did not finish.", "dim")


def _run_cells(row: dict[str, Any], metrics: Sequence[str]) -> Iterator[str]:
    label = "" if row["label"] == Path(row["path"]).name else row["label"]
    yield label if row["shard"] is None else f"{label} shard {row['shard']}".lstrip()
    yield (row["started"] or "").replace("T", " ")[:_DATE]
    yield _commit_text(row["commit"], row["clean"])
    yield (row["dataset_sha256"] or "")[:_SHORT]
    yield "" if row["questions"] is None else f"{row['questions']:,}"
    yield f"{row['errors']:,}" if row["errors"] else ""
    for metric in metrics:
        score = row["scores"].get(metric)
        yield "" if score is None else f"{score['mean']:.3f}"
    yield "" if row[COST] is None else dollars(row[COST])


def _commit_text(commit: str | None, is_clean: bool | None) -> str:
    return (commit or "")[:_SHORT] + ("*" if is_clean is False else "")


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
    names = run_names((point.run.label, point.run.path) for point in found.points)
    for number, point in enumerate(found.points, 1):
        table.add_row(*map(data_text, (str(number), names[number - 1], *_point_cells(point, found.metrics))))
    yield table
    for number, point in enumerate(found.points, 1):
        for change in point.changes:
            yield data_text(f"{number}: {change}.")


def _point_cells(point: TrendPoint, metrics: tuple[str, ...]) -> Iterator[str]:
    run = point.run
    yield "" if run.started is None else f"{run.started:%Y-%m-%d %H:%M}"
    yield _commit_text(run.commit, run.is_clean)
    for metric in metrics:
        unit, value, difference = metric_spec(metric).unit, point.values.get(metric), point.differences.get(metric)
        interval = _interval(value, unit)
        mean = "" if value is None else amount_text(value.mean, unit)
        yield mean if interval == "–" else f"{mean} ({interval})"
        yield "" if difference is None else f"{change_text(difference.difference, unit)} {verdict_word(difference)}"
    yield amount_text(point.spent.get(TOTAL_TOKENS), "tokens")
    yield amount_text(point.spent.get(AGENT_COST), "usd")
