"""What is reported before anything is asked: of gates, of a shard, and of what the judges would ask and cost."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, cast

from graphrag_eval_lc.benchmark.run_options import CheckedOptions, ScoredBy
from graphrag_eval_lc.benchmark.run_output import RunOutput
from graphrag_eval_lc.compare.gate_names import KnownMetrics, check_gates
from graphrag_eval_lc.config import locate
from graphrag_eval_lc.errors import ConfigError
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.evaluation.samples import Sample, samples_of
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.judges.request_plan import RequestPlan
from graphrag_eval_lc.matching.step_views import StepViews
from graphrag_eval_lc.prices import dollars
from graphrag_eval_lc.records import Question, Response, Template
from graphrag_eval_lc.texts import counted

LIKE_THE_REFERENCE = (
    "Questions without an answer yet count as if the agent answered and retrieved as the references do; its own "
    "model calls come on top."
)


def check_gates_of(options: ScoredBy, templates: Sequence[Template], source: object) -> list[str]:
    """Check the names in the gates of the configuration and in those passed with it.

    Args:
        options: The options of the run.
        templates: The whole dataset, of which perhaps not all questions are selected.
        source: What the configuration was loaded from.

    Returns:
        Warnings about names that only evaluators can return.

    Raises:
        ConfigError: A gate of the config names a metric or template that there is not, or bounds a metric on the wrong
            side; with its line, if the source is a file.
        OptionError: The same of another gate.
    """
    gates = (options.config.gates, options.gates)
    if not any(gates):
        return []
    known = KnownMetrics.of(
        options.config,
        options.evaluators,
        has_llm=options.llm is not None,
        has_embeddings=options.embeddings is not None,
    )
    ids = [str(template["template_id"]) for template in templates]
    try:
        doubts = [
            doubt
            for of_config, each in zip((True, False), gates, strict=True)
            for doubt in check_gates(each, known, ids, of_config=of_config)
        ]
    except ConfigError as problem:
        if isinstance(source, str | PathLike):
            locate(problem, source)
        raise
    return list(dict.fromkeys(doubts))


def shard_notes(options: CheckedOptions, questions: Sequence[tuple[Template, Question]]) -> list[str]:
    """Return one sentence about a shard, or nothing if the run has no shards.

    Args:
        options: The options of the whole run.
        questions: The questions that the options select.
    """
    shard = options.shard
    if shard is None:
        return []
    number, whole = len(samples_of(questions, options.repeats, shard)), len(questions) * options.repeats
    samples = counted(number, "question" if options.repeats == 1 else "sample")
    limits = ", ".join(_limits(options))
    note = f"this is shard {shard} of a run: {samples} of {whole:,}" + (f", with {limits}" if limits else "")
    bounds = "; the gates are checked when the shards are merged" if options.config.gates else ""
    return [f"{note}{bounds}"]


def _limits(options: CheckedOptions) -> Iterator[str]:
    """Yield what of the run's limits this shard has."""
    part = options.in_shard()
    if options.requests_per_minute is not None and part.requests_per_minute is not None:
        yield f"{part.requests_per_minute:.4g} of its {options.requests_per_minute:.10g} requests a minute"
    if options.max_tokens is not None:
        yield f"{part.max_tokens:,} of its {options.max_tokens:,} tokens"
    if options.max_cost is not None and part.max_cost is not None:
        yield f"{dollars(part.max_cost)} of its {dollars(options.max_cost)}"
    limit = options.failure_limit
    if limit is not None and not limit.is_share:
        yield f"{part.failure_limit} of its {limit} failures"


def planned_judging(
    output: RunOutput, options: ScoredBy, samples: Iterable[Sample], response_of: Callable[[Sample], Response | None]
) -> RequestPlan | None:
    """Return what the judges would ask about samples; None if no model judges.

    Nothing is asked and nothing written. Answers that the folder's cache has are not asked for again.

    Args:
        output: The output of the run.
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
    """Return the response of an agent that does as the references say; None if they say nothing.

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
