"""The folder of a run: opens, locks, clears and writes its files, and checks the run.json of an earlier run."""

import contextlib
import errno
import itertools
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from filelock import FileLock, SoftFileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from graphrag_eval_lc.errors import RunFolderError, cannot_make, cannot_read, cannot_write
from graphrag_eval_lc.files.opening import RUN_FILE, absolute_path, make_folder, open_to_read, refuse_odd, special_file
from graphrag_eval_lc.files.reading import TextFile, check_yaml_depth
from graphrag_eval_lc.files.writing import UNFINISHED, json_line, replace_file, yaml_pieces
from graphrag_eval_lc.json_values import json_text, parse_json
from graphrag_eval_lc.judges.cache import JudgeCache
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.run_folder.journal import COLLECTING, Journal, ResultsFile
from graphrag_eval_lc.texts import shortened

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_FLOAT = re.compile("[0-9]{309}")  # a number too large for a float, which runs never write
_SECTION_START = re.compile(r"^[^ \n]", re.MULTILINE)
_LAST = ("times", "stopped", "totals", "questions", "scored")
FORMAT_VERSION = 2
RESPONSES_FILE = "responses.jsonl"
RESULTS_FILE = "results.jsonl"
AGGREGATES_FILE = "aggregates.yaml"
JUDGE_CACHE_FILE = "judge_cache.jsonl"
PUBLISHED_FILE = "published.jsonl"  # which scores were sent to other tools
LOCK_FILE = ".lock"
SOFT_LOCK_FILE = ".lock.held"
"""On file systems without locks (some network file systems), the existence of this file is the lock."""

# The subfolder with the re-run answers that confirm a regression.
CONFIRMATION = "confirmation"

# run.json is removed last, so that there are never responses without it.
_FILES = (RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE, RUN_FILE)
_REPORT_FILE = exporter(REPORT).file_name
# All files that runs write: unfinished ones first.
_ALL_FILES = (
    f"{RESULTS_FILE}{COLLECTING}",
    *(f"{name}{UNFINISHED}" for name in (_REPORT_FILE, *_FILES, JUDGE_CACHE_FILE)),
    JUDGE_CACHE_FILE,
    LOCK_FILE,
    PUBLISHED_FILE,
    _REPORT_FILE,
    *_FILES,
)

_BY_UMASK = -1
_UNSUPPORTED = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}
_REPLACE = "pass --overwrite (overwrite=True) to replace that run"


