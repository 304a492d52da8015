"""The results of a run: written as they come, and put into the dataset's order at the end; none is held in memory."""

from array import array
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import RunFolderError, cannot_read, cannot_write, removed
from graphrag_eval_lc.files.glued_records import pieces
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line, replace_file
from graphrag_eval_lc.json_values import parse_json

_ABSENT = -1


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
    """Read a file of results line by line, without the blank ones; of those glued on one line each.

    Raises:
        RunFolderError: The file cannot be read, or a line is no result.
    """
    try:
        with open_to_read(Path(path)) as file:
            for number, line in enumerate(file, start=1):
                if not line.isspace():
                    yield from _results_in(line, path, number)
    except OSError as problem:
        raise cannot_read(path, problem) from problem


def _results_in(line: bytes, path: str | PathLike[str], number: int) -> list[dict[str, Any]]:
    try:
        return [_result_in(line)]
    except (ValueError, RecursionError) as problem:
        parts = list(pieces(line))
        if len(parts) < 2 or not all(part.is_json for part in parts):
            raise _no_result(path, number) from problem
    try:
        return [_result_in(line[part.start : part.end]) for part in parts]
    except (ValueError, RecursionError) as problem:
        raise _no_result(path, number) from problem


def _result_in(text: bytes) -> dict[str, Any]:
    result = parse_json(text)
    if not isinstance(result, dict) or not _has_shape(result):
        raise ValueError("no result")
    return result


def _has_shape(result: Mapping[str, Any]) -> bool:
    """Return whether steps and diagnosis are what scoring writes, and readers of results rely on."""
    steps, groups = result.get("actual_steps") or (), result.get("steps_diagnosis") or ()
    try:
        return all(isinstance(step.get("name", ""), str) for step in steps) and all(
            isinstance(each["score"], int | float) for group in groups for each in group
        )
    except (AttributeError, KeyError, TypeError):
        return False


def _no_result(path: str | PathLike[str], number: int) -> RunFolderError:
    return RunFolderError(
        "this line is no result", path=path, line=number, hint="Score the responses of this run again."
    )
