"""Recording without a config: a ``with`` block in which every run is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Unpack

from langchain_core.tracers.context import register_configure_hook

from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.options import CaptureKeywords

_current: ContextVar[GraphRAGEvalCallbackHandler | None] = ContextVar("graphrag_eval_lc_capture", default=None)
register_configure_hook(_current, inheritable=True)  # once: each registration stays for good


@contextmanager
def capture_run(**options: Unpack[CaptureKeywords]) -> Iterator[GraphRAGEvalCallbackHandler]:
    """Record every run that starts inside the ``with`` block, in this thread or task.

    A block inside another one records into both, each with its own options.

    Args:
        **options: Those of ``GraphRAGEvalCallbackHandler``.

    Yields:
        The handler that records; it can be read after the block too.

    Raises:
        CaptureError: An option has a value that it cannot have.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> with capture_run() as handler:
        ...     answer = RunnableLambda(lambda question: question.upper()).invoke("why?")
        >>> handler.response("q1")["actual_answer"]
        'WHY?'
    """
    handler = GraphRAGEvalCallbackHandler(**options)
    handler._enclosing = _current.get()
    token = _current.set(handler)
    try:
        yield handler
    finally:
        _current.reset(token)
