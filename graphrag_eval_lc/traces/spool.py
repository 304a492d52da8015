"""Calls in any order go in, trace by trace they come out; many are kept on disk, so that little memory is needed."""

import dataclasses
import pickle
import sqlite3
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from graphrag_eval_lc.errors import ResponsesError
from graphrag_eval_lc.json_values import json_text
from graphrag_eval_lc.traces.traced_calls import TracedCall

_CACHE_KIB = 32 * 1024


class Spool:
    """Calls in any order, given back trace by trace.

    They are held in a temporary database of SQLite's own, which goes to the folder for temporary files when it is
    larger than its cache, and away when the spool is closed.

    Example:
        >>> with Spool() as spool:
        ...     for trace, started in (("b", 3.0), ("a", 1.0), ("b", 2.0)):
        ...         spool.add(
        ...             TracedCall(
        ...                 trace_id=trace, id=str(started), parent_id=None, kind="tool", name="search", started=started
        ...             )
        ...         )
        ...     print([[call.id for call in calls] for calls in spool.traces()])
        [['1.0'], ['2.0', '3.0']]
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._run(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._run("PRAGMA journal_mode = OFF")
        self._run("PRAGMA synchronous = OFF")
        self._run("CREATE TABLE calls (trace BLOB, started REAL, call BLOB)")
        self._run("BEGIN")

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def add(self, call: TracedCall) -> None:
        """Keep a call.

        Raises:
            ResponsesError: The disk is full.
        """
        try:
            kept = pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
        except RecursionError:  # values that are nested deeply stay as JSON
            kept = pickle.dumps(_flat(call), pickle.HIGHEST_PROTOCOL)
        self._run("INSERT INTO calls VALUES (?, ?, ?)", _key(call.trace_id), call.started, kept)

    def traces(self) -> Iterator[list[TracedCall]]:
        """Yield the calls of each trace in the order of their starts; the trace that began first comes first."""
        self._run("CREATE INDEX by_trace ON calls (trace, started)")
        for (trace,) in self._run("SELECT trace FROM calls GROUP BY trace ORDER BY min(started), min(rowid)"):
            found = self._run("SELECT call FROM calls WHERE trace = ? ORDER BY started, rowid", trace)
            yield [pickle.loads(kept) for (kept,) in found]  # what this process has written itself

    def _run(self, statement: str, *values: Any) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as problem:
            raise ResponsesError(
                f"the traces cannot be put together: {problem}",
                hint="Free space in the folder for temporary files, or name another one in TMPDIR.",
            ) from problem


def _key(trace_id: str) -> bytes:
    """Return an id as SQLite takes any, lone surrogates too."""
    return trace_id.encode("utf-8", "surrogatepass")


def _flat(call: TracedCall) -> TracedCall:
    """Return a call whose nested values are JSON texts."""
    return dataclasses.replace(
        call,
        args=json_text(call.args),
        output=json_text(call.output),
        metadata={key: json_text(value) for key, value in call.metadata.items()},
        asked=[dataclasses.replace(asked, args=json_text(asked.args)) for asked in call.asked],
    )
