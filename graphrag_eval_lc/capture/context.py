"""Recording without a config: a ``with`` block in which every run is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.tracers.context import register_configure_hook

from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler

_current: ContextVar[GraphRAGEvalCallbackHandler | None] = ContextVar("graphrag_eval_lc_capture", default=None)
register_configure_hook(_current, inheritable=True)  # once: each registration stays for good


@contextmanager
def capture_run() -> Iterator[GraphRAGEvalCallbackHandler]:
    """Record every run that starts inside the ``with`` block, in this thread or task.

    A block inside another one records into both.

    Yields:
        The handler that records; it can be read after the block too.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> with capture_run() as handler:
        ...     answer = RunnableLambda(lambda question: question.upper()).invoke("why?")
        >>> handler.response("q1")["actual_answer"]
        'WHY?'
    """
    handler = GraphRAGEvalCallbackHandler()
    handler._enclosing = _current.get()
    token = _current.set(handler)
    try:
        yield handler
    finally:
        _current.reset(token)
