"""The encoder as a class for `map_batches`, for pipelines of Ray Data that people write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from genpool.inference.quick import QuickEncoder
from genpool.model import SentenceEncoder


class TextEncoder:
    """Adds the vectors of a column of texts to every batch; each actor has the model once.

    Leave CPUs free for reading and writing: with an actor on every CPU, Ray Data has none for its
    other tasks and makes no progress.

    Args:
        model: a saved folder. Default: None, the encoder inside the package.
        column: the column of texts. Default: "text".
        vector: the column that is added. Default: "vector".
        int8: round the weights to 8 bits. Default: False.
        normalize: scale every vector to length 1. Default: False.

    Example:
        >>> import ray
        >>> ray.data.read_parquet("news/").map_batches(
        ...     TextEncoder, concurrency=2, num_cpus=1, fn_constructor_kwargs={"column": "body"}
        ... ).write_parquet("vectors/")
    """

    def __init__(
        self,
        model: str | Path | None = None,
        column: str = "text",
        vector: str = "vector",
        int8: bool = False,
        normalize: bool = False,
    ) -> None:
        torch.set_num_threads(1)
        self.column, self.vector, self.normalize = column, vector, normalize
        self._encoder = QuickEncoder(SentenceEncoder.from_pretrained(model), int8=int8)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Returns the batch, a dict of columns, with the vectors (rows, output_dim) added."""
        texts = [str(text) for text in batch[self.column]]
        vectors = self._encoder.encode(texts, normalize_embeddings=self.normalize)
        return {**batch, self.vector: vectors}
