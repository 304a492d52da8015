"""MLflow: publish scores as assessments and the run with its report, and use this package's scorer in its runner."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any, Final

from graphrag_eval_lc.benchmark.benchmark_run import load_run
from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.integrations.publishing import NotPlacedError, needed
from graphrag_eval_lc.integrations.scores import FoundTrace, Score, ScoredRun, ScoredSample, TraceIndex
from graphrag_eval_lc.integrations.scoring import QuestionScorer, QuestionTarget, questions_in
from graphrag_eval_lc.masking import masked_text, masked_values
from graphrag_eval_lc.registry.exporters import REPORT, exporter
from graphrag_eval_lc.texts import shortened

_FEATURE: Final = "Publishing to MLflow"
_OWN_KEY: Final = "graphrag_eval_lc.score"  # in the metadata of an assessment, its fixed id
_RUN_TAG: Final = "graphrag_eval_lc.run_id"
_PAGE: Final = 200
_BATCH: Final = 100  # how many params and tags MLflow accepts per request
_LONGEST: Final = 500  # characters of a param that all of its stores take


def examples(dataset: DatasetSource) -> list[dict[str, Any]]:
    """Return the questions of a dataset as the ``data`` of ``mlflow.genai.evaluate``.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q1", "question_text": "1 + 1?"}]}]
        >>> examples(dataset)[0]["inputs"]["question_id"]
        'q1'
    """
    return [{"inputs": asked.inputs, "expectations": asked.reference} for asked in questions_in(dataset)]


def target(agent: Any, **options: Any) -> Callable[..., dict[str, Any]]:
    """Return the ``predict_fn`` of ``mlflow.genai.evaluate``.

    Args:
        agent: What ``run_benchmark`` accepts.
        **options: ``timeout`` and ``capture``, as for ``QuestionTarget``.
    """
    asking = QuestionTarget(agent, **options)

    def ask(question: str, question_id: str = "", template_id: str = "") -> dict[str, Any]:
        return asking({"question": question, "question_id": question_id, "template_id": template_id})

    return ask


def scorer(config: Any = None, **options: Any) -> Any:
    """Return a scorer for ``mlflow.genai.evaluate``: the scores of this package, each with its reason.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    feature = "mlflow.genai.evaluate"
    feedback = needed("mlflow.entities", feature, "mlflow").Feedback
    scoring = QuestionScorer(config, **options)

    def graphrag_eval(inputs: Any, outputs: Any, expectations: Any = None) -> list[Any]:
        scores = scoring(inputs, outputs, expectations)
        return [
            feedback(name=mlflow_name(each.name), value=each.value, rationale=each.comment or None) for each in scores
        ]

    return needed("mlflow.genai", feature, "mlflow").scorer(graphrag_eval)


