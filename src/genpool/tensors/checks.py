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
    """Returns a mask (batch, time) as booleans.

    Args:
        mask: True or 1 at real tokens, False or 0 at padding; tokenizers return integers.
        shape: the batch and time of what is masked.

    Raises:
        InputError: the mask has another shape or type, or other values.
    """
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
    if mask.numel() and _is_readable(mask):
        low, high = (int(value) for value in torch.aminmax(mask))
        if not 0 <= low <= high <= 1:
            raise InputError(
                f"mask has values from {low} to {high}; expected 1 at real tokens and 0 at "
                "padding. Use `mask > 0` if yours counts the real tokens."
            )
    return mask.bool()


def _is_readable(mask: Tensor) -> bool:
    """Whether looking at values costs little: not where a graph is traced, nor on a GPU."""
    is_traced = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    return mask.device.type == "cpu" and not is_traced
