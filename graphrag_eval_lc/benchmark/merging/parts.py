"""The folders that are to be merged: each a part of one run, locked while it is read, and never written."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.record_values import mapping_of, records_of
from graphrag_eval_lc.benchmark.run_identity import (
    CONFIG,
    DATASET,
    REPEATS,
    SELECTION,
    differences,
    identity,
    identity_digest,
)
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.evaluation.shards import Shard
from graphrag_eval_lc.files.folder_lock import LOCK_FILE, SOFT_LOCK_FILE, FolderLock
from graphrag_eval_lc.files.opening import is_private_beside
from graphrag_eval_lc.files.writing import unfinished
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RESULTS_FILE, RUN_FILE, read_run
from graphrag_eval_lc.run_folder.folder import JUDGE_CACHE_FILE
from graphrag_eval_lc.texts import shortened

_BEFORE_RUN = {LOCK_FILE, SOFT_LOCK_FILE, unfinished(Path(RUN_FILE)).name}
_MOST_DIFFERENCES = 4
_LONGEST_VALUE = 60
_HINT = "Give the folders of one run: its shards, or runs of parts of its questions."
# What --force does not merge, each with what can be done.
_NEVER = {
    DATASET: "Score those of the older dataset again: graphrag-eval-lc score RUN_DIR --dataset FILE",
    CONFIG: "Score them with one config: graphrag-eval-lc score RUN_DIR -c FILE",
    REPEATS: "",
    SELECTION: "",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A folder with a part of a run.

    Attributes:
        path: The folder, as it was given.
        record: Its run.json.
        shard: Which shard it is; None where it is none.
    """

    path: Path
    record: Mapping[str, Any] = field(repr=False)
    shard: Shard | None = None

    @property
    def responses(self) -> Path:
        """Its journal."""
        return self.path / RESPONSES_FILE

    @property
    def results(self) -> Path:
        """Its results."""
        return self.path / RESULTS_FILE

    @property
    def judge_cache(self) -> Path:
        """The answers of its judges."""
        return self.path / JUDGE_CACHE_FILE

    @property
    def is_scored(self) -> bool:
        """Whether its results are those of all its responses."""
        record = self.record
        return "totals" in record and not record.get("scored_selection") and self.results.is_file()

    @property
    def origins(self) -> list[dict[str, Any]]:
        """Return what run.json says of the runs that it consists of: itself, or those that were merged before."""
        if earlier := records_of(self.record.get("merged")):
            return [dict(each) for each in earlier]
        shard = {} if self.shard is None else {"shard": str(self.shard)}
        return [{"run_id": self.record.get("run_id"), **shard, "path": str(self.path)}]

    @property
    def shards(self) -> set[Shard]:
        """The shards that it consists of."""
        numbers = (str(each.get("shard")).partition("/") for each in self.origins)
        known = (Shard.in_record({"shard": {"number": number, "of": of}}) for number, _, of in numbers)
        return {shard for shard in known if shard is not None}

    def without_questions(self) -> "Part":
        """Return the part without the digests of its questions, which take memory."""
        return replace(self, record={key: value for key, value in self.record.items() if key != "questions"})


def open_parts(paths: Sequence[str | PathLike[str]], stack: ExitStack) -> tuple[list[Part], list[str]]:
    """Return the parts in some folders in an order of their own, each locked until the stack ends.

    A folder that is given twice, or by two paths, is one. One in which a run was killed before it wrote anything is
    left out.

    Returns:
        The parts, and what is to be told of folders that are left out.

    Raises:
        OptionError: There is no folder.
        RunFolderError: A folder holds no run of an agent, or another process works in it.
    """
    if isinstance(paths, str | PathLike):
        raise OptionError(f"the runs cannot be {os.fspath(paths)!r}", hint="Give a list of folders.")
    folders: dict[Path, Path] = {}
    for path in map(Path, paths):
        _refuse_no_folder(path)
        folders.setdefault(path.resolve(), path)
    if not folders:
        raise OptionError("there is no run to merge", hint="Give the folders of the parts, such as those of shards.")
    parts: list[Part] = []
    told = []
    for path in folders.values():
        part = _open(path, stack, parts)
        if part is None:
            told.append(f"{path} is left out, as the run there was killed before it asked anything")
        else:
            parts.append(part)
    if not parts:
        raise RunFolderError("no folder holds a run", path=next(iter(folders.values())), hint=_HINT)
    return sorted(parts, key=_place), told


