"""What happens in a run, told as it happens: one event for each thing worth knowing, and who is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

EventKind = Literal[
    "run_started",
    "attempt_started",
    "attempt_failed",
    "response_ended",
    "result_scored",
    "limit_changed",
    "loop_stalled",
    "run_stopping",
    "run_ended",
    "warning",
]


@dataclass(frozen=True, slots=True)
class RunEvent:
    """One thing that happened in a run.

    A *sample* is one question asked once, known by `question_id` and `repeat` (from 1; None where the run asks each
    question once). An *attempt* is one call of the agent for a sample, counted from 1.

    Kinds, each with its fields:

    - `run_started`: `total` (samples of the run), `done` (samples that an earlier session answered), `errors` (of
      those), `max_concurrency`, `run_id`, `label`, `output_dir`.
    - `attempt_started`: `question_id`, `repeat`, `attempt`.
    - `attempt_failed`: `question_id`, `repeat`, `attempt`, `error` (text), `retry_in_sec` (float; None: it is not tried
      again), `elapsed_sec`.
    - `response_ended`: `question_id`, `repeat`, `status` ("success" or "error"), `error` (text or None), `attempts`,
      `elapsed_sec`, `stalled_sec` (those of them for which others blocked the event loop), `total_tokens` (failed
      attempts included; None: unknown), `steps` (their number).
    - `result_scored`: `question_id`, `repeat`, `steps_score` (0 to 1, or None). It comes from the scoring thread.
    - `limit_changed`: `limit` (samples that may be in flight from now on), `reason`.
    - `loop_stalled`: `question_id` (of what blocks the event loop; None: it belongs to no question), `repeat`, `where`
      (function, file and line), `blocked_sec` (so far), `message`. It comes once for each question, while it blocks,
      from a thread of its own.
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
"""Who is told of the events. Events come from several threads, so an observer is thread-safe, and it is quick."""
