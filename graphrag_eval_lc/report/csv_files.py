"""Writing the tables of a run as comma-separated values."""

from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.aggregation import compute_aggregates
from graphrag_eval_lc.comparison.run_source import RunSource
from graphrag_eval_lc.registry.exporters import CSV
from graphrag_eval_lc.registry.own_metrics import recorded_only_here
from graphrag_eval_lc.report.reported_run import reported_run
from graphrag_eval_lc.runner.benchmark_run import BenchmarkRun


@recorded_only_here()
def write_csv_files(run: RunSource, path: str | PathLike[str] | None = None) -> Path:
    """Write questions.csv, steps.csv and aggregates.csv of a run.

    Args:
        run: The folder of a run, what ``run_benchmark`` or ``score_run`` gave, or a list of results.
        path: The folder for them, made where it is missing; None for ``csv`` in the run's folder.

    Returns:
        The folder.

    Raises:
        RunFolderError: The run cannot be read, or a file cannot be written.
        OptionError: No path is given for a run without a folder.
    """
    reported = reported_run(run)
    target = Path(path) if path is not None else reported.file_of(CSV)
    results: list[Any] | None = None if reported.folder is not None else list(reported.results)
    aggregates = compute_aggregates(reported.results, reported.config)
    BenchmarkRun(aggregates, output_dir=reported.folder, results=results).to_csv(target)
    return target
