"""A tool call as a model asks for it, and the step that carries it out, up to what the response holds of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter, time
from typing import Any, Literal
from uuid import UUID

from langchain_core.messages import ToolCall

from graphrag_eval_lc.capture.keeping import NO_ARTIFACT, KeptEnding, Retrieval
from graphrag_eval_lc.capture.outputs import to_plain
from graphrag_eval_lc.records import ActualStep
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC

# A place in the order of a run: of each branch around it, and then its own, as pairs of a rank and a place in it.
Order = tuple[int | str, ...]


@dataclass(slots=True, eq=False)
class AskedCall:
    """One tool call of one model message.

    Attributes:
        message_id: The id of the message; None where only the call itself was seen.
        call_id: The provider's id of the call. Some providers use the same ids in every message.
        scope: The graph run in which the message was written or first seen.
        order: Where the step belongs: its branch, the rank of the message, and the place in its list of calls.
        is_told: Whether a model's callback told of the message.
        is_expected: Whether the run is to answer it.
        is_met: Whether the message of a callback was met in a list, perhaps as a copy.
        is_shown: Whether a later model was shown it while it waited.
        step: The step that carries it out.
        is_settled: True once it needs no step any more.
    """

    message_id: str | None
    call_id: str | None
    name: str
    args: Any
    scope: UUID
    parent: "Step | None"
    order: Order
    asked_at: float
    is_told: bool = False
    is_expected: bool = False
    is_met: bool = False
    is_shown: bool = False
    step: "Step | None" = None
    is_settled: bool = False

    def is_like(self, call: ToolCall) -> bool:
        """Tell whether a call has the same id, name and arguments."""
        return self.call_id == call["id"] and self.name == call["name"] and self.args == call["args"]


@dataclass(slots=True, eq=False)
class Step:
    """One step of a run.

    Attributes:
        run_id: The id of the tool run; of the last one where the call was tried again.
        parent: The step inside which this one runs.
        order: Its place among the steps with the same parent.
        status: ``open`` while it runs, ``pending`` while the run is paused inside it.
        text: The output, or the error.
        full_length: The characters that the text had, where it was cut.
        text_hash: The hash of the text as the tool gave it.
        is_from_message: True where no callback told of it, only a message.
        is_forced: True where it had not ended when its run did.
        retrievals: The runs of retrievers inside it, where their documents are wanted.
    """

    name: str
    args: dict[str, Any]
    run_id: UUID
    parent: "Step | None"
    order: Order
    call: AskedCall | None = None
    call_id: str | None = None
    status: Literal["open", "pending", "success", "error"] = "open"
    text: str = ""
    artifact: Any = NO_ARTIFACT
    attempts: int = 1
    started_at: float = field(default_factory=time)
    started: float | None = field(default_factory=perf_counter)
    elapsed_sec: float | None = None
    full_length: int | None = None
    text_hash: int | None = None
    is_from_message: bool = False
    is_forced: bool = False
    retrievals: Sequence[Retrieval] = ()

    @property
    def id(self) -> str:
        """The id of the tool call, and of the run where the call has none."""
        return self.asked_id or str(self.run_id)

    @property
    def asked_id(self) -> str | None:
        """The id of the tool call, where it has one."""
        return self.call_id or (self.call.call_id if self.call is not None else None)

    def start_again(self, run_id: UUID, args: dict[str, Any]) -> None:
        """Begin another attempt, or go on after a pause; the time goes on from the first."""
        self.attempts += self.status != "pending"
        self.run_id, self.args, self.status = run_id, args, "open"
        self.retrievals = ()

    def end(self, kept: KeptEnding) -> None:
        """Settle the step."""
        self.status, self.text, self.artifact = kept.status, kept.text, kept.artifact
        self.full_length, self.text_hash = kept.full_length, kept.text_hash
        if kept.k is not None:
            self.args["k"] = kept.k if self.args.get("k") is None else self.args["k"]
        self.retrievals = ()
        if self.started is not None:
            self.elapsed_sec = (perf_counter() if kept.ended is None else kept.ended) - self.started


def actual_step(step: Step, unfinished: str, name: str) -> ActualStep:
    """Give a step as the response holds it.

    Args:
        step: A step that is not pending.
        unfinished: The error of a step that has not ended.
        name: The step's name there.
    """
    is_success = step.status == "success"
    record: ActualStep = {
        "name": name,
        "args": to_plain(step.args),
        "id": step.id,
        "status": "success" if is_success else "error",
    }
    if is_success:
        record["output"] = step.text
    else:
        record["error"] = (step.text if step.status == "error" else unfinished) or "unknown error"
    record["execution_timestamp"] = utc_timestamp(step.started_at)
    if step.elapsed_sec is not None:
        record[ELAPSED_SEC] = step.elapsed_sec
    if step.parent is not None:
        record["parent_id"] = step.parent.id
    if step.attempts > 1:
        record["attempts"] = step.attempts
    if step.artifact is not NO_ARTIFACT and step.artifact is not None:
        record["artifact"] = to_plain(step.artifact)
    return record


def utc_timestamp(seconds: float) -> str:
    """Give seconds since 1970 in ISO 8601, as ``2026-01-31T12:00:00.000000Z``."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Give steps in the order in which the models asked for them, each followed by the steps inside it."""
    children: dict[Step | None, list[Step]] = {}
    for step in steps:
        children.setdefault(step.parent, []).append(step)
    for siblings in children.values():
        siblings.sort(key=lambda step: step.order)
    return list(_walk(children, None))


def _walk(children: dict[Step | None, list[Step]], parent: Step | None) -> Iterator[Step]:
    for step in children.get(parent, ()):
        yield step
        yield from _walk(children, step)
