"""``run_evaluation`` and ``arun_evaluation``: score responses against a reference dataset, in memory."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from graphrag_eval_lc.config import ConfigSource, load_config
from graphrag_eval_lc.dataset.ids import refuse_ids_as_written, unknown_questions_warning
from graphrag_eval_lc.dataset.loading import (
    DatasetSource,
    LoadedDataset,
    LoadedResponses,
    Responses,
    questions_of,
    read_dataset,
    read_responses,
    response_key,
)
from graphrag_eval_lc.dataset.selection import Selection
from graphrag_eval_lc.errors import warn
from graphrag_eval_lc.evaluation.pipeline import Pipeline, judges_of
from graphrag_eval_lc.evaluation.samples import Sample, recorded_samples
from graphrag_eval_lc.prices import Pricing
from graphrag_eval_lc.records import Key, Response
from graphrag_eval_lc.tables import Results


def run_evaluation(
    qa_dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    config: ConfigSource = None,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
    template_ids: Sequence[str] = (),
    question_ids: Sequence[str] = (),
    answered_only: bool = False,
) -> Results:
    """Score responses against a reference dataset.

    It also works inside a running event loop, as in a notebook. Nothing that is passed in is changed. A
    ``GraphRAGEvalWarning`` reports responses to questions that the dataset does not have, tools whose names no
    reference step has while reference steps are missed, judges that failed or block the event loop, and models without
    a price.

    Args:
        qa_dataset: A path, or the templates with their questions, as ``load_dataset`` returns them.
        responses: A path, the responses by question id, or a list of responses that have their question ids (and their
            ``repeat``, if a question was asked several times).
        config: A path, a dict or an EvaluationConfig; None for the defaults. With an ``llm`` section answers and
            retrieved contexts are judged by a language model.
        evaluators: Your functions, async or not: ``(question, response) -> float | str | bool | dict``, or with
            keywords ``(inputs, outputs, reference_outputs) -> {key, score, comment}``. Registered metrics and
            evaluators (``register_metric``, ``register_evaluator``) are called too.
        llm: A LangChain chat model or JudgeModel that judges, instead of the model in the config.
        embeddings: LangChain embeddings or an EmbeddingModel, instead of the model in the config.
        template_ids: Only the questions of these templates.
        question_ids: Only the questions with these ids.
        answered_only: Only the questions that have a response; questions without one do not count as errors.

    Returns:
        A list of results that also offers DataFrames and plots. It has one result for each question, in the dataset's
        order; if ``responses`` has several repeats, one for each repeat, with ``repeat``. A question whose response is
        missing or unusable is an error sample; it never ends the evaluation.

    Raises:
        DatasetError: The dataset cannot be read, breaks the format, lacks an id that was selected, or has no selected
            question (with a response, if only these are scored).
        ResponsesError: The file cannot be read, or the responses are not a mapping or a list of responses with
            question ids.
        ConfigError: The config has a key or value that does not exist.

    Example:
        >>> dataset = [{"template_id": "t", "questions": [{"id": "q", "question_text": "1 + 1?"}]}]
        >>> run_evaluation(dataset, {"q": {"question_id": "q", "actual_answer": "2"}})[0]["status"]
        'success'
    """
    selection = Selection(template_ids=template_ids, question_ids=question_ids, answered_only=answered_only)
    begun = _begin(qa_dataset, responses, config, selection, evaluators=evaluators, llm=llm, embeddings=embeddings)
    begun.pipeline.add_all(begun.samples, begun.response_of)
    return _ended(begun)


async def arun_evaluation(
    qa_dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    config: ConfigSource = None,
    *,
    evaluators: Sequence[Callable[..., Any]] = (),
    llm: Any = None,
    embeddings: Any = None,
    template_ids: Sequence[str] = (),
    question_ids: Sequence[str] = (),
    answered_only: bool = False,
) -> Results:
    """Score responses in an event loop; see ``run_evaluation``."""
    selection = Selection(template_ids=template_ids, question_ids=question_ids, answered_only=answered_only)
    begun = _begin(qa_dataset, responses, config, selection, evaluators=evaluators, llm=llm, embeddings=embeddings)
    await begun.pipeline.aadd_all(begun.samples, begun.response_of)
    return _ended(begun)


class _Begun(NamedTuple):
    """A prepared evaluation: its pipeline, its samples, the function that returns a response, and warnings."""

    pipeline: Pipeline
    samples: Sequence[Sample]
    response_of: Callable[[Sample], Response | None]
    warnings: list[str]


def _begin(
    qa_dataset: DatasetSource,
    responses: str | PathLike[str] | Responses,
    config: ConfigSource,
    selection: Selection,
    **judging: Any,
) -> _Begun:
    has_models = {f"has_{name}": judging[name] is not None for name in ("llm", "embeddings")}
    settings = load_config(config, **has_models)
    dataset = read_dataset(qa_dataset)
    templates = dataset.templates
    by_key, notes = _responses_by_key(responses, dataset)
    pricing = Pricing(settings.prices)
    judges = judges_of(settings, pricing=pricing, **judging)
    has_ids = selection.template_ids or selection.question_ids
    questions = selection.apply(templates) if has_ids else list(questions_of(templates))
    questions = selection.answered(questions, {question_id for question_id, _ in by_key})
    samples = recorded_samples(questions, by_key)
    repeats = max((sample.repeat for sample in samples), default=1)
    pipeline = Pipeline(settings, templates, repeats=repeats, pricing=pricing, judges=judges)
    known = [str(question["id"]) for _, question in questions_of(templates)]
    unknown = unknown_questions_warning((question_id for question_id, _ in by_key), known)
    warnings = [*dataset.notes, *notes, *([] if unknown is None else [unknown])]
    return _Begun(pipeline, samples, lambda sample: by_key.get(sample.key), warnings)


def _ended(begun: _Begun) -> Results:
    """Issue the warnings, first why judging was stopped (for example for a refused key), and return the results."""
    if (stopped := begun.pipeline.stopped()) is not None:
        begun.warnings.append(f"the judging was stopped: {stopped['message']}")
    for text in (*begun.warnings, *begun.pipeline.warnings()):
        warn(text, stacklevel=3)
    return Results(begun.pipeline.kept())


def _responses_by_key(
    responses: str | PathLike[str] | Responses, dataset: LoadedDataset
) -> tuple[dict[Key, Response], Sequence[str]]:
    """Return responses by question and repeat, and notes. The last duplicate wins; a mapping has no repeats."""
    if isinstance(responses, Mapping):
        found = LoadedResponses([])
        by_key = {(str(identifier), 1): response for identifier, response in responses.items()}
    else:
        found = read_responses(responses)
        by_key = {response_key(response): response for response in found.records}
    refuse_ids_as_written(
        {str(question["id"]): question for _, question in questions_of(dataset.templates)},
        dataset.changed_ids,
        [question_id for question_id, _ in by_key],
        found.changed_ids,
        (dataset.path, found.path),
    )
    return by_key, found.notes
