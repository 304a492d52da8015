"""A row for each template: its questions, scores with their distributions, and what it spent."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from graphrag_eval_lc.aggregation import RunNumbers
from graphrag_eval_lc.registry.metrics import metric_spec
from graphrag_eval_lc.report.distributions import range_of
from graphrag_eval_lc.report.scores import ScoreValues, score_record
from graphrag_eval_lc.report.spent import Spent
from graphrag_eval_lc.report.texts import shown_name


def template_rows(
    numbers: RunNumbers, scores: Mapping[str, ScoreValues], metrics: Iterable[str], spent: Spent
) -> list[dict[str, Any]]:
    """Give the section ``templates``, in the order of the results.

    Args:
        numbers: The numbers of all questions.
        scores: The values of their scores.
        metrics: Those that have a column.
        spent: What the samples spent.
    """
    questions = Counter(question.template_id for question in numbers.questions.values())
    errors: Counter[str] = Counter()
    for question in numbers.questions.values():
        errors[question.template_id] += question.errors
    ranges = {metric: range_of(metric_spec(metric), scores[metric].all_values()) for metric in metrics}
    return [
        {
            "id": shown_name(template_id),
            "questions": count,
            "errors": errors[template_id],
            "scores": {
                metric: _template_score(metric, scores[metric], template_id, shown_range)
                for metric, shown_range in ranges.items()
                if template_id in scores[metric].every
            },
            **spent.means(shown_name(template_id)),
        }
        for template_id, count in questions.items()
    ]


def _template_score(
    metric: str, values: ScoreValues, template_id: str, shown_range: tuple[float, float]
) -> dict[str, Any]:
    of_template = ScoreValues(
        {template_id: values.answered.get(template_id, ())}, {template_id: values.every[template_id]}
    )
    record = score_record(metric, of_template, shown_range)
    return {"n": record.pop("n_all"), **{key: record[key] for key in ("mean_answered", "mean_all", "bins", "range")}}
