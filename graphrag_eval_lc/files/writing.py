"""Writing files so that nothing is lost: lines are appended whole, files replaced whole."""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from graphrag_eval_lc.errors import RunFolderError, cannot_write, no_path, removed
from graphrag_eval_lc.files.opening import is_of_run, is_private_beside, open_descriptor, refuse_odd
from graphrag_eval_lc.json_values import json_text

_APPEND_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND


class AppendFile:
    """A file open for appending, made if it is missing; not safe for several threads at once.

    What is wrong with the file is a RunFolderError, here and in each method. ``descriptor`` is -1 once it is closed.
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
        """Write one line, and return its offset in bytes; if it cannot be written, nothing of it stays."""
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
        """Remove what follows some bytes, such as a line that a kill has cut."""
        try:
            os.ftruncate(self.descriptor, length)
        except OSError as problem:
            raise cannot_write(self._path, problem) from problem
        self.length = length

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            try:
                os.close(descriptor)
            except OSError as problem:
                raise cannot_write(self._path, problem) from problem

    def _cut_off(self) -> None:
        """Cut off the rest of a failed write; if that fails too, the next write does it first."""
        os.ftruncate(self.descriptor, self.length)
        self._torn = False

    def _is_in_place(self) -> bool:
        """Return whether the path still leads to the file; asked as some file systems count no links."""
        try:
            return os.path.samestat(os.fstat(self.descriptor), self._path.lstat())
        except FileNotFoundError:
            return False


# Of file systems without a sync, such as a mounted bucket.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

_sync_data = getattr(os, "fdatasync", os.fsync)


def unfinished(target: Path) -> Path:
    """Return the path next to ``target`` at which its new content is written first."""
    return target.with_name(f"{target.name}.new")


def replace_file(target: Path, parts: Iterable[bytes], *, is_private: bool | None = None) -> None:
    """Write a file next to its place, sync it, and move it there; if that fails, the old content stays.

    It is for its owner alone (0600) if it ``is_private``; None: in the folder of a run as its run.json, elsewhere as
    the umask says.
    """
    if is_private is not None or is_of_run(target):
        refuse_odd(target)
        refuse_odd(unfinished(target))
    try:
        _replace(target, parts, is_private_beside(target) if is_private is None else is_private)
    except OSError as problem:
        raise cannot_write(target, problem, is_output=is_private is None) from problem
    except ValueError as problem:
        if "\0" in str(target):
            raise no_path(target) from problem
        raise
    sync_folder(target.parent)


def _replace(target: Path, parts: Iterable[bytes], is_private: bool) -> None:
    new_file = unfinished(target)
    new_file.unlink(missing_ok=True)  # of a run that was killed; it may have another mode
    try:
        descriptor = open_descriptor(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, is_private=is_private)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(parts)
            file.flush()
            sync(file.fileno())
        new_file.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            new_file.unlink()
        raise


def sync(descriptor: int) -> None:
    """Wait until what was written to an open file is on the disk."""
    try:
        _sync_data(descriptor)
    except OSError as problem:
        if problem.errno not in _CANNOT_SYNC:
            raise


def sync_folder(folder: Path) -> None:
    """Sync the names of new files to the disk, if the system can (Windows cannot)."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_data(path: Path, value: Any, *, overwrite: bool = False) -> None:
    """Write a file as a whole: JSON where its name ends in ``.json``, else YAML."""
    refuse_existing(path, overwrite=overwrite)
    text = json_text(value, indent=2) + "\n" if path.suffix == ".json" else yaml_text(value)
    replace_file(path, [text.encode("utf-8", "surrogatepass")])


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Refuse an existing file, unless it may be replaced; before slow work whose result is written at the end."""
    if path.exists() and not overwrite:
        raise RunFolderError("the file exists already", path=path, hint="Give another one, or pass --overwrite.")


def json_line(value: Any) -> bytes:
    """Return a record as one line of a JSON Lines file, in UTF-8 and with its newline."""
    return json_text(value).encode("utf-8") + b"\n"


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """PyYAML's safe dumper, without aliases for repeated parts."""

    def ignore_aliases(self, data: object) -> bool:
        return True


class _PlainDumper(yaml.SafeDumper):
    """The same in Python, which also writes lone surrogates."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Write texts of several lines, such as queries, as blocks, which people can read."""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represent_text)
_PlainDumper.add_representer(str, _represent_text)


def yaml_text(value: Any) -> str:
    """Write a value as YAML, in the order of its keys; lone surrogates are escaped."""
    try:
        return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))
    except UnicodeEncodeError:  # libyaml takes UTF-8 only
        return str(yaml.dump(value, Dumper=_PlainDumper, sort_keys=False, allow_unicode=False, width=120))


_AT_ONCE = 100  # items of a mapping of mappings
_DOCUMENT_ENDS = tuple(f"{line_break}...\n" for line_break in "\n\x85\u2028\u2029")


def yaml_pieces(value: Mapping[str, Any]) -> Iterator[str]:
    r"""Write a mapping of mappings as ``yaml_text`` does, a large one piece by piece.

    PyYAML makes nodes of all that it is given, which take many times the text.

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
        for part in parts:  # a text that ends in line breaks ends the document, but more follows
            yield part.removesuffix("...\n") if part.endswith(_DOCUMENT_ENDS) else part
