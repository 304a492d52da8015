"""What an attempt has done so far: an isolated worker tells it at each step, as a crash leaves no time to do so."""

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler

from graphrag_eval_lc.benchmark.attempts import NOTHING_SPENT, Attempt
from graphrag_eval_lc.benchmark.workers.messages import FromWorker, SoFar
from graphrag_eval_lc.records import Response

_FREE_SEC = 0.25
_LARGEST_SHARE = 0.2  # of the attempt's time, beyond that: with hundreds of steps each message goes through all of them


class SoFarTeller(BaseCallbackHandler):
    """Tells the driver what an attempt has done, whenever a tool, retriever or model call begins or ends.

    Args:
        number: The attempt.
        attempt: Returns what it would be if its process were lost at that moment.
        send: Given what the driver is to be told.
    """

    run_inline = True
    raise_error = False

    def __init__(self, number: int, attempt: Callable[[], Attempt], send: Callable[[FromWorker], None]) -> None:
        super().__init__()
        self._number = number
        self._attempt = attempt
        self._send = send
        self._lock = threading.Lock()  # tools run in threads
        self._told: dict[str, list[Any]] = {}
        self._began = perf_counter()
        self._spent_sec = 0.0

    def _tell(self, *_: object, **__: object) -> None:
        with self._lock:
            began = perf_counter()
            if self._spent_sec > _FREE_SEC + _LARGEST_SHARE * (began - self._began):
                return
            self._send(self._message(self._attempt()))
            self._spent_sec += perf_counter() - began

    on_tool_start = on_tool_end = on_tool_error = _tell
    on_retriever_start = on_retriever_end = on_retriever_error = _tell
    on_chat_model_start = on_llm_start = on_llm_end = on_llm_error = _tell

    def _message(self, attempt: Attempt) -> SoFar:
        """Return a message with what is new: of each list, what follows the entries that the driver has."""
        response = cast("dict[str, Any]", attempt.response)
        lists = {key: value for key, value in response.items() if isinstance(value, list)}
        known = {key: _equal_entries(self._told.get(key, []), entries) for key, entries in lists.items()}
        self._told = lists
        tails = {key: entries[known[key] :] for key, entries in lists.items()}
        return SoFar(self._number, {**response, **tails}, known, attempt.counted)


class HeardSoFar:
    """What the driver has heard of an attempt."""

    def __init__(self) -> None:
        self._response: dict[str, Any] = {}
        self._counted = NOTHING_SPENT

    def take(self, message: SoFar) -> None:
        """Take what is new."""
        lists = {key: [*self._response.get(key, ())][:known] for key, known in message.known.items()}
        for key, entries in lists.items():
            entries.extend(message.response[key])
        self._response = {**message.response, **lists}
        self._counted = message.counted

    @property
    def attempt(self) -> Attempt | None:
        """What the attempt would have been had its process been lost at once; None where nothing was heard."""
        return Attempt(cast("Response", self._response), None, self._counted) if self._response else None


def _equal_entries(told: list[Any], entries: list[Any]) -> int:
    """Return how many entries at the beginning are equal.

    Example:
        >>> _equal_entries([1, 2, 3], [1, 2, 4, 5])
        2
    """
    equal = 0
    for before, now in zip(told, entries, strict=False):
        if before != now:
            break
        equal += 1
    return equal
