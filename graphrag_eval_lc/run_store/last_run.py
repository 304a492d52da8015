"""Finds the previous run for the report, to show which questions broke since and which were fixed."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import GraphRAGEvalError
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.run_folder import RUN_FILE, read_run
from graphrag_eval_lc.run_store.baselines import is_comparable
from graphrag_eval_lc.run_store.stored_runs import StoredRun
from graphrag_eval_lc.view.headline import Earlier
from graphrag_eval_lc.view.run_view import right_questions

_MOST_READ: Final = 50


def earlier_of(folder: Path | None, record: Mapping[str, Any], config: EvaluationConfig) -> Earlier | None:
    """Return the name of the previous run and its right questions; None if there is no readable one.

    The previous run is the run's ``baseline`` or, without one, the last finished run before it in the same folder of
    runs that has all its questions from the same dataset. ``folder`` is None for a run in memory. ``config`` decides
    whether a sample passes.
    """
    try:
        found = _earlier_run(folder, record)
        if found is None:
            return None
        with recorded_only_here():
            right = right_questions(run_results(found.path), config, Metrics(config))
    except (GraphRAGEvalError, OSError):  # a problem of another run must not hide this one
        return None
    own = record.get("label")
    return Earlier(found.label if found.label != own else found.path.resolve().name, right)


def _earlier_run(folder: Path | None, record: Mapping[str, Any]) -> StoredRun | None:
    if (baseline := record.get("baseline")) is not None:
        path = Path(str(baseline))
        with suppress(GraphRAGEvalError, OSError):
            if (known := read_run(path)) is not None:
                return StoredRun(path, known)
    if folder is None or not record:
        return None
    run = StoredRun(folder, record)
    if run.started is None or run.shard is not None or run.dataset_digest is None:
        return None
    before = [
        (each.started, each)
        for each in _next_to(folder)
        if each.started is not None and each.started < run.started and each.shard is None
        if is_comparable(each, run) and each.is_finished
    ]
    return max(before, key=itemgetter(0))[1] if before else None


def _next_to(folder: Path) -> Iterator[StoredRun]:
    """Yield the runs next to a run's folder, the most recently written first."""
    this = folder.resolve()
    files = [file for file in this.parent.glob(f"*/{RUN_FILE}") if file.parent != this]
    for file in islice(sorted(files, key=lambda file: -file.stat().st_mtime), _MOST_READ):
        with suppress(GraphRAGEvalError, OSError):  # another run's
            if (record := read_run(file.parent)) is not None:
                yield StoredRun(file.parent, record)
