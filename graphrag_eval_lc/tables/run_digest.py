"""What is most worth seeing of a run's results: the means, the templates and the worst questions, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from graphrag_eval_lc.aggregation import QuestionValues, RunValues, reason_of
from graphrag_eval_lc.aggregation.score_means import ScoreMean, mean_text, score_values, shown_means
from graphrag_eval_lc.masking import masked_text
from graphrag_eval_lc.registry import MetricSpec, metric_spec
from graphrag_eval_lc.registry.metrics import MAIN_METRIC
from graphrag_eval_lc.tables.notebook_html import LONGEST_TEXT, Cell, Column, Share, rows_html
from graphrag_eval_lc.texts import plural

# More of them make no small table.
_MOST_MEANS: Final = 12
_MOST_TEMPLATES: Final = 12
_MOST_QUESTIONS: Final = 5
_KEPT: Final = 400  # characters of a question's text

_Scored = tuple[QuestionValues, float]


@dataclass(frozen=True, slots=True)
class TemplateLine:
    """A template: how many questions it has, how many samples of them failed, and its mean."""

    template_id: str
    questions: int
    failed: int
    mean: float


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A question that failed or did not score in full, and why; without a score where it has none."""

    question_id: str
    question_text: str
    reason: str
    score: float | None


@dataclass(frozen=True, slots=True)
class RunDigest:
    """What is most worth seeing of results.

    Attributes:
        means: The means of the scores, those of this package first.
        metric: The score by which templates and questions are sorted; None where nothing was scored.
        templates: The templates, the worst first.
        worst: The worst questions; those that failed are the first among equals.
        number_of_worse: How many questions failed or did not score in full.
        bar_range: The least and the greatest value that there can be, over which bars are drawn.

    Example:
        >>> result = {"template_id": "t", "question_id": "q", "steps_score": 0.5, "question_text": "?"}
        >>> digest = RunDigest.of([result], RunValues())
        >>> digest.metric, digest.templates[0].mean, digest.worst[0].question_id
        ('steps_score', 0.5, 'q')
    """

    means: Mapping[str, ScoreMean]
    metric: str | None
    templates: list[TemplateLine]
    worst: list[QuestionLine]
    number_of_worse: int
    bar_range: tuple[float, float]

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]], numbers: RunValues) -> "RunDigest":
        """Return the digest of results, which are read once, one at a time.

        Args:
            results: The results.
            numbers: Where their values are added up.
        """
        told: dict[str, tuple[str, str]] = {}
        for result in results:
            numbers.add(result)
            question_id = str(result["question_id"])
            if not told.get(question_id, ("", ""))[1]:  # of repeats the first one with a reason tells it
                text = str(result.get("question_text", ""))[:_KEPT]
                told[question_id] = (text, _reason(result))
        means = shown_means(score_values(numbers))
        metric = MAIN_METRIC if MAIN_METRIC in means else next(iter(means), None)
        spec = metric_spec(metric or MAIN_METRIC)
        scores = [(question, question.score(spec.key)) for question in numbers.questions.values()]
        scored = [(question, score) for question, score in scores if score is not None]
        failed = [(question, None) for question, score in scores if score is None and question.errors]
        worse = [*failed, *_worse(scored, spec)]
        worst = [
            QuestionLine(question.question_id, *_masked(told[question.question_id]), score)
            for question, score in worse[:_MOST_QUESTIONS]
        ]
        if metric is None:
            return cls(means, None, [], worst, len(worse), (0.0, 1.0))
        bar_range = spec.shown_range([score for _, score in scored])
        return cls(means, metric, _templates(scored, spec), worst, len(worse), bar_range)

    def mean_rows(self) -> list[tuple[str, str]]:
        """Return names and texts of the means; of many those of metrics that take another one apart go first."""
        whole_first = sorted(self.means, key=lambda name: not _is_whole(name))
        kept = set(whole_first[:_MOST_MEANS])
        rows = [(f"mean {name}", mean_text(mean)) for name, mean in self.means.items() if name in kept]
        left_out = len(self.means) - len(rows)
        return [*rows, ("more", f"{left_out:,} {plural(left_out, 'mean')} in the aggregates")] if left_out else rows

    def html(self) -> str:
        """Return the templates and the worst questions as tables; empty if nothing was scored and nothing failed."""
        return (self._templates_html() if self.metric is not None else "") + self._questions_html()

    def _templates_html(self) -> str:
        has_failed = any(line.failed for line in self.templates)
        low, high = self.bar_range
        columns = [
            Column("template"),
            Column("questions", is_number=True),
            *([Column("failed", is_number=True)] if has_failed else []),
            Column(f"mean {self.metric}", is_number=True),
            Column(""),
        ]
        rows: list[list[Cell]] = [
            [
                line.template_id,
                f"{line.questions:,}",
                *([f"{line.failed:,}"] if has_failed else []),
                f"{line.mean:.3f}",
                Share((line.mean - low) / (high - low) if high > low else 1.0),
            ]
            for line in self.templates[:_MOST_TEMPLATES]
        ]
        left_out = len(self.templates) - len(rows)
        more = f"and {left_out:,} better {plural(left_out, 'template')}" if left_out else ""
        return rows_html("Templates, the worst first", columns, rows, more)

    def _questions_html(self) -> str:
        if not self.worst:
            return ""
        columns = [
            Column("question"),
            Column("text"),
            Column(self.metric or "score", is_number=True),
            Column("why", longest=LONGEST_TEXT),
        ]
        rows: list[list[Cell]] = [
            [line.question_id, line.question_text, "" if line.score is None else f"{line.score:.3f}", line.reason]
            for line in self.worst
        ]
        left_out = self.number_of_worse - len(self.worst)
        more = f"and {left_out:,} more that did not score in full" if left_out else ""
        return rows_html("The worst questions", columns, rows, more)


def _reason(result: Mapping[str, Any]) -> str:
    """Return why a result did not score in full; nothing where its diagnosis cannot be read."""
    try:
        return reason_of(result)
    except (AttributeError, IndexError, KeyError, TypeError):  # of another version, or of a user's own making
        return ""


def _is_whole(metric: str) -> bool:
    spec = metric_spec(metric)
    return spec.upper_of is not None or not spec.is_part


def _masked(texts: tuple[str, str]) -> tuple[str, str]:
    text, reason = texts
    return masked_text(text), masked_text(reason)


def _worse(scored: Sequence[_Scored], spec: MetricSpec) -> list[_Scored]:
    """Return the questions that do not have the best value, the worst first; of equal ones those that failed."""
    if not scored:
        return []
    values = [score for _, score in scored]
    low, high = spec.bounds_of(values) or (None, None)
    best = (min(values) if low is None else low) if spec.lower_is_better else (max(values) if high is None else high)
    return sorted(
        (each for each in scored if each[1] != best), key=lambda each: (_order(each[1], spec), not each[0].errors)
    )


def _order(value: float, spec: MetricSpec) -> float:
    return -value if spec.lower_is_better else value


def _templates(scored: Iterable[_Scored], spec: MetricSpec) -> list[TemplateLine]:
    groups: dict[str, list[_Scored]] = {}
    for each in scored:
        groups.setdefault(each[0].template_id, []).append(each)
    lines = [
        TemplateLine(
            name, len(group), sum(question.errors for question, _ in group), fmean(score for _, score in group)
        )
        for name, group in groups.items()
    ]
    return sorted(lines, key=lambda line: _order(line.mean, spec))
