"""The tool calls that model messages ask for, and which step carries out which of them."""

from collections.abc import Iterable
from itertools import count
from time import time
from typing import Any
from uuid import UUID

from langchain_core.messages import AIMessage, ToolCall

from graphrag_eval_lc.capture.steps import AskedCall, Step


class AskedCalls:
    """All tool calls that the models of one run asked for."""

    def __init__(self) -> None:
        self._by_id: dict[str | None, list[AskedCall]] = {}
        self._ranks = count()

    def next_rank(self) -> int:
        """Give the next place in the order of the run."""
        return next(self._ranks)

    def clear(self) -> None:
        """Forget all calls."""
        self._by_id.clear()

    def is_known(self, call_id: str | None) -> bool:
        """Tell whether any message asked for a call of this id."""
        return call_id in self._by_id

    def ask(
        self,
        message_id: str | None,
        tool_calls: Iterable[ToolCall],
        scope: UUID,
        parent: Step | None,
        *,
        only_unlike: bool = False,
    ) -> None:
        """Note the calls of a message; calls that wait already under another message id are not noted twice.

        Args:
            message_id: The id of the message.
            tool_calls: Its calls, in its order.
            scope: The graph run in which it stands.
            parent: The step inside which that graph runs.
            only_unlike: Also leave out those that are like a call that a step has carried out.
        """
        rank, now = self.next_rank(), time()
        for place, call in enumerate(tool_calls):
            if not self._has_like(call, scope, only_unlike=only_unlike):
                asked = AskedCall(message_id, call["id"], call["name"], call["args"], scope, parent, (rank, place), now)
                self._by_id.setdefault(call["id"], []).append(asked)

    def _has_like(self, call: ToolCall, scope: UUID, *, only_unlike: bool) -> bool:
        return any(
            (only_unlike or (asked.scope == scope and not asked.is_settled))
            and asked.name == call["name"]
            and asked.args == call["args"]
            for asked in self._by_id.get(call["id"], ())
        )

    def ask_message(self, message: AIMessage, scope: UUID, parent: Step | None, *, only_unlike: bool = False) -> None:
        """Note the calls of a whole message."""
        if message.tool_calls:
            self.ask(message.id, message.tool_calls, scope, parent, only_unlike=only_unlike)

    def call_to_run(self, call_id: str, args: Any, scope: UUID) -> AskedCall | None:
        """Give the call that a starting tool carries out; where all of that id are taken, the newest (a retry).

        Of several that wait, the one with the same arguments is taken, and else the newest.
        """
        asked = self._in_scope(self._by_id.get(call_id, []), scope)
        waiting = [call for call in asked if not call.is_settled]
        same_args = [call for call in waiting if call.args == args] if len(waiting) > 1 else []
        return next(reversed(same_args or waiting or asked), None)

    def call_like(self, name: str, args: Any, scope: UUID) -> AskedCall | None:
        """Give the first waiting call with this name and these arguments, for tools that run without a call id.

        Where all are taken, it is the newest whose step failed: the tool is tried again.
        """
        alike = [
            call
            for calls in self._by_id.values()
            for call in self._in_scope(calls, scope)
            if call.name == name and call.args == args
        ]
        waiting = [call for call in alike if not call.is_settled]
        failed = [call for call in alike if call.step is not None and call.step.status == "error"]
        return next(iter(waiting or failed[-1:]), None)

    def call_answered(self, call_id: str, scope: UUID) -> AskedCall | None:
        """Give the call that a tool message answers: the newest of its id."""
        return next(reversed(self._in_scope(self._by_id.get(call_id, []), scope)), None)

    @staticmethod
    def _in_scope(calls: list[AskedCall], scope: UUID) -> list[AskedCall]:
        return [call for call in calls if call.scope == scope] or calls
