"""A finished run opened again, from its files: no models, no keys, nothing is scored or written."""

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.run_identity import kept_notes
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.run_folder import RESULTS_FILE, RUN_FILE, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates
from graphrag_eval_lc.texts import counted


def load_run(path: str | PathLike[str]) -> BenchmarkRun:
    """Open a finished run: its aggregates, results, responses, frames, plots and gates.

    Nothing is asked, scored or written, so agent, models and keys are not needed. To score the
    responses again, such as with another configuration, there is ``score_run``.

    Args:
        path: The run's folder.

    Raises:
        RunFolderError: It is not the folder of a run that was scored to its end, or a file in it cannot be read.

    Example:
        >>> run = load_run("runs/first")  # doctest: +SKIP
        >>> run.to_pandas().groupby("template_id")["steps_score"].mean()  # doctest: +SKIP
    """
    folder = Path(path)
    if not folder.is_dir():
        what = "this is a file, not the folder of a run" if folder.exists() else "the folder does not exist"
        raise RunFolderError(what, path=folder, hint="Give the folder that run, score or demo wrote.")
    record, aggregates = read_run(folder), read_aggregates(folder)
    if record is None:
        hint = "Give the folder of one run; list_runs finds those in a folder."
        raise RunFolderError(f"the folder holds no {RUN_FILE}", path=folder, hint=hint)
    if not aggregates or not (folder / RESULTS_FILE).is_file():
        hint = "Go on with it by the same command, or score what was answered: graphrag-eval-lc score RUN_DIR."
        raise RunFolderError("the run did not come to its end, so it has no scores yet", path=folder, hint=hint)
    return BenchmarkRun(
        aggregates,
        output_dir=folder,
        stopped=record.get("stopped") or None,
        judges=record.get("judges") or None,
        warnings=list(_warnings(record)),
        notes=list(notes_in(record)),
    )


def _warnings(record: Mapping[str, Any]) -> Iterator[str]:
    if "totals" not in record:  # they are written at the end, and taken away when somebody goes on
        yield (
            "the run was gone on with and that did not come to its end; the scores are those of before. "
            "graphrag-eval-lc score RUN_DIR scores what was answered since"
        )


def notes_in(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield which questions were scored, if not all, and which answers are of an agent that changed since."""
    if (shard := Shard.in_record(record)) is not None:
        yield f"this is shard {shard} of a run; all numbers are of its questions alone"
    number = len(record.get("questions") or {})
    if number and record.get("scored_selection"):
        yield f"a selection of the {counted(number, 'question')} of the run was scored; all numbers are of these alone"
    yield from kept_notes(record)
