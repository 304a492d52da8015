"""Langfuse: publish scores to its traces, and use this package's scorer in its experiments."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.errors import PublishError
from graphrag_eval_lc.integrations.publishing import NotPlacedError, needed
from graphrag_eval_lc.integrations.scores import FoundTrace, Score, ScoredRun, ScoredSample, TraceIndex
from graphrag_eval_lc.integrations.scoring import QuestionScorer, QuestionTarget, questions_in
from graphrag_eval_lc.retrying import status_of
from graphrag_eval_lc.traces.export import exported_trace_id

_CLOUD = "https://cloud.langfuse.com"
_PAGE = 1000


def examples(dataset: DatasetSource) -> list[dict[str, Any]]:
    """Return the questions of a dataset as the ``data`` of Langfuse's ``run_experiment``.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> examples(dataset)[0]["metadata"]
        {'question_id': 'q1', 'template_id': 't'}
    """
    return [
        {
            "input": asked.inputs,
            "expected_output": asked.reference,
            "metadata": {key: value for key, value in asked.inputs.items() if key != "question"},
        }
        for asked in questions_in(dataset)
    ]


def target(agent: Any, **options: Any) -> Callable[..., dict[str, Any]]:
    """Return the ``task`` of Langfuse's ``run_experiment``.

    Args:
        agent: What ``run_benchmark`` accepts.
        **options: ``timeout`` and ``capture``, as for ``QuestionTarget``.
    """
    asking = QuestionTarget(agent, **options)

    def ask(*, item: Any, **_: Any) -> dict[str, Any]:
        return asking(item["input"] if isinstance(item, Mapping) else item.input)

    return ask


def scorer(config: Any = None, **options: Any) -> Callable[..., list[Any]]:
    """Return an evaluator for Langfuse's ``run_experiment``: the scores of this package, each with its reason.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    evaluation = needed("langfuse", "Langfuse's experiments", "langfuse").Evaluation
    scoring = QuestionScorer(config, **options)

    def graphrag_eval(*, input: Any, output: Any, expected_output: Any = None, **_: Any) -> list[Any]:
        scores = scoring(input, output, expected_output)
        return [evaluation(name=each.name, value=each.value, comment=each.comment or None) for each in scores]

    return graphrag_eval


class Publisher:
    """Sends scores to Langfuse's API, which reports whether it accepts them; the client's queue does not.

    Args:
        project: None, as the keys belong to a project.
        endpoint: Langfuse's address; None: LANGFUSE_BASE_URL or LANGFUSE_HOST, else Langfuse's cloud. The keys are
            LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.
    """

    def __init__(self, project: str | None, endpoint: str | None) -> None:
        api = needed("langfuse.api", "Publishing to Langfuse", "langfuse")
        key, secret = (os.environ.get(f"LANGFUSE_{name}_KEY", "") for name in ("PUBLIC", "SECRET"))
        if project is not None:
            raise PublishError("Langfuse's keys belong to a project", hint="Leave --project (project=...) out.")
        if not key or not secret:
            hint = "Set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY."
            raise PublishError("the environment has no keys of Langfuse", hint=hint)
        self._key = key
        own = os.environ.get("LANGFUSE_BASE_URL") or os.environ.get("LANGFUSE_HOST") or _CLOUD
        self._address = endpoint or own
        names = {"x_langfuse_sdk_name": "graphrag-eval-lc", "x_langfuse_sdk_version": "1", "timeout": 60}
        self._api = api.LangfuseAPI(
            base_url=self._address, username=key, password=secret, x_langfuse_public_key=key, **names
        )
        self._request = needed("langfuse.api.scores.types", "Publishing to Langfuse", "langfuse").CreateScoreRequest
        self._known: set[str] | None = set()
        self._notes: list[str] = []

    def open(self, run: ScoredRun) -> str:
        """Send the traces that wait in this process, and list those that began while the run was under way."""
        if (langfuse := sys.modules.get("langfuse")) is not None:
            langfuse.get_client(public_key=self._key).flush()
        self._run = run
        try:
            found = list(self._found())
        except Exception as problem:
            if status_of(problem) in (None, 401, 403):
                raise
            found, self._known = [], None
            self._notes.append(f"its traces could not be listed (HTTP {status_of(problem)}), so ids were not checked")
        else:
            self._known = {str(trace.id) for trace in found}
        self._traces = TraceIndex(found)
        return self._address

    def place(self, sample: ScoredSample) -> str:
        """Return the trace of a sample: the one captured, by its metadata, or exported from the run's folder."""
        exported = exported_trace_id(self._run.run_id, sample.question_id, sample.repeat)
        captured = [sample.trace_ids[name] for name in ("langfuse", "opentelemetry") if name in sample.trace_ids]
        for trace_id in (*captured, self._traces.of(sample), exported):
            if trace_id is not None and (self._known is None or trace_id in self._known):
                return str(trace_id)
        if captured:
            raise NotPlacedError(f"the project has no trace {captured[0]} from the time of the run")
        raise NotPlacedError("the response has no trace id, and no trace names its question: was the agent traced?")

    def send(self, sample: ScoredSample, place: str, scores: Sequence[Score]) -> Mapping[str, str]:
        """Create the scores, or replace those with the same ids."""
        rejected = self._create(sample, place, scores)
        if rejected is None or len(scores) == 1:
            return {} if rejected is None else {scores[0].id: rejected}
        found = {score.id: self._create(sample, place, [score]) for score in scores}  # its errors name no score
        return {identifier: why for identifier, why in found.items() if why is not None}

    def _create(self, sample: ScoredSample, place: str, scores: Sequence[Score]) -> str | None:
        """Send scores; return why some were rejected."""
        about = {"graphrag_eval_lc_run": self._run.run_id, "question_id": sample.question_id}
        requests = [
            self._request(
                id=score.id,
                trace_id=place,
                name=score.metric,
                value=float(score.value),
                comment=score.comment or None,
                data_type="NUMERIC",
                metadata={**about, "template_id": sample.template_id},
                # The same each time, as it belongs to a score's key.
                timestamp=datetime.fromtimestamp(sample.started or 0.0, UTC),
            )
            for score in scores
        ]
        outcome = self._api.scores.create(request=requests)
        if not getattr(outcome, "rejected", 0):
            return None
        return "; ".join(error.message for error in outcome.errors) or "Langfuse rejected it without a reason"

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Return what the user should know; nothing is left to send."""
        return self._notes

    def _found(self) -> Iterator[FoundTrace]:
        """Yield the traces that began while the run was under way, by their root observations."""
        if (window := self._run.window) is None:
            return
        cursor: Any = None
        while True:
            page = self._api.observations.get_many(
                fields="core,basic,metadata",
                expand_metadata="attempt_id,question_id",
                is_root_observation=True,
                from_start_time=window[0],
                to_start_time=window[1],
                limit=_PAGE,
                cursor=cursor,
            )
            for each in page.data:
                yield FoundTrace(each.trace_id, each.metadata or {}, each.start_time.timestamp())
            cursor = page.meta.cursor
            if cursor is None:
                return
