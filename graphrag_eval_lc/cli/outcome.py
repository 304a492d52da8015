"""Running a benchmark with a progress bar, and showing what came out of it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from graphrag_eval_lc.report.tables import print_summary
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RESPONSES_FILE, RESULTS_FILE, RUN_FILE
from graphrag_eval_lc.runner.benchmark import Progress as RunProgress
from graphrag_eval_lc.runner.benchmark import run_benchmark
from graphrag_eval_lc.runner.scoring import BenchmarkRun

EXIT_FINDINGS = 1

# Where the output is no terminal, rich would wrap the tables at 80 columns.
_PLAIN_WIDTH = 140


def run_with_progress(agent: str | Callable[[], Any], dataset: Path, **options: Any) -> BenchmarkRun:
    """Run a benchmark with a bar on standard error in a terminal, and without one elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("Asking"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[errors]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None, errors="")

        def show(progress: RunProgress) -> None:
            errors = f"{progress.errors} failed" if progress.errors else ""
            bar.update(task, completed=progress.done, total=progress.total, errors=errors)

        return run_benchmark(agent, dataset, on_response=show, **options)


def show_run(run: BenchmarkRun, *, worst: int) -> None:
    """Print the tables of a run and where its files are.

    Raises:
        typer.Exit: With code 1, where not one question was answered.
    """
    console = Console() if sys.stdout.isatty() else Console(width=_PLAIN_WIDTH)
    print_summary(console, run.results, run.aggregates, worst=worst)
    if run.output_dir:
        files = ", ".join((RUN_FILE, RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE))
        console.print(f"\nWritten to {run.output_dir}: {files}", markup=False, highlight=False, soft_wrap=True)
    if not run.aggregates["micro"]["number_of_success_samples"]:
        why = "the errors stand in the table above" if run.results else "the dataset has no questions"
        Console(stderr=True).print(f"Not one question was answered; {why}.")
        raise typer.Exit(EXIT_FINDINGS)
