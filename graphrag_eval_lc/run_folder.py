"""The files of one run: what they are called, what format they have, and how they are written safely."""

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import yaml

from graphrag_eval_lc.errors import RunFolderError

FORMAT_VERSION = 1
RUN_FILE = "run.json"
RESPONSES_FILE = "responses.jsonl"
RESULTS_FILE = "results.jsonl"
AGGREGATES_FILE = "aggregates.yaml"

_FILES = (RUN_FILE, RESPONSES_FILE, RESULTS_FILE, AGGREGATES_FILE)


class RunFolder:
    """The folder of one run.

    Args:
        path: The folder; it is made where it is missing.
        overwrite: Whether the files of an earlier run in it are replaced.

    Raises:
        RunFolderError: The folder cannot be made or written, or holds a run already.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise _cannot_write(self.path, problem) from problem
        earlier = [name for name in _FILES if (self.path / name).exists()]
        if earlier and not overwrite:
            raise RunFolderError(
                "the folder holds a run already",
                path=self.path,
                mend="Give another folder, or pass --overwrite (overwrite=True) to replace that run.",
            )
        try:
            for name in earlier:
                (self.path / name).unlink()
        except OSError as problem:
            raise _cannot_write(self.path, problem) from problem

    def write_run(self, run: Mapping[str, Any]) -> None:
        """Write run.json: what ran, on what, and what it spent."""
        record = {"format_version": FORMAT_VERSION, **run}
        self._replace(RUN_FILE, [json_text(record, indent=2), "\n"])

    def write_responses(self, responses: Mapping[str, Mapping[str, Any]]) -> None:
        """Write responses.jsonl as a whole, for responses by question id that were recorded elsewhere."""
        lines = (json_text({"question_id": identifier, **response}) for identifier, response in responses.items())
        self._replace(RESPONSES_FILE, (f"{line}\n" for line in lines))

    def write_results(self, results: Iterable[Mapping[str, Any]]) -> None:
        """Write results.jsonl: one scored question a line, in the dataset's order."""
        self._replace(RESULTS_FILE, (f"{json_text(result)}\n" for result in results))

    def write_aggregates(self, aggregates: Mapping[str, Any]) -> None:
        """Write aggregates.yaml."""
        self._replace(AGGREGATES_FILE, [yaml_text(aggregates)])

    def journal(self) -> "Journal":
        """Open responses.jsonl to add a line as each response ends."""
        return Journal(self.path / RESPONSES_FILE)

    def _replace(self, name: str, parts: Iterable[str]) -> None:
        _write(self.path / name, parts)


class Journal:
    """The responses of a run, one line each, given to the system as soon as it is there.

    Raises:
        RunFolderError: The file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: IO[str] = path.open("a", encoding="utf-8", newline="\n")
        except OSError as problem:
            raise _cannot_write(path, problem) from problem

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as problem:
            raise _cannot_write(self._path, problem) from problem

    def add(self, response: Mapping[str, Any]) -> None:
        """Add one response."""
        try:
            self._file.write(f"{json_text(response)}\n")
            self._file.flush()
        except OSError as problem:
            raise _cannot_write(self._path, problem) from problem


def write_yaml(path: Path, value: Any, *, overwrite: bool = False) -> None:
    """Write a YAML file as a whole.

    Raises:
        RunFolderError: The file cannot be written, or exists and may not be replaced.
    """
    if path.exists() and not overwrite:
        raise RunFolderError("the file exists already", path=path, mend="Give another one, or pass --overwrite.")
    _write(path, [yaml_text(value)])


def _write(target: Path, parts: Iterable[str]) -> None:
    """Write a file beside its place and move it there, so that a reader never sees half of it."""
    partial = target.with_name(f"{target.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as problem:
        raise _cannot_write(target, problem) from problem


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Write a record as JSON that every reader takes.

    Letters stay readable; lone surrogates are escaped; NaN and infinities become the strings "NaN", "Infinity" and
    "-Infinity"; what JSON has no type for is written as its text.

    Example:
        >>> json_text({"ratio": float("nan"), "name": "Ålesund"})
        '{"ratio": "NaN", "name": "Ålesund"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=str)
    except (ValueError, TypeError):  # NaN, or a key that is no text
        text = json.dumps(_with_finite_numbers(value), ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(_with_finite_numbers(value), indent=indent, default=str)
    return text


def _with_finite_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): _with_finite_numbers(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_finite_numbers(item) for item in value]
    return value


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper, which writes equal parts out each time."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class _PlainDumper(yaml.SafeDumper):
    """The same in Python, which writes every text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write queries and other texts of several lines as blocks, which people can read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
_PlainDumper.add_representer(str, _represent_text)


def yaml_text(value: Any) -> str:
    """Write a value as YAML, in the order of its keys; lone surrogates are escaped."""
    try:
        return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    except UnicodeEncodeError:  # libyaml takes UTF-8 only
        return str(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=False, width=120))


def _cannot_write(path: Path, problem: OSError) -> RunFolderError:
    return RunFolderError(
        f"cannot be written ({problem.strerror or problem})",
        path=path,
        mend="Check that the folder exists, that you may write to it, and that the disk is not full.",
    )
