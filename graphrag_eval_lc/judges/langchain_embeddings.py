"""A judge's embedding model that is one of LangChain's."""

from typing import Unpack

from langchain_core.embeddings import Embeddings

from graphrag_eval_lc.judges.asked_model import AskingOptions
from graphrag_eval_lc.judges.cached_embedding_model import CachedEmbeddingModel, Vectors, check_vectors
from graphrag_eval_lc.judges.model import Usage


class LangChainEmbeddingModel(CachedEmbeddingModel):
    """An embedding model of LangChain. These report no tokens, so that their cost is not known.

    Args:
        embeddings: The embedding model.
        **options: How it is asked.
    """

    def __init__(
        self,
        embeddings: Embeddings,
        **options: Unpack[AskingOptions],
    ) -> None:
        model = str(getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None) or "")
        kind = type(embeddings).__name__
        super().__init__(
            f"{kind}:{model}" if model else kind,
            model or kind,
            None,
            {name: getattr(embeddings, name, None) for name in ("dimensions", "base_url", "openai_api_base")},
            **options,
        )
        self._embeddings = embeddings

    async def _vectors(self, texts: list[str], paid: list[Usage]) -> Vectors:
        return await self._calls.outcome_of(lambda: self._answered(texts, paid))

    async def _answered(self, texts: list[str], paid: list[Usage]) -> Vectors:
        vectors = tuple(tuple(map(float, vector)) for vector in await self._embeddings.aembed_documents(texts))
        paid.append(Usage(None, None, None))
        check_vectors(vectors, len(texts))
        return vectors
