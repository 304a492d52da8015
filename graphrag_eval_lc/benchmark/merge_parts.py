"""Reads the parts that a merge combines: opens their folders, checks that they belong together, picks the answers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.benchmark.run_manifest import DIGESTS
from graphrag_eval_lc.config import CaptureConfig
from graphrag_eval_lc.errors import OptionError, RunFolderError
from graphrag_eval_lc.evaluation.samples import Shard
from graphrag_eval_lc.files.opening import is_private_beside
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.records import Key
from graphrag_eval_lc.run_folder import RESPONSES_FILE, RUN_FILE, Journal, Summary, read_run
from graphrag_eval_lc.run_folder.folder import LOCK_FILE, FolderLock
from graphrag_eval_lc.texts import shortened

_OF_MACHINE = ("max_concurrency",)  # limits that may differ, as machines do
_MOST_DIFFERENCES = 4
_LONGEST_VALUE = 60
_HINT = "Give the folders of one run: its shards, or runs of parts of its questions."
# Differences that even --force does not accept, each with what to do instead.
_NEVER = {
    "dataset": "Score those of the older dataset again: graphrag-eval-lc score RUN_DIR --dataset FILE",
    "config": "Score them with one config: graphrag-eval-lc score RUN_DIR -c FILE",
    "repeats": "",
    "selection": "",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A folder with a part of a run."""

    path: Path
    record: Mapping[str, Any] = field(repr=False)
    shard: Shard | None = None

    @property
    def origins(self) -> list[dict[str, Any]]:
        """The entries in run.json for the runs in this part: the part itself, or the runs merged into it before."""
        if earlier := self.record.get("merged"):
            return [dict(each) for each in earlier]
        shard = {} if self.shard is None else {"shard": str(self.shard)}
        return [{"run_id": self.record.get("run_id"), **shard, "path": str(self.path)}]

    @property
    def shards(self) -> set[Shard]:
        """The shards in this part."""
        return {Shard.read(each["shard"]) for each in self.origins if "shard" in each}


def open_parts(paths: Sequence[str | PathLike[str]], stack: ExitStack) -> tuple[list[Part], list[str]]:
    """Return the parts in some folders, in a fixed order and locked until the stack ends, and warnings.

    A folder that is given twice, or by two paths, counts once. A folder whose run was killed before it wrote anything
    is left out with a warning.
    """
    if isinstance(paths, str | PathLike):
        raise OptionError(f"the runs cannot be {os.fspath(paths)!r}", hint="Give a list of folders.")
    folders = {path.resolve(): path for path in reversed([Path(each) for each in paths])}
    if not folders:
        raise OptionError("no run to merge is given", hint="Give the folders of the parts, such as those of shards.")
    parts: list[Part] = []
    left_out = []
    for path in reversed(folders.values()):
        if not path.is_dir():
            what = "this is a file, not the folder of a run" if path.exists() else "the folder does not exist"
            raise RunFolderError(what, path=path, hint=_HINT)
        has_lock = (path / LOCK_FILE).exists()
        if has_lock and os.access(path, os.W_OK):  # a folder that cannot be locked may still be read
            stack.enter_context(FolderLock(path, is_private=is_private_beside(path / LOCK_FILE)))
        record = read_run(path)
        if record is None:
            if not has_lock or (path / RESPONSES_FILE).exists():
                raise RunFolderError(f"the folder holds no {RUN_FILE}", path=path, hint=_HINT)
            left_out.append(f"{path} is left out, as the run there was killed before it asked anything")
            continue
        if "agent" not in record:
            what = "the folder holds responses that were recorded elsewhere, and no run of an agent"
            raise RunFolderError(what, path=path, hint="Put the responses into one file, and score that.")
        parts.append(Part(path, record, Shard.in_record(record)))
    if not parts:
        raise RunFolderError("no folder holds a run", path=next(iter(folders.values())), hint=_HINT)
    return sorted(parts, key=_place), left_out


def _place(part: Part) -> tuple[int, str, str]:
    started = (part.record.get("times") or {}).get("started")
    return 0 if part.shard is None else part.shard.number, str(started), str(part.path)


def refuse_unrelated(parts: Sequence[Part], *, force: bool) -> list[str]:
    """Refuse parts that do not belong to one run; with ``force``, return accepted differences as warnings.

    Runs of different questions of one dataset belong together if everything else is the same. Shards must also have
    the same selection.
    """
    has_shards = any(part.shards for part in parts)
    first = parts[0]
    found = {part.path: list(_differences(first, part, has_shards=has_shards)) for part in parts[1:]}
    accepted = []
    for path, kinds in found.items():
        texts = [text for _, text in kinds]
        more = f" and {len(texts) - _MOST_DIFFERENCES:,} more" if len(texts) > _MOST_DIFFERENCES else ""
        if texts:
            accepted.append(f"{path} differs from {first.path}: {', '.join(texts[:_MOST_DIFFERENCES])}{more}")
    refused = [kind for kinds in found.values() for kind, _ in kinds if not force or kind in _NEVER]
    if refused:
        ways = list(dict.fromkeys(_NEVER[kind] for kind in refused if _NEVER.get(kind)))
        ways += [] if any(kind in _NEVER for kind in refused) else ["--force (force=True) merges them nevertheless"]
        more = f", and {len(accepted) - 1:,} more differ too" if len(accepted) > 1 else ""
        what = f"these are not parts of one run: {accepted[0]}{more}"
        raise RunFolderError(what, hint=" ".join(f"{way}." for way in ways))
    return accepted


