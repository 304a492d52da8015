"""merge_runs: parts of one run put together to a run like any other; plan_merge: only what that would give."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.merging.answers import Answers
from graphrag_eval_lc.benchmark.merging.missing import NOT_SCORED, Missing, missing_samples, stopped_of
from graphrag_eval_lc.benchmark.merging.parts import Part, open_parts, refuse_strangers
from graphrag_eval_lc.benchmark.merging.record import merged_questions, merged_record
from graphrag_eval_lc.benchmark.merging.scoring import MergedScoring
from graphrag_eval_lc.benchmark.record_values import mapping_of, number_of
from graphrag_eval_lc.benchmark.recorded_scoring import dataset_of, plugin_warnings
from graphrag_eval_lc.benchmark.run_identity import DATASET, REPEATS
from graphrag_eval_lc.benchmark.run_manifest import dataset_record
from graphrag_eval_lc.compare import read_gates
from graphrag_eval_lc.compare.gates import Gates
from graphrag_eval_lc.dataset.loading import DatasetSource, questions_of, read_dataset
from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.evaluation.samples import MOST_REPEATS, Sample, samples_of
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.judges.cache import merged_lines
from graphrag_eval_lc.records import Template
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RunFolder, read_run
from graphrag_eval_lc.run_folder.folder import JUDGE_CACHE_FILE
from graphrag_eval_lc.run_folder.journal import torn_file
from graphrag_eval_lc.texts import counted, listed, plural

Runs = Sequence[str | PathLike[str]]
_MOST_CONFLICTS = 5


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would give.

    Attributes:
        runs: How many folders are merged.
        samples: How many samples the whole run has.
        answered: How many of them are answered.
        errors: How many of those failed.
        missing: What is missing, in one sentence; empty where nothing is.
        warnings: What the user should know.
    """

    runs: int
    samples: int
    answered: int
    errors: int
    missing: str
    warnings: tuple[str, ...] = ()


def merge_runs(
    runs: Runs,
    *,
    output_dir: str | PathLike[str],
    dataset: DatasetSource | None = None,
    label: str | None = None,
    gates: Gates = None,
    overwrite: bool = False,
    force: bool = False,
    open_files: bool = False,
) -> BenchmarkRun:
    """Put parts of one run together, such as its shards: to a run that goes on, is scored and compared like any other.

    Dataset, agent, capture, config, repeats and limits of all parts have to be the same, and the selection of shards
    too; other runs may ask other questions of the dataset. Failed attempts, costs, sessions, the judges' answers and
    lines that could not be read are kept, and the parts stay as they are. Results are taken over; what a killed part
    has not scored is scored now, unless models or functions of yours score the run: then ``score_run`` does it.

    Args:
        runs: The folders of the parts, in any order; a merged one may be among them.
        output_dir: The folder of the merged run.
        dataset: A path, or the templates; None for the path that stands in run.json.
        label: The run's label; None for that of the parts, where it is the same.
        gates: What the run is held against beside the gates of its config, such as ``["steps_score=0.9"]``.
        overwrite: Replace an earlier run in the folder.
        force: Merge parts of another agent, capture or other limits nevertheless, with those of the first in run.json;
            of two answers to one sample keep the one that succeeded, or the first.
        open_files: Whether the umask decides who may read what is made, and not its owner alone.

    Returns:
        The run. Where it is not complete, ``stopped`` says what is missing, with the reason ``missing``; where its
            responses are still to be scored, the reason is ``not scored``.

    Raises:
        OptionError: There is no folder.
        RunFolderError: A folder holds no run of an agent or is in use, the runs are no parts of one run, one sample has
            two different answers, or the output folder holds a run or cannot be written.
        DatasetError: The dataset cannot be read or breaks the format.

    Example:
        >>> run = merge_runs(["runs/night-1-of-2", "runs/night-2-of-2"], output_dir="runs/night")  # doctest: +SKIP
    """
    given = list(read_gates(gates))
    with _merge(runs, output_dir, dataset, force=force) as merge:
        folder = RunFolder(output_dir, is_private=not open_files)
        with folder.lock():
            if overwrite:
                _refuse_to_lose(folder, merge, force=force)
                folder.clear()
            folder.refuse_earlier()
            return merge.write(folder, label, given)


def plan_merge(
    runs: Runs, *, output_dir: str | PathLike[str], dataset: DatasetSource | None = None, force: bool = False
) -> MergePlan:
    """Return what ``merge_runs`` would give with the same arguments; nothing is written.

    Raises:
        GraphRAGEvalError: What ``merge_runs`` would raise before it writes.
    """
    with _merge(runs, output_dir, dataset, force=force) as merge:
        keys = [sample.key for sample in merge.samples if merge.answers.is_answered(sample.key)]
        errors = sum(map(merge.answers.is_error, keys))
        warnings = tuple(merge.warnings)
        return MergePlan(len(merge.parts), len(merge.samples), len(keys), errors, merge.missing.message, warnings)


