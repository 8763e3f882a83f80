"""LanceDB: the embedding function `genpool`, so that its tables encode texts (extra `lancedb`)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from genpool.errors import require_extra
from genpool.integrations.load_encoder import load_encoder

with require_extra("genpool.integrations.lancedb", "lancedb"):
    from lancedb.embeddings import TextEmbeddingFunction, register

__all__ = ["GenpoolFunction"]


@register("genpool")
class GenpoolFunction(TextEmbeddingFunction):
    """The embedding function `genpool` of LanceDB, found by this name once it is imported.

    Attributes:
        model: a folder. Default: None, the encoder inside the package.

    Example:
        >>> import genpool.integrations.lancedb
        >>> from lancedb.embeddings import get_registry
        >>> function = get_registry().get("genpool").create()
    """

    model: str | None = None

    @cached_property
    def _encoder(self) -> Any:
        return load_encoder(self.model)

    def ndims(self) -> int:
        """Returns the dimension of the vectors."""
        return int(self._encoder.output_dim)

    def generate_embeddings(self, texts: Any, *args: Any, **kwargs: Any) -> list[Any]:
        """Returns the vectors of texts."""
        return list(self._encoder.encode(list(texts)))
