"""The models that the judges of a run ask: those of the config, or passed in Python, with what they share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from graphrag_eval_lc.config import EvaluationConfig, expanded
from graphrag_eval_lc.judges.call_pool import CallPool
from graphrag_eval_lc.judges.model import EmbeddingModel, JudgeModel
from graphrag_eval_lc.prices import Pricing


@dataclass(frozen=True, slots=True)
class RunModels:
    """The models of a run.

    Attributes:
        generation: The chat model; None: nothing is asked.
        embedding: The embedding model; None: answer relevance is off.
        own: Those of them that were made here, to be closed with the judges.
        made_of: What they were made of: the sections of the config, or what was passed.
        options: How they are asked, for others that are to share their places, prices and cache.
    """

    generation: JudgeModel | None = None
    embedding: EmbeddingModel | None = None
    own: tuple[Any, ...] = ()
    made_of: tuple[Any, Any] = (None, None)
    options: Mapping[str, Any] = field(default_factory=dict)

    def names(self) -> dict[str, str]:
        """Give the models' names by what they are for."""
        models = {"generation": self.generation, "embedding": self.embedding}
        return {purpose: model.name for purpose, model in models.items() if model is not None}


def run_models(
    config: EvaluationConfig,
    *,
    llm: Any = None,
    embeddings: Any = None,
    needs_embeddings: bool = True,
    cache: Any = None,
    pricing: Any = None,
) -> RunModels:
    """Give the models of a run.

    Args:
        config: The configuration.
        llm: A chat model that goes before that of the config.
        embeddings: An embedding model that goes before that of the config.
        needs_embeddings: Whether texts are to be embedded.
        cache: Where answers are kept.
        pricing: The prices; None: those of the config.

    Raises:
        ConfigError: An environment variable is not set, or a model cannot be made from what was given.
        MissingExtraError: The package that a model needs is not installed.
    """
    section = config.llm
    generation, embedding = llm, embeddings
    if llm is None and section is not None:
        generation = expanded(section.generation, "llm.generation")
    if generation is None:
        return RunModels()
    if embeddings is None and section is not None:
        embedding = expanded(section.embedding, "llm.embedding")
    shared = {
        "pool": CallPool(config.judges.max_concurrency),
        "pricing": Pricing(config.prices) if pricing is None else pricing,
        "cache": cache,
        "max_retries": config.judges.max_retries,
        "timeout": config.judges.timeout,
    }
    factories = import_module("graphrag_eval_lc.judges.models")  # it loads LangChain, which functions alone do not need
    asked = factories.as_judge_model(generation, **shared)
    embedded = None
    if needs_embeddings and embedding is not None:
        embedded = factories.as_embedding_model(embedding, **shared)
    own = [model for model in (asked, embedded) if model is not None and model is not llm and model is not embeddings]
    return RunModels(asked, embedded, tuple(own), (generation, embedding), shared)
