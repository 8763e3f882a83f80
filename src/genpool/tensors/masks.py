"""Masks: True at real tokens; tokenizers return them as integers of 0 and 1."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError


def boolean_mask(mask: Tensor) -> Tensor:
    """Returns a mask of booleans, or of integers that are 0 or 1, as booleans.

    Args:
        mask: any shape; True or 1 at real tokens, False or 0 at padding.

    Raises:
        InputError: the mask has another type, or other values.
    """
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
