"""Read a run's scores for publishing: each with a fixed id, a comment, and what identifies its trace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from graphrag_eval_lc.aggregation import reason_of
from graphrag_eval_lc.aggregation.sample_values import Metrics
from graphrag_eval_lc.compare.runs import run_results
from graphrag_eval_lc.config import EvaluationConfig
from graphrag_eval_lc.errors import OptionError
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.custom_metrics import recorded_only_here
from graphrag_eval_lc.registry.metric_spec import MetricSpec, reason_key
from graphrag_eval_lc.registry.metrics import ELAPSED_SEC, metric_spec
from graphrag_eval_lc.texts import listed, one_line, shown_name
from graphrag_eval_lc.view.samples import SeenSample, repeat_of, seen_samples

_LONGEST_COMMENT = 480  # Langfuse keeps 500 characters of some texts
_NEAR_SEC = 60.0


@dataclass(frozen=True, slots=True)
class Score:
    """A score of a sample.

    Attributes:
        id: A UUID, made from run, question, repeat and metric: a score that is published again keeps it.
        metric: Its name.
        value: Its value.
        comment: Why it is not the best value, and the link to the report; empty if there is neither.
    """

    id: str
    metric: str
    value: float
    comment: str

    @property
    def digest(self) -> str:
        """A digest of the value and the comment."""
        return blake2b(f"{self.value!r}\n{self.comment}".encode(), digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """A sample with its scores.

    Attributes:
        key: Its key in the run: the question's id, with the repeat from the second on.
        question_id: The question.
        repeat: Its repeat, from 1.
        template_id: The question's template.
        trace_ids: The ids of its traces, by tool, as the response has them.
        run_id: LangChain's id of its run; None if that is not known.
        attempt_id: The id of the attempt in the metadata of its traces; None if that is not known.
        started: When it began, in seconds since 1970; None if that is not known.
        elapsed: How many seconds it took.
        scores: Its scores.
    """

    key: str
    question_id: str
    repeat: int
    template_id: str
    trace_ids: Mapping[str, str]
    run_id: str | None
    attempt_id: str | None
    started: float | None
    elapsed: float
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRun:
    """A run with the scores that are published.

    Attributes:
        folder: Its folder.
        run_id: Its id.
        label: Its label, else the name of its folder.
        record: Its run.json.
        metrics: The metrics that are published.
        samples: Its samples.
    """

    folder: Path
    run_id: str
    label: str
    record: Mapping[str, Any] = field(repr=False)
    metrics: tuple[str, ...]
    samples: tuple[ScoredSample, ...]

    @property
    def window(self) -> tuple[datetime, datetime] | None:
        """The period in which its traces began, with a minute added on both sides; None if no time is known."""
        started = [sample.started for sample in self.samples if sample.started is not None]
        if not started:
            return None
        first, last = min(started) - _NEAR_SEC, max(started) + _NEAR_SEC
        return datetime.fromtimestamp(first).astimezone(), datetime.fromtimestamp(last).astimezone()


@recorded_only_here()
def scored_run(folder: Path, metrics: Sequence[str] | None = None, report_url: str | None = None) -> ScoredRun:
    """Read a run's folder; secrets in comments are masked.

    Args:
        folder: The folder.
        metrics: The metrics to publish; None: the main scores, without the parts that make them up.
        report_url: The address of the run's report, to which comments link.

    Raises:
        OptionError: No question has one of the metrics.
        RunFolderError: The folder cannot be read.
    """
    results = run_results(folder)
    config, run_id = results.config(), str(results.record.get("run_id") or folder.resolve().name)
    seen: dict[str, None] = {}
    samples = []
    for sample in seen_samples(results, Metrics(config, metrics or ())):
        seen |= dict.fromkeys(sample.scores)
        wanted = sample.scores if metrics is None else [shown_name(metric) for metric in metrics]
        scores = [
            _score(sample, name, run_id, report_url, config)
            for name in wanted
            if name in sample.scores and (metrics is not None or is_main(metric_spec(name)))
        ]
        samples.append(_scored_sample(sample, scores))
    for metric in metrics or ():
        if metric not in seen:
            near = get_close_matches(metric, seen, n=1)
            hint = f"Did you mean {near[0]}?" if near else f"The run has {listed(list(seen), 20) or 'no scores'}."
            raise OptionError(f"no question of the run has {metric}", path=folder, key="metrics", hint=hint)
    return ScoredRun(
        folder=folder,
        run_id=run_id,
        label=str(results.record.get("label") or folder.resolve().name),
        record=results.record,
        metrics=tuple(dict.fromkeys(score.metric for sample in samples for score in sample.scores)),
        samples=tuple(samples),
    )


def is_main(spec: MetricSpec) -> bool:
    """Return whether a metric is a score that is not summed up by another one."""
    return spec.kind == "score" and not spec.is_part


def _scored_sample(sample: SeenSample, scores: Iterable[Score]) -> ScoredSample:
    result = sample.result
    given = result.get("trace_ids")
    metadata = result.get("metadata")
    attempt = metadata.get("attempt_id") if isinstance(metadata, Mapping) else None
    try:
        started = datetime.fromisoformat(str(result.get("started_at"))).timestamp()
    except ValueError:
        started = None
    elapsed = result.get(ELAPSED_SEC)
    return ScoredSample(
        key=sample.key,
        question_id=str(result.get("question_id")),
        repeat=repeat_of(result),
        template_id=sample.template_id,
        trace_ids={str(name): str(each) for name, each in given.items()} if isinstance(given, Mapping) else {},
        run_id=None if result.get("run_id") is None else str(result["run_id"]),
        attempt_id=None if attempt is None else str(attempt),
        started=started,
        elapsed=float(elapsed) if isinstance(elapsed, int | float) else 0.0,
        scores=tuple(scores),
    )


def comment_on(sample: SeenSample, name: str, config: EvaluationConfig) -> str:
    """Return why a score is not the best value, secrets masked: the judge's reason, or what is wrong with the steps."""
    result, spec = sample.result, metric_spec(name)
    judged = result.get(spec.reason_key or reason_key(name))
    best = spec.range[0 if spec.lower_is_better else 1]
    comment = ""
    if judged is not None and not is_error(result):
        comment = str(judged)
    elif is_error(result) or (
        sample.scores[name] != best and (spec.needs == "reference_steps" or name == config.repeats.metric)
    ):
        comment = reason_of(result)
    return one_line(masked_text(comment), _LONGEST_COMMENT)


