"""run_evaluation and arun_evaluation: responses in memory against a reference dataset."""

import asyncio
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.dataset.loading import (
    Responses,
    checked_dataset,
    questions_of,
    repeats_of,
    response_key,
    response_records,
)
from graphrag_eval_lc.errors import GraphRAGEvalWarning
from graphrag_eval_lc.evaluation.pipeline import judges_of
from graphrag_eval_lc.evaluation.question_result import evaluate_question
from graphrag_eval_lc.event_loop.loop import run_sync
from graphrag_eval_lc.event_loop.stalls import Stall, StallWatch
from graphrag_eval_lc.matching.unknown_tools import UnknownTool, UnknownTools, reference_names
from graphrag_eval_lc.prices import Pricing, priced_response
from graphrag_eval_lc.records import Key, Question, Response, Result, Template
from graphrag_eval_lc.tables import Results

if TYPE_CHECKING:
    from graphrag_eval_lc.judges.judging import Judges


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
    """Return who judges, what was asked and answered, the results so far, and tools whose names no reference step has."""
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


def _responses_by_key(responses: Responses) -> dict[Key, Response]:
    """Return responses by question and repeat; of several to one the last wins. A mapping has one for each question."""
    if isinstance(responses, Mapping):
        return {(str(identifier), 1): response for identifier, response in responses.items()}
    return {response_key(response): response for response in response_records(responses)}
