"""Scoring responses against the reference dataset, one question at a time."""

import asyncio
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from graphrag_eval_lc.config import ConfigSource, EvaluationConfig, RetrievalConfig, load_config
from graphrag_eval_lc.dataset import Key, checked_dataset, questions_of, repeats_of, response_key
from graphrag_eval_lc.errors import GraphRAGEvalWarning, ResponsesError
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.event_loop.stalls import Stall, StallWatch
from graphrag_eval_lc.judges.registered_functions import has_registered_functions
from graphrag_eval_lc.matching import StepDiagnosis, StepsMatch, match_steps
from graphrag_eval_lc.matching.retrieval import retrieval_measures
from graphrag_eval_lc.matching.unknown_tools import UnknownTool, UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, priced_response
from graphrag_eval_lc.records import ActualStep, Question, Response, ResponseModel, Result, Template
from graphrag_eval_lc.registry.metrics import (
    BUILT_IN,
    JUDGES,
    RETRIEVAL_IDS,
    RETRIEVAL_MISSING,
    RETRIEVAL_TEXT,
    RETRIEVAL_TEXT_MISSING,
    STEPS_SCORE,
)
from graphrag_eval_lc.tables import Results

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges

Responses = Mapping[str, Response] | Iterable[Response]

NO_RESPONSE = "there is no response to this question"


class _Asked(NamedTuple):
    """A question, asked once.

    Attributes:
        template: The question's template.
        question: The question.
        response: The response to it, with its costs; None where there is none.
        repeat: Which of its repeats; None where each question was asked once.
    """

    template: Template
    question: Question
    response: Response | None
    repeat: int | None

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"question {self.question['id']}{'' if self.repeat is None else f' (repeat {self.repeat})'}"


# What was measured of the agent's run; what it cost is known by its prices.
_MEASURED = tuple(spec.key for spec in BUILT_IN if spec.spent_by == "agent" and spec.unit != "usd")
# What an earlier evaluation found is no measurement of this one.
_NOT_HANDED_THROUGH = frozenset(
    {
        "id",
        "status",
        "error",
        "custom_metrics",
        *(spec.key for spec in BUILT_IN if spec.kind == "count"),
        *_MEASURED,
        *(key for judge in JUDGES if judge.over == "questions" for key in judge.keys),
    }
)


def run_evaluation(
    qa_dataset: Sequence[Template],
    responses: Responses,
    config: ConfigSource = None,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
) -> Results:
    """Score responses against a reference dataset.

    It works inside a running event loop too, as in a notebook. Nothing that is passed in is changed. Where tools are
    called whose names no reference step has, and reference steps are missed for it, a ``GraphRAGEvalWarning`` says so.

    Args:
        qa_dataset: The templates with their questions, as ``load_dataset`` gives them.
        responses: The responses by question id, or a list of responses that carry their question ids (and their
            ``repeat``, where a question was asked several times).
        config: A path, a dict or an EvaluationConfig; None for the defaults. With an ``llm`` section answers and
            retrieved contexts are judged by a language model.
        evaluators: Functions of your own, async or not: ``(question, response) -> float | str | bool | dict``, or with
            keywords ``(inputs, outputs, reference_outputs) -> {key, score, comment}``. Registered metrics and
            evaluators (``register_metric``, ``register_evaluator``) are called too.
        llm: A LangChain chat model or JudgeModel that judges, in place of that of the config.
        embeddings: LangChain embeddings or an EmbeddingModel, likewise.

    Returns:
        One result for each question, in the dataset's order, or for each of its repeats, with ``repeat``, where a list
        has several: a list that also gives frames and plots. A question without a response, or whose response cannot
        be used, is an error sample; it never ends the evaluation.

    Raises:
        DatasetError: The dataset breaks the format.
        ResponsesError: The responses are neither a mapping nor a list of responses with question ids.
        ConfigError: The config has a key or value that does not exist.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?"}]}]
        >>> run_evaluation(dataset, {"q": {"question_id": "q", "actual_answer": "2"}})[0]["status"]
        'success'
    """
    judges, asked, results, unknown = _scored(
        qa_dataset, responses, config, evaluators=evaluators, llm=llm, embeddings=embeddings
    )
    for tool in unknown:
        warnings.warn(str(tool), GraphRAGEvalWarning, stacklevel=2)
    if judges is not None:
        for stall in run_sync(lambda: _ajudge(judges, asked, results)):
            warnings.warn(stall, GraphRAGEvalWarning, stacklevel=2)
    return results


async def arun_evaluation(
    qa_dataset: Sequence[Template],
    responses: Responses,
    config: ConfigSource = None,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
) -> Results:
    """Score responses in an event loop; see ``run_evaluation``."""
    judges, asked, results, unknown = _scored(
        qa_dataset, responses, config, evaluators=evaluators, llm=llm, embeddings=embeddings
    )
    for tool in unknown:
        warnings.warn(str(tool), GraphRAGEvalWarning, stacklevel=2)
    if judges is not None:
        for stall in await _ajudge(judges, asked, results):
            warnings.warn(stall, GraphRAGEvalWarning, stacklevel=2)
    return results


