"""The metrics that a run judges, as its config says, with the models that they ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, get_args

from graphrag_eval_lc.config import EvaluationConfig, JudgeMetric, expanded
from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
from graphrag_eval_lc.judges.ragas_import import ragas_module
from graphrag_eval_lc.judges.run_models import RunModels

# Each has AnswerRelevance, ContextPrecision, ContextRecall and ContextUtilization, called in the same way.
_ENGINES = {"native": "graphrag_eval_lc.judges", "ragas": "graphrag_eval_lc.judges.ragas_engine"}


@dataclass(frozen=True, slots=True)
class Scorers:
    """A scorer for each metric, under the name of its ``JudgeMetric``; None where it is off.

    Attributes:
        answer_correctness: Claims of the answer against those of the reference answer.
        answer_relevance: The answer against the question.
        retrieval_answer: Recall and precision of contexts against the reference answer.
        retrieval_context: The same against the reference contexts.
        retrieval_utilization: Contexts against the actual answer.
        own: The models that were made for them alone, to be closed with the judges.
    """

    answer_correctness: Any = None
    answer_relevance: Any = None
    retrieval_answer: tuple[Any, Any] | None = None
    retrieval_context: tuple[Any, Any] | None = None
    retrieval_utilization: Any = None
    own: tuple[Any, ...] = ()

    def metrics(self) -> list[JudgeMetric]:
        """Give the metrics that are on."""
        return [metric for metric in get_args(JudgeMetric) if getattr(self, metric) is not None]


def wanted_metrics(config: EvaluationConfig, *, has_embeddings: bool) -> set[JudgeMetric]:
    """Give the metrics that a config asks for, those left out for which there is no embedding model."""
    metrics = set(get_args(JudgeMetric) if config.judges.metrics is None else config.judges.metrics)
    if config.answer_correctness is not None and not config.answer_correctness.enabled:
        metrics.discard("answer_correctness")
    if not has_embeddings or (config.answer_relevance is not None and not config.answer_relevance.enabled):
        metrics.discard("answer_relevance")
    return metrics


def scorers_of(config: EvaluationConfig, models: RunModels) -> Scorers:
    """Give the scorers of the metrics that a config asks for.

    Raises:
        ConfigError: The prompt of answer correctness cannot be used, or ragas or its models cannot.
        MissingExtraError: ragas is asked for and not there.
    """
    metrics = wanted_metrics(config, has_embeddings=models.embedding is not None)
    correctness = None
    if "answer_correctness" in metrics:
        prompt = config.answer_correctness.prompt if config.answer_correctness is not None else None
        correctness = AnswerCorrectness(models.generation, expanded(prompt, "answer_correctness.prompt"))
        metrics.remove("answer_correctness")
    if not metrics:
        return Scorers(correctness)
    llm, embeddings = models.generation, models.embedding
    own: tuple[Any, ...] = ()
    if config.judges.engine == "ragas":
        llm, embeddings = own = _models_of_ragas(models, has_embeddings="answer_relevance" in metrics)
    engine = import_module(_ENGINES[config.judges.engine])
    contexts = (engine.ContextRecall(llm), engine.ContextPrecision(llm))
    made: Mapping[JudgeMetric, Any] = {
        "answer_relevance": engine.AnswerRelevance(llm, embeddings) if embeddings is not None else None,
        "retrieval_answer": contexts,
        "retrieval_context": contexts,
        "retrieval_utilization": engine.ContextUtilization(llm),
    }
    return Scorers(correctness, **{metric: made[metric] for metric in metrics}, own=own)


def _models_of_ragas(models: RunModels, *, has_embeddings: bool) -> tuple[Any, Any]:
    ragas_module("ragas")  # before openai is, which ragas brings along
    engine = import_module(_ENGINES["ragas"])
    generation, embedding = models.made_of
    llm = engine.ragas_chat_model(generation, **models.options)
    return llm, engine.ragas_embedding_model(embedding, **models.options) if has_embeddings else None