@contextmanager
def _merge(
    runs: Runs, output_dir: str | PathLike[str], dataset: DatasetSource | None, *, force: bool
) -> Iterator["_Merge"]:
    """Yield parts that belong together, which are locked meanwhile."""
    with ExitStack() as stack:
        parts, left_out = open_parts(runs, stack)
        _refuse_as_output(parts, Path(output_dir))
        told = refuse_strangers(parts, force=force)
        templates, notes = _dataset(parts, dataset)
        repeats = number_of(parts[0].record.get(REPEATS), 1)
        if repeats > MOST_REPEATS:
            what = f"run.json has more than {MOST_REPEATS:,} repeats of each question"
            raise RunFolderError(what, path=parts[0].path, hint="Mend the file, or leave this run out.")
        digests = merged_questions(parts, templates)
        parts = [part.without_questions() for part in parts]  # those are kept once
        questions = [pair for pair in questions_of(templates) if str(pair[1]["id"]) in digests]
        if not questions:
            what = "run.json names no question that the dataset has"
            raise RunFolderError(what, path=parts[0].path, hint="Put its questions back, or leave this run out.")
        samples = samples_of(questions, repeats)
        del questions
        answers = Answers([part.responses for part in parts])
        stack.callback(answers.close)
        _refuse_conflicts(parts, answers, force=force)
        missing = missing_samples(parts, samples, answers.is_answered)
        merge = _Merge(parts, templates, digests, samples, answers, missing, repeats, [*left_out, *notes, *told])
        merge.warnings += [*_difference_warnings(parts), *_conflict_warnings(answers), *merge.torn_warnings()]
        yield merge


@dataclass(slots=True)
class _Merge:
    """Parts of one run, read and checked."""

    parts: Sequence[Part]
    templates: Sequence[Template]
    questions: Mapping[str, Any]
    samples: Sequence[Sample]
    answers: Answers
    missing: Missing
    repeats: int
    warnings: list[str]

    def write(self, folder: RunFolder, label: str | None, gates: list[Any]) -> BenchmarkRun:
        """Write the merged run, run.json after the responses: without it nobody goes on with half of them."""
        stopped = stopped_of(self.parts, self.missing)
        folder.write_responses(self.answers)
        folder.write_torn(self._torn_lines())
        folder.write_judge_cache(self._judge_lines(folder))
        record = merged_record(self.parts, self.templates, self.questions, label=label, stopped=stopped)
        folder.write_run(record)
        scoring = MergedScoring(self.parts, self.templates, self.samples, self.answers, self.repeats)
        aggregates = scoring.aggregates(folder)
        if aggregates is None:
            stopped = _not_scored(folder.shown, scoring.unscored, self.missing)
        else:
            folder.write_aggregates(aggregates)
            folder.write_run({**record, "totals": aggregates["totals"]})
        return BenchmarkRun(
            scoring.nothing() if aggregates is None else aggregates,
            output_dir=folder.shown,
            results=[] if aggregates is None else None,
            stopped=stopped,
            warnings=[*self.warnings, *scoring.warnings],
            judges=mapping_of(record.get("judges")) or None,
            notes=[self._note()],
            gates=[*scoring.config.gates, *gates],
        )

    def torn_warnings(self) -> Iterator[str]:
        """Say which lines of the parts hold no response; they are kept beside the journal."""
        for number, line in self.answers.unreadable:
            place = self.parts[number].responses
            yield f"line {line.number} ({line.length:,} bytes) of {place} holds no response, and is set aside"

    def _note(self) -> str:
        answered = sum(self.answers.is_answered(sample.key) for sample in self.samples)
        samples = counted(len(self.samples), "question" if self.repeats == 1 else "sample")
        return f"merged of {counted(len(self.parts), 'run')}: {answered:,} of {samples} answered"

    def _torn_lines(self) -> Iterator[bytes]:
        """Yield what was set aside in the parts, and what cannot be read there now."""
        for part in self.parts:
            torn = torn_file(part.responses)
            if torn.exists():
                with open_to_read(torn) as file:
                    yield from (line.rstrip(b"\n") + b"\n" for line in file)
        for number, line in self.answers.unreadable:
            with open_to_read(self.parts[number].responses) as file:
                file.seek(line.offset)
                yield file.read(line.length).rstrip(b"\n") + b"\n"

    def _judge_lines(self, folder: RunFolder) -> Iterator[bytes]:
        own = folder.path / JUDGE_CACHE_FILE
        ids = [str(origin.get("run_id")) for part in self.parts for origin in part.origins]
        is_shared = own.exists() or len(set(ids)) < len(ids)
        return merged_lines([own, *(part.judge_cache for part in self.parts)], share_lines=is_shared)


