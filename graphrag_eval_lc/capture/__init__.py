"""From an agent's run to a response: the callback handler and its context manager."""

from graphrag_eval_lc.capture.handler import GraphRAGEvalCallbackHandler, capture_run
from graphrag_eval_lc.public_names import only_public

__all__ = ["GraphRAGEvalCallbackHandler", "capture_run"]

__dir__ = only_public(globals())
