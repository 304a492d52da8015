"""Applies all judges that a config enables (metrics, custom evaluations and functions) to one result at a time."""

import asyncio
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from importlib import import_module
from typing import Any, Self, Unpack

from graphrag_eval_lc.config import EvaluationConfig, check_models, expanded, is_enabled
from graphrag_eval_lc.errors import JudgeError, OptionError
from graphrag_eval_lc.json_values import document_text, json_text, parse_json
from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
from graphrag_eval_lc.judges.answer_forms import content_text
from graphrag_eval_lc.judges.answer_tables import judge_labels
from graphrag_eval_lc.judges.certificates import certificate_record
from graphrag_eval_lc.judges.claim_check import is_refusal
from graphrag_eval_lc.judges.custom_functions import CustomEvaluation, CustomFunction, Evaluator, all_functions
from graphrag_eval_lc.judges.model import AskingOptions
from graphrag_eval_lc.judges.model_interface import CallPool, JudgeScore, f1_record, metric_record
from graphrag_eval_lc.judges.models import RunModels, run_models
from graphrag_eval_lc.judges.prompts import digests
from graphrag_eval_lc.registry.metric_spec import error_key
from graphrag_eval_lc.registry.metrics import (
    ANSWER_CORRECTNESS,
    ANSWER_REFUSAL_RIGHT,
    ANSWER_REFUSED,
    ANSWER_RELEVANCE,
    JUDGES,
    RETRIEVAL_ANSWER,
    RETRIEVAL_CONTEXT,
    RETRIEVAL_UTILIZATION,
    JudgeSpec,
)
from graphrag_eval_lc.registry.step_kinds import RETRIEVAL

# Each module has AnswerRelevance, ContextPrecision, ContextRecall and ContextUtilization with the same signatures.
_ENGINES = {"native": "graphrag_eval_lc.judges", "ragas": "graphrag_eval_lc.judges.ragas_engine"}


def wanted_judges(config: EvaluationConfig, *, has_embeddings: bool) -> list[JudgeSpec]:
    """Return the judges that a config enables, without those that need a missing embedding model."""
    return [
        judge
        for judge in JUDGES
        if (config.judges.metrics is None or judge.key in config.judges.metrics)
        and is_enabled(config, judge) is not False
        and (has_embeddings or not judge.needs_embeddings)
    ]


def scorers_of(config: EvaluationConfig, models: RunModels) -> dict[str, Any]:
    """Return the metrics that a config enables, by the keys of their judges; recall and precision are a pair."""
    engine, llm = import_module(_ENGINES[config.judges.engine]), models.generation
    batch = {} if config.judges.engine == "ragas" else {"batch": config.judges.batch}

    def scorer(key: str) -> Any:
        if key == ANSWER_CORRECTNESS:
            return answer_correctness_of(config, models)
        if key == ANSWER_RELEVANCE:
            return engine.AnswerRelevance(llm, models.embedding)
        if key == RETRIEVAL_UTILIZATION:
            return engine.ContextUtilization(llm, **batch)
        return engine.ContextRecall(llm), engine.ContextPrecision(llm, **batch)

    return {
        judge.key: scorer(judge.key) for judge in wanted_judges(config, has_embeddings=models.embedding is not None)
    }


def answer_correctness_of(config: EvaluationConfig, models: RunModels) -> AnswerCorrectness:
    """Return the judge of answer correctness of a config; raise a ConfigError if its prompt cannot be used."""
    section = config.answer_correctness
    prompt = None if section is None else expanded(section.prompt, f"{ANSWER_CORRECTNESS}.prompt")
    return AnswerCorrectness(models.generation, prompt, votes=config.judges.votes, voters=models.voters)


Record = dict[str, Any]
_Job = tuple[Record, Coroutine[Any, Any, Record]]


