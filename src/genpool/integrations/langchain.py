"""LangChain: sentence vectors for its vector stores and retrievers (extra `langchain`)."""

from __future__ import annotations

from pathlib import Path

from genpool.errors import require_extra
from genpool.inference.sentence_vectors import SentenceVectors
from genpool.integrations.load_encoder import as_encoder

with require_extra("genpool.integrations.langchain", "langchain"):
    from langchain_core.embeddings import Embeddings

__all__ = ["GenpoolEmbeddings"]


class GenpoolEmbeddings(Embeddings):
    """Embeds documents and queries alike.

    Args:
        model: a folder, or an encoder. Default: None, the encoder inside the package.
        normalize: vectors of length 1. Default: True.
        truncate_dim: keep only this number of leading dimensions. Default: None, all of them.

    Example:
        >>> from langchain_core.vectorstores import InMemoryVectorStore
        >>> store = InMemoryVectorStore.from_texts(["A dog runs."], GenpoolEmbeddings())
        >>> store.similarity_search("an animal", k=1)
    """

    def __init__(
        self,
        model: str | Path | SentenceVectors | None = None,
        normalize: bool = True,
        truncate_dim: int | None = None,
    ) -> None:
        self.encoder = as_encoder(model)
        self.normalize, self.truncate_dim = normalize, truncate_dim

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns a vector for each text."""
        vectors = self.encoder.encode(
            texts, normalize_embeddings=self.normalize, truncate_dim=self.truncate_dim
        )
        values: list[list[float]] = vectors.tolist()
        return values

    def embed_query(self, text: str) -> list[float]:
        """Returns the vector of a query."""
        return self.embed_documents([text])[0]
