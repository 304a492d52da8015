"""Pydantic Evals: this package's scorer as an evaluator of its datasets."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphrag_eval_lc.dataset.loading import DatasetSource
from graphrag_eval_lc.integrations.publishing import needed
from graphrag_eval_lc.integrations.scoring import QuestionScorer, QuestionTarget, questions_in

_FEATURE = "Pydantic Evals"


def examples(dataset: DatasetSource) -> list[Any]:
    """Return the questions of a dataset as cases, for ``Dataset(cases=…)``."""
    case = needed("pydantic_evals", _FEATURE, "pydantic-evals").Case
    return [
        case(name=asked.inputs["question_id"], inputs=asked.inputs, expected_output=asked.reference)
        for asked in questions_in(dataset)
    ]


def target(agent: Any, **options: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the task that ``Dataset.evaluate`` calls.

    Args:
        agent: What ``run_benchmark`` accepts.
        **options: ``timeout`` and ``capture``, as for ``QuestionTarget``.
    """
    asking = QuestionTarget(agent, **options)

    def ask(inputs: dict[str, Any]) -> dict[str, Any]:
        return asking(inputs)

    return ask


def scorer(config: Any = None, **options: Any) -> Any:
    """Return an evaluator for ``Dataset(evaluators=…)``: the scores of this package, each with its reason.

    Args:
        config: A path, a dict or an EvaluationConfig; None for the defaults.
        **options: ``metrics`` and ``evaluators``, as for ``QuestionScorer``.
    """
    evaluators = needed("pydantic_evals.evaluators", _FEATURE, "pydantic-evals")
    base, reason = evaluators.Evaluator, evaluators.EvaluationReason
    scoring = QuestionScorer(config, **options)

    @dataclass
    class GraphRAGEval(base):  # type: ignore[misc, valid-type]  # its base is from an optional package
        def evaluate(self, ctx: Any) -> dict[str, Any]:
            scores = scoring(ctx.inputs, ctx.output, ctx.expected_output)
            return {each.name: reason(value=each.value, reason=each.comment or None) for each in scores}

    return GraphRAGEval()
