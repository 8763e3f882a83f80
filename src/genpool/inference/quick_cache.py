"""Keeps the quick form of a model for as long as its weights stay the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor, nn

from genpool.inference.quick_encoder import EncoderParts, QuickEncoder

#: a larger word table is freed after use: 65,000 words of the embedded encoder are kept
MAX_KEPT_TABLE_BYTES = 512 << 20
#: of larger tensors, an evenly spaced sample is summed
MAX_SUMMED_VALUES = 1 << 24

Weights = tuple[tuple[int, int, torch.dtype, float], ...]


class QuickEncoderCache:
    """The quick form of one model; copies and pickles of the model start with an empty cache."""

    def __init__(self) -> None:
        self._kept: tuple[Weights, QuickEncoder] | None = None

    def get(self, model: EncoderParts) -> QuickEncoder:
        """Returns the quick form that is kept, or a new one if the model has changed since."""
        weights = weights_state(model)
        kept = self._kept
        if kept is not None and kept[0] == weights and kept[1].text is model.text:
            return kept[1]
        quick = QuickEncoder(model)
        self._kept = weights, quick
        return quick

    def drop_if_large(self) -> None:
        """Frees the quick form if its word table takes much memory."""
        kept = self._kept
        if kept is not None and kept[1].table_bytes > MAX_KEPT_TABLE_BYTES:
            self._kept = None

    def __reduce__(self) -> tuple[Callable[[], QuickEncoderCache], tuple[()]]:
        return type(self), ()


def weights_state(model: EncoderParts) -> Weights:
    """Returns what changes when a weight of the model changes.

    A new tensor has another address, and PyTorch counts changes in place, of an optimizer or
    `load_state_dict`; but neither shows a change through `parameter.data`, which the sum does.
    """
    parts = (model.embedding, model.encoder, model.pooling, model.projection)
    modules: list[nn.Module] = [part for part in parts if part is not None]
    tensors = chain.from_iterable(chain(part.parameters(), part.buffers()) for part in modules)
    return tuple(
        (tensor.data_ptr(), _version(tensor), tensor.dtype, _sum(tensor)) for tensor in tensors
    )


def _version(tensor: Tensor) -> int:
    # Tensors made in inference mode have no counter; their sum must do.
    return 0 if tensor.is_inference() else tensor._version


def _sum(tensor: Tensor) -> float:
    values = tensor.detach().flatten()
    sample = values[:: 1 + len(values) // MAX_SUMMED_VALUES]
    return float(sample.sum(dtype=torch.promote_types(tensor.dtype, torch.float32)))
