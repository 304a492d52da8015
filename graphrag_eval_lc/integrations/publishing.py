"""Publish the scores of a run to the traces of another tool: each score once, with retries and a log of sent ones."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar, get_args

from graphrag_eval_lc.benchmark.benchmark_run import BenchmarkRun, load_run
from graphrag_eval_lc.errors import GraphRAGEvalError, MissingExtraError, OptionError, PublishError
from graphrag_eval_lc.files.opening import is_private_beside, open_to_read
from graphrag_eval_lc.files.writing import AppendFile, json_line
from graphrag_eval_lc.integrations.scores import Score, ScoredRun, ScoredSample, scored_run
from graphrag_eval_lc.json_values import parse_json
from graphrag_eval_lc.retrying import RetryPolicy, is_worth_a_retry, masked_error_text, status_of
from graphrag_eval_lc.run_folder.folder import PUBLISHED_FILE
from graphrag_eval_lc.texts import counted, shortened

Target = Literal["langsmith", "langfuse", "mlflow", "phoenix", "otel"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)
_REFUSING: Final = frozenset({401, 402, 403})
_MOST_LOST = 2  # so many samples in a row that fail even after retries end the publishing
_LONGEST_REASON = 300
T = TypeVar("T")


class NotPlacedError(Exception):
    """A sample has no trace to which its scores belong; the message says why."""


class Publisher(Protocol):
    """Sends scores to one tool. Its methods may raise any error of the tool's client."""

    def open(self, run: ScoredRun) -> str:
        """Connect, and return where the scores go, such as an address and a project."""

    def place(self, sample: ScoredSample) -> Any:
        """Return the trace of a sample; raise ``NotPlacedError`` if the tool has none."""

    def send(self, sample: ScoredSample, place: Any, scores: Sequence[Score]) -> Mapping[str, str]:
        """Send scores to a trace, and return why some were refused, by their ids."""

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Send what belongs to the run as a whole, and return what the user should know."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Scores that the tool does not have.

    Attributes:
        key: The question's id, with the repeat from the second on.
        metrics: The metrics of these scores.
        reason: Why the tool does not have them.
    """

    key: str
    metrics: tuple[str, ...]
    reason: str


@dataclass(slots=True)
class Published:
    """What ``publish_scores`` did.

    Attributes:
        to: The tool.
        where: The tool's address and the project; empty in a dry run.
        sent: How many scores were sent, or would be sent in a dry run.
        unchanged: How many the tool already has.
        unplaced: The scores that it does not have, with the reasons.
        notes: What else the user should know.
        is_dry_run: Whether nothing was sent.
    """

    to: str
    where: str = ""
    sent: int = 0
    unchanged: int = 0
    unplaced: list[Unplaced] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_dry_run: bool = False

    def __str__(self) -> str:
        done = "would be sent" if self.is_dry_run else "sent"
        parts = [f"{counted(self.sent, 'score')} {done} to {self.where or self.to}"]
        if self.unchanged:
            parts.append(f"{self.unchanged:,} unchanged since they were sent")
        if missing := sum(len(each.metrics) for each in self.unplaced):
            parts.append(f"{missing:,} not placed")
        return ", ".join(parts)


def publish_scores(
    run: str | PathLike[str] | BenchmarkRun,
    *,
    to: Target,
    metrics: Sequence[str] | None = None,
    project: str | None = None,
    endpoint: str | None = None,
    report_url: str | None = None,
    dry_run: bool = False,
    max_per_minute: float = 1200.0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Published:
    """Send the scores of a run to the traces of its questions in another tool.

    A score's comment is the reason why it is not the best value, with secrets masked, and the link to the report. Its
    id is fixed, so that publishing again creates no duplicates: what was sent is recorded in the run's folder
    (``published.jsonl``), and only what is new or changed is sent. After an interruption, call it again to resume.

    A question's trace is found by the ``trace_ids`` of its response, else by the ``attempt_id`` or ``question_id`` in
    the metadata of the traces that began while the run was under way.

    Args:
        run: The run's folder, or a run that has one.
        to: ``langsmith``, ``langfuse``, ``mlflow``, ``phoenix`` or ``otel`` (log records
            ``gen_ai.evaluation.result``). Keys are read from the environment, as the tool's own client does.
        metrics: The scores to publish; None: the main ones, such as ``steps_score`` and ``answer_f1``.
        project: The tool's project, or MLflow's experiment; None: that of the environment.
        endpoint: The address of the tool; None: that of the environment.
        report_url: The address at which readers find the run's report.html; None: comments have no link.
        dry_run: Whether nothing is sent: only what would be sent is counted.
        max_per_minute: How many requests are sent in a minute at most.
        on_progress: Called with the number of questions that are done, and of all.

    Returns:
        What was sent and what could not be placed, with the reasons.

    Raises:
        OptionError: The tool or a metric does not exist, or the run has no folder.
        MissingExtraError: The tool's client is not installed.
        PublishError: The tool cannot be reached, or refuses the key.
        RunFolderError: The folder cannot be read, or the record of what was sent cannot be written.

    Example:
        >>> publish_scores("runs/main", to="langfuse", metrics=["steps_score"])  # doctest: +SKIP
    """
    if to not in TARGETS:
        raise OptionError(f"scores cannot be published to {to!r}", key="to", hint=f"Give {', '.join(TARGETS)}.")
    if not max_per_minute > 0:
        raise OptionError(f"max_per_minute is more than 0, not {max_per_minute}", key="max_per_minute")
    folder = run.output_dir if isinstance(run, BenchmarkRun) else load_run(run).output_dir
    if folder is None:
        raise OptionError("the run has no folder", hint="Run it with output_dir, and publish that folder.")
    found = scored_run(folder, metrics, report_url)
    if dry_run:
        number = sum(len(sample.scores) for sample in found.samples)
        return Published(to, sent=number, is_dry_run=True)
    publisher: Publisher = import_module(f"{__package__}.{to}").Publisher(project, endpoint)
    sending = _Sending(publisher, max_per_minute)
    try:
        where = sending.attempt(lambda: publisher.open(found))
    except GraphRAGEvalError:
        raise
    except Exception as problem:
        raise _cannot_publish(to, problem) from problem
    published = Published(to, where)
    with _Sent(folder, to, where) as sent:
        for number, sample in enumerate(found.samples, start=1):
            sending.publish(sample, sent, published)
            if on_progress is not None:
                on_progress(number, len(found.samples))
    try:
        published.notes += sending.attempt(lambda: publisher.close(found))
    except Exception as problem:
        published.unplaced.append(Unplaced("the run", ("run",), _reason(problem)))
    return published


class _Sending:
    """Sends the scores of samples, one sample after the other, and stops when the tool no longer accepts any."""

    def __init__(self, publisher: Publisher, max_per_minute: float) -> None:
        self._publisher = publisher
        self._policy = RetryPolicy(max_retries=4)
        self._interval = 60.0 / max_per_minute
        self._next = 0.0
        self._lost = 0
        self._stopped: str | None = None

    def attempt(self, call: Callable[[], T]) -> T:
        """Call the client within the rate limit, with retries after transient errors."""
        number = 1
        while True:
            time.sleep(max(0.0, self._next - time.monotonic()))
            self._next = time.monotonic() + self._interval
            try:
                return call()
            except Exception as problem:
                wait = None if isinstance(problem, NotPlacedError) else self._policy.wait_before_retry(number, problem)
                if wait is None:
                    raise
                time.sleep(wait)
                number += 1

    def publish(self, sample: ScoredSample, sent: "_Sent", published: Published) -> None:
        """Send the scores of a sample that are new or changed."""
        scores = [score for score in sample.scores if not sent.has(score)]
        published.unchanged += len(sample.scores) - len(scores)
        if not scores:
            return
        refused: Mapping[str, str] = {}
        if (reason := self._stopped) is None:
            try:
                place = self.attempt(lambda: self._publisher.place(sample))
                refused = self.attempt(lambda: self._publisher.send(sample, place, scores))
                self._lost = 0
            except NotPlacedError as problem:
                reason, self._lost = str(problem), 0
            except Exception as problem:
                reason = _reason(problem)
                self._lost += is_worth_a_retry(problem)
                if _is_refused(problem) or self._lost >= _MOST_LOST:
                    self._stopped = f"not sent, since publishing was stopped: {reason}"
        if reason is not None:
            published.unplaced.append(Unplaced(sample.key, tuple(score.metric for score in scores), reason))
            return
        for score in scores:
            if score.id in refused:
                why = shortened(refused[score.id], _LONGEST_REASON)
                published.unplaced.append(Unplaced(sample.key, (score.metric,), why))
            else:
                sent.note(score)
                published.sent += 1


class _Sent:
    """The record in the run's folder of the scores that were sent to one destination."""

    def __init__(self, folder: Path, to: str, where: str) -> None:
        self._path = folder / PUBLISHED_FILE
        self._place = {"to": to, "where": where}
        self._digests: dict[str, str] = {}
        self._file: AppendFile | None = None
        self._is_torn = False
        self._open = partial(AppendFile, self._path, is_private=is_private_beside(folder))

    def __enter__(self) -> "_Sent":
        content = b""
        with contextlib.suppress(FileNotFoundError), open_to_read(self._path) as file:
            content = file.read()
        self._is_torn = content[-1:] not in (b"", b"\n")
        for line in content.splitlines():
            try:
                record = parse_json(line)
            except ValueError:  # a line that was cut when the process was killed
                continue
            if isinstance(record, Mapping) and self._place.items() <= record.items():
                self._digests[str(record.get("id"))] = str(record.get("digest"))
        return self

    def __exit__(self, *problem: object) -> None:
        if self._file is not None:
            self._file.close()

    def has(self, score: Score) -> bool:
        """Return whether a score was sent with this value and comment."""
        return self._digests.get(score.id) == score.digest

    def note(self, score: Score) -> None:
        """Record a score that was sent."""
        if self._file is None:
            self._file = self._open()
            if self._is_torn:
                self._file.append(b"\n")
        self._file.append(json_line({**self._place, "id": score.id, "digest": score.digest}))


