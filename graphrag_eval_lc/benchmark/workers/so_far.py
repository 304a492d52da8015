"""What an attempt has done so far, written down at each step: a crash leaves no time to do so."""

import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from langchain_core.callbacks import BaseCallbackHandler

from graphrag_eval_lc.benchmark.attempts import Attempt, Follow

_FREE_SEC = 0.25
_LARGEST_SHARE = 0.2  # of the attempt's time, beyond that: with hundreds of steps each writing goes through all of them


class SoFarWriter(BaseCallbackHandler):
    """Writes the response of an attempt so far whenever a tool, retriever or model call begins or ends.

    Args:
        attempt: Returns what it would be if its process were lost at that moment.
        path: The file, which is replaced each time.
    """

    run_inline = True
    raise_error = False

    def __init__(self, attempt: Callable[[], Attempt], path: Path) -> None:
        super().__init__()
        self._attempt = attempt
        self._path = path
        self._lock = threading.Lock()  # tools run in threads
        self._began = perf_counter()
        self._spent_sec = 0.0

    @classmethod
    def of(cls, path: Path) -> Follow:
        """Return what makes the handler of an attempt."""
        return lambda attempt: cls(attempt, path)

    def _write(self, *_: object, **__: object) -> None:
        with self._lock:
            began = perf_counter()
            if self._spent_sec <= _FREE_SEC + _LARGEST_SHARE * (began - self._began):
                new = self._path.with_suffix(".new")
                new.write_bytes(pickle.dumps(self._attempt().response, pickle.HIGHEST_PROTOCOL))
                new.replace(self._path)
                self._spent_sec += perf_counter() - began

    on_tool_start = on_tool_end = on_tool_error = _write
    on_retriever_start = on_retriever_end = on_retriever_error = _write
    on_chat_model_start = on_llm_start = on_llm_end = on_llm_error = _write