def _differences(first: Part, part: Part, *, has_shards: bool) -> Iterator[tuple[str, str]]:
    """Yield each difference between two parts, as its kind and a text."""
    before, after = _identity(first.record), _identity(part.record)
    for kind in before:
        if kind != "selection" or has_shards:
            for name, was, now in _different_values(before[kind], after[kind], kind):
                yield kind, f"{'dataset.sha256' if kind == 'dataset' else name} is {_value(now)} and not {_value(was)}"
    numbers = [sorted({shard.of for shard in each.shards}) for each in (first, part)]
    if all(numbers) and numbers[0] != numbers[1]:
        yield "selection", f"it is one of {numbers[1][0]} shards and not of {numbers[0][0]}"
    scorers = [_scorers_of(each.record) for each in (first, part)]
    for name, was, now in _different_values(scorers[0], scorers[1]):
        if not name.startswith("judges") or all("judges" in each for each in scorers):  # a part may have judged nothing
            yield "config", f"{name} is {_value(now)} and not {_value(was)}"


def _scorers_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the evaluators, matchers and models that scored a part."""
    judges = record.get("judges") or {}
    kept = {key: judges.get(key) for key in ("engine", "generation", "embedding", "metrics")}
    return {
        "the evaluator": {str(each.get("name")): each.get("function") for each in (record.get("evaluators") or [])},
        "the matcher": {
            json_text([each.get("name"), each.get("media_type")]): each.get("function")
            for each in (record.get("matchers") or [])
        },
        **({"judges": kept} if judges else {}),
    }


def _value(value: object) -> str:
    return "none" if value is None else shortened(value if isinstance(value, str) else json_text(value), _LONGEST_VALUE)


def _identity(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a run.json that all parts of one run must share, by name."""
    limits = record.get("limits") or {}
    return {
        "dataset": (record.get("dataset") or {}).get("sha256"),
        **{key: record.get(key) for key in ("agent", "agent_source", "agent_config", DIGESTS)},
        "capture": {**CaptureConfig().model_dump(), **(record.get("capture") or {})},
        "selection": record.get("selection") or {},
        "repeats": record.get("repeats") or 1,
        "limits": {key: value for key, value in limits.items() if key not in _OF_MACHINE},
        "config": record.get("config"),
    }


def _different_values(before: Any, after: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield the values that differ, each by its dotted name; mappings are compared key by key.

    Example:
        >>> list(_different_values({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}))
        [('a.c', 2, 3)]
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{name}.{key}" if name else str(key)
            yield from _different_values(before.get(key), after.get(key), inner)
    elif before != after:
        yield name, before, after


# --- their answers ----------------------------------------------------------------------------------------------------


class Answers:
    """The responses of several journals, read without changing them.

    Within a journal the last record of a key counts, as in a run. If two journals answer the same sample, an answer
    overrides one that was interrupted, and a later answer overrides an earlier one that is among its failed attempts.
    Any other two answers are a conflict: a success counts, otherwise the first.
    """

    def __init__(self, texts_by_path: Mapping[Path, Mapping[str, str]]) -> None:
        self.journals = [Journal(path, texts=texts, writes=False) for path, texts in texts_by_path.items()]
        self.conflicts: dict[Key, tuple[int, int]] = {}
        self._numbers: dict[Key, int] = {}
        for number, journal in enumerate(self.journals):
            for key in journal:
                known = self._numbers.setdefault(key, number)
                if known != number and self._counts_instead(key, number, known):
                    self._numbers[key] = number

    def journal_of(self, key: Key) -> int | None:
        """Return the number of the journal whose response counts, or None."""
        return self._numbers.get(key)

    def summary(self, key: Key) -> Summary | None:
        """Return a summary of the response that counts, or None."""
        number = self._numbers.get(key)
        return None if number is None else self.journals[number].summary(key)

    def is_answered(self, key: Key) -> bool:
        """Return whether a sample need not be run again."""
        summary = self.summary(key)
        return summary is not None and not summary.is_interrupted

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the responses that count one at a time, journal by journal."""
        for number, journal in enumerate(self.journals):
            yield from journal.records(key for key, counting in self._numbers.items() if counting == number)

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the response that counts for a sample, or None."""
        number = self._numbers.get(key)
        return None if number is None else self.journals[number].read(key)

    def _counts_instead(self, key: Key, number: int, known: int) -> bool:
        """Return whether a response of another journal counts in place of the known one."""
        summaries = [self.journals[each].summary(key) for each in (known, number)]
        is_cut = [summary is not None and summary.is_interrupted for summary in summaries]
        if any(is_cut):
            return is_cut[0]
        before, after = (self.journals[each].read(key) or {} for each in (known, number))
        if before == after or _has_as_attempt(before, after):
            return False
        if _has_as_attempt(after, before):
            return True
        self.conflicts.setdefault(key, (known, number))
        return before.get("status") == "error" != after.get("status")


def _has_as_attempt(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a response has an earlier one among its failed attempts."""
    attempts = [(each.get("started_at"), each.get("error")) for each in later.get("failed_attempts") or ()]
    return (earlier.get("started_at"), earlier.get("error")) in attempts
