"""Builds run folders from the files that the processes of a pytest session wrote, at its end or after a kill."""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, cast

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun
from graphrag_eval_lc.benchmark.earlier_run import recorded_config, register_recorded
from graphrag_eval_lc.benchmark.run_manifest import Record, ended
from graphrag_eval_lc.compare import GateResult
from graphrag_eval_lc.config import GateConfig
from graphrag_eval_lc.dataset.loading import questions_of, read_dataset
from graphrag_eval_lc.dataset.selection import answered_note
from graphrag_eval_lc.errors import GraphRAGEvalError, RunFolderError
from graphrag_eval_lc.evaluation.pipeline import Pipeline
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.files.opening import make_folder, open_to_read, special_file
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Response
from graphrag_eval_lc.registry.exporters import written_report
from graphrag_eval_lc.registry.metrics import (
    NUMBER_OF_ERROR_SAMPLES,
    NUMBER_OF_SUCCESS_SAMPLES,
)
from graphrag_eval_lc.registry.plugins import load_installed_plugins, registered_only_here
from graphrag_eval_lc.run_folder import RUN_FILE, FolderLock, RunFolder
from graphrag_eval_lc.run_folder.journal import journal_lines
from graphrag_eval_lc.texts import counted

PARTS = ".pytest-parts"
PLAN = "plan.json"
_LONGEST = 80
_NOT_IN_A_NAME = re.compile(r"[^\w.-]+")
_DIED = "the process of the test ended while the agent was asked"
_OF_ITS_OWN = ("format_version", "run_id", "times", "stopped", "totals", "questions", "judges", "selection")


# --- what the processes wrote ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectedRun:
    """One run of the session, as its processes wrote it: the plan, the record, and a record for each question."""

    plan: Mapping[str, Any]
    record: dict[str, Any] | None = None
    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict)


def collected_runs(folder: Path) -> list[CollectedRun]:
    """Read what the processes of a session have written so far.

    If a question has several records, for example after a test was re-run, the last one counts.
    """
    runs: dict[str, CollectedRun] = {}
    parts = sorted(path for path in folder.iterdir() if path.is_dir())
    for part in parts:
        for plan in _read(part / PLAN).get("runs", ()):
            runs.setdefault(plan["key"], CollectedRun({**plan, "dataset": str(part / plan["dataset"])}))
    for key, run in runs.items():
        records = [_read(part / f"{key}.run.json") for part in parts]
        known = sorted((record for record in records if record), key=lambda record: str(record["times"]["started"]))
        judged = [record for record in known if "judges" in record]
        asked: dict[str, Mapping[str, Any]] = {}
        for record in _journaled(part / f"{key}.jsonl" for part in parts):
            before = asked.get(record["question_id"])
            if before is None or before["at"] <= record["at"]:
                asked[record["question_id"]] = record
        runs[key] = CollectedRun(
            run.plan, (known[0] | (judged or known)[0] | {"times": known[0]["times"]}) if known else None, asked
        )
    return list(runs.values())