def _open(path: Path, stack: ExitStack, others: Sequence[Part]) -> Part | None:
    """Return the part in a folder; None where nothing is there but what stands before a run's first record.

    Its questions are kept once where those of another part are the same, as shards have those of the whole run.
    """
    has_run = (path / RUN_FILE).exists() or (path / LOCK_FILE).exists()
    if has_run and os.access(path, os.W_OK):  # else this process cannot lock it, and may still read it
        stack.enter_context(FolderLock(path, is_private=is_private_beside(path / LOCK_FILE)))
    record = read_run(path)
    if record is None:
        if {each.name for each in path.iterdir()} <= _BEFORE_RUN and (path / LOCK_FILE).exists():
            return None
        raise RunFolderError(f"the folder holds no {RUN_FILE}", path=path, hint=_HINT)
    if "agent" not in record:
        what = "the folder holds responses that were recorded elsewhere, and no run of an agent"
        raise RunFolderError(what, path=path, hint="Put the responses into one file, and score that.")
    same = next((other for other in others[-1:] if other.record.get("questions") == record.get("questions")), None)
    if same is not None and "questions" in record:
        record["questions"] = same.record["questions"]
    return Part(path, record, Shard.in_record(record))


def _refuse_no_folder(path: Path) -> None:
    if not path.is_dir():
        what = "this is a file, not the folder of a run" if path.exists() else "there is no such folder"
        raise RunFolderError(what, path=path, hint=_HINT)


def _place(part: Part) -> tuple[int, str, str]:
    started = mapping_of(part.record.get("times")).get("started")
    return 0 if part.shard is None else part.shard.number, str(started), str(part.path)


def refuse_strangers(parts: Sequence[Part], *, force: bool) -> list[str]:
    """Refuse parts that are not of one run.

    Runs of other questions of one dataset are parts of one run where all else is the same; shards have one selection.

    Args:
        parts: The parts.
        force: Whether another agent, another capture and other limits are let pass.

    Returns:
        What differs and was let pass.

    Raises:
        RunFolderError: Some are not; with what differs.
    """
    has_shards = any(part.shards for part in parts)
    first = _most_common(parts)
    strangers = {part.path: list(_differences(first, part, has_shards=has_shards)) for part in parts}
    refused = [name for found in strangers.values() for name, _ in found if not force or name in _NEVER]
    told = [f"{path} differs from {first.path}: {_told(found)}" for path, found in strangers.items() if found]
    if not refused:
        return told
    ways = list(dict.fromkeys(_NEVER[name] for name in refused if _NEVER.get(name)))
    ways += [] if any(name in _NEVER for name in refused) else ["--force (force=True) merges them nevertheless"]
    more = f", and {len(told) - 1:,} more differ too" if len(told) > 1 else ""
    raise RunFolderError(f"these are no parts of one run: {told[0]}{more}", hint=" ".join(f"{way}." for way in ways))


def _most_common(parts: Sequence[Part]) -> Part:
    digests = [identity_digest(part.record) for part in parts]
    most, _ = Counter(digests).most_common(1)[0]
    return parts[digests.index(most)]


def _differences(first: Part, part: Part, *, has_shards: bool) -> Iterator[tuple[str, str]]:
    """Yield what differs between two parts: its kind, and a text."""
    before, after = identity(first.record), identity(part.record)
    for kind in before:
        if kind != SELECTION or has_shards:
            for name, was, now in differences(before[kind], after[kind], kind):
                yield kind, f"{'dataset.sha256' if kind == DATASET else name} is {_value(now)} and not {_value(was)}"
    numbers = [sorted({shard.of for shard in each.shards}) for each in (first, part)]
    if all(numbers) and numbers[0] != numbers[1]:
        yield SELECTION, f"it is one of {numbers[1][0]} shards and not of {numbers[0][0]}"
    yield from _scorer_differences(first.record, part.record)


def _scorer_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the evaluators, matchers and models that scored two parts otherwise."""
    functions_before, functions_after = (
        {str(each.get("name")): each.get("function") for each in records_of(run.get("evaluators"))}
        for run in (before, after)
    )
    for name, was, now in differences(functions_before, functions_after):
        yield CONFIG, f"the evaluator {name} is {_value(now)} and not {_value(was)}"
    matchers = [
        {json_text([each.get("name"), each.get("media_type")]): each.get("function") for each in records_of(known)}
        for known in (before.get("matchers"), after.get("matchers"))
    ]
    for key in matchers[0].keys() & matchers[1].keys():  # a part has those of its own questions
        if matchers[0][key] != matchers[1][key]:
            yield CONFIG, f"the matcher for {key} is {_value(matchers[1][key])} and not {_value(matchers[0][key])}"
    judges = [mapping_of(run.get("judges")) for run in (before, after)]
    if all(judges):
        for key in ("engine", "generation", "embedding", "metrics"):
            for name, was, now in differences(judges[0].get(key), judges[1].get(key), f"judges.{key}"):
                yield CONFIG, f"{name} is {_value(now)} and not {_value(was)}"


def _told(found: Iterable[tuple[str, str]]) -> str:
    texts = [text for _, text in found]
    more = f" and {len(texts) - _MOST_DIFFERENCES:,} more" if len(texts) > _MOST_DIFFERENCES else ""
    return ", ".join(texts[:_MOST_DIFFERENCES]) + more


def _value(value: object) -> str:
    return "none" if value is None else shortened(value if isinstance(value, str) else json_text(value), _LONGEST_VALUE)
