"""The events of a run as a file of JSON lines, for programs and for the morning after."""

import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.runner.events import RunEvent

# Names and fixed words hold no secrets, and masking each of them would slow a quick run down.
_NAMES = frozenset({"question_id", "run_id", "status"})


class EventLog:
    """An observer that adds each event to a file: one JSON object a line, with `time`, `event` and the event's fields.

    A log that cannot be written later on does not end the run: it stops, and `problem` says why. Secrets in texts are
    masked; question ids stay as they are.

    Args:
        path: The file; what stands in it is kept.

    Attributes:
        problem: Why the log is not complete; None where it is.

    Raises:
        RunFolderError: The file cannot be opened.

    Example:
        >>> with EventLog("events.jsonl") as log:  # doctest: +SKIP
        ...     log(RunEvent("warning", {"message": "The disk is nearly full."}))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        try:
            # Unbuffered: each line goes to the system at once and whole, even where the process is killed.
            self._file = self.path.open("ab", buffering=0)
        except OSError as problem:
            raise RunFolderError(
                f"the log file cannot be opened ({problem.strerror or problem})",
                path=self.path,
                mend="Give the path of a file in a folder that exists and that you may write to.",
            ) from problem
        self._separator = b"\n" if _is_torn(self.path) else b""

    def __enter__(self) -> "EventLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            try:
                self._file.close()
            except OSError as problem:
                self._stop(problem)

    def __call__(self, event: RunEvent) -> None:
        """Add one event; after the log is closed, nothing."""
        record: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event.kind,
            **{key: _masked(key, value) for key, value in event.fields.items()},
        }
        line = f"{json_text(record)}\n".encode()
        with self._lock:
            if self.problem is None and not self._file.closed:
                self._write(self._separator + line)
                self._separator = b""

    def _write(self, line: bytes) -> None:
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError as problem:
            self._stop(problem)

    def _stop(self, problem: OSError) -> None:
        self.problem = self.problem or (
            f"The log file {self.path} is not complete: it cannot be written ({problem.strerror or problem})."
        )


def _masked(key: str, value: Any) -> Any:
    return masked_text(value) if isinstance(value, str) and key not in _NAMES else value


def _is_torn(path: Path) -> bool:
    """Give whether a file ends inside a line, as where a disk was full; the next line then begins a new one."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # a file that may be written but not read
        return False
