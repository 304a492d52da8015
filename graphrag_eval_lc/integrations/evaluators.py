"""Wrap metrics of openevals, DeepEval and ragas as evaluators of this package.

Evaluators of agentevals, which compare messages, need no wrapper: pass them as they are.
"""

from collections.abc import Callable, Mapping
from typing import Any

from graphrag_eval_lc.answers.answer_text import answer_text
from graphrag_eval_lc.integrations.publishing import needed

Question = Mapping[str, Any]
Response = Mapping[str, Any]
Evaluator = Callable[[Question, Response], Any]


def answer_evaluator(evaluator: Callable[..., Any], name: str | None = None) -> Evaluator:
    """Wrap an evaluator of openevals for the answer: it receives texts instead of the whole question and response.

    Args:
        evaluator: Such as openevals' ``exact_match``, or what ``create_llm_as_judge`` returns: it takes ``inputs``,
            ``outputs`` and ``reference_outputs``, and returns ``{key, score, comment}``.
        name: The key of its value; None: its own.

    Example:
        >>> def exact(*, outputs, reference_outputs, **more):
        ...     return {"key": "equal", "score": outputs == reference_outputs}
        >>> answer_evaluator(exact)({"question_text": "1 + 1?", "reference_answer": "2"}, {"actual_answer": "2"})
        {'equal': True}
    """

    def evaluate(question: Question, response: Response) -> dict[str, Any]:
        found = evaluator(
            inputs=answer_text(question.get("question_text")),
            outputs=answer_text(response.get("actual_answer")),
            reference_outputs=answer_text(question.get("reference_answer")),
        )
        key = name or str(found["key"])
        comment = found.get("comment")
        return {key: found["score"], **({} if comment is None else {f"{key}_reason": comment})}

    return _named(evaluate, name or str(getattr(evaluator, "__name__", "answer")))


def deepeval_evaluator(metric: Any, name: str | None = None) -> Evaluator:
    """Return a metric of DeepEval as an evaluator, called once for each response, one at a time.

    The test case has the question, both answers, what successful steps returned as ``retrieval_context``, and the steps
    as ``tools_called`` and ``expected_tools`` (those of the last group of the reference).

    Args:
        metric: A metric, such as ``ToolCorrectnessMetric()``.
        name: The key of its value; None: the class of the metric in snake case.
    """
    cases = needed("deepeval.test_case", "A metric of DeepEval", "deepeval")
    key = name or _snake(type(metric).__name__)

    def tools(steps: Any) -> list[Any]:
        return [
            cases.ToolCall(
                name=str(step.get("name")), input_parameters=step.get("args") or {}, output=step.get("output")
            )
            for step in steps
        ]

    async def evaluate(question: Question, response: Response) -> dict[str, Any]:
        groups = question.get("reference_steps") or [[]]
        case = cases.LLMTestCase(
            input=answer_text(question.get("question_text")),
            actual_output=answer_text(response.get("actual_answer")),
            expected_output=answer_text(question.get("reference_answer")),
            retrieval_context=_outputs(response),
            tools_called=tools(response.get("actual_steps") or ()),
            expected_tools=tools(groups[-1]),
        )
        score = await metric.a_measure(case, _show_indicator=False)
        reason = getattr(metric, "reason", None)
        return {key: score, **({} if reason is None else {f"{key}_reason": reason})}

    return _named(evaluate, key)


def ragas_evaluator(metric: Any, name: str | None = None) -> Evaluator:
    """Return a metric of ragas for single turns as an evaluator.

    The sample has the question, both answers, and what successful steps returned as ``retrieved_contexts``.

    Args:
        metric: A metric with ``single_turn_ascore``, such as ``NonLLMStringSimilarity()``.
        name: The key of its value; None: the metric's name.
    """
    sample = needed("ragas.dataset_schema", "A metric of ragas", "ragas").SingleTurnSample
    key = name or str(metric.name)

    async def evaluate(question: Question, response: Response) -> dict[str, Any]:
        given = sample(
            user_input=answer_text(question.get("question_text")),
            response=answer_text(response.get("actual_answer")),
            reference=answer_text(question.get("reference_answer")),
            retrieved_contexts=_outputs(response),
        )
        return {key: float(await metric.single_turn_ascore(given))}

    return _named(evaluate, key)


def _outputs(response: Response) -> list[str]:
    steps = response.get("actual_steps") or ()
    return [answer_text(step.get("output")) for step in steps if step.get("status", "success") == "success"]


def _named(evaluate: Evaluator, name: str) -> Evaluator:
    """Return an evaluator under the name by which errors are reported."""
    evaluate.__name__ = name
    return evaluate


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
