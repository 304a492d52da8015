"""Compares runs of a folder: which earlier run is the baseline or the previous one, and what changed since then."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from math import fsum
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.compare.settings import changed_settings
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.config.base import named
from graphrag_eval_lc.errors import GraphRAGEvalError, NothingToCompareError, OptionError, RunFolderError
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metrics import MAIN_METRIC, metric_spec
from graphrag_eval_lc.run_folder import RUN_FILE, read_run
from graphrag_eval_lc.run_store.stored_runs import StoredRun, list_runs, part_of
from graphrag_eval_lc.texts import listed
from graphrag_eval_lc.view.run_view import Earlier, right_questions

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
    """Return the baseline of a run, or None. An OptionError is raised if no run has the name ``against``.

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


_SHORT = 8  # of a digest, as people see it
_JUDGES = {"generation": "the judge", "embedding": "the judge's embeddings"}
_AGENT = {"agent": "the agent", "agent_source": "what the agent resolves to"}
_VERSION = "graphrag-eval-lc"


def changes_between(before: StoredRun, after: StoredRun) -> list[str]:
    """Return what changed since an earlier run, as short sentences without a full stop; empty if nothing is known."""
    return [*_dataset_changes(before, after), *_record_changes(before.record, after.record)]


def _dataset_changes(before: StoredRun, after: StoredRun) -> Iterator[str]:
    old, new = before.dataset_digest, after.dataset_digest
    questions, others = part_of(before.record, "questions"), part_of(after.record, "questions")
    counts = {
        "new": len(others.keys() - questions.keys()),
        "gone": len(questions.keys() - others.keys()),
        "with another text": sum(others[key] != questions[key] for key in questions.keys() & others.keys()),
    }
    which = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
    if old is not None and new is not None and old != new:
        what = f"questions {which}" if which else "its references or other keys"
        yield f"the dataset: {what} ({old[:_SHORT]} → {new[:_SHORT]})"
    elif questions and others and which:
        yield f"which questions of the dataset were asked: {which}"


def _record_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    def both(key: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        return part_of(before, key), part_of(after, key)

    configs, captures, judges = both("config"), both("capture"), both("judges")
    # The judges' models have their own section in run.json, with the names that the models report.
    if all(configs) and (names := [name for name in changed_settings(*configs) if name != "llm"]):
        yield f"the config: {listed([name for name in names if not name.startswith('llm.')] or names)}"
    repeats = before.get("repeats") or 1, after.get("repeats") or 1
    if repeats[0] != repeats[1]:
        yield f"repeats: {repeats[0]} → {repeats[1]}"
    if all(captures) and (names := _differing(*captures)):
        yield f"what is kept of runs: {listed(names)}"
    yield from _replaced(_JUDGES, *judges)
    prompts = [part_of(each, "prompts") for each in judges]
    if names := [name for name in _differing(*prompts) if name in prompts[0] and name in prompts[1]]:
        yield f"the judges' prompts: {listed(names)}"
    for key in ("evaluators", "matchers"):
        old, new = _names(before.get(key)), _names(after.get(key))
        if old is not None and new is not None and old != new:
            added = [f"with {each}" for each in new if each not in old]
            yield f"the {key}: {listed(added + [f'without {each}' for each in old if each not in new])}"
    yield from _replaced(_AGENT, before, after)
    if before.get("agent_config") != after.get("agent_config"):
        yield "the agent's config"
    digests = both("agent_digests")
    contents = [{str(digest) for digest in each.values()} for each in digests]
    if all(contents) and contents[0] != contents[1]:  # moving the file does not count
        yield f"the agent's source: {listed(_differing(*digests))}"
    was, now = (versions.get(_VERSION) for versions in both("versions"))
    if was and now and was != now:
        yield f"{_VERSION}: {was} → {now}"


def _replaced(titles: Mapping[str, str], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key, title in titles.items():
        old, new = ("none" if each.get(key) is None else each[key] for each in (before, after))
        if old != new:
            yield f"{title}: {old} → {new}"


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [key for key in dict.fromkeys((*before, *after)) if before.get(key) != after.get(key)]


def _names(records: object) -> list[str] | None:
    """Return the names of evaluators or matchers in a run.json; None if the key is missing."""
    if not isinstance(records, list):
        return None
    known = (each if isinstance(each, Mapping) else {} for each in records)
    return sorted(str(each.get("name") or each.get("media_type")) for each in known)


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
    return Earlier(found.label if found.label != own else found.path.resolve().name, right, str(found.path))


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
