"""What the tests of this folder share: every pooling in its forms, and sentences to pool."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from genpool.pooling import POOLINGS, Pooled, Pooling
from genpool.tensors.packing import Packing

from . import reference

GATE_WIDTH = 3


class Case(NamedTuple):
    """A pooling and the options to make it with; `heads` is how many heads it must have."""

    name: str
    options: dict[str, Any]
    heads: int

    def __str__(self) -> str:
        return "-".join([self.name, *(f"{key}={value}" for key, value in self.options.items())])

    def make(self, dim: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Pooling:
        """With parameters large enough that the weights are far from equal."""
        pooling = POOLINGS[self.name](dim, **self.options).to(dtype)
        random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in pooling.parameters():
                values = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
                parameter.copy_(values * max(parameter.shape[-1], 4) ** -0.5 * 2)
        return pooling


CASES = [
    Case("generalized", {"heads": 1}, 1),
    Case("generalized", {"heads": 3, "hidden_dim": 5}, 3),
    Case("scalar", {"heads": 1}, 1),
    Case("scalar", {"heads": 4, "hidden_dim": 5}, 4),
    Case("inner", {}, 1),
    Case("gated", {}, 3),
    Case("source-to-token", {}, 1),
    Case("max", {}, 1),
    Case("mean", {}, 1),
    Case("last", {"bidirectional": True}, 1),
    Case("last", {"bidirectional": False}, 1),
    Case("mean-max", {}, 2),
]
NOT_ATTENTIVE = ("gated", "max", "mean", "last", "mean-max")
ATTENTIVE = [case for case in CASES if case.name not in NOT_ATTENTIVE]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def random_states(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    random = torch.Generator().manual_seed(1000 + seed)
    return torch.randn(shape, generator=random, dtype=torch.float64).to(dtype)


def random_gates(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Between 0 and 1, as an LSTM's gates are."""
    return random_states(*shape, GATE_WIDTH, dtype=dtype, seed=seed + 1).sigmoid()


def pool(pooling: Pooling, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Pooled:
    """The pooling's result; gates go only to the pooling that asks for them."""
    if pooling.needs_gates:
        return pooling(states, mask, gates)
    return pooling(states, mask)


def pool_rows(
    pooling: Pooling, states: Tensor, mask: Tensor, gates: Tensor | None = None
) -> Pooled:
    """The same from packed rows."""
    packing = Packing.from_mask(mask.bool())
    packed = packing.pack(gates) if pooling.needs_gates and gates is not None else None
    return pooling.pool_rows(packing.pack(states), packing, packed)


padded_and_packed = pytest.mark.parametrize("form", [pool, pool_rows])


def difference(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def mask_of(lengths: list[int], time: int) -> Tensor:
    """Padding on the right."""
    return torch.arange(time) < torch.tensor(lengths).unsqueeze(1)


def every_mask(time: int) -> Tensor:
    """All 2^time masks as one batch, from all False to all True: padding wherever it can be."""
    return torch.tensor(list(product([False, True], repeat=time)))


def with_garbage(states: Tensor, mask: Tensor) -> Tensor:
    """The same real tokens; NaN, the infinities and huge values at padding, in turn."""
    garbage = torch.tensor([float("nan"), float("inf"), float("-inf"), 1e30, -1e30])
    filling = garbage.to(states.dtype).repeat(states.numel() // 5 + 1)[: states.numel()]
    return torch.where(mask.unsqueeze(-1), states, filling.view_as(states))


def to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def real(states: Tensor, mask: Tensor, sentence: int) -> np.ndarray:
    """The real tokens of one sentence, (their count, dim)."""
    return to_numpy(states)[sentence][mask[sentence].numpy()]


def assert_is_reference(
    pooled: Pooled,
    mask: Tensor,
    expected: Callable[[int], reference.Sentence],
    tolerance: float = 1e-12,
) -> None:
    """Compares every sentence with `expected(its row)`; zeros where it has no token."""
    for sentence, present in enumerate(mask.numpy()):
        heads = to_numpy(pooled.heads)[sentence]
        vector = to_numpy(pooled.vector)[sentence]
        weights = None if pooled.weights is None else to_numpy(pooled.weights)[sentence]
        if not present.any():
            assert not vector.any()
            assert not heads.any()
            assert weights is None or not weights.any()
            continue
        expected_heads, expected_weights = expected(sentence)
        np.testing.assert_allclose(heads, expected_heads, rtol=0, atol=tolerance)
        np.testing.assert_allclose(vector, np.concatenate(list(expected_heads)), 0, tolerance)
        if weights is not None:  # a packed form need not have them
            assert expected_weights is not None
            np.testing.assert_allclose(weights[:, present], expected_weights, 0, tolerance)
            assert not weights[:, ~present].any()
