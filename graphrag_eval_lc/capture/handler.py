"""The callback handler that users register, and what they ask it for."""

from typing import Any, Self, cast

from graphrag_eval_lc.capture.callbacks import RunCallbacks
from graphrag_eval_lc.capture.graph_events import with_graph_events
from graphrag_eval_lc.capture.responses import records_of, response_from
from graphrag_eval_lc.records import Response


class GraphRAGEvalCallbackHandler(RunCallbacks):
    """Records the runs of agents as graphrag-eval responses.

    One handler takes any number of runs, one after the other or at the same time. It never raises into the agent;
    what it could not record stands in the response's ``capture_warnings``.

    Example:
        >>> from langchain_core.runnables import RunnableLambda
        >>> handler = GraphRAGEvalCallbackHandler()
        >>> agent = RunnableLambda(lambda question: question.upper())
        >>> agent.invoke("why?", config={"callbacks": [handler], "metadata": {"question_id": "q1"}})
        'WHY?'
        >>> handler.response("q1")["actual_answer"]
        'WHY?'
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Give a handler that also hears langgraph's interrupt events."""
        handler_class: type = cls
        return cast("Self", object.__new__(with_graph_events(handler_class)))

    def responses(self) -> list[Response]:
        """Give the responses of all root runs, in the order in which they started.

        Returns:
            New dicts of plain JSON values. A run that has not ended counts as an error.
        """
        with self._lock:
            return [response_from([record], record.question_id) for record in self._runs.records]

    def response(self, question_id: str | None = None) -> Response:
        """Give the response of one question.

        Args:
            question_id: The ``question_id`` in the metadata of its runs. All runs with this id make one response, such
                as a run that was paused and the one that resumed it. If the handler recorded only one run and that
                has no id, it gets this one. Without a question id the handler must have recorded one question only.

        Raises:
            CaptureError: There is no such run, or no telling which one is meant.
        """
        with self._lock:
            records = records_of(self._runs.records, question_id)
            return response_from(records, records[0].question_id if question_id is None else str(question_id))

    def clear(self) -> None:
        """Forget all runs. Those under way are not recorded any further."""
        with self._lock:
            self._runs.clear()