class Publisher:
    """Sends scores as feedback, and logs the run once.

    Args:
        project: The experiment; None: MLFLOW_EXPERIMENT_NAME, else ``Default``.
        endpoint: The tracking URI; None: MLFLOW_TRACKING_URI.
    """

    def __init__(self, project: str | None, endpoint: str | None) -> None:
        self._mlflow = needed("mlflow", _FEATURE, "mlflow")
        if endpoint is not None:
            self._mlflow.set_tracking_uri(endpoint)
        self._client = self._mlflow.MlflowClient()
        self._entities = needed("mlflow.entities", _FEATURE, "mlflow")
        self._source = self._entities.AssessmentSource("CODE", "graphrag-eval-lc")
        self._name = project or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "Default"

    def open(self, run: ScoredRun) -> str:
        """Wait until this process has written its traces, and find the experiment, or create the one that is named."""
        with suppress(Exception):  # fails if the tracer was never used
            self._mlflow.flush_trace_async_logging()
        found = self._client.get_experiment_by_name(self._name)
        self._experiment = str(self._client.create_experiment(self._name) if found is None else found.experiment_id)
        self._run = run
        return f"{self._mlflow.get_tracking_uri()}, experiment {self._name}"

    def place(self, sample: ScoredSample) -> Any:
        """Return the trace of a sample: the one captured, else by its metadata."""
        found = sample.trace_ids.get("mlflow") or self._traces.of(sample)
        if found is None:
            raise NotPlacedError("the response has no trace id, and no trace names its question: was the agent traced?")
        try:
            return self._client.get_trace(found, display=False)
        except self._mlflow.MlflowException as problem:
            if problem.error_code == "RESOURCE_DOES_NOT_EXIST":
                raise NotPlacedError(f"MLflow has no trace {found}") from problem
            raise

    def send(self, sample: ScoredSample, place: Any, scores: Sequence[Score]) -> Mapping[str, str]:
        """Log the feedback, or update it if it exists."""
        trace_id = place.info.trace_id
        known = {(each.metadata or {}).get(_OWN_KEY): each for each in place.info.assessments or ()}
        for score in scores:
            feedback = self._entities.Feedback(
                name=mlflow_name(score.metric),
                value=float(score.value),
                rationale=score.comment or None,
                source=self._source,
                metadata={_OWN_KEY: score.id, "question_id": sample.question_id, _RUN_TAG: self._run.run_id},
            )
            if (before := known.get(score.id)) is None:
                self._mlflow.log_assessment(trace_id, feedback)
            elif (before.value, before.rationale) != (feedback.value, feedback.rationale):
                self._mlflow.update_assessment(trace_id, before.assessment_id, feedback)
        return {}

    def close(self, run: ScoredRun) -> Sequence[str]:
        """Log the run: its settings, the means of its scores and what it spent, its tags, and the report."""
        query = f"tags.`{_RUN_TAG}` = '{run.run_id}'"
        found = self._client.search_runs([self._experiment], query, max_results=1)
        finished = _milliseconds(run, "finished")
        if found:
            run_id = found[0].info.run_id
        else:
            started = _milliseconds(run, "started")
            tags = {_RUN_TAG: run.run_id, **{f"graphrag_eval_lc.{tag}": "true" for tag in run.record.get("tags") or ()}}
            names = {mlflow_name(name): shortened(value, _LONGEST) for name, value in tags.items()}
            made = self._client.create_run(self._experiment, start_time=started, tags=names, run_name=run.label)
            run_id = made.info.run_id
        entities = self._entities
        metrics = [
            entities.Metric(mlflow_name(name), value, finished or 0, 0) for name, value in _metrics_of(run).items()
        ]
        # A fixed time and step, so that no value is logged twice; in batches, as single values are slow.
        for part in _parts(metrics, _BATCH):
            self._client.log_batch(run_id, metrics=part)
        given = {**self._client.get_run(run_id).data.params}
        params = [
            entities.Param(name, value) for name, value in _params_of(run).items() if given.get(name, value) == value
        ]
        for part in _parts([param for param in params if param.key not in given], _BATCH):
            self._client.log_batch(run_id, params=part)
        notes = []
        report = run.folder / exporter(REPORT).file_name
        if report.is_file():
            self._client.log_artifact(run_id, str(report))
        else:
            notes.append(f"the run has no {report.name}, so MLflow has none; write it with the command report")
        self._client.set_terminated(run_id, "FAILED" if run.record.get("stopped") else "FINISHED", finished)
        return notes

    @cached_property
    def _traces(self) -> TraceIndex:
        return TraceIndex(self._found())

    def _found(self) -> Iterator[FoundTrace]:
        """Yield the traces that began while the run was under way."""
        if (window := self._run.window) is None:
            return
        first, last = (int(time.timestamp() * 1000) for time in window)
        query, token = f"trace.timestamp_ms >= {first} AND trace.timestamp_ms <= {last}", None
        while True:
            page = self._client.search_traces(
                locations=[self._experiment], filter_string=query, max_results=_PAGE, page_token=token
            )
            for trace in page:
                root = next((span for span in trace.data.spans if span.parent_id is None), None)
                own = None if root is None else root.attributes.get("metadata")
                metadata = {**trace.info.trace_metadata, **(own if isinstance(own, Mapping) else {})}
                yield FoundTrace(trace.info.trace_id, metadata, trace.info.request_time / 1000)
            token = page.token
            if not token:
                return


def mlflow_name(name: str) -> str:
    """Return a metric's name as MLflow accepts it, without ``@`` and ``^``.

    Example:
        >>> mlflow_name("precision@5"), mlflow_name("pass^2"), mlflow_name("steps: f1")
        ('precision_at_5', 'pass_hat_2', 'steps_ f1')
    """
    return re.sub(r"[^\w\-. /]", "_", name.replace("@", "_at_").replace("^", "_hat_"))


def _metrics_of(run: ScoredRun) -> dict[str, float]:
    """Return the means of scores with errors as 0, pass@k, and what the run spent."""
    view = load_run(run.folder).view()
    means = {line.metric: line.mean for line in view.scores}
    spent = {name: float(value) for name, value in view.totals.items() if isinstance(value, int | float)}
    states = {f"samples_{state}": float(count) for state, count in view.headline.states.items()}
    return {**spent, **states, **dict(view.chances), **means}


def _params_of(run: ScoredRun) -> dict[str, str]:
    """Return the settings of the run by flattened names, secrets masked."""
    record = run.record
    dataset = record.get("dataset") or {}
    params: dict[str, Any] = {
        "agent": record.get("agent"),
        "dataset.sha256": dataset.get("sha256"),
        "dataset.questions": dataset.get("questions"),
        "repeats": record.get("repeats"),
        **{f"versions.{name}": value for name, value in (record.get("versions") or {}).items()},
        **{f"config.{name}": value for name, value in _flat(record.get("config") or {})},
    }
    masked = masked_values({name: value for name, value in params.items() if value is not None})
    return {mlflow_name(name): shortened(masked_text(str(value)), _LONGEST) for name, value in masked.items()}


def _flat(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", each) for inner, each in _flat(value))
        elif value not in (None, [], ""):
            yield name, value


def _milliseconds(run: ScoredRun, name: str) -> int | None:
    try:
        return int(datetime.fromisoformat(str((run.record.get("times") or {}).get(name))).timestamp() * 1000)
    except ValueError:
        return None


def _parts(values: Sequence[Any], size: int) -> Iterator[list[Any]]:
    left = iter(values)
    while part := list(islice(left, size)):
        yield part
