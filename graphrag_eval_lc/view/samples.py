"""A result as views read it: its key, its scores, and whether it is right, partly right, wrong or an error."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Literal

from graphrag_eval_lc.aggregation.sample_values import Metrics, number
from graphrag_eval_lc.aggregation.statistics import passes
from graphrag_eval_lc.config import RepeatsConfig
from graphrag_eval_lc.records import is_error
from graphrag_eval_lc.registry.metrics import (
    AGENT_COST,
    ANSWER_F1,
    ANSWER_THRESHOLD,
    ELAPSED_SEC,
    STEPS_SCORE,
    STEPS_SCORE_UPPER,
    TOTAL_TOKENS,
    UPPER_BOUNDS,
    metric_spec,
)
from graphrag_eval_lc.texts import one_line, shown_name

QUESTION_LENGTH: Final = 160  # of its text where samples are listed
State = Literal["right", "partly", "wrong", "undecided", "error", "unscored"]
FAILED: Final[tuple[State, ...]] = ("error", "wrong", "undecided", "partly")


@dataclass(slots=True)
class SeenSample:
    """A result, and what several parts of a view need of it."""

    key: str  # its question's id, with the repeat from the second on; unique in the run
    question_id: str
    repeat: int
    template_id: str  # as it is shown
    question: str  # its text on one line
    result: Mapping[str, Any]
    # Of its scores by metric, several for metrics of steps; what it counts as, if it failed.
    values: Mapping[str, Sequence[float]]
    scores: Mapping[str, float]  # the same by the metric's shown name; for a metric of steps, the mean
    has_failed: bool
    seconds: float | None  # of the last attempt, as the two below
    tokens: float | None
    usd: float | None


def seen_samples(results: Iterable[Mapping[str, Any]], metrics: Metrics) -> Iterator[SeenSample]:
    """Yield the results one at a time as samples with unique keys."""
    taken: set[str] = set()
    shown: dict[str, str | None] = {}  # the names of scores
    for result in results:
        has_failed = is_error(result)
        values: dict[str, Sequence[float]] = {}
        scores: dict[str, float] = {}
        for metric, of_metric in metrics.values(result, has_failed=has_failed).items():
            if metric not in shown:
                shown[metric] = None if metric_spec(metric).is_spent else shown_name(metric)
            if (name := shown[metric]) is not None:
                values[metric] = of_metric
                scores[name] = of_metric[0] if len(of_metric) == 1 else fmean(of_metric)
        yield SeenSample(
            key=sample_key(result, taken),
            question_id=str(result.get("question_id")),
            repeat=repeat_of(result),
            template_id=shown_name(result.get("template_id")),
            question=one_line(result.get("question_text", ""), QUESTION_LENGTH),
            result=result,
            values=values,
            scores=scores,
            has_failed=has_failed,
            seconds=None if (seconds := result.get(ELAPSED_SEC)) is None else number(seconds),
            tokens=None if (tokens := result.get(TOTAL_TOKENS)) is None else number(tokens),
            usd=None if (usd := result.get(AGENT_COST)) is None else number(usd),
        )


def sample_key(result: Mapping[str, Any], taken: set[str]) -> str:
    """Return the key by which a report lists and links a sample, and add it to the keys of those before it."""
    repeat = result.get("repeat")
    given = result.get("question_id")
    name = shown_name(given)
    if name == given:  # one object for all who keep it
        name = given
    key = wanted = f"{name} #{repeat}" if isinstance(repeat, int) and repeat > 1 else name
    count = 1
    while key in taken:
        count += 1
        key = f"{wanted} ({count})"
    taken.add(key)
    return key


def repeat_of(result: Mapping[str, Any]) -> int:
    """Return the number of a result's repeat; 1 if it has none."""
    repeat = result.get("repeat")
    return repeat if isinstance(repeat, int) else 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """The state of a sample, and the score that decided it; no metric if it failed or no score can decide."""

    state: State
    metric: str | None = None
    score: float | None = None

    @property
    def rank(self) -> tuple[bool, float]:
        """The sort key of a sample that is not right: errors first, then by score, the worst first."""
        value = 0.0 if self.score is None else self.score
        is_lower_better = self.metric is not None and metric_spec(self.metric).lower_is_better
        return self.state != "error", -value if is_lower_better else value


def verdict_of(sample: SeenSample, passing: RepeatsConfig) -> Verdict:
    """Return whether a sample is right.

    The score of the config's ``repeats`` decides (by default ``steps_score``, which has to be 1), else the steps, else
    the answer, else the first other score whose best value is declared.
    """
    if sample.has_failed:
        known = score_of(sample, passing.metric)
        return Verdict("error", passing.metric if known is not None else None, known)
    for metric, threshold in deciding_scores(passing):
        if (score := score_of(sample, metric)) is not None:
            return Verdict(_state(sample, metric, score, threshold), metric, score)
    for metric, score in sample.scores.items():
        spec = metric_spec(metric)
        best = spec.range[0 if spec.lower_is_better else 1]
        if spec.kind == "score" and spec.over == "questions" and best is not None and not spec.is_part:
            return Verdict(_state(sample, metric, score, best), metric, score)
    return Verdict("unscored")


def score_of(sample: SeenSample, metric: str) -> float | None:
    """Return a sample's score; a score that is certain is its own upper bound."""
    score = sample.scores.get(shown_name(metric))
    return sample.scores.get(UPPER_BOUNDS[metric]) if score is None and metric in UPPER_BOUNDS else score


def deciding_scores(passing: RepeatsConfig) -> tuple[tuple[str, float], ...]:
    """Return the scores that decide whether a sample is right, with thresholds; the first one that it has counts."""
    return ((passing.metric, passing.threshold), (STEPS_SCORE, 1.0), (ANSWER_F1, ANSWER_THRESHOLD))


def _state(sample: SeenSample, metric: str, score: float, threshold: float) -> State:
    spec = metric_spec(metric)
    if passes(score, threshold, lower_is_better=spec.lower_is_better):
        return "right"
    if metric == STEPS_SCORE and (number(sample.result.get(STEPS_SCORE_UPPER)) or 0.0) >= threshold:
        return "undecided"
    worst = spec.value_of_failure
    is_worst = worst is not None and (score >= worst if spec.lower_is_better else score <= worst)
    return "wrong" if is_worst else "partly"