def _score(sample: SeenSample, name: str, run_id: str, report_url: str | None, config: EvaluationConfig) -> Score:
    result, comment = sample.result, comment_on(sample, name, config)
    if report_url is not None:
        comment = f"{comment}\n{report_url}#q={quote(sample.key)}".lstrip()
    seed = f"graphrag-eval-lc:{run_id}\n{result.get('question_id')}\n{repeat_of(result)}\n{name}"
    return Score(str(uuid5(NAMESPACE_URL, seed)), name, sample.scores[name], comment)


@dataclass(frozen=True, slots=True)
class FoundTrace:
    """A trace that a tool has.

    Attributes:
        id: How the tool's scores name it.
        metadata: Its metadata.
        started: When it began, in seconds since 1970.
    """

    id: Any
    metadata: Mapping[str, Any]
    started: float


class TraceIndex:
    """Finds the traces of samples by the metadata that a run puts into them.

    Args:
        traces: The traces that began while the run was under way.

    Example:
        >>> trace = FoundTrace("t1", {"question_id": "q1", "attempt_id": "a"}, 1_800_000_000.0)
        >>> sample = ScoredSample(
        ...     key="q1",
        ...     question_id="q1",
        ...     repeat=1,
        ...     template_id="t",
        ...     trace_ids={},
        ...     run_id=None,
        ...     attempt_id="a",
        ...     started=None,
        ...     elapsed=0.0,
        ...     scores=(),
        ... )
        >>> TraceIndex([trace]).of(sample)
        't1'
    """

    def __init__(self, traces: Iterable[FoundTrace]) -> None:
        self._by_attempt: dict[str, FoundTrace] = {}
        self._by_question: dict[str, list[FoundTrace]] = {}
        for trace in traces:
            if (attempt := trace.metadata.get("attempt_id")) is not None:
                self._by_attempt.setdefault(_unquoted(attempt), trace)
            elif (question := trace.metadata.get("question_id")) is not None:
                self._by_question.setdefault(_unquoted(question), []).append(trace)

    def of(self, sample: ScoredSample) -> Any | None:
        """Return the id of a sample's trace: that of its attempt, else of its question, begun at most 60 s apart."""
        if (found := self._by_attempt.get(sample.attempt_id or "")) is not None:
            return found.id
        return next(iter(self._near(sample)), None)

    def _near(self, sample: ScoredSample) -> Iterator[Any]:
        started = sample.started
        if started is not None:
            traces = self._by_question.get(sample.question_id, ())
            near = sorted(traces, key=lambda trace: abs(trace.started - started))
            yield from (trace.id for trace in near if abs(trace.started - started) <= _NEAR_SEC)


def _unquoted(value: object) -> str:
    """Return a value of metadata, which some tools keep as JSON."""
    return str(value).strip('"')
