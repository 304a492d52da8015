"""LangSmith: publish scores as feedback on its runs, and use this package's scorer in its ``evaluate``."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.errors import PublishError
from graphrag_eval_lc.integrations.publishing import NotPlacedError, needed
from graphrag_eval_lc.integrations.scores import FoundTrace, Score, ScoredRun, ScoredSample, TraceIndex
from graphrag_eval_lc.integrations.scoring import QuestionScorer, QuestionTarget, questions_in


def examples(dataset: DatasetSource) -> list[Any]:
    """Return the questions of a dataset as LangSmith's examples, for ``evaluate(data=…)``; nothing is uploaded.

    Args:
        dataset: A path, or the templates with their questions.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> examples(dataset)[0].inputs["question"]
        '1 + 1?'
    """
    schemas = needed("langsmith.schemas", "LangSmith's examples", "langsmith")
    return [
        schemas.Example(
            id=uuid5(NAMESPACE_URL, f"graphrag-eval-lc:{asked.inputs['question_id']}"),
            dataset_id=uuid5(NAMESPACE_URL, "graphrag-eval-lc"),
            inputs=asked.inputs,
            outputs=asked.reference,
        )
        for asked in questions_in(dataset)
    ]


def target(agent: Any, **options: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that LangSmith's ``evaluate`` calls; the agent's own runs are not sent to LangSmith.

    ``evaluate(upload_results=False)`` alone would still post the runs of the agent, with its inputs and outputs.

    Args:
        agent: What ``run_benchmark`` accepts.
        **options: ``timeout`` and ``capture``, as for ``QuestionTarget``.
    """
    helpers = needed("langsmith.run_helpers", "LangSmith's evaluate", "langsmith")
    asking = QuestionTarget(agent, around=lambda: helpers.tracing_context(enabled=False), **options)

    def ask(inputs: dict[str, Any]) -> dict[str, Any]:
        return asking(inputs)

    return ask


def scorer(config: Any = None, **options: Any) -> Callable[..., dict[str, Any]]:
    """Return an evaluator for LangSmith's ``evaluate``: the scores of this package, each with its reason.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    scoring = QuestionScorer(config, **options)

    def graphrag_eval(inputs: dict[str, Any], outputs: Any, reference_outputs: dict[str, Any]) -> dict[str, Any]:
        scores = scoring(inputs, outputs, reference_outputs)
        found = [{"key": each.name, "score": each.value, "comment": each.comment or None} for each in scores]
        return {"results": found}

    return graphrag_eval


class Publisher:
    """Sends scores as feedback, one request for each, so that LangSmith's answer is known.

    Args:
        project: The project of the runs; None: LANGSMITH_PROJECT, else ``default``.
        endpoint: LangSmith's API; None: LANGSMITH_ENDPOINT, else its own. The key is LANGSMITH_API_KEY.
    """

    def __init__(self, project: str | None, endpoint: str | None) -> None:
        self._errors = needed("langsmith.utils", "Publishing to LangSmith", "langsmith")
        self._client = needed("langsmith", "Publishing to LangSmith", "langsmith").Client(api_url=endpoint)
        self._name = project or self._errors.get_tracer_project()
        self._notes: list[str] = []

    def open(self, run: ScoredRun) -> str:
        """Wait until this process has sent its traces, and find the project."""
        needed("langchain_core.tracers.langchain", "Publishing to LangSmith", "langsmith").wait_for_all_tracers()
        try:
            self._project = self._client.read_project(project_name=self._name)
        except self._errors.LangSmithNotFoundError as problem:
            what = f"LangSmith has no project {self._name}"
            raise PublishError(what, hint="Give the one with the traces: --project NAME (project=...).") from problem
        self._run = run
        return f"{self._client.api_url}, project {self._name}"

    def place(self, sample: ScoredSample) -> str:
        """Return the id of a sample's run: the one captured, else by its metadata, else LangChain's id of it."""
        found = sample.trace_ids.get("langsmith") or self._traces.of(sample) or sample.run_id
        if found is None:
            raise NotPlacedError("the response has no run id, and no trace of the project names its question")
        return str(found)

    def send(self, sample: ScoredSample, place: str, scores: Sequence[Score]) -> Mapping[str, str]:
        """Create the feedback, or update it if it exists."""
        for score in scores:
            try:
                self._client.create_feedback(
                    run_id=place,
                    key=score.metric,
                    score=score.value,
                    comment=score.comment or None,
                    feedback_id=UUID(score.id),
                    session_id=self._project.id,
                    source_info={"graphrag_eval_lc_run": self._run.run_id, "question_id": sample.question_id},
                    stop_after_attempt=1,
                )
            except self._errors.LangSmithConflictError:
                self._client.update_feedback(UUID(score.id), score=score.value, comment=score.comment)
            except self._errors.LangSmithNotFoundError as problem:
                why = f"the project {self._name} has no run {place}: was the agent traced, and into this project?"
                raise NotPlacedError(why) from problem
        return {}

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Return what the user should know; nothing is left to send."""
        return self._notes

    @cached_property
    def _traces(self) -> TraceIndex:
        return TraceIndex(self._found())

    def _found(self) -> Iterator[FoundTrace]:
        """Yield the root runs that began while the run was under way."""
        if (window := self._run.window) is None:
            return
        first, last = window
        select = ["id", "start_time", "extra", "trace_id", "session_id", "name", "run_type", "dotted_order", "inputs"]
        upto = f'lt(start_time, "{last.isoformat()}")'
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # its successor needs a server version of 2026
            try:
                for each in self._client.list_runs(
                    project_id=self._project.id, is_root=True, start_time=first, filter=upto, select=select
                ):
                    yield FoundTrace(str(each.id), each.metadata, _seconds(each.start_time))
            except self._errors.LangSmithAuthError:
                raise
            except self._errors.LangSmithError as problem:
                self._notes.append(f"the runs of the project could not be listed: {problem}")


def _seconds(time: datetime) -> float:
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
