"""Writes files so that nothing is lost: appends whole lines, and replaces whole files."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from graphrag_eval_lc.errors import RunFolderError, cannot_write, no_path, removed
from graphrag_eval_lc.files.opening import is_of_run, is_private_beside, open_descriptor, refuse_odd
from graphrag_eval_lc.json_values import json_text

UNFINISHED: Final = ".new"
"""A file that is being replaced has this ending until it is whole."""

_APPEND_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


class AppendFile:
    """A file opened for appending, created if it is missing; not thread-safe.

    All methods raise a RunFolderError if something is wrong with the file. ``descriptor`` is -1 after closing.
    """

    def __init__(self, path: Path, *, empty: bool = False, is_private: bool = True) -> None:
        self._path = path
        self._torn = False
        self.descriptor = -1
        try:
            self.descriptor = open_descriptor(path, _APPEND_FLAGS, is_private=is_private)
            if empty:
                os.ftruncate(self.descriptor, 0)
            self.length = os.fstat(self.descriptor).st_size
        except OSError as problem:
            raise cannot_write(path, problem) from problem

    def append(self, line: bytes) -> int:
        """Write one line, and return its offset in bytes; if writing fails, no part of the line remains."""
        start = self.length
        try:
            if os.fstat(self.descriptor).st_nlink == 0 and not self._is_in_place():
                raise removed(self._path)
            if self._torn:
                self._cut_off()
            rest = memoryview(line)
            try:
                while rest:
                    rest = rest[os.write(self.descriptor, rest) :]
                self.length += len(line)
            except BaseException:
                self._torn = True
                with contextlib.suppress(OSError):
                    self._cut_off()
                raise
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem
        return start

    def cut_off(self, length: int) -> None:
        """Truncate the file to a length in bytes, for example to remove a line that a kill cut off."""
        try:
            os.ftruncate(self.descriptor, length)
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem
        self.length = length

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError as problem:
                raise cannot_write(self._path, problem) from problem

    def _cut_off(self) -> None:
        """Remove the remains of a failed write; if that fails too, the next write removes them first."""
        os.ftruncate(self.descriptor, self.length)
        self._torn = False

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the file; needed on file systems that do not count links."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self._path.lstat())
        except FileNotFoundError:
            return False


# Errors of file systems that cannot sync, such as a mounted bucket.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

_sync_data = getattr(os, "fdatasync", os.fsync)


def replace_file(target: Path, parts: Iterable[bytes], *, is_private: bool | None = None) -> None:
    """Replace a file atomically: write a temporary file, sync it, and rename it; on failure the old content stays.

    If ``is_private``, only its owner can read it (0600). If None, it is as private as the run.json of its run; outside
    of runs, the mode follows the umask.
    """
    new_file = target.with_name(f"{target.name}{UNFINISHED}")
    if is_private is not None or is_of_run(target):
        refuse_odd(target, new_file)
    try:
        is_private_file = is_private_beside(target) if is_private is None else is_private
        new_file.unlink(missing_ok=True)  # left by a killed run; it may have another mode
        try:
            descriptor = open_descriptor(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, is_private=is_private_file)
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(parts)
                file.flush()
                sync(file.fileno())
            new_file.replace(target)
        except BaseException:
            with contextlib.suppress(OSError):
                new_file.unlink()
            raise
    except OSError as problem:
        raise cannot_write(target, problem, is_output=is_private is None) from problem
    except ValueError as problem:
        if "\0" in str(target):
            raise no_path(target) from problem
        raise
    sync_folder(target.parent)


def sync(descriptor: int) -> None:
    """Wait until everything written to an open file is on the disk."""
    try:
        _sync_data(descriptor)
    except OSError as problem:
        if problem.errno not in _CANNOT_SYNC:
            raise


def sync_folder(folder: Path) -> None:
    """Sync the names of new files to the disk, if the system supports it (Windows does not)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_data(path: Path, value: Any, *, overwrite: bool = False) -> None:
    """Write a file as a whole: JSON if its name ends in ``.json``, else YAML."""
    refuse_existing(path, overwrite=overwrite)
    text = json_text(value, indent=2) + "\n" if path.suffix == ".json" else yaml_text(value)
    replace_file(path, [text.encode("utf-8", "surrogatepass")])


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Raise if a file exists and may not be replaced. Call this before slow work whose result is written at the end."""
    if path.exists() and not overwrite:
        raise RunFolderError("the file exists already", path=path, hint="Give another one, or pass --overwrite.")


def json_line(value: Any) -> bytes:
    """Return a record as one line of a JSON Lines file, in UTF-8 and with its newline."""
    return json_text(value).encode("utf-8") + b"\n"


class _NoAliases:
    def ignore_aliases(self, data: object) -> bool:
        """Write repeated parts again, in place of aliases."""
        return True


class _Dumper(_NoAliases, getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper, in C if available."""


class _PlainDumper(_NoAliases, yaml.SafeDumper):
    """The same dumper in Python, which can also write lone surrogates."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write texts of several lines, such as queries, as readable blocks."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
_PlainDumper.add_representer(str, _represent_text)


def yaml_text(value: Any) -> str:
    """Write a value as YAML, in the order of its keys; lone surrogates are escaped."""
    try:
        return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    except UnicodeEncodeError:  # libyaml accepts only UTF-8
        return str(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=False, width=120))


_AT_ONCE = 100  # how many items of a mapping are dumped together
_DOCUMENT_ENDS = tuple(f"{line_break}...\n" for line_break in "\n\x85\u2028\u2029")


def yaml_pieces(value: Mapping[str, Any]) -> Iterator[str]:
    r"""Write a mapping of mappings as ``yaml_text`` does, but a large one piece by piece.

    PyYAML builds nodes for everything that it is given, which need many times the memory of the text.

    Example:
        >>> "".join(yaml_pieces({"a": {"b": 1, "c": 2}, "d": 3}))
        'a:\n  b: 1\n  c: 2\nd: 3\n'
    """
    if sum(len(item) for item in value.values() if isinstance(item, Mapping)) < _AT_ONCE:
        yield yaml_text(value)
        return
    for key, item in value.items():
        heading, is_plain, _ = yaml_text({key: {"": ""}}).partition("  '': ''\n")
        if isinstance(item, Mapping) and len(item) > 1 and is_plain:
            yield heading
            parts: Iterable[str] = (yaml_text({key: {name: each}}).removeprefix(heading) for name, each in item.items())
        else:
            parts = [yaml_text({key: item})]
        for part in parts:  # after a text that ends in line breaks PyYAML ends the document, but more follows
            yield part.removesuffix("...\n") if part.endswith(_DOCUMENT_ENDS) else part
