"""What a report finds out about each sample alone; of many samples, other processes make their share."""

import gc
import pickle
import signal
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_bytes
from graphrag_eval_lc.registry.metrics import metrics_of_records, metrics_of_users
from graphrag_eval_lc.registry.step_kinds import custom_step_kinds
from graphrag_eval_lc.report.problems import Outcome, Problem, outcome_of, problems_of
from graphrag_eval_lc.report.questions import MeasuredKeys, detail_of
from graphrag_eval_lc.report.steps import SampleSteps, step_views
from graphrag_eval_lc.view.samples import Sample

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

T = TypeVar("T")

FEWEST: Final = 1_000  # samples before processes are started, which takes as long as some thousand samples
_MOST_PROCESSES: Final = 2  # more would wait for this one, which adds up what they find
_MOST_IN_BATCH: Final = 50
_LARGEST_BATCH: Final = 500_000  # bytes that are sent at once
_MOST_SENT: Final = 3  # batches for each process, so that it never waits for the next one
_MOST_WAITING: Final = 24  # batches that are made, but come after one that is not
_IDLE_SEC: Final = 60.0  # after which a process ends, if this one was killed
_LONGEST_SEC: Final = 60.0  # how long this process waits for a batch, once it needs it
FEWEST_OBJECTS: Final = 100_000  # new ones, before the garbage collector looks for cycles
_ENVIRONMENT: Final = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}  # loky would restart a process whose memory grows


class Facts(NamedTuple):
    """What a report finds out about a sample alone.

    ``detail`` is what opens below its question, as a member of a JSON object under the sample's key; ``outcome`` is
    that of the funnel.
    """

    detail: bytes
    outcome: Outcome
    problems: Sequence[Problem]


class FactsReader:
    """Finds the facts about samples.

    ``names`` are the metrics of results, ``error_keys`` the keys of results that hold errors of judges.
    """

    def __init__(self, config: EvaluationConfig, names: Sequence[str], error_keys: Sequence[str]) -> None:
        self._config, self._error_keys = config, error_keys
        self._views, self._measured = step_views(config), MeasuredKeys(config, names)

    def facts(self, sample: Sample) -> Facts:
        """Return the facts about a sample."""
        steps = SampleSteps(sample.result, self._config, self._views)
        problems, outcome = list(problems_of(sample, steps, self._error_keys)), outcome_of(sample, steps)
        detail = json_bytes({sample.key: detail_of(sample, steps, self._measured)})[1:-1]
        return Facts(detail, outcome, problems)


@dataclass(slots=True)
class _Batch(Generic[T]):
    """Samples that come one after the other, with what was given with them."""

    reader: FactsReader
    sent: list[bytes] | None  # the samples for another process, pickled; None if their facts are found here
    given: list[T] = field(default_factory=list)
    facts: "list[Facts] | Future[list[Facts]]" = field(default_factory=list)

    @property
    def is_made(self) -> bool:
        return isinstance(self.facts, list) or self.facts.done()


