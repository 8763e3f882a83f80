"""What the tiny models of `tests/conftest.py` are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import nn

import genpool.reproduction  # noqa: F401 - registers its encoders
from genpool import SentenceEncoder
from genpool.config import ClassifierSettings, ModelSettings
from genpool.text import TextPipeline

WORDS = ("the", "a", "man", "dog", "sleeps", "rests", "runs", "red", "not", "two", ".", ",")
LABELS = ("entailment", "neutral", "contradiction")
SMALL_MLP = ClassifierSettings(hidden_dim=5)
#: options that make each encoder and each pooling small, yet use what it can do
SMALL_ENCODERS: dict[str, dict[str, Any]] = {
    "stacked-bilstm": {"hidden_dim": 3, "layers": 2},
    "bilstm": {"hidden_dim": 3},
    "shortcut-stacked": {"hidden_dims": (2, 3)},
    "residual-stacked": {"hidden_dim": 3, "layers": 2},
    "lstm": {"hidden_dim": 5},
    "gru": {"hidden_dim": 5},
    "cnn": {"maps": 3, "widths": (2, 3)},
    "disan": {"hidden_dim": 3},
    "bag-of-words": {},
    "nse": {"hidden_dim": 3},
    "cafe": {"hidden_dim": 3, "factors": 2},
    "resan": {"hidden_dim": 3},
    "spinn": {"hidden_dim": 3, "tracking_dim": 2},
    "tree-cnn": {"maps": 8},
    "nti": {"hidden_dim": 3},
    "gumbel-tree": {"hidden_dim": 4},
}
SMALL_POOLINGS: dict[str, dict[str, Any]] = {
    "generalized": {"heads": 2, "hidden_dim": 4},
    "scalar": {"heads": 2, "hidden_dim": 4},
}

Module = TypeVar("Module", bound=nn.Module)
MakeText = Callable[..., TextPipeline]
MakeSettings = Callable[..., ModelSettings]
MakeEncoder = Callable[..., SentenceEncoder]


def lively(model: Module, seed: int = 0) -> Module:
    """The same model with numbers large enough to tell right from wrong.

    The usual start is so near zero that vectors of any two sentences agree to five digits.
    """
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.rand(parameter.shape, generator=random).mul(1.6).sub(0.8))
    return model
