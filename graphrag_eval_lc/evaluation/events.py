"""The events that a run reports to observers, and the observer that logs them to a file."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from graphrag_eval_lc.errors import RunFolderError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.texts import visible_json

EventKind = Literal[
    "workers_starting",
    "run_started",
    "attempt_started",
    "attempt_failed",
    "response_ended",
    "result_scored",
    "limit_changed",
    "run_stopping",
    "run_ended",
    "warning",
]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run.

    A *sample* is one question asked once, known by `question_id` and `repeat` (from 1; None if the run asks each
    question once). An *attempt* is one call of the agent for a sample, counted from 1.

    Kinds, each with its fields:

    - `workers_starting`: `message`. It comes when workers of a cluster are started, which takes some seconds.
    - `run_started`: `total` (samples of the run), `done` (samples that an earlier session answered), `errors` (how many
      of those failed), `max_concurrency`, `run_id`, `label`, `output_dir`, `message` (how many answers are reused, and
      from when; None if none is).
    - `attempt_started`: `question_id`, `repeat`, `attempt`.
    - `attempt_failed`: `question_id`, `repeat`, `attempt`, `error` (text), `retry_in_sec` (float; None if it is not
      retried), `elapsed_sec`.
    - `response_ended`: `question_id`, `repeat`, `status` ("success" or "error"), `error` (text or None), `attempts`,
      `elapsed_sec`, `total_tokens` (including failed attempts; None if unknown), `steps` (their number).
    - `result_scored`: `question_id`, `repeat`, `status`, `steps_score` (0 to 1, or None), `reason` (what is wrong; None
      if nothing is, or if it was not scored). It comes from a scoring thread.
    - `limit_changed`: `limit` (samples that may be in flight from now on), `reason`.
    - `run_stopping`: `reason` ("interrupted", "max_failures", "max_tokens", "max_time" or "max_cost"), `message`,
      `in_flight`.
    - `run_ended`: `total`, `done`, `errors`, `elapsed_sec`, `left_out` (samples that were not asked).
    - `warning`: `message`.

    Example:
        >>> RunEvent("warning", {"message": "The disk is nearly full."}).fields["message"]
        'The disk is nearly full.'
    """

    kind: EventKind
    fields: Mapping[str, Any]


Observer = Callable[[RunEvent], None]
"""A function that receives the events. They come from several threads: it must be thread-safe, and quick."""


def ignore_event(_: RunEvent) -> None:
    """Do nothing; the default observer."""


# Keys whose values hold no secrets: masking them would slow down a fast run.
_NAMES = frozenset({"question_id", "run_id", "status"})


class EventLog:
    """An observer that appends each event to a file: one JSON object a line, with `time`, `event` and its fields.

    Existing content of the file is kept. If the file can no longer be written, the log stops, the run continues, and
    `problem` says why. Secrets in texts are masked; question ids are not.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        self._lock = threading.RLock()  # re-entrant, since a signal handler may interrupt its holder
        try:
            # Unbuffered: each line is written at once and whole, even if the process is killed.
            self._file = self.path.open("ab", buffering=0)
        except OSError as problem:
            raise RunFolderError(
                f"the log file cannot be opened ({problem.strerror or problem})",
                path=self.path,
                hint="Give the path of a file in a folder that exists and that you may write to.",
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
        """Append one event, unless the log is closed."""
        record: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "event": event.kind,
            **{
                key: masked_text(value) if isinstance(value, str) and key not in _NAMES else value
                for key, value in event.fields.items()
            },
        }
        line = f"{visible_json(json_text(record))}\n".encode()  # visible, as the file may be a terminal
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


def _is_torn(path: Path) -> bool:
    """Return whether a file ends in the middle of a line, for example because the disk was full."""
    if not path.is_file() or not path.stat().st_size:
        return False
    try:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except OSError:  # no permission to read the file
        return False
