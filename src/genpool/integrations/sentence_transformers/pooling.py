"""Generalized pooling as a module of sentence-transformers."""

from __future__ import annotations

from typing import Any, Literal, Self

from sentence_transformers.base.modules import Module

from genpool import pooling
from genpool.integrations.sentence_transformers.features import (
    HEADS,
    WEIGHTS,
    Features,
    states_and_mask,
)
from genpool.integrations.sentence_transformers.saving import (
    hub_arguments,
    module_with_weights,
    name_requirement,
    write_weights,
)
from genpool.tensors.packing import Packing


class GeneralizedPooling(Module):
    """The paper's vector-based multi-head attention, behind any Transformer module.

    Args:
        embedding_dimension: width of the token embeddings.
        heads: number of heads; the sentence embedding is as many times as wide.
        hidden_dim: width of the attention network; half of embedding_dimension where not given.
        start: "random", or "mean": every head begins as the mean of the tokens, so that a trained
            model gives the same cosines as with mean pooling, until it is trained further. With
            heads=1 the vectors are the same too. "max" is near max pooling of token embeddings
            between -1 and 1.
        include_prompt: False leaves the tokens of a prompt out.
        write_weights: False leaves "head_weights" out, which takes less time and memory.

    Reads token_embeddings, attention_mask and prompt_length, or sentences end to end with
    cu_seq_lens_q. Writes sentence_embedding (batch, heads * dim), "head_vectors" (batch, heads,
    dim) and "head_weights" (batch, heads, time, dim); `encode(output_value=None)` gives them all.

    Example:
        >>> transformer = Transformer("sentence-transformers/all-MiniLM-L6-v2")
        >>> width = transformer.get_embedding_dimension()
        >>> model = SentenceTransformer(modules=[transformer, GeneralizedPooling(width)])
    """

    # The name that stands in the modules.json of saved models, wherever this file is.
    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = [  # noqa: RUF012 (the base class has it so)
        "embedding_dimension",
        "heads",
        "hidden_dim",
        "start",
        "include_prompt",
        "write_weights",
    ]

    def __init__(
        self,
        embedding_dimension: int,
        heads: int = 5,
        hidden_dim: int | None = None,
        start: Literal["random", "mean", "max"] = "random",
        include_prompt: bool = True,
        write_weights: bool = True,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pooling = pooling.GeneralizedPooling(
            embedding_dimension, heads, hidden_dim, start=start
        )
        self.embedding_dimension, self.heads = embedding_dimension, heads
        self.hidden_dim = self.pooling.hidden_dim
        self.start = start
        self.include_prompt, self.write_weights = include_prompt, write_weights

    def forward(self, features: Features, **kwargs: Any) -> Features:
        states, mask = states_and_mask(features, self.include_prompt)
        if self.write_weights:
            pooled = self.pooling(states, mask)
            features[WEIGHTS] = pooled.weights  # (batch, heads, time, dim)
        else:
            self.pooling.check(states, mask)
            packing = Packing.from_mask(mask)
            pooled = self.pooling.pool_rows(packing.pack(states), packing)
        features[HEADS] = pooled.heads  # (batch, heads, dim)
        features["sentence_embedding"] = pooled.vector  # (batch, heads * dim)
        return features

    def get_embedding_dimension(self) -> int:
        return self.pooling.output_dim

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Writes config.json and model.safetensors, and asks for genpool in the model's config."""
        self.save_config(output_path)
        write_weights(self, output_path)
        name_requirement(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        """The inherited one would give a module of the right size with random weights."""
        where = hub_arguments(subfolder=subfolder, **kwargs)
        config = cls.load_config(model_name_or_path, **where)
        weights = cls.load_file_path(model_name_or_path, filename="model.safetensors", **where)
        place = f"{model_name_or_path}/{subfolder}"
        return module_with_weights(lambda: cls(**config), weights, place)
