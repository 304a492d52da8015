"""The responses of several journals as one: which of them counts for each sample, read one at a time."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from graphrag_eval_lc.benchmark.attempt_records import attempts_in
from graphrag_eval_lc.errors import RunFolderError, cannot_read
from graphrag_eval_lc.files.opening import open_to_read
from graphrag_eval_lc.records import Key, is_error
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC
from graphrag_eval_lc.run_folder.journal import JournalLine, journal_lines, key_of, record_in

# A place is a whole number: the journal, the offset there, and two flags.
_INTERRUPTED, _ERROR = 1, 2
_FLAG_BITS, _OFFSET_BITS = 2, 48
_NOWHERE = -1
_OF_ATTEMPT = ("started_at", ELAPSED_SEC, "error")


class Answers:
    """The responses of several journals, which are not changed; memory holds their places, not the responses.

    The last record of a key in a journal counts, as in a run. Of two journals the later answer counts where it knows
    of the earlier one as a failed attempt; an answer goes before one that was cut off, whose attempts it gets. Other
    answers to one sample are a conflict, of which a success counts, else the first.

    Args:
        journals: The files, in the order in which their responses are given; one that is missing has none.
        ids: The ids of the questions of the run; responses to others are kept too.

    Attributes:
        conflicts: The keys with two answers, each with the numbers of the two journals.
        unreadable: The lines that hold no response, each with the number of its journal.

    Raises:
        RunFolderError: A file cannot be read.
    """

    def __init__(self, journals: Sequence[Path], ids: Iterable[str] = ()) -> None:
        self._journals = journals
        self._ids = list(ids)
        self._numbers = {question_id: number for number, question_id in enumerate(self._ids)}
        self._places = _Places(self._ids, self._numbers)
        self._joined: dict[Key, dict[str, Any]] = {}
        self._open: tuple[int, BinaryIO] | None = None
        self.conflicts: dict[Key, tuple[int, int]] = {}
        self.unreadable: list[tuple[int, JournalLine]] = []
        for number, path in enumerate(journals):
            if path.exists():
                self._take(number, path)

    def __contains__(self, key: Key) -> bool:
        return self._places.get(key) is not None

    def number_of(self, question_id: str) -> int | None:
        """Return the place of a question among those of the run; None where it has none."""
        return self._numbers.get(question_id)

    def journal_of(self, key: Key) -> int | None:
        """Return the number of the journal whose response counts as it stands there; None where there is none."""
        place = self._places.get(key)
        return None if place is None or key in self._joined else _journal(place)

    def is_answered(self, key: Key) -> bool:
        """Return whether a sample needs not be asked again."""
        place = self._places.get(key)
        return place is not None and not place & _INTERRUPTED

    def is_error(self, key: Key) -> bool:
        """Return whether the agent failed."""
        return bool((self._places.get(key) or 0) & _ERROR)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the responses that count one at a time, journal by journal.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        for place in sorted(array("q", (place for _, place in self._places))):
            record = self._read(place)
            key = key_of(record)
            yield record if key is None else self._joined.get(key, record)

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
        own = _Places(self._ids, self._numbers)
        for line in journal_lines(path):
            key = None if line.record is None else key_of(line.record)
            if key is None or line.record is None:
                self.unreadable.append((number, line._replace(record=None)))
            elif line.record.get("superseded"):  # its question has another text now
                own.set(key, _NOWHERE)
            else:
                own.set(key, _place_of(number, line.offset, line.record))
        for key, place in own:
            self._settle(key, place)

    def _settle(self, key: Key, place: int) -> None:
        """Take a response of another journal, or leave it."""
        known = self._places.get(key)
        if known is None:
            self._places.set(key, place)
            return
        before, after = self._joined.get(key) or self._read(known), self._read(place)
        if before == after or _knows(before, after):
            return
        if _knows(after, before):
            self._joined.pop(key, None)
            self._places.set(key, place)
        elif known & _INTERRUPTED:  # both may be: then what both spent is kept
            self._joined[key] = _with_attempts(after, before)
            self._places.set(key, place)
        elif place & _INTERRUPTED:
            self._joined[key] = _with_attempts(before, after)
        else:
            self.conflicts.setdefault(key, (_journal(known), _journal(place)))
            if known & _ERROR and not place & _ERROR:
                self._joined.pop(key, None)
                self._places.set(key, place)

    def _read(self, place: int) -> dict[str, Any]:
        number, offset = _journal(place), place >> _FLAG_BITS & (1 << _OFFSET_BITS) - 1
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


class _Places:
    """Places by key; of the questions that are known beforehand in 8 bytes each."""

    def __init__(self, ids: Sequence[str], numbers: Mapping[str, int]) -> None:
        self._ids = ids
        self._numbers = numbers
        self._by_repeat: dict[int, array[int]] = {}
        self._others: dict[Key, int] = {}

    def get(self, key: Key) -> int | None:
        """Return the place of a key; None where it has none."""
        question_id, repeat = key
        number = self._numbers.get(question_id)
        if number is None:
            place = self._others.get(key, _NOWHERE)
        else:
            places = self._by_repeat.get(repeat)
            place = _NOWHERE if places is None else places[number]
        return None if place == _NOWHERE else place

    def set(self, key: Key, place: int) -> None:
        """Set the place of a key."""
        question_id, repeat = key
        number = self._numbers.get(question_id)
        if number is None:
            self._others[key] = place
            return
        if repeat not in self._by_repeat:
            self._by_repeat[repeat] = array("q", [_NOWHERE]) * len(self._ids)
        self._by_repeat[repeat][number] = place

    def __iter__(self) -> Iterator[tuple[Key, int]]:
        for repeat in sorted(self._by_repeat):
            for number, place in enumerate(self._by_repeat[repeat]):
                if place != _NOWHERE:
                    yield (self._ids[number], repeat), place
        yield from ((key, place) for key, place in self._others.items() if place != _NOWHERE)


def _place_of(number: int, offset: int, record: Mapping[str, Any]) -> int:
    flags = is_error(record) * _ERROR | bool(record.get("interrupted")) * _INTERRUPTED
    return (number << _OFFSET_BITS | offset) << _FLAG_BITS | flags


def _journal(place: int) -> int:
    return place >> _FLAG_BITS + _OFFSET_BITS


def _knows(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a response has an earlier one, with all attempts of that, among its failed attempts."""
    known, attempts = list(map(_mark, later.get("failed_attempts") or ())), list(map(_mark, attempts_in(earlier)))
    return known[: len(attempts)] == attempts


def _mark(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(attempt.get(key) for key in _OF_ATTEMPT)


def _with_attempts(response: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with the attempts of one that was cut off, which were paid too."""
    return {**response, "failed_attempts": [*attempts_in(other), *(response.get("failed_attempts") or ())]}
