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
from genpool.saving.storage import WEIGHTS as WEIGHTS_FILE
from genpool.tensors.packing import Packing


class GeneralizedPooling(Module):
    """The paper's generalized pooling (vector-based multi-head attention) after any Transformer.

    It reads the features "token_embeddings", "attention_mask" and "prompt_length", or concatenated
    sentences with "cu_seq_lens_q". It writes "sentence_embedding" (batch, heads * dim),
    "head_vectors" (batch, heads, dim) and "head_weights" (batch, heads, time, dim);
    `encode(output_value=None)` returns all of them.

    Args:
        embedding_dimension: dimensions of the token embeddings.
        heads: number of heads; the sentence embedding has heads * embedding_dimension dimensions.
            Default: 5.
        hidden_dim: width of the attention network. Default: None, half of embedding_dimension.
        start: how the attention is initialized. "random"; "mean": every head starts as the mean of
            the tokens, so that a pretrained model has the same cosines as with mean pooling until
            it is trained further (with heads=1 the same vectors too); "max": close to max pooling
            of token embeddings between -1 and 1. Default: "random".
        include_prompt: whether the tokens of a prompt are pooled too. Default: True.
        write_weights: whether "head_weights" are written; without them it takes less time and
            memory. Default: True.

    Raises:
        InputError: a size is not a whole number of 1 or more, or start is unknown.

    Example:
        >>> transformer = Transformer("sentence-transformers/all-MiniLM-L6-v2")
        >>> width = transformer.get_embedding_dimension()
        >>> model = SentenceTransformer(modules=[transformer, GeneralizedPooling(width)])
    """

    # The name in the modules.json of saved models, wherever this file is.
    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = [  # noqa: RUF012 (as in the base class)
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
        """Adds the sentence embeddings to the features of a Transformer.

        Args:
            features: a batch, as a dictionary of tensors.
            kwargs: not used.

        Returns:
            The same dictionary.

        Raises:
            InputError: there are no token embeddings, or of another width.
        """
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
        """Returns the dimension of a sentence embedding."""
        return self.pooling.output_dim

    def save(
        self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any
    ) -> None:
        """Writes config.json and model.safetensors, and adds genpool to the model's requirements.

        Args:
            output_path: the folder of this module.
            args: not used.
            safe_serialization: not used; weights are always safetensors. Default: True.
            kwargs: not used.
        """
        self.save_config(output_path)
        write_weights(self, output_path)
        name_requirement(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        """Loads the folder that `save` wrote, with its weights.

        Args:
            model_name_or_path: the model.
            subfolder: the folder of this module in it. Default: "".
            kwargs: where to look, as sentence-transformers passes it (token, revision, ...).

        Raises:
            FolderError: the weights are missing, a pickle, or do not agree with config.json.
        """
        # The inherited method would return a module of the right size with random weights.
        location = hub_arguments(subfolder=subfolder, **kwargs)
        config = cls.load_config(model_name_or_path, **location)
        weights = cls.load_file_path(model_name_or_path, filename=WEIGHTS_FILE, **location)
        source = f"{model_name_or_path}/{subfolder}"
        return module_with_weights(lambda: cls(**config), weights, source)
