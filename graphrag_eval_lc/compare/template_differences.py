"""Where two runs differ: the main metric of each template, and the questions that were lost and fixed there."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum

from graphrag_eval_lc.compare.flips import Direction
from graphrag_eval_lc.compare.metric_comparison import MetricComparison, difference_of
from graphrag_eval_lc.compare.pair_comparison import ComparedQuestion, PairComparison


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDifference:
    """A template in A and in another run, over the questions that have the metric in both.

    Attributes:
        template_id: Its id.
        number_of_questions: How many questions are compared.
        mean_a: The metric's mean in A.
        mean_b: That in the other run.
        difference: The other run's mean minus that of A.
        lost: How many questions were right in A and are wrong now.
        fixed: How many were wrong in A and are right now.
        worse: How many others are worse now.
        better: How many others are better now.
    """

    template_id: str
    number_of_questions: int
    mean_a: float
    mean_b: float
    difference: float
    lost: int
    fixed: int
    worse: int
    better: int


def template_differences(pair: PairComparison, metric: MetricComparison) -> list[TemplateDifference]:
    """Return the templates, that with the largest drop first; equal ones in the dataset's order.

    Args:
        pair: The run beside A.
        metric: The comparison's main metric, of which the flips are.

    Example:
        >>> from graphrag_eval_lc import compare_runs
        >>> def results(*scores):
        ...     return [
        ...         {"template_id": f"t{n % 2}", "question_id": f"q{n}", "steps_score": score}
        ...         for n, score in enumerate(scores)
        ...     ]
        >>> (pair,) = compare_runs(results(1, 1, 1, 1), results(1, 1, 1, 0)).pairs
        >>> [(each.template_id, each.difference, each.lost) for each in template_differences(pair, pair.metrics[0])]
        [('t1', -0.5, 1), ('t0', 0.0, 0)]
    """
    directions = {flip.question_id: flip.direction for flip in pair.flips}
    groups: dict[str, list[ComparedQuestion]] = {}
    for question in pair.questions:
        if metric.metric in question.values:
            groups.setdefault(question.template_id, []).append(question)
    rows = [_of_template(each, questions, metric.metric, directions) for each, questions in groups.items()]
    return sorted(rows, key=lambda row: -row.difference if metric.lower_is_better else row.difference)


def _of_template(
    template_id: str, questions: Iterable[ComparedQuestion], metric: str, directions: dict[str, Direction]
) -> TemplateDifference:
    pairs = {question.question_id: question.values[metric] for question in questions}
    mean_a, mean_b = (fsum(pair[side] for pair in pairs.values()) / len(pairs) for side in (0, 1))
    turned = Counter(directions.get(each) for each in pairs)
    return TemplateDifference(
        template_id=template_id,
        number_of_questions=len(pairs),
        mean_a=mean_a,
        mean_b=mean_b,
        difference=difference_of((mean_a, mean_b)),
        lost=turned["now wrong"],
        fixed=turned["now right"],
        worse=turned["worse"],
        better=turned["better"],
    )
