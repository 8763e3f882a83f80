"""Initial weights: those of PyTorch, or those of the authors' released program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from torch import Tensor, nn

from genpool.errors import InputError, unknown_name

#: "torch": PyTorch's own initial weights; "gaussian": those of the authors' released program
Initialization = Literal["torch", "gaussian"]
#: standard deviation of the released program's initial weights
GAUSSIAN_STD = 0.01


def require_initialization(name: str) -> None:
    """Raises InputError where there is no such initialization."""
    if name not in get_args(Initialization):
        raise InputError(unknown_name("initialization", name, get_args(Initialization)))


def gaussian_(weights: Iterable[Tensor], biases: Iterable[Tensor] = ()) -> None:
    """Fills the weights with Gaussian values and the biases with zeros, in place."""
    for weight in weights:
        nn.init.normal_(weight, std=GAUSSIAN_STD)
    for bias in biases:
        nn.init.zeros_(bias)
