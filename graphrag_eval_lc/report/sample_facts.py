"""What a report finds out about each sample alone; of many samples, other processes make their share."""

import gc
import pickle
import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_bytes
from graphrag_eval_lc.registry.metrics import metrics_of_records, metrics_of_users
from graphrag_eval_lc.registry.step_kinds import custom_step_kinds
from graphrag_eval_lc.report.problems import Outcomes, Problem, outcomes_of, problems_of
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

    ``detail`` is what opens below its question, as a member of a JSON object under the sample's key; ``outcomes`` are
    those of the funnel's stages.
    """

    detail: bytes
    outcomes: Outcomes | None
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
        problems, outcomes = list(problems_of(sample, steps, self._error_keys)), outcomes_of(sample, steps)
        detail = json_bytes({sample.key: detail_of(sample, steps, self._measured)})[1:-1]
        return Facts(detail, outcomes, problems)


@dataclass(slots=True)
class _Batch(Generic[T]):
    samples: list[Sample]
    given: list[T]
    reader: FactsReader
    facts: "list[Facts] | Future[list[Facts]]"

    @property
    def is_made(self) -> bool:
        return isinstance(self.facts, list) or self.facts.done()


class SharedFacts(Generic[T]):
    """Finds the facts about samples, in the order of the samples, and returns each with what was given with it.

    From the sample ``FEWEST`` on, other processes take as many samples as they can, and this process the others. The
    facts are the same; if no process can be started, or if one ends, all are found here. Other processes do not know
    what users register, so they are not used for a run with metrics or kinds of steps of users.

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
        self._open: list[tuple[Sample, T]] = []
        self._most_open = _MOST_IN_BATCH
        self._waiting: deque[_Batch[T]] = deque()

    def __enter__(self) -> "SharedFacts[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def add(self, sample: Sample, given: T) -> Iterator[tuple[Sample, T, Facts]]:
        """Add a sample; yield the next ones whose facts are known."""
        if self._found != len(self._metrics.found):  # some metrics are only discovered while results are read
            self._close()
            self._found = len(self._metrics.found)
            self._reader = FactsReader(self._config, self._metrics.names(), self._error_keys)
        if self._left == 0:
            self._start()
        self._left -= 1
        if self._processes is None and not self._waiting and not self._open:
            yield sample, given, self._reader.facts(sample)
            return
        self._open.append((sample, given))
        if len(self._open) >= self._most_open:
            self._close()
        while self._waiting and (self._waiting[0].is_made or len(self._waiting) > _MOST_WAITING):
            yield from self._made(self._waiting.popleft())

    def rest(self) -> Iterator[tuple[Sample, T, Facts]]:
        """Yield the other samples; nothing may be added afterwards."""
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

    def _close(self) -> None:
        """Send the open batch to another process, or read it here if they have enough to do."""
        if not self._open:
            return
        samples, given = [sample for sample, _ in self._open], [each for _, each in self._open]
        facts: list[Facts] | Future[list[Facts]] | None = None
        if self._processes is not None and sum(not each.is_made for each in self._waiting) < self._most_sent:
            try:
                sent = pickle.dumps((samples, self._reader), pickle.HIGHEST_PROTOCOL)
                facts = self._processes.submit(_facts_of, sent)
                self._most_open = max(1, min(_MOST_IN_BATCH, len(samples) * _LARGEST_BATCH // len(sent)))
            except Exception:  # a result in memory that cannot be sent, or no process is left
                self._end()
        if facts is None:
            facts = list(map(self._reader.facts, samples))
        self._waiting.append(_Batch(samples, given, self._reader, facts))
        self._open = []

    def _made(self, batch: _Batch[T]) -> Iterator[tuple[Sample, T, Facts]]:
        facts = batch.facts
        if isinstance(facts, Future):
            try:
                facts = facts.result(_LONGEST_SEC)
            except Exception:  # the process is gone, for example where memory ran out, or does not answer
                self._end()
                facts = list(map(batch.reader.facts, batch.samples))
        return zip(batch.samples, batch.given, facts, strict=True)


def _begin() -> None:
    """Prepare another process: the process that started it ends it, whatever a person presses."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()
    gc.set_threshold(FEWEST_OBJECTS, *gc.get_threshold()[1:])


def _facts_of(sent: bytes) -> list[Facts]:
    samples, reader = pickle.loads(sent)
    return list(map(reader.facts, samples))
