"""From an agent's run to a response: the callback handler and its context manager."""

from graphrag_eval_lc.capture.context import capture_run
from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler

__all__ = ["GraphRAGEvalCallbackHandler", "capture_run"]