def _is_refused(problem: BaseException | None) -> bool:
    """Return whether the server refuses the key, by an exception or one that led to it."""
    while problem is not None:
        if status_of(problem) in _REFUSING:
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def _reason(problem: BaseException) -> str:
    return shortened(masked_error_text(problem), _LONGEST_REASON)


def _cannot_publish(to: str, problem: BaseException) -> PublishError:
    if _is_refused(problem):
        hint = "Check the key in the environment, and that it may write to this project."
    elif status_of(problem) == 404:
        hint = "Check the address, and that the project exists."
    else:
        hint = "Check the address and the network, then run it again."
    return PublishError(f"{to} cannot be used: {_reason(problem)}", hint=hint)


def needed(module: str, feature: str, extra: str) -> Any:
    """Return a module of a package that an extra installs.

    Args:
        module: The module, such as ``phoenix.client``.
        feature: What needs it, as the beginning of a sentence.
        extra: The extra.

    Raises:
        MissingExtraError: The package is not installed.

    Example:
        >>> needed("no_such_package.client", "Publishing", "no_such")
        Traceback (most recent call last):
        ...
        graphrag_eval_lc.errors.MissingExtraError: Publishing needs the package no_such_package, ...
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as problem:
        raise MissingExtraError(feature, extra, str(problem.name or module).partition(".")[0]) from problem
