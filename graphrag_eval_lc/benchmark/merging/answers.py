"""The responses of several journals as one: which of them counts for each sample."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphrag_eval_lc.records import Key
from graphrag_eval_lc.run_folder.journal import Journal, Summary


class Answers:
    """The responses of several journals, which are not changed.

    The last record of a key in a journal counts, as in a run. Of two journals the later answer counts if it has the
    earlier one among its failed attempts, and any answer instead of one that was cut off. Other answers to one sample
    are a conflict, of which a success counts, else the first.

    Args:
        texts_by_path: The journals, in the order in which their responses are returned; a missing one has none. Each
            with the texts of questions, by their ids: a response to another text does not count.

    Attributes:
        journals: The journals.
        conflicts: The keys with two answers, each with the numbers of the two journals.

    Raises:
        RunFolderError: A file cannot be read.
    """

    def __init__(self, texts_by_path: Mapping[Path, Mapping[str, str]]) -> None:
        self.journals = [Journal(path, texts=texts, writes=False) for path, texts in texts_by_path.items()]
        self.conflicts: dict[Key, tuple[int, int]] = {}
        self._numbers: dict[Key, int] = {}
        for number, journal in enumerate(self.journals):
            for key in journal:
                known = self._numbers.setdefault(key, number)
                if known != number and self._counts_instead(key, number, known):
                    self._numbers[key] = number

    def journal_of(self, key: Key) -> int | None:
        """Return the number of the journal whose response counts; None if there is none."""
        return self._numbers.get(key)

    def summary(self, key: Key) -> Summary | None:
        """Return a summary of the response that counts; None if there is none."""
        number = self._numbers.get(key)
        return None if number is None else self.journals[number].summary(key)

    def is_answered(self, key: Key) -> bool:
        """Return whether a sample needs not be asked again."""
        summary = self.summary(key)
        return summary is not None and not summary.is_interrupted

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the responses that count one at a time, journal by journal.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        for number, journal in enumerate(self.journals):
            yield from journal.records(key for key, counting in self._numbers.items() if counting == number)

    def read(self, key: Key) -> dict[str, Any] | None:
        """Read the response that counts for a sample; None if there is none.

        Raises:
            RunFolderError: A file cannot be read, or was changed.
        """
        number = self._numbers.get(key)
        return None if number is None else self.journals[number].read(key)

    def _counts_instead(self, key: Key, number: int, known: int) -> bool:
        """Return whether a response of another journal counts in place of the known one."""
        summaries = [self.journals[each].summary(key) for each in (known, number)]
        is_cut = [summary is not None and summary.is_interrupted for summary in summaries]
        if any(is_cut):
            return is_cut[0]
        before, after = (self.journals[each].read(key) or {} for each in (known, number))
        if before == after or _has_as_attempt(before, after):
            return False
        if _has_as_attempt(after, before):
            return True
        self.conflicts.setdefault(key, (known, number))
        return before.get("status") == "error" != after.get("status")


def _has_as_attempt(later: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Return whether a response has an earlier one among its failed attempts."""
    attempts = [(each.get("started_at"), each.get("error")) for each in later.get("failed_attempts") or ()]
    return (earlier.get("started_at"), earlier.get("error")) in attempts
