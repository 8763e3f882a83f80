"""LlamaIndex: sentence vectors for its indexes and retrievers (extra `llama-index`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from genpool.errors import require_extra
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.integrations.load_encoder import as_encoder

with require_extra("genpool.integrations.llama_index", "llama-index"):
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr

__all__ = ["GenpoolEmbedding"]


class GenpoolEmbedding(BaseEmbedding):
    """Embeds texts and queries alike.

    Args:
        model: a folder, or an encoder. Default: None, the encoder inside the package.
        normalize: vectors of length 1. Default: True.
        **options: options of `BaseEmbedding`, such as `embed_batch_size`.

    Example:
        >>> from llama_index.core import Document, VectorStoreIndex
        >>> documents = [Document(text="A dog runs.")]
        >>> index = VectorStoreIndex.from_documents(documents, embed_model=GenpoolEmbedding())
        >>> index.as_retriever(similarity_top_k=1).retrieve("an animal")
    """

    normalize: bool = True
    _encoder: Any = PrivateAttr()

    def __init__(
        self,
        model: str | Path | SentenceVectors | None = None,
        normalize: bool = True,
        **options: Any,
    ) -> None:
        name = str(model) if isinstance(model, str | Path) else "genpool"
        super().__init__(**{"model_name": name, "normalize": normalize, **options})
        self._encoder = as_encoder(model)

    @classmethod
    def class_name(cls) -> str:
        """Returns the name that LlamaIndex stores."""
        return "GenpoolEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = self._encoder.encode(texts, normalize_embeddings=self.normalize)
        values: list[list[float]] = vectors.tolist()
        return values

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)
