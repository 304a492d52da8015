"""The responses of several journals as one: which of them counts for each sample, read one at a time."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from graphrag_eval_lc.errors import RunFolderError, cannot_read
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.records import Key, is_error
from graphrag_eval_lc.run_folder.journal import JournalLine, is_to, journal_lines, key_of, record_in


class _Place(NamedTuple):
    """Where a response is: the number of its journal, and the offset there."""

    journal: int
    offset: int
    is_interrupted: bool
    is_error: bool


class Answers:
    """The responses of several journals, which are not changed; memory holds their places, not the responses.

    The last record of a key in a journal counts, as in a run. Of two journals the later answer counts if it has the
    earlier one among its failed attempts, and any answer instead of one that was cut off. Other answers to one sample
    are a conflict, of which a success counts, else the first.

    Args:
        journals: The files, in the order in which their responses are given; a missing one has none.
        texts: The texts of questions, by their ids: a response to another text does not count.

    Attributes:
        conflicts: The keys with two answers, each with the numbers of the two journals.
        unreadable: The lines that hold no response, each with the number of its journal.

    Raises:
        RunFolderError: A file cannot be read.
    """

    def __init__(self, journals: Sequence[Path], texts: Mapping[str, str] | None = None) -> None:
        self._journals = journals
        self._texts = {} if texts is None else texts
        self._places: dict[Key, _Place] = {}
        self._open: tuple[int, BinaryIO] | None = None
        self.conflicts: dict[Key, tuple[int, int]] = {}
        self.unreadable: list[tuple[int, JournalLine]] = []
        for number, path in enumerate(journals):
            if path.exists():
                self._add(number, path)

    def __contains__(self, key: Key) -> bool:
        return key in self._places

    def journal_of(self, key: Key) -> int | None:
        """Return the number of the journal whose response counts; None if there is none."""
        place = self._places.get(key)
        return None if place is None else place.journal

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
        yield from map(self._read, sorted(self._places.values()))

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the response that counts for a sample; None if there is none.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        place = self._places.get(key)
        return None if place is None else self._read(place)

    def close(self) -> None:
        """Close the file that was read last; the next use opens it again."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def _add(self, number: int, path: Path) -> None:
        own: dict[Key, _Place] = {}
        for line in journal_lines(path):
            key = None if line.record is None else key_of(line.record)
            if key is None or line.record is None:
                self.unreadable.append((number, line))
            elif not is_to(line.record, self._texts):
                own.pop(key, None)
            else:
                own[key] = _Place(number, line.offset, bool(line.record.get("interrupted")), is_error(line.record))
        for key, place in own.items():
            known = self._places.setdefault(key, place)
            if known is not place and self._counts_instead(key, place, known):
                self._places[key] = place

    def _counts_instead(self, key: Key, place: _Place, known: _Place) -> bool:
        """Return whether a response of another journal counts in place of the known one."""
        if known.is_interrupted or place.is_interrupted:
            return known.is_interrupted
        before, after = self._read(known), self._read(place)
        if before == after or _has_as_attempt(before, after):
            return False
        if _has_as_attempt(after, before):
            return True
        self.conflicts.setdefault(key, (known.journal, place.journal))
        return known.is_error and not place.is_error

    def _read(self, place: _Place) -> dict[str, Any]:
        path = self._journals[place.journal]
        try:
            if self._open is None or self._open[0] != place.journal:
                self.close()
                self._open = place.journal, open_to_read(path)
            file = self._open[1]
            file.seek(place.offset)
            record = record_in(file.readline())
        except OSError as problem:
            raise cannot_read(path, problem) from problem
        if record is None:
            what = f"no record can be read at byte {place.offset}"
            raise RunFolderError(what, path=path, hint="The file was changed meanwhile: merge again.")
        return record


def _has_as_attempt(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a response has an earlier one among its failed attempts."""
    attempts = [(each.get("started_at"), each.get("error")) for each in later.get("failed_attempts") or ()]
    return (earlier.get("started_at"), earlier.get("error")) in attempts
