"""The responses of several journals as one: which of them counts for each sample, read one at a time."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from graphrag_eval_lc.benchmark.attempt_records import attempts_in
from graphrag_eval_lc.errors import RunFolderError, cannot_read
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.records import Key, is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.run_folder.journal import JournalLine, journal_lines, key_of, record_in

_OF_ATTEMPT = ("started_at", ELAPSED_SEC, "error")


class _Place(NamedTuple):
    """Where a response is: the number of its journal, and the offset there."""

    journal: int
    offset: int
    is_interrupted: bool
    is_error: bool


class Answers:
    """The responses of several journals, which are not changed; memory holds their places, not the responses.

    The last record of a key in a journal counts, as in a run. Of two journals the later answer counts where it knows
    of the earlier one as a failed attempt; an answer goes before one that was cut off, whose attempts it gets. Other
    answers to one sample are a conflict, of which a success counts, else the first.

    Args:
        journals: The files, in the order in which their responses are given; one that is missing has none.

    Attributes:
        conflicts: The keys with two answers, each with the numbers of the two journals.
        unreadable: The lines that hold no response, each with the number of its journal.

    Raises:
        RunFolderError: A file cannot be read.
    """

    def __init__(self, journals: Sequence[Path]) -> None:
        self._journals = journals
        self._places: dict[Key, _Place] = {}
        self._joined: dict[Key, dict[str, Any]] = {}
        self._open: tuple[int, BinaryIO] | None = None
        self.conflicts: dict[Key, tuple[int, int]] = {}
        self.unreadable: list[tuple[int, JournalLine]] = []
        for number, path in enumerate(journals):
            if path.exists():
                self._take(number, path)

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def journal_of(self, key: Key) -> int | None:
        """Return the number of the journal whose response counts as it stands there; None if there is none."""
        place = self._places.get(key)
        return None if place is None or key in self._joined else place.journal

    def is_answered(self, key: Key) -> bool:
        """Return whether a sample needs not be asked again."""
        place = self._places.get(key)
        return place is not None and not place.is_interrupted

    def is_error(self, key: Key) -> bool:
        """Return whether the agent failed."""
        place = self._places.get(key)
        return place is not None and place.is_error

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the responses that count one at a time, journal by journal.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        for key, place in sorted(self._places.items(), key=lambda item: item[1]):
            yield self._joined.get(key) or self._read(place)

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the response that counts for a sample; None where there is none.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        place = self._places.get(key)
        return None if place is None else self._joined.get(key) or self._read(place)

    def close(self) -> None:
        """Close the file that was read last; the next use opens it again."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _take(self, number: int, path: Path) -> None:
        own: dict[Key, _Place] = {}
        for line in journal_lines(path):
            key = None if line.record is None else key_of(line.record)
            if key is None or line.record is None:
                self.unreadable.append((number, line._replace(record=None)))
            elif line.record.get("superseded"):  # its question has another text now
                own.pop(key, None)
            else:
                own[key] = _Place(number, line.offset, bool(line.record.get("interrupted")), is_error(line.record))
        for key, place in own.items():
            self._settle(key, place)

    def _settle(self, key: Key, place: _Place) -> None:
        """Take a response of another journal, or leave it."""
        known = self._places.get(key)
        if known is None:
            self._places[key] = place
            return
        before, after = self._joined.get(key) or self._read(known), self._read(place)
        if before == after or _knows(before, after):
            return
        if _knows(after, before):
            self._joined.pop(key, None)
            self._places[key] = place
        elif known.is_interrupted:  # both may be: then what both spent is kept
            self._joined[key] = _with_attempts(after, before)
            self._places[key] = place
        elif place.is_interrupted:
            self._joined[key] = _with_attempts(before, after)
        else:
            self.conflicts.setdefault(key, (known.journal, place.journal))
            if known.is_error and not place.is_error:
                self._joined.pop(key, None)
                self._places[key] = place

    def _read(self, place: _Place) -> dict[str, Any]:
        number, offset = place.journal, place.offset
        path = self._journals[number]
        try:
            if self._open is None or self._open[0] != number:
                self.close()
                self._open = number, open_to_read(path)
            file = self._open[1]
            file.seek(offset)
            record = record_in(file.readline())
        except OSError as problem:
            raise cannot_read(path, problem) from problem
        if record is None:
            raise RunFolderError(
                f"no record can be read at byte {offset}",
                path=path,
                hint="The file was changed meanwhile: merge again.",
            )
        return record


def _knows(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a response has an earlier one, with all attempts of that, among its failed attempts."""
    known, attempts = list(map(_mark, later.get("failed_attempts") or ())), list(map(_mark, attempts_in(earlier)))
    return known[: len(attempts)] == attempts


def _mark(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(attempt.get(key) for key in _OF_ATTEMPT)


def _with_attempts(response: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with the attempts of one that was cut off, which were paid too."""
    return {**response, "failed_attempts": [*attempts_in(other), *(response.get("failed_attempts") or ())]}