def _refuse_to_lose(folder: RunFolder, merge: _Merge, *, force: bool) -> None:
    """Refuse to replace a merged run that was gone on with: its answers are paid for, and no part has them."""
    if force or "merged" not in (read_run(folder.shown) or {}):
        return
    there = Answers([folder.path / RESPONSES_FILE])
    keys = [sample.key for sample in merge.samples if there.is_answered(sample.key)]
    lost = [question_id for question_id, repeat in keys if not merge.answers.is_answered((question_id, repeat))]
    if lost:
        what = f"the folder has {counted(len(lost), 'answer')} that no part has: {listed(lost)}"
        hint = "Give it as a part too, with another folder as the output; or --force (force=True) to replace it."
        raise RunFolderError(what, path=folder.shown, hint=hint)


def _refuse_as_output(parts: Sequence[Part], output: Path) -> None:
    place = output.resolve()
    for part in parts:
        if part.path.resolve() == place:
            hint = "Give a folder of its own: the parts stay as they are."
            raise RunFolderError("the folder is one of those that are merged", path=output, hint=hint)


def _dataset(parts: Sequence[Part], given: DatasetSource | None) -> tuple[Sequence[Template], Sequence[str]]:
    """Return the dataset of the parts, and what is to be told of it."""
    first = parts[0]
    source = dataset_of(first.record, first.path) if given is None else given
    loaded = read_dataset(source)
    known = mapping_of(first.record.get(DATASET)).get("sha256")
    if dataset_record(source, loaded.templates)["sha256"] != known:
        what = "the dataset is not the one of these runs any more" if given is None else "this is not their dataset"
        hint = (
            "Give it as it was: --dataset FILE (dataset=…); or score each part with the new one first, and merge then."
        )
        raise RunFolderError(what, path=str(source) if isinstance(source, str | PathLike) else first.path, hint=hint)
    return loaded.templates, loaded.notes


def _refuse_conflicts(parts: Sequence[Part], answers: Answers, *, force: bool) -> None:
    if not answers.conflicts or force:
        return
    named = [
        f"{question_id}{'' if repeat == 1 else f' (repeat {repeat})'} in {parts[one].path} and {parts[other].path}"
        for (question_id, repeat), (one, other) in sorted(answers.conflicts.items())
    ]
    number = len(named)
    samples = f"{counted(number, 'sample')} {plural(number, 'has', 'have')} two different answers"
    raise RunFolderError(
        f"{samples}: {listed(named, _MOST_CONFLICTS)}",
        hint="Leave out the run that does not count; or --force (force=True) keeps the answer that succeeded, or the "
        "first.",
    )


def _conflict_warnings(answers: Answers) -> Iterator[str]:
    if answers.conflicts:
        ids = [question_id for question_id, _ in sorted(answers.conflicts)]
        yield f"{counted(len(ids), 'sample')} with two different answers, of which one was kept: {listed(ids)}"


def _difference_warnings(parts: Sequence[Part]) -> Iterator[str]:
    """Say where the code or the packages of the parts differ, which may change answers."""
    first = parts[0]
    known = (mapping_of(part.record.get("git")).get("commit") for part in parts)
    commits = list(dict.fromkeys(str(commit)[:12] for commit in known if commit is not None))
    if len(commits) > 1:
        yield f"the parts were asked at {counted(len(commits), 'commit')}: {listed(commits)}"
    packages = dict.fromkeys(chain.from_iterable(mapping_of(part.record.get("versions")) for part in parts))
    for package in packages:
        versions = dict.fromkeys(str(mapping_of(part.record.get("versions")).get(package)) for part in parts)
        if len(versions) > 1:
            yield f"the parts were asked with {package} {listed(list(versions))}"
    yield from dict.fromkeys(text for part in parts[1:] for text in plugin_warnings(first.record, part.record))


def _not_scored(folder: Path, number: int, missing: Missing) -> dict[str, Any]:
    lacking = f"; and {missing.message}" if missing.samples else ""
    responses = f"{counted(number, 'response')} {plural(number, 'was', 'were')}"
    message = (
        f"{responses} not scored by the parts, and models or functions of yours score this run: graphrag-eval-lc score "
        f"{folder} does it, and asks again for nothing that is known"
    )
    return {"reason": NOT_SCORED, "message": f"{message}{lacking}", "left_out": missing.samples}
