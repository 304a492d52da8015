"""The details of many questions, of which another process makes its share while this one reads on."""

import gc
import pickle
import signal
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.json_values import json_bytes
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.registry.metrics import metrics_of_records, metrics_of_users
from graphrag_eval_lc.registry.step_kinds import custom_step_kinds
from graphrag_eval_lc.report.questions import MeasuredKeys, detail_of
from graphrag_eval_lc.report.steps import SampleSteps, step_views
from graphrag_eval_lc.view.samples import Sample

if TYPE_CHECKING:
    from loky import ProcessPoolExecutor

Row = dict[str, Any]

FEWEST: Final = 1_000  # samples before a process is started, which takes as long as the details of some thousand
_MOST_IN_BATCH: Final = 50
_LARGEST_BATCH: Final = 500_000  # bytes that are sent at once
_MOST_SENT: Final = 3  # batches, so that the process never waits for the next one
_MOST_WAITING: Final = 24  # batches that are made, but come after one that is not
_IDLE_SEC: Final = 60.0  # after which the process ends, if this one was killed


@dataclass(slots=True)
class _Batch:
    samples: list[Sample]
    rows: list[Row]
    measured: MeasuredKeys
    items: "list[bytes] | Future[list[bytes]]"

    @property
    def is_made(self) -> bool:
        return isinstance(self.items, list) or self.items.done()


class SharedDetails:
    """Makes the detail of each sample as the bytes of JSON, in the order of the samples.

    From the sample ``FEWEST`` on, a second process makes those of some batches, as many as it can, and this process
    those of the others. What it makes is the same; if it cannot be started or ends, all is made here. It does not know
    what users register, so a run with their metrics or kinds of steps has none.

    Example:
        >>> with SharedDetails(EvaluationConfig(), Metrics(EvaluationConfig())) as details:
        ...     made = list(details.rest())
        >>> made
        []
    """

    def __init__(self, config: EvaluationConfig, metrics: Metrics, *, is_shared: bool = True) -> None:
        self._config, self._metrics, self._views = config, metrics, step_views(config)
        self._measured = MeasuredKeys(config, metrics.names())
        self._found = len(metrics.found)
        self._left = FEWEST if is_shared else -1  # how many samples are made here before a process is started
        self._helper: ProcessPoolExecutor | None = None
        self._open: list[tuple[Sample, SampleSteps, Row]] = []
        self._most_open = _MOST_IN_BATCH
        self._waiting: deque[_Batch] = deque()

    def __enter__(self) -> "SharedDetails":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def add(self, sample: Sample, steps: SampleSteps, row: Row) -> Iterator[tuple[Row, bytes]]:
        """Add a sample with its steps and a row; yield the next rows whose details are made, each with its detail."""
        if self._found != len(self._metrics.found):  # some metrics are only discovered while results are read
            self._close()
            self._measured, self._found = MeasuredKeys(self._config, self._metrics.names()), len(self._metrics.found)
        if self._left == 0:
            self._start()
        self._left -= 1
        if self._helper is None and not self._waiting:
            yield row, item_of(sample, steps, self._measured)
            return
        self._open.append((sample, steps, row))
        if len(self._open) >= self._most_open:
            self._close()
        while self._waiting and (self._waiting[0].is_made or len(self._waiting) > _MOST_WAITING):
            yield from self._made(self._waiting.popleft())

    def rest(self) -> Iterator[tuple[Row, bytes]]:
        """Yield the other rows with their details; nothing may be added afterwards."""
        self._close()
        while self._waiting:
            yield from self._made(self._waiting.popleft())

    def _start(self) -> None:
        # A program that contains Python would start itself.
        if metrics_of_users or custom_step_kinds() or metrics_of_records.get({}) or hasattr(sys, "frozen"):
            return
        try:
            from loky import ProcessPoolExecutor, cpu_count

            if cpu_count() > 1:
                self._helper = ProcessPoolExecutor(
                    1, timeout=_IDLE_SEC, initializer=_begin, initargs=(self._config,), env=_ENVIRONMENT
                )
        except Exception:  # where no process may be started, all is made here
            self._helper = None

    def _end(self) -> None:
        helper, self._helper = self._helper, None
        if helper is not None:
            helper.shutdown(wait=True, kill_workers=True)

    def _close(self) -> None:
        """Send the open batch to the other process, or make it here if that has enough to do."""
        if not self._open:
            return
        samples, rows = [sample for sample, _, _ in self._open], [row for _, _, row in self._open]
        items: list[bytes] | Future[list[bytes]] | None = None
        sent = [each for each in self._waiting if not each.is_made]
        if self._helper is not None and len(sent) < _MOST_SENT:
            try:
                batch = pickle.dumps((samples, self._measured), pickle.HIGHEST_PROTOCOL)
                items = self._helper.submit(_items, batch)
                fitting = len(samples) * _LARGEST_BATCH // len(batch)
                self._most_open = max(1, min(_MOST_IN_BATCH, fitting))
            except Exception:  # a result in memory that cannot be sent, or the process is gone
                self._end()
        if items is None:
            items = [item_of(sample, steps, self._measured) for sample, steps, _ in self._open]
        self._waiting.append(_Batch(samples, rows, self._measured, items))
        self._open = []

    def _made(self, batch: _Batch) -> Iterator[tuple[Row, bytes]]:
        items = batch.items
        if isinstance(items, Future):
            try:
                items = items.result()
            except Exception:  # the process is gone, such as where memory ran out
                self._end()
                items = items_of(batch.samples, batch.measured, self._config, self._views)
        return zip(batch.rows, items, strict=True)


def item_of(sample: Sample, steps: SampleSteps, measured: MeasuredKeys) -> bytes:
    """Return the detail of a sample as a member of a JSON object, under the sample's key."""
    return json_bytes({sample.key: detail_of(sample, steps, measured)})[1:-1]


def items_of(samples: list[Sample], measured: MeasuredKeys, config: EvaluationConfig, views: StepViews) -> list[bytes]:
    """Return the details of samples, each as a member of a JSON object."""
    return [item_of(each, SampleSteps(each.result, config, views), measured) for each in samples]


# --- in the other process --------------------------------------------------------------------------------------------

_ENVIRONMENT: Final = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}  # loky would restart a process whose memory grows
_reading: tuple[EvaluationConfig, StepViews]


def _begin(config: EvaluationConfig) -> None:
    global _reading
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    _reading = config, step_views(config)
    gc.freeze()


def _items(batch: bytes) -> list[bytes]:
    samples, measured = pickle.loads(batch)
    return items_of(samples, measured, *_reading)