def _journaled(paths: Iterator[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in journal_lines(path) if path.exists() else ():
            if line.record is not None and "at" in line.record:  # the last line may be truncated if a process died
                yield line.record


def unanswered(question: Mapping[str, Any], why: str) -> Response:
    """Return a failed response for a question without an answer; ``why`` is its error."""
    given = {"question_id": str(question["id"]), "question_text": question["question_text"]}
    return cast("Response", {**given, "status": "error", "error": why, "actual_steps": []})


def _read(path: Path) -> dict[str, Any]:
    try:
        with open_to_read(path) as file:
            read = parse_json(file.read().decode("utf-8"))
    except (OSError, ValueError):  # a process that died before it wrote it
        return {}
    return read if isinstance(read, dict) else {}


def folder_names(runs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a unique folder name for each run, given its name and test.

    Example:
        >>> folder_names([("test_agent", "tests/test_a.py::test_agent"), ("test_agent", "tests/test_b.py::test_agent")])
        ['test_a.test_agent', 'test_b.test_agent']
    """
    given = list(runs)
    plain = [_plain(name) for name, _ in given]
    names: dict[str, str] = {}  # by a key under which file systems treat names as equal
    for (name, test), short in zip(given, plain, strict=True):
        if [each.casefold() for each in plain].count(short.casefold()) > 1:
            module, *classes, _ = test.split("::")
            short = _plain(".".join([module.rpartition("/")[2].removesuffix(".py"), *classes, name]))
        numbered = (short if number == 1 else f"{short}_{number}" for number in count(1))
        unique = next(each for each in numbered if each.casefold() not in names)
        names[unique.casefold()] = unique
    return list(names.values())


def _plain(name: str) -> str:
    """Return a name that every file system accepts."""
    return _NOT_IN_A_NAME.sub("_", name).strip("._")[:_LONGEST] or "run"


# --- the folders of the runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A run of the session, put together."""

    name: str
    folder: Path
    counts: str
    gates: Sequence[GateResult]
    notes: Sequence[str]
    report: Path | None


def asked_records(run: CollectedRun, *, is_interrupted: bool) -> dict[str, Mapping[str, Any]]:
    """Return the records of the questions that count, by question id.

    A question during which a process died counts as failed; if the session was interrupted, it is left out.
    """
    return {
        question_id: record
        for question_id, record in run.asked.items()
        if not record.get("left_out") and not (is_interrupted and record.get("begun"))
    }


def folders_of(runs: Sequence[CollectedRun], folder: Path) -> list[Path]:
    """Return the folder of each run: ``folder`` itself if there is one unnamed run, otherwise a subfolder for each."""
    if len(runs) == 1 and not runs[0].plan["is_named"]:
        return [folder]
    return [folder / name for name in folder_names((run.plan["name"], run.plan["test"]) for run in runs)]


def recover_killed_session(folder: Path, *, is_apart: bool = False, is_private: bool = True) -> list[str]:
    """Build the runs of a killed pytest session from the files in its folder; return notes for the user."""
    parts = folder / PARTS
    if not parts.is_dir():
        return []
    with FolderLock(parts, is_private=is_private), _readable(parts):
        begun = [(run, run.record) for run in collected_runs(parts) if run.record is not None]
        runs = [(run, asked) for run, _ in begun if (asked := asked_records(run, is_interrupted=True))]
        apart = folder / f"killed-{min((str(record['run_id']) for _, record in begun), default='')}"
        targets = folders_of([run for run, _ in runs], folder)
        if is_apart or any((target / RUN_FILE).exists() for target in (folder, *targets)):
            targets = folders_of([run for run, _ in runs], apart)
        failure: GraphRAGEvalError | None = None
        notes = []
        for (run, asked), target in zip(runs, targets, strict=True):
            left_out = len(run.plan["selected"]) - len(asked)
            why = {"reason": "interrupted", "message": "the session of pytest was killed", "left_out": left_out}
            try:
                finish_run(
                    run, asked, target, (), stopped=why, overwrite=False, open_files=not is_private, has_report=True
                )
            except GraphRAGEvalError as problem:
                failure = problem
            else:
                notes.append(
                    f"A session of pytest that was killed left {counted(len(asked), 'answer')}, now in {target}."
                )
        if failure is not None and not is_apart:
            raise failure
    if failure is None:
        shutil.rmtree(parts, ignore_errors=True)
        return notes
    make_folder(apart, is_private=is_private)
    parts.rename(apart / PARTS)
    what = (
        f"A session of pytest that was killed left answers, now in {apart / PARTS}. They are not a run yet: {failure}"
    )
    return [*notes, f"{what} Then run: graphrag-eval-lc score {apart}"]


@contextmanager
def _readable(parts: Path) -> Iterator[None]:
    """Raise one clear error in place of whatever reading foreign or truncated files raises."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        what = f"what a session of pytest left here cannot be read ({type(problem).__name__}: {problem})"
        hint = "Nothing was removed. Move this folder away to resume without it."
        raise RunFolderError(what, path=parts, hint=hint) from problem


def finish_run(
    run: CollectedRun,
    asked: Mapping[str, Mapping[str, Any]],
    folder: Path,
    gates: Sequence[GateConfig],
    *,
    stopped: Mapping[str, Any] | None,
    overwrite: bool,
    open_files: bool,
    has_report: bool,
) -> FinishedRun:
    """Write the folder of a run, with its report, and check its gates.

    Questions that were scored during the session are not scored again.
    """
    assert run.record is not None
    load_installed_plugins()
    with registered_only_here():
        register_recorded(run.record)
        config = recorded_config(run.record)
        if odd := special_file(run.plan["dataset"]):  # a pipe that another user planted would never end
            what = f"the session of pytest names {odd} as its dataset"
            raise RunFolderError(what, path=run.plan["dataset"], hint="Name a file in plan.json.")
        templates = read_dataset(run.plan["dataset"]).templates
        pairs = [pair for pair in questions_of(templates) if str(pair[1]["id"]) in asked]
        target = RunFolder(folder, is_private=not open_files)
        with target.lock():
            if overwrite:
                target.clear()
            target.refuse_earlier()
            record = _record(run, asked)
            target.write_run(record)
            samples = [Sample(position, *pair, repeat=1) for position, pair in enumerate(pairs)]
            responses = [
                asked[sample.key[0]].get("response") or unanswered(sample.question, _DIED) for sample in samples
            ]
            target.write_responses(responses)
            with target.results() as results:
                pipeline = Pipeline(config, templates, repeats=1, pricing=Pricing(config.prices), file=results)
                for sample, response in zip(samples, responses, strict=True):
                    if (result := asked[sample.key[0]].get("result")) is None:
                        pipeline.add(sample, response)
                    else:
                        pipeline.keep(sample, result)
                aggregates = pipeline.finish()
            elapsed = (datetime.now(UTC) - datetime.fromisoformat(record["times"]["started"])).total_seconds()
            record = ended(record, round(elapsed, 3), aggregates["totals"], stopped, judges=run.record.get("judges"))
            target.write_aggregates(aggregates)
            target.write_run(record)
        finished = BenchmarkRun(aggregates, output_dir=folder, gates=[*config.gates, *gates])
        report, problem = written_report(folder) if has_report else (None, None)
        notes = _notes(run, asked, pipeline, problem)
        return FinishedRun(
            run.plan["name"],
            folder,
            _counts_text(aggregates["micro"], finished),
            finished.gate_results(),
            notes,
            report,
        )


def _record(run: CollectedRun, asked: Mapping[str, Any]) -> Record:
    """Return the run.json of a run, with only the questions that were asked."""
    assert run.record is not None
    selection = {**run.plan["selection"]}
    if len(asked) < run.plan["questions"]:
        selection["answered_only"] = True
    described = {key: value for key, value in run.record.items() if key not in _OF_ITS_OWN}
    started = {"started": run.record["times"]["started"]}
    return {
        "run_id": run.record["run_id"],
        **described,
        **({"selection": selection} if selection else {}),
        "times": {**started, "sessions": [started]},
        "questions": {key: digest for key, digest in run.record["questions"].items() if key in asked},
    }


def _counts_text(micro: Mapping[str, Any], run: BenchmarkRun) -> str:
    """Return how many questions were answered, and the main score."""
    answered, failed = micro[NUMBER_OF_SUCCESS_SAMPLES], micro[NUMBER_OF_ERROR_SAMPLES]
    return ", ".join(filter(None, [f"{answered:,} answered", f"{failed:,} failed", run.main_score]))


def _notes(run: CollectedRun, asked: Mapping[str, Any], pipeline: Pipeline, problem: str | None) -> list[str]:
    """Return notes for the user: questions that were not asked, warnings, and why a report is missing."""
    notes = []
    if len(asked) < run.plan["questions"]:
        notes.append(f"{answered_note(len(asked), run.plan['questions'])}.")
    notes += [f"Warning: {text}" for text in pipeline.warnings()]
    notes += [] if problem is None else [problem]
    return notes
