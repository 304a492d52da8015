"""The results of a run: written as they come, and put into the dataset's order at the end; none is held in memory."""

from array import array
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Final

from graphrag_eval_lc.errors import RunFolderError, cannot_read, cannot_write, removed
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line, replace_file
from graphrag_eval_lc.json_values import parse_json

_ABSENT = -1
# The keys of results with steps, how deep their lists are nested, and what each step must be.
_STEPS: Final[tuple[tuple[str, int, Callable[[Mapping[str, Any]], bool]], ...]] = (
    ("actual_steps", 1, lambda step: isinstance(step.get("name", ""), str)),
    ("reference_steps", 2, lambda step: True),
    ("steps_diagnosis", 2, lambda step: isinstance(step.get("score"), int | float)),
)


def collecting_file(results: Path) -> Path:
    """Return the file that holds results in the order in which they come."""
    return results.with_name(f"{results.name}.partial")


class ResultsFile:
    """A writer of results.jsonl; for one thread at a time.

    Results are written to ``results.jsonl.partial`` as they are added; ``finish`` puts them in order. Without
    ``finish`` that file stays until results are collected again.

    Args:
        path: The file results.jsonl; only ``finish`` replaces that of an earlier run.
        is_private: Whether it is for its owner alone (0600), whatever the umask.

    Raises:
        RunFolderError: The file cannot be written.

    Example:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name, "results.jsonl")
        >>> with ResultsFile(path) as results:
        ...     results.add(1, {"question_id": "q2"})
        ...     results.add(0, {"question_id": "q1"})
        ...     results.finish()
        >>> [result["question_id"] for result in iter_results(path)]
        ['q1', 'q2']
        >>> folder.cleanup()
    """

    def __init__(self, path: Path, *, is_private: bool = True) -> None:
        self._path = path
        self._is_private = is_private
        self._collecting = collecting_file(path)
        self._file = AppendFile(self._collecting, empty=True, is_private=is_private)
        self._offsets = array("q")
        self._lengths = array("q")

    def __enter__(self) -> "ResultsFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, position: int, result: Mapping[str, Any]) -> None:
        """Add one result; a second one at the same position replaces the first.

        Args:
            position: Its place in the dataset's order, from 0.
            result: The result.

        Raises:
            RunFolderError: It cannot be written, or the file was removed.
        """
        line = json_line(result)
        offset = self._file.append(line)
        missing = position + 1 - len(self._offsets)
        if missing > 0:
            self._offsets.extend([_ABSENT] * missing)
            self._lengths.extend([0] * missing)
        self._offsets[position], self._lengths[position] = offset, len(line)

    def finish(self) -> None:
        """Write results.jsonl in order; positions without a result are left out.

        Raises:
            RunFolderError: It cannot be written; an earlier results.jsonl and the collected results stay.
        """
        self.close()
        replace_file(self._path, self._lines(), is_private=self._is_private)
        self.discard()

    def discard(self) -> None:
        """Remove the collected results; results.jsonl stays as it is.

        Raises:
            RunFolderError: They cannot be removed.
        """
        self.close()
        try:
            self._collecting.unlink(missing_ok=True)
        except OSError as problem:
            raise cannot_write(self._collecting, problem) from problem

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        self._file.close()

    def _lines(self) -> Iterator[bytes]:
        with open_to_read(self._collecting) as file:
            for offset, length in zip(self._offsets, self._lengths, strict=True):
                if offset != _ABSENT:
                    file.seek(offset)
                    line = file.read(length)
                    if len(line) < length:
                        raise removed(self._collecting)
                    yield line


def iter_results(path: str | PathLike[str]) -> Iterator[dict[str, Any]]:
    """Read a file of results line by line, without the blank ones.

    Raises:
        RunFolderError: The file cannot be read, or a line is not a result.
    """
    try:
        with open_to_read(Path(path)) as file:
            for number, line in enumerate(file, start=1):
                if line.isspace():
                    continue
                try:
                    result = parse_json(line)
                except (ValueError, RecursionError) as problem:
                    raise _no_result(path, number) from problem
                if not isinstance(result, dict):
                    raise _no_result(path, number)
                if key := wrong_steps(result):
                    raise _no_result(path, number, result.get("question_id"), key)
                yield result
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def wrong_steps(result: Mapping[str, Any]) -> str | None:
    """Return the key of steps that are not what scoring writes, on which readers of results rely; None if all are."""
    for key, depth, is_right in _STEPS:
        found = result.get(key)
        if found and not _is_nested(found, depth, is_right):
            return key
    return None


def _is_nested(value: object, depth: int, is_right: Callable[[Mapping[str, Any]], bool]) -> bool:
    """Return whether a value is a list of right mappings, nested ``depth`` deep."""
    if depth == 0:
        return isinstance(value, dict | Mapping) and is_right(value)  # a dict is known at once
    return isinstance(value, list | tuple) and all(_is_nested(each, depth - 1, is_right) for each in value)


def _no_result(
    path: str | PathLike[str], number: int, question_id: object = None, key: str | None = None
) -> RunFolderError:
    what = "this line is not a result" if key is None else "a result with steps of the wrong type"
    hint = "Score the responses of this run again."
    named = None if question_id is None else str(question_id)
    return RunFolderError(what, path=path, line=number, question_id=named, key=key, hint=hint)