class Judges:
    """The judged metrics, custom evaluations and functions of a run; use ``from_config`` to create them.

    Attributes:
        max_concurrency: How many results may be judged at once: as many as requests, since each result needs some.
        labels: The labels in the file that the config names; None if it names none.
        questions: The questions of the dataset, the baseline of answer relevance.
        calibrated: The section of the aggregates that was computed from the labels, also in run.json; empty without it.
    """

    def __init__(
        self,
        config: EvaluationConfig,
        models: RunModels,
        scorers: Mapping[str, Any],
        custom: Sequence[CustomEvaluation],
        functions: Sequence[CustomFunction],
    ) -> None:
        self._names = config.steps.names
        self._retrieving = config.retrieval.document_step_names(config.steps.names)
        self._tool_names = {**dict.fromkeys((step.name for step in config.retrieval.steps), RETRIEVAL), **self._names}
        self._engine = config.judges.engine
        self.labels = None if config.judges.labels is None else judge_labels(config.judges.labels)
        self.calibrated: Record = {}
        self.questions: tuple[str, ...] = ()
        self._certificate: Record | None = None
        if config.judges.certificate is not None and ANSWER_CORRECTNESS in scorers:
            digest = scorers[ANSWER_CORRECTNESS].describe()["digest"]
            self._certificate = certificate_record(config.judges.certificate, digest)
        self._models = models
        self._scorers = scorers
        self._custom = custom
        self._functions = functions
        self._given: dict[str, dict[str, None]] = {function.name: {} for function in functions}
        self.max_concurrency = config.judges.max_concurrency
        self._slots = CallPool(self.max_concurrency)  # not the pool of requests: functions may ask models too

    @classmethod
    def from_config(
        cls,
        config: EvaluationConfig,
        *,
        llm: Any = None,
        embeddings: Any = None,
        functions: Iterable[Evaluator | CustomFunction] = (),
        **options: Unpack[AskingOptions],
    ) -> Self | None:
        """Return the judges that a config enables; None if there is nothing to judge.

        ``llm`` and ``embeddings`` override the models of the config, and ``functions`` add to the registered ones. With
        a plan among the options no function is called.

        Raises:
            ConfigError: A required model is missing, an environment variable is not set, or a prompt,
                certificate or labels cannot be used.
            OptionError: A function cannot be an evaluator, or has a key of a custom evaluation.
            MissingExtraError: The package that a model or ragas needs is not installed.
        """
        check_models(config, has_llm=llm is not None, has_embeddings=embeddings is not None)
        called = all_functions(functions) if options.get("plan") is None else []
        models = run_models(
            config,
            llm=llm,
            embeddings=embeddings,
            needs_embeddings=any(judge.needs_embeddings for judge in wanted_judges(config, has_embeddings=True)),
            **options,
        )
        scorers, custom = dict[str, Any](), list[CustomEvaluation]()
        if models.generation is not None:
            scorers = scorers_of(config, models)
            evaluations = expanded(config.custom_evaluations or [], "custom_evaluations")
            custom = [CustomEvaluation(each, models.generation, names=config.steps.names) for each in evaluations]
        if not (scorers or custom or called):
            return None
        taken = {key for evaluation in custom for key in evaluation.keys}
        for function in called:
            if {function.name, error_key(function.name)} & taken:
                raise OptionError(f"the function {function.name} has a key of a custom evaluation", hint="Rename it.")
        return cls(config, models, scorers, custom, called)

    @property
    def given_up(self) -> str | None:
        """Why a model is no longer asked, because it refuses every request; None if all models are asked."""
        models = (self._models.generation, self._models.embedding)
        reasons = (getattr(model, "given_up", None) for model in models)
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def asks_models(self) -> bool:
        """Return whether models are asked, and not only functions are called."""
        return self._models.generation is not None

    async def ajudge(self, result: Record, question: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        """Add the judged keys to a result and its retrieval steps, in place; requests are sent concurrently.

        It does not raise: a failed judge adds an ``…_error``. Judged keys from an earlier evaluation are replaced.
        ``response`` is empty if the agent returned none.
        """
        if not isinstance(response, Mapping):  # a response that breaks the format is passed unchanged
            response = {}
        steps = list(retrieval_steps(result, self._names, self._retrieving))
        functions = self._functions if response else ()
        self._forget(result, [step for _, step in steps])
        jobs = list(self._jobs(result, steps))
        jobs += [(result, evaluation.aevaluate(question, response)) for evaluation in self._custom]
        records, called = await asyncio.gather(
            asyncio.gather(*(job for _, job in jobs)),
            asyncio.gather(*(self._call(function, question, response) for function in functions)),
        )
        for (target, _), record in zip(jobs, records, strict=True):
            target.update(record)
        taken = {key for evaluation in self._custom for key in evaluation.keys}
        given: list[str] = []
        for function, record in zip(functions, called, strict=True):
            twice = sorted(taken & record.keys())
            own = {error_key(function.name): f"the key {twice[0]} is given twice"} if twice else record
            taken.update(own)
            result.update(own)
            metrics = [key for key, value in own.items() if isinstance(value, int | float)]
            self._given[function.name].update(dict.fromkeys(metrics))
            given += metrics
        if given:
            result["custom_metrics"] = given  # the keys that the aggregates include

    async def aclose(self) -> None:
        """Close the models that were created here; models that were passed in stay open."""
        for model in self._models.own:
            close = getattr(model, "aclose", None)
            if close is not None:
                with suppress(Exception):
                    await close()

    def describe(self) -> Record:
        """Return what run.json records: models, metrics, evaluations, and the digests of the prompts."""
        described: Record = {}
        if self._models.generation is not None:
            described = {
                "engine": self._engine,
                **self._models.names(),
                "metrics": [judge.key for judge in JUDGES if judge.key in self._scorers],
                "prompts": digests(),
            }
        if self._certificate is not None:
            described["certificate"] = self._certificate
        if self.calibrated:
            described["calibrated"] = self.calibrated
        if self._custom:
            described["custom_evaluations"] = [evaluation.name for evaluation in self._custom]
        if self._functions:
            described["functions"] = [function.name for function in self._functions]
        return described

    def metrics_of_functions(self) -> dict[str, list[str]]:
        """Return by function the keys under which it returned numbers or booleans so far."""
        return {name: list(metrics) for name, metrics in self._given.items()}

    def _forget(self, result: Record, steps: Sequence[Record]) -> None:
        keys = [key for evaluation in self._custom for key in evaluation.keys]
        keys += [key for each in self._functions for key in (each.name, error_key(each.name), "custom_metrics")]
        places: list[tuple[Record, Sequence[str]]] = [(result, keys)]
        for judge in JUDGES:
            if judge.key in self._scorers:
                places += [(record, judge.keys) for record in ([result] if judge.over == "questions" else steps)]
        for record, old in places:
            for key in old:
                record.pop(key, None)

    def _jobs(self, result: Record, steps: Iterable[tuple[str, Record]]) -> Iterator[_Job]:
        """Yield what the metrics judge, each with the record that receives its keys."""
        scorers = self._scorers
        is_error = result.get("status") == "error" or result.get("error") is not None
        question, reference = _text(result.get("question_text")), _text(result.get("reference_answer"))
        answer = None if is_error else _text(result.get("actual_answer"))
        if answer is not None:
            asked = {"user_input": question, "response": answer}
            if ANSWER_CORRECTNESS in scorers:
                result[ANSWER_REFUSED] = is_refusal(answer)
                if result[ANSWER_REFUSED] and reference is not None:
                    result[ANSWER_REFUSAL_RIGHT] = is_refusal(reference)
                if reference is not None:
                    scoring = scorers[ANSWER_CORRECTNESS].ascore(**asked, reference=reference)
                    yield result, metric_record(ANSWER_CORRECTNESS, scoring)
            if ANSWER_RELEVANCE in scorers:
                others = {"others": self.questions} if self._engine == "native" else {}
                yield result, metric_record(ANSWER_RELEVANCE, scorers[ANSWER_RELEVANCE].ascore(**asked, **others))
        contexts = reference_texts(result, self._retrieving) if RETRIEVAL_CONTEXT in scorers else {}
        for identifier, step in steps:
            for key, expected in ((RETRIEVAL_ANSWER, reference), (RETRIEVAL_CONTEXT, contexts.get(identifier))):
                if key in scorers and expected is not None:
                    yield step, _pair_record(key, scorers[key], step, question, expected)
            if RETRIEVAL_UTILIZATION in scorers and answer is not None:
                scoring = _scored_contexts(scorers[RETRIEVAL_UTILIZATION], step, user_input=question, response=answer)
                yield step, metric_record(RETRIEVAL_UTILIZATION, scoring)

    async def _call(self, function: CustomFunction, question: Mapping[str, Any], response: Mapping[str, Any]) -> Record:
        async with self._slots.slot():
            return await function.acall(question, response, self._tool_names)


async def _pair_record(prefix: str, pair: tuple[Any, Any], step: Record, question: Any, reference: str) -> Record:
    """Return the keys of recall, precision and F1 of a step's contexts."""
    names = (f"{prefix}_recall", f"{prefix}_precision")
    records = await asyncio.gather(
        *(
            metric_record(name, _scored_contexts(scorer, step, user_input=question, reference=reference))
            for name, scorer in zip(names, pair, strict=True)
        )
    )
    record = {key: value for each in records for key, value in each.items()}
    return {**record, **f1_record(prefix, record)}


async def _scored_contexts(scorer: Any, step: Record, **asked: Any) -> JudgeScore:
    score: JudgeScore = await scorer.ascore(**asked, retrieved_contexts=context_texts(step.get("output")))
    return score


def _text(value: Any) -> str | None:
    """Return a text, that of content blocks, or the JSON of any other value."""
    if value is None or isinstance(value, str):
        return value
    return (content_text(value) if isinstance(value, list) else "") or json_text(value)


def retrieval_steps(
    result: Mapping[str, Any], names: Mapping[str, str], retrieving: Set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the successful steps of a result with a name in ``retrieving``, with the ids that ``matches`` uses.

    ``names`` has step names by tool name.
    """
    for index, step in enumerate(result.get("actual_steps") or ()):
        name, identifier = step.get("name"), step.get("id")
        if names.get(name, name) in retrieving and step.get("status") == "success":
            yield str(index if identifier is None else identifier), step


def context_texts(output: Any) -> list[str | None]:
    """Return the texts in an output such as ``[{"id": "doc-1", "text": "…"}]``, by rank; None if one has no text."""
    try:
        contexts = parse_json(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        contexts = None
    if not isinstance(contexts, list) or not all(isinstance(context, dict) for context in contexts):
        raise JudgeError(
            "the step's output is not a JSON array of objects with a text, so its contexts cannot be judged; if a "
            "LangChain retriever returned it, keep its documents: run with --retrieval-documents TOOL "
            "(config: capture: {retrieval_documents: [TOOL]})"
        )
    return [document_text(context) for context in contexts]


def reference_texts(result: Mapping[str, Any], retrieving: Set[str]) -> dict[str, str]:
    """Return the texts of reference contexts, joined by newlines, by the id of the actual step that matched them.

    Reference steps without texts, such as those with ids only, are left out.
    """
    texts: dict[str, str] = {}
    for group in result.get("reference_steps") or ():
        for step in group:
            if "matches" not in step or step.get("name") not in retrieving:
                continue
            try:
                known = [text for text in context_texts(step.get("output")) if text and text.strip()]
            except JudgeError:
                continue
            if known:
                texts[str(step["matches"])] = "\n".join(known)
    return texts