def _scored(
    qa_dataset: Sequence[Template],
    responses: Responses,
    config: ConfigSource,
    *,
    evaluators: Sequence[Callable[..., Any]],
    llm: Any,
    embeddings: Any,
) -> "tuple[Judges | None, Sequence[_Asked], Results, list[UnknownTool]]":
    """Give who judges, what was asked and answered, the results so far, and tools whose names no reference step has."""
    settings = load_config(config, has_llm=llm is not None, has_embeddings=embeddings is not None)
    templates = checked_dataset(qa_dataset)
    by_key = _responses_by_key(responses)
    pricing = Pricing(settings.prices)
    judges = judges_of(settings, evaluators=evaluators, llm=llm, embeddings=embeddings, pricing=pricing)
    samples = list(repeats_of(questions_of(templates), by_key))
    has_repeats = any(repeat > 1 for _, _, repeat in samples)
    asked = []
    for template, question, repeat in samples:
        response = _priced(by_key.get((str(question["id"]), repeat)), pricing)
        asked.append(_Asked(template, question, response, repeat if has_repeats else None))
    results = Results(
        evaluate_question(each.template, each.question, each.response, settings, repeat=each.repeat) for each in asked
    )
    unknown = UnknownTools(settings, reference_names(templates))
    for _, question, response, _ in asked:
        if isinstance(response, Mapping):
            unknown.add(question.get("reference_steps"), response)
    return judges, asked, results, unknown.found()


async def _ajudge(judges: "Judges", asked: Sequence[_Asked], results: Sequence[Result]) -> Sequence[str]:
    """Add what the judges say to the results; give what is to be said of judges that blocked the event loop."""
    places = asyncio.Semaphore(judges.max_concurrency)
    told: dict[str, str] = {}  # by the place in the code, as one evaluator may block it for each question

    def stalled(stall: Stall) -> None:
        what = "code that belongs to no question" if stall.span is None else f"judging {stall.span.subject}"
        told.setdefault(stall.where, stall.text(what))

    async def judge(result: Result, sample: _Asked) -> None:
        async with places:
            with watch.span(sample.name):
                await judges.ajudge(cast("dict[str, Any]", result), sample.question, sample.response or {})

    with StallWatch(stalled) as watch:
        try:
            await asyncio.gather(*map(judge, results, asked))
        finally:
            await judges.aclose()
    return list(told.values())


def _priced(response: Response | None, pricing: Pricing) -> Response | None:
    return cast("Response", priced_response(response, pricing)) if isinstance(response, Mapping) else response


def judges_of(
    config: EvaluationConfig,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
    cache: Any = None,
    pricing: Pricing | None = None,
) -> "Judges | None":
    """Give the judges that a config, a caller and registered functions ask for; None where nothing is judged.

    Raises:
        ConfigError: Something needs a model that is not there.
        OptionError: A function cannot be an evaluator.
        MissingExtraError: The package that a model needs is not installed.
    """
    if config.llm is None and llm is None and not evaluators and not has_registered_functions():
        return None
    # Imported here, as a run without judges needs nothing of it.
    from graphrag_eval_lc.judges.judging import Judges

    return Judges.from_config(
        config, llm=llm, embeddings=embeddings, functions=evaluators, cache=cache, pricing=pricing
    )


def _responses_by_key(responses: Responses) -> dict[Key, Response]:
    """Give responses by question and repeat; of several to one the last wins. A mapping has one for each question."""
    if isinstance(responses, Mapping):
        return {(str(identifier), 1): response for identifier, response in responses.items()}
    return {response_key(response): response for response in response_records(responses)}


def response_records(responses: Responses) -> list[Response]:
    """Give responses as a list, each with its question id.

    Raises:
        ResponsesError: They are neither a mapping nor a list of responses with question ids.
    """
    if isinstance(responses, Mapping):
        return [
            cast("Response", {"question_id": str(identifier), **response})
            for identifier, response in responses.items()
            if isinstance(response, Mapping)
        ]
    if isinstance(responses, str | bytes) or not isinstance(responses, Iterable):
        raise ResponsesError(
            f"responses cannot be read from {type(responses).__name__}",
            mend="Give a dict by question id or a list; load_responses(path) reads a file.",
        )
    records = list(responses)
    for index, response in enumerate(records):
        if not isinstance(response, Mapping) or response.get("question_id") is None:
            raise ResponsesError(
                "a response without question_id", key=f"[{index}]", mend="Add the id of the question that it answers."
            )
    return records


