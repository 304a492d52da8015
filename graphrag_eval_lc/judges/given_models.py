"""The models that a metric was given: taken as they are, or made from what names them."""

from importlib import import_module
from typing import Any

from graphrag_eval_lc.judges.model import EmbeddingModel, JudgeModel

_FACTORIES = "graphrag_eval_lc.judges.models"


def given_judge_model(llm: Any) -> JudgeModel:
    """Give the chat model to ask: ``llm`` itself, or what ``as_judge_model`` makes of it."""
    if hasattr(llm, "aask"):
        model: JudgeModel = llm
    else:
        model = import_module(_FACTORIES).as_judge_model(llm)
    return model


def given_embedding_model(embeddings: Any) -> EmbeddingModel:
    """Give the embedding model to ask: ``embeddings`` itself, or what ``as_embedding_model`` makes of it."""
    if hasattr(embeddings, "aembed"):
        model: EmbeddingModel = embeddings
    else:
        model = import_module(_FACTORIES).as_embedding_model(embeddings)
    return model