class FolderLock(AbstractContextManager["FolderLock"]):
    """The lock of a folder, held from construction to ``release``; raises a RunFolderError if another run holds it.

    The system releases it when the process ends, however it ends. A forked child does not hold it.
    """

    def __init__(self, folder: Path, *, is_private: bool = True) -> None:
        mode = 0o600 if is_private else _BY_UMASK
        self._lock = FileLock(folder / LOCK_FILE, timeout=0, thread_local=False, mode=mode)
        try:
            try:
                self._lock.acquire()
            except OSError as problem:
                if isinstance(problem, Timeout) or problem.errno not in _UNSUPPORTED:
                    raise
                self._lock = SoftFileLock(folder / SOFT_LOCK_FILE, timeout=0, thread_local=False, mode=mode)
                self._lock.acquire()
        except Timeout as problem:
            hint = "Wait for it to end, or use another folder."
            raise RunFolderError("another run or command works in this folder", path=folder, hint=hint) from problem
        except OSError as problem:
            raise cannot_write(folder / LOCK_FILE, problem) from problem
        if is_private:
            with contextlib.suppress(OSError):  # of an earlier run that was not; perhaps another user's
                Path(self._lock.lock_file).chmod(mode)

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        self._lock.release()


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: str | os.PathLike[str], *, at: Path | None = None, is_private: bool = True) -> None:
        self._given = Path(path)
        self.path = absolute_path(path) if at is None else at
        self.is_private = is_private
        with self._errors_name_given_path():
            make_folder(self.path, is_private=is_private)
            try:
                with tempfile.TemporaryFile(dir=self.path):
                    pass
            except OSError as problem:
                raise cannot_make(self.path, problem) from problem
            refuse_odd(*(self.path / name for name in _ALL_FILES))

    @property
    def shown(self) -> Path:
        """The folder as the user wrote it, or its absolute path if the current folder has changed since."""
        try:
            return self._given if self._given.absolute() == self.path else self.path
        except OSError:  # the current folder was removed
            return self.path

    @contextmanager
    def _errors_name_given_path(self) -> Iterator[None]:
        """Have errors show the path as the user wrote it."""
        try:
            yield
        except RunFolderError as problem:
            if problem.path is not None and Path(problem.path).is_relative_to(self.path):
                problem.path = self.shown / Path(problem.path).relative_to(self.path)
            raise

    @cached_property
    def earlier(self) -> dict[str, Any] | None:
        """The run.json of an earlier run, read once; None if the folder holds no run."""
        run = read_run(self.shown, otherwise=f"use another folder, or {_REPLACE}")
        for name in _FILES if run is None else ():
            path = self.path / name
            if path.exists() and path.stat().st_size > 0:
                raise RunFolderError(
                    f"the folder holds {name} but no {RUN_FILE}, so nothing says which run it belongs to",
                    path=self.shown,
                    hint=f"Put {RUN_FILE} back, use another folder, or {_REPLACE}.",
                )
        return run

    def refuse_earlier(self) -> None:
        """Refuse a folder that holds a run."""
        if any((self.path / name).exists() for name in _FILES):
            raise RunFolderError(
                "the folder holds a run already", path=self.shown, hint=f"Give another folder, or {_REPLACE}."
            )

    def clear(self) -> None:
        """Remove the files of an earlier run and nothing else."""
        for name in _ALL_FILES:
            if name in (JUDGE_CACHE_FILE, LOCK_FILE):
                continue
            try:
                (self.path / name).unlink(missing_ok=True)
            except OSError as problem:
                raise cannot_write(self.shown / name, problem) from problem
        if (self.path / CONFIRMATION / RUN_FILE).exists():
            RunFolder(self.path / CONFIRMATION, is_private=self.is_private).clear()
        self.__dict__.pop("earlier", None)

    def lock(self) -> FolderLock:
        """Lock the folder, before anything in it is read or written."""
        with self._errors_name_given_path():
            return FolderLock(self.path, is_private=self.is_private)

    def journal(self, texts: Mapping[str, str] | None = None) -> Journal:
        """Open responses.jsonl; responses to questions whose text differs from ``texts`` (by id) do not count."""
        with self._errors_name_given_path():
            return Journal(self.path / RESPONSES_FILE, texts=texts, is_private=self.is_private)

    def results(self) -> ResultsFile:
        """Start a new results.jsonl."""
        with self._errors_name_given_path():
            return ResultsFile(self.path / RESULTS_FILE, is_private=self.is_private)

    @contextmanager
    def judge_cache(self) -> Iterator[JudgeCache]:
        """Open the cache of the judges' answers, so that nothing is paid for twice; ``clear`` keeps it."""
        cache = JudgeCache(self.path / JUDGE_CACHE_FILE, is_private=self.is_private)
        try:
            yield cache
        finally:
            cache.close()

    def write_run(self, run: Mapping[str, Any]) -> None:
        """Write run.json; the keys that grow with the run come last."""
        last = {key: run[key] for key in _LAST if key in run}
        first = {key: value for key, value in run.items() if key not in last}
        text = json_text({"format_version": FORMAT_VERSION, **first, **last}, indent=2)
        self._replace(RUN_FILE, [f"{text}\n".encode()])

    def write_responses(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Replace responses.jsonl by responses that were recorded elsewhere; memory holds one at a time."""
        self._replace(RESPONSES_FILE, map(json_line, records))

    def write_judge_cache(self, lines: Iterable[bytes]) -> None:
        """Replace the cache of the judges' answers by lines from other folders; without lines, write nothing."""
        left = iter(lines)
        if (first := next(left, None)) is not None:
            self._replace(JUDGE_CACHE_FILE, itertools.chain([first], left))

    def write_aggregates(self, aggregates: Mapping[str, Any]) -> None:
        """Write aggregates.yaml."""
        self._replace(AGGREGATES_FILE, (piece.encode("utf-8") for piece in yaml_pieces(aggregates)))

    def _replace(self, name: str, parts: Iterable[bytes]) -> None:
        with self._errors_name_given_path():
            replace_file(self.path / name, parts, is_private=self.is_private)


def read_run(folder: Path, *, otherwise: str = "give another run") -> dict[str, Any] | None:
    """Return the run.json of a run's folder, or None if it is missing; ``otherwise`` is the way out in error hints."""
    path = folder / RUN_FILE
    what, hint = "the record of the run cannot be read", f"Fix the file, or {otherwise}."
    try:
        with open_to_read(path) as file:
            text = file.read().decode("utf-8")
        run = parse_json(text)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise cannot_read(path, problem) from problem
    except (ValueError, RecursionError) as problem:
        raise RunFolderError(what, path=path, hint=hint) from problem
    version = run.get("format_version") if isinstance(run, dict) else None
    if not isinstance(version, int) or _NO_FLOAT.search(text):
        raise RunFolderError(what, path=path, hint=hint)
    if version != FORMAT_VERSION:
        raise RunFolderError(
            f"the run has format {version}, and this version of graphrag-eval-lc reads format {FORMAT_VERSION} only, "
            "which 0.2.0 introduced",
            path=path,
            hint="Open it with the version that wrote it, or use another folder.",
        )
    try:
        _RunRecord.model_validate(run)
    except ValidationError as problem:
        wrong = problem.errors(include_url=False)[0]
        what = f"{what}: {wrong['msg'][:1].lower()}{wrong['msg'][1:]}"
        raise RunFolderError(what, path=path, key=".".join(map(str, wrong["loc"])), hint=hint) from None
    return dict(run)


def recorded_dataset(run: Mapping[str, Any], folder: Path) -> str | None:
    """Return the path of the dataset in a run.json, or None; the file may be missing."""
    dataset = run.get("dataset")
    path: str | None = dataset.get("path") if isinstance(dataset, Mapping) else None
    if path is None:
        return None
    odd = special_file(path) if isinstance(path, str) else "not a path"
    if odd:
        what = f"run.json names {shortened(str(path), 100)} as the dataset of the run, which is {odd}"
        hint = "Give the file of the dataset: --dataset FILE (dataset=...)."
        raise RunFolderError(what, path=folder / RUN_FILE, hint=hint)
    return path


def read_aggregates(folder: Path, section: str | None = None) -> dict[str, Any]:
    """Return the aggregates in a run's folder, or one section of them; empty if they are missing."""
    path = folder / AGGREGATES_FILE
    try:
        with open_to_read(path) as file:
            content = file.read()
    except FileNotFoundError:
        return {}
    except OSError as problem:
        raise cannot_read(path, problem) from problem
    try:
        text = content.decode("utf-8")
        check_yaml_depth(TextFile(text, None, "yaml", content), RunFolderError, "file")
        aggregates = yaml.load(text if section is None else _section(text, section), Loader=_LOADER)
    except (RunFolderError, yaml.YAMLError, ValueError, LookupError) as problem:
        hint = "Write it again: graphrag-eval-lc score RUN_DIR."
        raise RunFolderError("the aggregates of the run cannot be read", path=path, hint=hint) from problem
    return aggregates if isinstance(aggregates, dict) else {}


def _section(text: str, name: str) -> str:
    """Return the text of one section, which is faster to parse; the whole text if this package did not write it."""
    _, heading, rest = text.partition(f"\n{name}:\n")
    end = _SECTION_START.search(rest)
    return f"{name}:\n{rest[: end.start() if end else None]}" if heading else text


# --- the types of the keys in run.json --------------------------------------------------------------------------------

Object = dict[str, Any]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class _Scorer(_Part):
    """A matcher, evaluator or plugin."""

    name: str | None = None
    metrics: list[str] | None = None
    gives: list[str] | None = None
    declares: Object | None = None


class _Judges(_Part):
    metrics: list[str] | None = None
    custom_evaluations: list[str] | None = None


class _Config(_Part):
    steps: Object | None = None
    llm: dict[str, Any] | None = None


class _Shard(_Part):
    number: int = Field(ge=1)
    of: int = Field(ge=1)


class _Session(_Part):
    started: str | None = None
    elapsed_sec: float | None = None


class _Times(_Session):
    sessions: list[_Session] = []


class _RunRecord(_Part):
    """The keys of run.json that this package reads. There are others too, and any may be missing."""

    run_id: str | None = None
    label: str | None = None
    tags: list[str] | None = None
    shard: _Shard | None = None
    dataset: Object | None = None
    selection: Object | None = None
    repeats: int | None = Field(None, ge=1)
    agent_digests: Object | None = None
    git: Object | None = None
    versions: Object | None = None
    capture: Object | None = None
    limits: Object | None = None
    config: _Config | None = None
    judges: _Judges | None = None
    matchers: list[_Scorer] | None = None
    evaluators: list[_Scorer] | None = None
    plugins: list[_Scorer] | None = None
    merged: list[Object] | None = None
    keep_answers: list[Object] | None = None
    scored_selection: Object | None = None
    times: _Times | None = None
    stopped: Object | None = None
    totals: Object | None = None
    questions: dict[str, str] | None = None
