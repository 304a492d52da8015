"""What the judges of a run would ask and cost, before anything is asked."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from graphrag_eval_lc.benchmark.run_options import ScoredBy
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.records import Question, Response

LIKE_THE_REFERENCE = (
    "Questions without an answer yet count as if the agent answered and retrieved as the references do; its own "
    "model calls come on top."
)


def planned_judging(
    output: RunOutput, options: ScoredBy, samples: Iterable[Sample], response_of: Callable[[Sample], Response | None]
) -> RequestPlan | None:
    """Return what the judges would ask about samples; None where no model judges.

    Nothing is asked and nothing written. Answers that the folder's cache has are not asked for again.

    Args:
        output: Where the run goes.
        options: What scores it.
        samples: The samples.
        response_of: Returns the response to a sample; None for one that failed or is left out.
    """
    plan = RequestPlan(output.pricing)
    judges = output.made_judges(options, plan)
    if judges is None or not judges.asks_models:
        return None
    config = options.config
    views = StepViews(config.steps, config.sparql, config.retrieval)

    async def judge_all() -> None:
        for sample in samples:
            response = response_of(sample)
            result = evaluate_question(sample.template, sample.question, response, config, views=views)
            await judges.ajudge(cast("dict[str, Any]", result), sample.question, response or {})

    run_sync(judge_all)
    return plan


def response_as_the_reference(question: Question) -> Response | None:
    """Return the response of an agent that does as the references say; None where they say nothing.

    Example:
        >>> response_as_the_reference({"id": "q", "question_text": "1 + 1?", "reference_answer": "2"})["actual_answer"]
        '2'
    """
    answer = question.get("reference_answer")
    groups = question.get("reference_steps") or [[]]
    steps = [_taken(step, index) for index, step in enumerate(groups[-1])]
    if answer is None and not steps:
        return None
    response = {"question_id": str(question["id"]), "status": "success", "actual_steps": steps}
    return cast("Response", response if answer is None else {**response, "actual_answer": answer})


def _taken(step: Mapping[str, Any], index: int) -> dict[str, Any]:
    kept = {key: step[key] for key in ("name", "args", "output") if key in step}
    return {"args": {}, **kept, "id": f"call_{index}", "status": "success"}
