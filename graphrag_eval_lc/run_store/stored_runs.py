"""The runs in a folder, as their records tell of them; no result is read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.run_folder import AGGREGATES_FILE, RUN_FILE, read_run
from graphrag_eval_lc.run_folder.folder import read_aggregates

_UNKNOWN = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class StoredRun:
    """A run in a folder.

    Attributes:
        path: The run's folder.
        record: Its run.json.
    """

    path: Path
    record: Mapping[str, Any] = field(repr=False)

    @property
    def label(self) -> str:
        """The run's label, else the name of its folder."""
        return str(self.record.get("label") or self.path.name)

    @property
    def started(self) -> datetime | None:
        """When its first session began; None where run.json does not tell it."""
        try:
            time = datetime.fromisoformat(str(_mapping(self.record.get("times")).get("started")))
        except ValueError:
            return None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    @property
    def commit(self) -> str | None:
        """The commit of git from which the run was started; None where it is not known."""
        commit = _mapping(self.record.get("git")).get("commit")
        return None if commit is None else str(commit)

    @property
    def is_clean(self) -> bool | None:
        """Whether the work tree of that commit had no changes; None where it is not known."""
        clean = _mapping(self.record.get("git")).get("clean")
        return clean if isinstance(clean, bool) else None

    @property
    def dataset_digest(self) -> str | None:
        """The SHA-256 of the dataset."""
        digest = _mapping(self.record.get("dataset")).get("sha256")
        return None if digest is None else str(digest)

    @property
    def is_finished(self) -> bool:
        """Whether the run was scored to its end."""
        return "totals" in self.record and (self.path / AGGREGATES_FILE).is_file()

    @cached_property
    def aggregates(self) -> Mapping[str, Any]:
        """The run's aggregates; empty for one that was not scored.

        Raises:
            RunFolderError: The file cannot be read.
        """
        return read_aggregates(self.path)


def list_runs(folder: str | PathLike[str]) -> list[StoredRun]:
    """Return the runs in a folder and its folders, the oldest first.

    Args:
        folder: The folder; it may be that of a single run.

    Raises:
        RunFolderError: There is no such folder, or a run.json in it cannot be read.

    Example:
        >>> list_runs("runs/")  # doctest: +SKIP
        [StoredRun(path=PosixPath('runs/first')), StoredRun(path=PosixPath('runs/second'))]
    """
    root = Path(folder)
    if not root.is_dir():
        hint = "Give the folder in which runs are, such as runs/."
        raise RunFolderError("there is no such folder", path=root, hint=hint)
    runs = [StoredRun(path, record) for path in _folders(root) if (record := read_run(path)) is not None]
    return sorted(runs, key=lambda run: (run.started or _UNKNOWN, run.path))


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folders with a run.json; inside of one there are no others."""
    if (root / RUN_FILE).is_file():
        yield root
        return
    for path in sorted(root.iterdir()):
        if path.is_dir() and not path.name.startswith("."):
            yield from _folders(path)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