class SharedFacts(Generic[T]):
    """Finds the facts about samples, in the order of the samples, and returns each with what was given with it.

    From the sample ``FEWEST`` on, other processes take as many samples as they can, and this process the others. The
    facts are the same; if no process can be started, or if one ends, all are found here. Other processes do not know
    what users register, so they are not used for a run with metrics or kinds of steps of users. No sample is kept.

    Example:
        >>> config = EvaluationConfig()
        >>> with SharedFacts(config, Metrics(config), error_keys=()) as facts:
        ...     list(facts.rest())
        []
    """

    def __init__(
        self, config: EvaluationConfig, metrics: Metrics, error_keys: Sequence[str], *, is_shared: bool = True
    ) -> None:
        self._config, self._metrics, self._error_keys = config, metrics, error_keys
        self._reader, self._found = FactsReader(config, metrics.names(), error_keys), len(metrics.found)
        self._left = FEWEST if is_shared else -1  # how many samples there are before processes are started
        self._processes: ProcessPoolExecutor | None = None
        self._most_sent = 0
        self._open: _Batch[T] | None = None
        self._size = 0  # of the open batch in bytes, if it is to be sent
        self._waiting: deque[_Batch[T]] = deque()

    def __enter__(self) -> "SharedFacts[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def add(self, sample: Sample, given: T) -> Iterator[tuple[T, Facts]]:
        """Add a sample; yield what was given with the next ones whose facts are known, with the facts."""
        if self._found != len(self._metrics.found):  # some metrics are only discovered while results are read
            self._close()
            self._found = len(self._metrics.found)
            self._reader = FactsReader(self._config, self._metrics.names(), self._error_keys)
        if self._left == 0:
            self._start()
        self._left -= 1
        if self._processes is None and not self._waiting and self._open is None:
            yield given, self._reader.facts(sample)
            return
        self._put(sample, given)
        while self._waiting and (self._waiting[0].is_made or len(self._waiting) > _MOST_WAITING):
            yield from self._made(self._waiting.popleft())

    def rest(self) -> Iterator[tuple[T, Facts]]:
        """Yield the same of all other samples; nothing may be added afterwards."""
        self._close()
        while self._waiting:
            yield from self._made(self._waiting.popleft())

    def _start(self) -> None:
        # A program that contains Python would start itself.
        if metrics_of_users or custom_step_kinds() or metrics_of_records.get({}) or hasattr(sys, "frozen"):
            return
        try:
            from loky import ProcessPoolExecutor, cpu_count

            if (number := min(_MOST_PROCESSES, cpu_count() - 1)) > 0:
                self._most_sent = number * _MOST_SENT
                self._processes = ProcessPoolExecutor(number, timeout=_IDLE_SEC, initializer=_begin, env=_ENVIRONMENT)
        except Exception:  # where no process may be started, all is found here
            self._processes = None

    def _end(self) -> None:
        processes, self._processes = self._processes, None
        if processes is not None:
            processes.shutdown(wait=True, kill_workers=True)

    def _put(self, sample: Sample, given: T) -> None:
        """Put a sample into the open batch: pickled for another process, or if they have enough to do, its facts."""
        batch = self._open
        if batch is None:
            has_room = sum(not each.is_made for each in self._waiting) < self._most_sent
            batch = self._open = _Batch(self._reader, [] if has_room and self._processes is not None else None)
            self._size = 0
        batch.given.append(given)
        if batch.sent is not None:
            try:
                batch.sent.append(pickle.dumps(sample, pickle.HIGHEST_PROTOCOL))
                self._size += len(batch.sent[-1])
            except Exception:  # a result in memory that cannot be sent
                self._end()
                batch.facts, batch.sent = _facts_of(batch.sent, batch.reader), None
        if batch.sent is None and isinstance(batch.facts, list):
            batch.facts.append(batch.reader.facts(sample))
        if len(batch.given) >= _MOST_IN_BATCH or self._size >= _LARGEST_BATCH:
            self._close()

    def _close(self) -> None:
        """Send the open batch, if it is for another process."""
        batch, self._open = self._open, None
        if batch is None:
            return
        if batch.sent is not None:
            try:
                if self._processes is None:
                    raise BrokenExecutor
                batch.facts = self._processes.submit(_facts_there, batch.sent, pickle.dumps(batch.reader))
            except Exception:  # no process is left, or none could be started
                self._end()
                batch.facts = _facts_of(batch.sent, batch.reader)
        self._waiting.append(batch)

    def _made(self, batch: _Batch[T]) -> Iterator[tuple[T, Facts]]:
        facts = batch.facts
        if isinstance(facts, Future):
            try:
                facts = facts.result(_LONGEST_SEC)
            except Exception:  # the process is gone, for example where memory ran out, or does not answer
                self._end()
                facts = _facts_of(batch.sent or (), batch.reader)
        return zip(batch.given, facts, strict=True)


def _facts_of(sent: Iterable[bytes], reader: FactsReader) -> list[Facts]:
    return [reader.facts(pickle.loads(each)) for each in sent]


# --- in other processes ----------------------------------------------------------------------------------------------


def _begin() -> None:
    """Prepare another process: the process that started it ends it, whatever a person presses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(FEWEST_OBJECTS, *gc.get_threshold()[1:])


def _facts_there(sent: list[bytes], reader: bytes) -> list[Facts]:
    return _facts_of(sent, _reader_in(reader))


@lru_cache(1)  # nearly all batches have the same
def _reader_in(pickled: bytes) -> FactsReader:
    reader: FactsReader = pickle.loads(pickled)
    return reader
