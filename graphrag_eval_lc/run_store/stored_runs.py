"""Lists the runs in a folder from their run.json, and reads their means and totals on demand."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.aggregation.question_values import ScoreMean, score_values
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.errors import RunFolderError, cannot_read
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metric_spec import LARGEST
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    COST,
    MAIN_METRIC,
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_QUESTIONS,
    NUMBER_OF_SUCCESS_SAMPLES,
    TOTAL_TOKENS,
    UPPER_BOUNDS,
    metric_spec,
)
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RUN_FILE, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates

_UNKNOWN = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StoredRun:
    """A run in a folder.

    Attributes:
        path: The run's folder.
        record: Its run.json.
    """

    path: Path
    record: Mapping[str, Any] = field(repr=False)

    @property
    def label(self) -> str:
        """The run's label, otherwise the name of its folder."""
        return str(self.record.get("label") or self.path.name)

    @property
    def started(self) -> datetime | None:
        """When its first session began; None if run.json does not say."""
        try:
            time = datetime.fromisoformat(str(part_of(self.record, "times").get("started")))
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        except (ValueError, OverflowError):  # the latter for a time outside the years 1 to 9999 in UTC
            return None

    @property
    def commit(self) -> str | None:
        """The git commit at which the run was started; None if it is unknown."""
        commit = part_of(self.record, "git").get("commit")
        return None if commit is None else str(commit)

    @property
    def is_clean(self) -> bool | None:
        """Whether the work tree had no uncommitted changes; None if it is unknown."""
        clean = part_of(self.record, "git").get("clean")
        return clean if isinstance(clean, bool) else None

    @property
    def dataset_digest(self) -> str | None:
        """The SHA-256 of the dataset."""
        digest = part_of(self.record, "dataset").get("sha256")
        return None if digest is None else str(digest)

    @property
    def shard(self) -> str | None:
        """The shard of a run, such as ``3/16``; None for a whole run."""
        shard = Shard.in_record(self.record)
        return None if shard is None else str(shard)

    @property
    def tags(self) -> list[str]:
        """The run's tags."""
        tags = self.record.get("tags")
        return [str(tag) for tag in tags] if isinstance(tags, list) else []

    @property
    def identity(self) -> dict[str, Any]:
        """The columns that identify the run in tables; unknown values are None."""
        return {
            "path": str(self.path),
            "label": self.label,
            "started": None if self.started is None else self.started.isoformat(timespec="seconds"),
            "commit": self.commit,
            "clean": self.is_clean,
            "dataset_sha256": self.dataset_digest,
        }

    @property
    def is_finished(self) -> bool:
        """Whether the run was scored to its end."""
        return "totals" in self.record and (self.path / AGGREGATES_FILE).is_file()

    @cached_property
    def _micro(self) -> Mapping[str, Any]:
        return part_of(read_aggregates(self.path, "micro"), "micro")

    def means(self, metrics: Iterable[str]) -> dict[str, ScoreMean]:
        """Return the means of scores, as the report shows them: failed questions count as 0 in the first of each.

        The results are read only if some questions failed, because the aggregates have the means of the answered ones.

        Raises:
            RunFolderError: A file of the run cannot be read.
        """
        micro = self._micro
        if not micro.get(NUMBER_OF_ERROR_SAMPLES):
            known = ((metric, _number(part_of(micro, metric).get("mean"))) for metric in metrics)
            return {metric: ScoreMean(mean, mean) for metric, mean in known if mean is not None}
        named = list(metrics)
        with recorded_only_here():
            values = score_values(run_results(self.path).numbers(named, only=True))
        return {metric: values[metric].mean() for metric in named if metric in values}

    def metrics(self) -> list[str]:
        """Return the scores that the run has."""
        means = (key for key in self._micro if "mean" in part_of(self._micro, key))
        return [key for key in means if metric_spec(key).kind == "score" and key not in UPPER_BOUNDS]

    def row(self, metrics: Iterable[str] = (MAIN_METRIC,)) -> dict[str, Any]:
        """Return the run's row in a list of runs, as plain JSON values; unknown values are None.

        ``errors`` is the number of failed samples. In the ``mean`` of ``scores`` failed questions count as 0. ``cost``
        is in USD, for agent and judges.

        Raises:
            RunFolderError: A file of the run cannot be read.
        """
        finished = self.is_finished
        micro = self._micro if finished else {}
        totals, dataset = part_of(self.record, "totals"), part_of(self.record, "dataset")
        keys = (NUMBER_OF_SUCCESS_SAMPLES, NUMBER_OF_ERROR_SAMPLES)
        counts = [count for key in keys if isinstance(count := micro.get(key), int)]
        samples = sum(counts) if len(counts) == len(keys) else None
        means = self.means(metrics) if finished else {}
        return {
            **self.identity,
            "shard": self.shard,
            "tags": self.tags,
            "dataset": dataset.get("path"),
            "finished": finished,
            "questions": _number(micro.get(NUMBER_OF_QUESTIONS, samples)),  # only of repeats
            "errors": _number(micro.get(NUMBER_OF_ERROR_SAMPLES)),
            "scores": {metric: {"mean": mean.every, "answered": mean.answered} for metric, mean in means.items()},
            TOTAL_TOKENS: _number(totals.get(TOTAL_TOKENS)),
            COST: _number(totals.get(COST, totals.get(AGENT_COST))),
        }


