"""The heads of a sentence as its vectors, for late interaction with a fixed number of vectors."""

from __future__ import annotations

from typing import Any, Self

import torch
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.integrations.sentence_transformers.features import HEADS, Features
from genpool.integrations.sentence_transformers.saving import hub_arguments, name_requirement

#: features that describe tokens; after this module the rows are heads
TOKEN_FEATURES = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")


class HeadVectors(Module):
    """Passes the heads on in place of the tokens, for a MultiVectorEncoder.

    A MultiVectorEncoder stores one vector per token; with this module after a pooling it stores one
    per head, so that an index grows with the number of sentences and not with their lengths.

    It reads the feature "head_vectors" (batch, heads, dim), replaces "token_embeddings" by it, and
    "attention_mask" by ones (batch, heads).

    Args:
        embedding_dimension: dimensions of a head.
        normalize: scale every head to length 1, so that MaxSim is a sum of cosines. Default: True.

    Example:
        >>> modules = [transformer, GeneralizedPooling(384, heads=4), HeadVectors(384)]
        >>> model = MultiVectorEncoder(modules=modules)
        >>> model.encode_document(["A man sleeps."])[0].shape     # (4, 384)
    """

    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = ["embedding_dimension", "normalize"]  # noqa: RUF012 (as in the base class)

    def __init__(self, embedding_dimension: int, normalize: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension, self.normalize = embedding_dimension, normalize

    def forward(self, features: Features, **kwargs: Any) -> Features:
        """Returns new features whose token embeddings are the heads.

        Args:
            features: the features of a pooling of genpool.
            kwargs: not used.

        Raises:
            InputError: the features have no heads, or heads of another width.
        """
        heads = features.get(HEADS)
        if not isinstance(heads, Tensor) or heads.shape[-1] != self.embedding_dimension:
            shape = tuple(heads.shape) if isinstance(heads, Tensor) else "missing"
            raise InputError(
                f"{HEADS!r} is {shape}; expected (batch, heads, {self.embedding_dimension}): put "
                "this module after genpool's GeneralizedPooling or SentenceEncoderModule."
            )
        if self.normalize:
            heads = nn.functional.normalize(heads, dim=-1)  # (batch, heads, dim)
        # A new dictionary: losses that embed the same features twice need the tokens' mask.
        rest = {name: value for name, value in features.items() if name not in TOKEN_FEATURES}
        mask = torch.ones(heads.shape[:2], dtype=torch.long, device=heads.device)  # (batch, heads)
        return {**rest, "token_embeddings": heads, "attention_mask": mask}

    def get_embedding_dimension(self) -> int:
        """Returns the dimension of a head."""
        return self.embedding_dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Writes config.json, and adds genpool to the requirements of the model.

        Args:
            output_path: the folder of this module.
            args: not used.
            kwargs: not used.
        """
        self.save_config(output_path)
        name_requirement(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        """Loads the folder that `save` wrote.

        Args:
            model_name_or_path: the model.
            subfolder: the folder of this module in it. Default: "".
            kwargs: where to look, as sentence-transformers passes it (token, revision, ...).
        """
        location = hub_arguments(subfolder=subfolder, **kwargs)
        return cls(**cls.load_config(model_name_or_path, **location))
