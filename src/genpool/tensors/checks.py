"""Checks of sizes and of masks, which are True at real tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError


def require_positive(**sizes: int) -> None:
    """Raises InputError for sizes, passed by name, that are not whole numbers of 1 or more."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"{name} is {size!r}; expected a whole number of 1 or more.")


def require_tensor(name: str, value: object, expected: str) -> None:
    """Raises InputError unless the value is a tensor."""
    if not isinstance(value, Tensor):
        raise InputError(f"{name} is {type(value).__name__}; expected {expected}.")


def boolean_mask(mask: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns a mask of this shape, (batch, time), as booleans; tokenizers return integers."""
    require_tensor("mask", mask, "a boolean tensor (batch, time)")
    if mask.shape != shape:
        raise InputError(
            f"mask has shape {tuple(mask.shape)}; expected {tuple(shape)}, the batch and time of "
            "what it masks, True at real tokens."
        )
    if mask.dtype is torch.bool:
        return mask
    if mask.is_floating_point() or mask.is_complex():
        raise InputError(
            f"mask has type {mask.dtype}; expected torch.bool, True at real tokens, or integers, "
            "1 at real tokens and 0 at padding. Use mask.bool(), or `mask == 0` if yours is 1 at "
            "padding or is added to attention scores."
        )
    # Looking at values costs too much on a GPU, and is not possible where a graph is traced.
    is_traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    if mask.numel() and mask.device.type == "cpu" and not is_traced:
        low, high = (int(value) for value in torch.aminmax(mask))
        if not 0 <= low <= high <= 1:
            raise InputError(
                f"mask has values from {low} to {high}; expected 1 at real tokens and 0 at "
                "padding. Use `mask > 0` if yours counts the real tokens."
            )
    return mask.bool()
