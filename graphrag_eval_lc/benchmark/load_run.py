"""A finished run opened again, as its files tell of it: no models, no keys, nothing is scored or written."""

from os import PathLike
from pathlib import Path

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import RUN_FILE, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates


def load_run(path: str | PathLike[str]) -> BenchmarkRun:
    """Open a finished run: its aggregates, results, responses, frames, plots and gates.

    Args:
        path: The run's folder.

    Raises:
        RunFolderError: It is no folder of a run that was scored, or a file cannot be read.

    Example:
        >>> load_run("runs/first").to_pandas()  # doctest: +SKIP
    """
    folder = Path(path)
    record = read_run(folder)
    aggregates = read_aggregates(folder)
    if record is None or not aggregates:
        what = f"the folder holds no {RUN_FILE}" if record is None else "the run was not scored to its end"
        raise RunFolderError(what, path=folder, hint="Score it: graphrag-eval-lc score RUN_DIR.")
    return BenchmarkRun(aggregates, output_dir=folder, stopped=record.get("stopped"), judges=record.get("judges"))
