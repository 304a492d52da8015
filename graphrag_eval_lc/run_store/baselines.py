"""Chooses the baseline of a run among the runs of a folder: the previous, the first, the best, or a named one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config.base import named
from graphrag_eval_lc.errors import NothingToCompareError, OptionError, RunFolderError
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, metric_spec
from graphrag_eval_lc.run_folder import read_run
from graphrag_eval_lc.run_store.run_changes import changes_between
from graphrag_eval_lc.run_store.stored_runs import StoredRun, list_runs

PREVIOUS, FIRST, BEST = "previous", "first", "best"
Group = tuple[StoredRun, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The run that another run is compared with; ``compare_runs`` accepts it as a run.

    Attributes:
        runs: The run. Several runs are of one commit, and their answers count as repeats.
        chosen_from: The number of runs (or commits) from which the best was chosen; otherwise 1.
    """

    runs: Group
    chosen_from: int = 1

    @property
    def output_dir(self) -> Path:
        """The folder of its first run."""
        return self.runs[0].path

    def iter_results(self) -> Iterator[Mapping[str, Any]]:
        """Yield the results of its runs."""
        for run in self.runs:
            yield from run_results(run.path)


def baseline_of(
    run: StoredRun,
    runs: Sequence[StoredRun],
    against: str,
    *,
    metric: str = MAIN_METRIC,
    mean_of: Callable[[StoredRun], float | None] | None = None,
) -> Baseline | None:
    """Return the baseline of a run; None if there is none. An OptionError is raised if no run has the name ``against``.

    ``first`` and ``best`` are chosen among the earlier runs that were not stopped and that have the run's questions
    from the same dataset. Runs of one commit with the same recorded settings are pooled.

    ``runs`` are finished runs, the oldest first. ``mean_of`` returns the mean by which the best run is chosen; by
    default it is read from the run's folder, with failed questions as 0.
    """
    at = next((index for index, each in enumerate(runs) if each.path.resolve() == run.path.resolve()), len(runs))
    if against == PREVIOUS:
        return Baseline((runs[at - 1],)) if at else None
    if against not in (FIRST, BEST):
        wanted = _run_named(against, runs)
        groups = _by_commit([each for each in runs if each.path.resolve() != run.path.resolve()])
        return next((Baseline(group) for group in groups if wanted in group), None)
    groups = _by_commit([each for each in runs[:at] if is_comparable(each, run)])
    if against == FIRST:
        return Baseline(groups[0]) if groups else None
    find = mean_of or (lambda each: mean.every if (mean := each.means([metric]).get(metric)) else None)
    known = ([value for each in group if (value := find(each)) is not None] for group in groups)
    means = [(fsum(values) / len(values), group) for values, group in zip(known, groups, strict=True) if values]
    best = min if metric_spec(metric).lower_is_better else max
    return Baseline(best(means, key=lambda each: each[0])[1], len(means)) if means else None


def baseline_in(
    folder: str | PathLike[str],
    run: str | PathLike[str],
    against: str,
    *,
    metric: str | None = None,
    but: Iterable[str | PathLike[str]] = (),
) -> Baseline:
    """Return the run in a folder of runs that another run is compared with, as ``baseline_of`` chooses it.

    Args:
        folder: The folder of runs.
        run: The run, in this folder or elsewhere.
        against: ``previous``, ``first``, ``best``, or a run: its label, the name of its folder, or its path.
        metric: The score by which the best run is chosen; None: steps_score, or if no run has it, the first score.
        but: Runs to leave out.

    Raises:
        RunFolderError: The folder does not exist, or ``against`` names the run itself.
        NothingToCompareError: No run in the folder can be compared with the run.
        OptionError: No run has that name.

    Example:
        >>> baseline = baseline_in("runs/", "runs/today", "best")  # doctest: +SKIP
        >>> compare_runs(baseline, "runs/today").pairs[0].metric("steps_score").verdict  # doctest: +SKIP
        'worse'
    """
    left_out = {Path(path).resolve() for path in but} - {Path(run).resolve()}
    known = [each for each in list_runs(folder) if each.is_finished and each.shard is None]
    runs = [each for each in known if each.path.resolve() not in left_out]
    this = StoredRun(Path(run), read_run(Path(run)) or {})
    found = baseline_of(this, runs, against, metric=metric or (main_metric(runs) if runs else MAIN_METRIC))
    if found is None:
        hint = "Give another folder, or name the run to compare with."
        if against not in (PREVIOUS, FIRST, BEST):
            raise RunFolderError(f"{run} is not compared with itself", path=folder, hint=hint)
        what = f"the folder holds no earlier finished run with the questions and the dataset of {run}"
        raise NothingToCompareError(what, path=folder, hint=hint)
    return found


def main_metric(runs: Sequence[StoredRun]) -> str:
    """Return the main score of some runs: steps_score or, if no run has it, the first score of the last run."""
    known = [metric for run in runs for metric in run.metrics()]
    return MAIN_METRIC if MAIN_METRIC in known or not known else next(iter(runs[-1].metrics()), known[-1])


def _run_named(name: str, runs: Sequence[StoredRun]) -> StoredRun:
    """Return the run with a name; a path takes precedence over labels and folder names, then the last run counts."""
    paths = [run for run in runs if Path(name).resolve() == run.path.resolve()]
    found = paths or [run for run in runs if name in (run.label, run.path.name)]
    if not found:
        known = dict.fromkeys(each for run in runs for each in (run.label, run.path.name))
        raise OptionError(f"found no run {name}", hint=f"{named(list(known), name)}; or write first or best.")
    return found[-1]


def is_comparable(earlier: StoredRun, run: StoredRun) -> bool:
    """Return whether an earlier run has all questions of a later one, on the same dataset, and was not stopped."""
    datasets = {each.dataset_digest for each in (earlier, run)} - {None}
    asked, needed = (each.record.get("questions") for each in (earlier, run))
    has_all = not isinstance(asked, Mapping) or not isinstance(needed, Mapping) or asked.keys() >= needed.keys()
    scored = [each.record.get("scored_selection") or None for each in (earlier, run)]
    return len(datasets) < 2 and has_all and scored[0] in (None, scored[1]) and not earlier.record.get("stopped")


def _by_commit(runs: Sequence[StoredRun]) -> list[Group]:
    """Group runs of the same commit and with the same recorded settings, in the order of each group's first run."""
    groups: list[list[StoredRun]] = []
    for run in runs:
        for group in groups:
            first = group[0]
            is_of_commit = run.commit is not None and run.commit == first.commit and run.is_clean and first.is_clean
            is_whole = not (first.record.get("stopped") or run.record.get("stopped"))
            if is_of_commit and is_whole and not changes_between(first, run):
                group.append(run)
                break
        else:
            groups.append([run])
    return [tuple(group) for group in groups]
