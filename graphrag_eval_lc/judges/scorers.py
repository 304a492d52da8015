"""The metrics that a run judges, as its config says, with the models that they ask."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, expanded
from graphrag_eval_lc.config.evaluation_config import is_enabled
from graphrag_eval_lc.judges.answer_correctness import AnswerCorrectness
from graphrag_eval_lc.judges.ragas_import import ragas_module
from graphrag_eval_lc.judges.run_models import RunModels
from graphrag_eval_lc.registry.metrics import (
    ANSWER_CORRECTNESS,
    ANSWER_RELEVANCE,
    JUDGES,
    RETRIEVAL_ANSWER,
    RETRIEVAL_CONTEXT,
    RETRIEVAL_UTILIZATION,
    JudgeSpec,
)

# Each has AnswerRelevance, ContextPrecision, ContextRecall and ContextUtilization, called in the same way.
_ENGINES = {"native": "graphrag_eval_lc.judges", "ragas": "graphrag_eval_lc.judges.ragas_engine"}


@dataclass(frozen=True, slots=True)
class Scorers:
    """A scorer for each judge, under its key; None where it is off.

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

    def of(self, judge: JudgeSpec) -> Any:
        """Give the scorer of a judge; None where it is off."""
        return getattr(self, judge.key)

    def metrics(self) -> list[str]:
        """Give the judges that are on."""
        return [judge.key for judge in JUDGES if self.of(judge) is not None]


def wanted_judges(config: EvaluationConfig, *, has_embeddings: bool) -> list[JudgeSpec]:
    """Give the judges that a config asks for, those left out for which there is no embedding model."""
    return [
        judge
        for judge in JUDGES
        if (config.judges.metrics is None or judge.key in config.judges.metrics)
        and is_enabled(config, judge) is not False
        and (has_embeddings or not judge.needs_embeddings)
    ]


def scorers_of(config: EvaluationConfig, models: RunModels) -> Scorers:
    """Give the scorers of the metrics that a config asks for.

    Raises:
        ConfigError: The prompt of answer correctness cannot be used, or ragas or its models cannot.
        MissingExtraError: ragas is asked for and not there.
    """
    wanted = [judge.key for judge in wanted_judges(config, has_embeddings=models.embedding is not None)]
    correctness = None
    if ANSWER_CORRECTNESS in wanted:
        prompt = config.answer_correctness.prompt if config.answer_correctness is not None else None
        correctness = AnswerCorrectness(models.generation, expanded(prompt, f"{ANSWER_CORRECTNESS}.prompt"))
        wanted.remove(ANSWER_CORRECTNESS)
    if not wanted:
        return Scorers(correctness)
    llm, embeddings = models.generation, models.embedding
    own: tuple[Any, ...] = ()
    if config.judges.engine == "ragas":
        llm, embeddings = own = _models_of_ragas(models, has_embeddings=ANSWER_RELEVANCE in wanted)
    engine = import_module(_ENGINES[config.judges.engine])
    contexts = (engine.ContextRecall(llm), engine.ContextPrecision(llm))
    made: Mapping[str, Any] = {
        ANSWER_RELEVANCE: engine.AnswerRelevance(llm, embeddings) if embeddings is not None else None,
        RETRIEVAL_ANSWER: contexts,
        RETRIEVAL_CONTEXT: contexts,
        RETRIEVAL_UTILIZATION: engine.ContextUtilization(llm),
    }
    return Scorers(correctness, **{key: made[key] for key in wanted}, own=own)


def _models_of_ragas(models: RunModels, *, has_embeddings: bool) -> tuple[Any, Any]:
    ragas_module("ragas")  # before openai is, which ragas brings along
    engine = import_module(_ENGINES["ragas"])
    generation, embedding = models.made_of
    llm = engine.ragas_chat_model(generation, **models.options)
    return llm, engine.ragas_embedding_model(embedding, **models.options) if has_embeddings else None
