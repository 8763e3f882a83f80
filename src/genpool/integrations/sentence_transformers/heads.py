"""The heads of a sentence as its vectors: late interaction with a fixed number of them."""

from __future__ import annotations

from typing import Any, Self

import torch
from sentence_transformers.base.modules import Module
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.integrations.sentence_transformers.features import HEADS, Features
from genpool.integrations.sentence_transformers.saving import hub_arguments, name_requirement

#: what describes the tokens; behind this module the rows are heads
OF_TOKENS = ("cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k", "seq_idx")


class HeadVectors(Module):
    """Hands the heads on in the place of the tokens, for a MultiVectorEncoder.

    A MultiVectorEncoder keeps one vector per token; with this module behind a pooling it keeps one
    per head, so that an index grows with the number of sentences and not with their lengths.

    Args:
        embedding_dimension: width of a head.
        normalize: give every head the length 1, so that MaxSim is a sum of cosines.

    Reads "head_vectors" (batch, heads, dim); replaces token_embeddings by them, and attention_mask
    by ones (batch, heads).

    Example:
        >>> modules = [transformer, GeneralizedPooling(384, heads=4), HeadVectors(384)]
        >>> model = MultiVectorEncoder(modules=modules)
        >>> model.encode_document(["A man sleeps."])[0].shape     # (4, 384)
    """

    __module__ = "genpool.integrations.sentence_transformers"

    config_keys = ["embedding_dimension", "normalize"]  # noqa: RUF012 (the base class has it so)

    def __init__(self, embedding_dimension: int, normalize: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.embedding_dimension, self.normalize = embedding_dimension, normalize

    def forward(self, features: Features, **kwargs: Any) -> Features:
        heads = features.get(HEADS)
        if not isinstance(heads, Tensor) or heads.shape[-1] != self.embedding_dimension:
            found = tuple(heads.shape) if isinstance(heads, Tensor) else "nothing"
            raise InputError(
                f"{HEADS!r} is {found}; expected (batch, heads, {self.embedding_dimension}): put "
                "this module behind genpool's GeneralizedPooling or SentenceEncoderModule."
            )
        if self.normalize:
            heads = nn.functional.normalize(heads, dim=-1)  # (batch, heads, dim)
        # A new dictionary: losses that embed the same features twice need the tokens' mask.
        rest = {name: value for name, value in features.items() if name not in OF_TOKENS}
        mask = torch.ones(heads.shape[:2], dtype=torch.long, device=heads.device)  # (batch, heads)
        return {**rest, "token_embeddings": heads, "attention_mask": mask}

    def get_embedding_dimension(self) -> int:
        return self.embedding_dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        self.save_config(output_path)
        name_requirement(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: Any) -> Self:  # type: ignore[override]
        where = hub_arguments(subfolder=subfolder, **kwargs)
        return cls(**cls.load_config(model_name_or_path, **where))
