"""How the parameters of generalized pooling are initialized."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

#: k of the softmax(k h) that `as_max` starts from
SHARPNESS = 10.0


def as_random(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Gaussian matrices, biases 0."""
    for weight in (w1, w2):
        nn.init.normal_(weight, std=std)
    for bias in (b1, b2):
        nn.init.zeros_(bias)


def as_mean(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Mean pooling: W2 = 0.

    W1 is random, and large enough that W2 has a useful gradient, which differs between heads.
    """
    as_random(w1, b1, w2, b2, w1.shape[2] ** -0.5)
    nn.init.zeros_(w2)


def as_max(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, std: float) -> None:
    """Soft max pooling, for states between -1 and 1 such as an LSTM's, plus Gaussian noise.

    Each hidden unit copies one dimension of the state, b1 keeps it positive, so that the ReLU does
    not change it, and W2 passes it on to the dimensions of its group: they are taken from the
    tokens where the copied dimension is large. With hidden_dim = input_dim every dimension is its
    own group, and the weights are softmax(k h) over time. Each head copies another dimension of a
    group.
    """
    as_random(w1, b1, w2, b2, std)
    if w1.is_meta:  # sizes only
        return
    heads, inner, dim = w1.shape
    inner = min(inner, dim)
    units, dims = torch.arange(inner), torch.arange(dim)
    group = dims * inner // dim  # (dim,): the hidden unit that a dimension depends on
    sizes = torch.bincount(group)  # (inner,)
    first = sizes.cumsum(0) - sizes  # (inner,): the first dimension of each group
    root = SHARPNESS**0.5
    with torch.no_grad():
        b1[:, :inner] = root
        for head in range(heads):
            w1[head, units, first + head % sizes] += root
            w2[head, dims, group] += root


#: every initialization by the name that `GeneralizedPooling(start=...)` takes
STARTS: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor, float], None]] = {
    "random": as_random,
    "mean": as_mean,
    "max": as_max,
}
