"""The gradient of a tensor that must have one."""

from __future__ import annotations

from torch import Tensor


def gradient(tensor: Tensor) -> Tensor:
    """Returns `tensor.grad`; the test fails where no gradient has arrived."""
    assert tensor.grad is not None, "no gradient has arrived"
    return tensor.grad