def evaluate_question(
    template: Template,
    question: Question,
    response: Response | None,
    config: EvaluationConfig,
    *,
    repeat: int | None = None,
) -> Result:
    """Score one response.

    Args:
        template: The question's template.
        question: The question with its reference.
        response: The agent's response; None scores as an error sample.
        config: The configuration.
        repeat: Which repeat of the question it is, for the result to say; None where each is asked once.

    Returns:
        The result; its records are copies, with what is nested in them shared. Its keys are graphrag-eval's and, where
        documents are to be retrieved, ``retrieval_missing`` (see ``Result``) and on the steps ``retrieval_ids_…`` and
        ``retrieval_text_…``, then
        ``steps_diagnosis`` (for each reference step the nearest actual step and the reason) and ``steps_counts``
        (steps that fit no reference step, repeated identical calls, failed calls; none of them changes the score),
        then further keys of the question and the response.
    """
    response, error = _usable(response)
    actual_steps = [_unmeasured(step) for step in response.get("actual_steps") or ()]
    for step in actual_steps:
        _complete_status(step)
    result: dict[str, Any] = {
        "template_id": str(template["template_id"]),
        "question_id": str(question["id"]),
        "question_text": question["question_text"],
    }
    if "reference_answer" in question:
        result["reference_answer"] = question["reference_answer"]
    groups = question.get("reference_steps")
    if groups is not None:
        result["reference_steps"] = [[dict(step) for step in group] for group in groups]
    if "actual_answer" in response:
        result["actual_answer"] = response["actual_answer"]
    result["actual_steps"] = actual_steps
    result["status"] = "success" if error is None else "error"
    if error is not None:
        result["error"] = error
    matched = None
    if groups:
        matched = match_steps(
            groups,
            actual_steps,
            scoring=config.steps.scoring,
            sparql=config.sparql,
            names=config.steps.names,
            retrieval=config.retrieval,
        )
        _add_scores(result, matched)
        _add_retrieval(result, matched, config.retrieval)
    result.update({key: response[key] for key in _MEASURED if response.get(key) is not None})  # type: ignore[literal-required]
    if matched is not None:
        result["steps_diagnosis"] = [[_diagnosis_record(step) for step in group] for group in matched.diagnosis]
        result["steps_counts"] = {
            "extra": len(matched.extra),
            "repeated": len(matched.repeated),
            "failed": len(matched.failed),
        }
    _hand_through(result, question, response)
    if repeat is not None:
        result["repeat"] = repeat
    return cast("Result", result)


def _usable(response: Response | None) -> tuple[Response, str | None]:
    """Give a response that can be scored, and its error where it has one."""
    if response is None:
        return {}, NO_RESPONSE
    try:
        ResponseModel.model_validate({"question_id": "-", **response} if isinstance(response, Mapping) else response)
    except ValidationError as problem:
        first = problem.errors()[0]
        key = ".".join(map(str, first["loc"]))
        return {}, f"the response cannot be used: {key + ': ' if key else ''}{first['msg']}"
    error = response.get("error")
    if error is None and response.get("status") == "error":
        error = "the agent failed without a message"
    return response, None if error is None else str(error) or "the agent failed without a message"


def _unmeasured(step: ActualStep) -> ActualStep:
    """Give a copy of a step without what an earlier evaluation measured of its retrieval."""
    copied = {key: value for key, value in step.items() if not key.startswith((RETRIEVAL_IDS, RETRIEVAL_TEXT))}
    return cast("ActualStep", copied)


def _complete_status(step: ActualStep) -> None:
    """Fill in what hand-written steps may lack; recorded runs carry the text of a failure in the output."""
    if step.get("status") is None:
        step["status"] = "success" if step.get("error") is None else "error"
    if step["status"] == "error" and step.get("error") is None:
        output = step.get("output")
        step["error"] = output if isinstance(output, str) and output else "the call failed without a message"


def _add_scores(result: dict[str, Any], matched: StepsMatch) -> None:
    for match in matched.matches:
        identifier = result["actual_steps"][match.actual].get("id")
        reference_step = result["reference_steps"][match.group][match.reference]
        reference_step["matches"] = str(match.actual) if identifier is None else str(identifier)
    for index, reason in matched.unreadable.items():
        result["actual_steps"][index]["comparison_error"] = reason
    if matched.steps_score is not None:
        result[STEPS_SCORE] = matched.steps_score


def _add_retrieval(result: dict[str, Any], matched: StepsMatch, config: RetrievalConfig) -> None:
    measured = retrieval_measures(matched.retrieval_pairs(), config)
    for index, record in measured.of_steps.items():
        result["actual_steps"][index].update(record)
    if measured.missing is not None:
        result[RETRIEVAL_MISSING] = measured.missing
    if measured.text_missing is not None:
        result[RETRIEVAL_TEXT_MISSING] = measured.text_missing


def _diagnosis_record(step: StepDiagnosis) -> dict[str, Any]:
    record: dict[str, Any] = {"score": step.score, "matched": step.matched, "reason": step.reason}
    if step.nearest is not None:
        record["nearest"] = step.nearest_id if step.nearest_id is not None else str(step.nearest)
    return record


def _hand_through(result: dict[str, Any], question: Question, response: Response) -> None:
    """Add the further keys of the question, then of the response, where nothing stands yet."""
    for record in (question, response):
        for key, value in record.items():
            if key not in _NOT_HANDED_THROUGH and key not in result:
                result[key] = value