def latest_run(folder: str | PathLike[str], *, but: Iterable[str | PathLike[str]] = ()) -> StoredRun:
    """Return the finished run in a folder that began last; shards do not count, as they are parts of runs.

    Args:
        folder: A folder of runs, or the folder of a single run.
        but: Folders of runs to leave out.

    Raises:
        RunFolderError: There is none.
    """
    others = {Path(path).resolve() for path in but}
    known = list_runs(folder)
    runs = [run for run in known if run.path.resolve() not in others]
    finished = [run for run in runs if run.is_finished and run.shard is None]
    if not finished:
        none = "the folder holds no other run" if known else "the folder holds no run"
        what = "none of the runs in the folder finished" if runs else none
        raise RunFolderError(what, path=folder, hint="Give the folder that run, score or demo wrote, or one with such.")
    return finished[-1]


def list_runs(folder: str | PathLike[str]) -> list[StoredRun]:
    """Return the runs in a folder and its folders, the oldest first.

    Args:
        folder: The folder; it may be that of a single run.

    Raises:
        RunFolderError: The folder does not exist, or a run.json in it cannot be read.

    Example:
        >>> list_runs("runs/")  # doctest: +SKIP
        [StoredRun(path=PosixPath('runs/first')), StoredRun(path=PosixPath('runs/second'))]
    """
    root = Path(folder)
    if not root.is_dir():
        hint = "Give the folder in which runs are, such as runs/."
        raise RunFolderError("the folder does not exist", path=root, hint=hint)
    runs = [StoredRun(path, record) for path in _folders(root) if (record := read_run(path)) is not None]
    return sorted(runs, key=lambda run: (run.started or _UNKNOWN, run.path))


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders with a run.json, each once even if links lead to it; run folders are not searched further.

    Raises:
        RunFolderError: A folder cannot be read.
    """

    def refuse(problem: OSError) -> None:
        if not Path(problem.filename).is_symlink():
            raise cannot_read(Path(problem.filename), problem) from problem

    seen: set[Path] = set()
    for folder, names, files in os.walk(root, onerror=refuse, followlinks=True):
        path, place = Path(folder), Path(folder).resolve()
        is_known, is_run = place in seen, RUN_FILE in files
        seen.add(place)
        # Real folders come before links to them, and circular links end.
        names[:] = sorted(
            (each for each in names if not (is_known or is_run or each.startswith("."))),
            key=lambda each: ((path / each).is_symlink(), each),
        )
        if is_run and not is_known:
            yield path


def part_of(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return a section of run.json; empty if it has none."""
    part = record.get(key)
    return part if isinstance(part, Mapping) else {}


def _number(value: Any) -> Any:
    """Return a number; None for any other value, and for a number too large for a float."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and abs(value) < LARGEST else None
