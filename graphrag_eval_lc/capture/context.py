"""Recording without a config: a ``with`` block in which every run is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Unpack

from langchain_core.tracers.context import register_configure_hook

from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler
from graphrag_eval_lc.capture.options import CaptureKeywords, checked_question_id

_current: ContextVar[GraphRAGEvalCallbackHandler | None] = ContextVar("graphrag_eval_lc_capture", default=None)
register_configure_hook(_current, inheritable=True)  # once: each registration stays for good


@contextmanager
def capture_run(
    *, question_id: str | int | None = None, **options: Unpack[CaptureKeywords]
) -> Iterator[GraphRAGEvalCallbackHandler]:
    """Record every run that starts inside the ``with`` block, in this thread or task.

    With a question id all that happens inside the block is one response: the loop that people write around
    ``model.invoke`` and ``tool.invoke``, chains, and agents, whatever ids their metadata has. The first input that has
    a question gives its text, the last model, chain or agent its answer, and the block its time. An exception that
    leaves the block is the response's error, and so is that of its last run. Without a question id each root run is a
    response of its own.

    A block inside another one records into both, each with its own options. There too, a block with a question id is
    one response; inside another block with a question id it is a part of that one.

    A new thread knows of the block where it is started with this one's context, as LangChain's own are
    (``contextvars.copy_context().run``), or where the handler is passed on: ``config={"callbacks": [handler]}``.

    Args:
        question_id: The id of the question that the block answers.
        **options: Those of ``GraphRAGEvalCallbackHandler``.

    Yields:
        The handler that records; it can be read after the block too.

    Raises:
        CaptureError: An option has a value that it cannot have.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> upper = RunnableLambda(lambda question: question.upper())
        >>> with capture_run(question_id="q1") as handler:
        ...     answer = upper.invoke(upper.invoke("why?") + " because.")
        >>> handler.response("q1")["question_text"], handler.response("q1")["actual_answer"]
        ('why?', 'WHY? BECAUSE.')
    """
    block_question = None if question_id is None else checked_question_id(question_id)
    handler = GraphRAGEvalCallbackHandler(**options)
    handler._enclosing = _current.get()
    token = _current.set(handler)
    block_id = None if block_question is None else handler.open_block(block_question)
    error: BaseException | None = None
    try:
        yield handler
    except BaseException as problem:
        error = problem
        raise
    finally:
        with suppress(ValueError):  # a generator may be closed in another context than it was begun in
            _current.reset(token)
        if block_id is not None:
            handler.on_block_end(run_id=block_id, error=error)
