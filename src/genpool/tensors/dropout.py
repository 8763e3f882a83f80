"""Dropout: fast random draws, a choice of where values are rescaled, and a switch per thread.

PyTorch draws one random number for every element, which on a CPU takes longer than the rest of a
dropout layer. One 64-bit draw is enough for four elements: 16 bits decide to within 1/65536.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from genpool.errors import InputError, unknown_name
from genpool.tensors.fast import fast

#: "inverted": x * mask / (1 - p) in training, x at inference (PyTorch's rule);
#: "test": x * mask in training, x * (1 - p) at inference (the authors' released program)
DropoutScaling = Literal["inverted", "test"]

#: a 16-bit draw decides about one element, so that p is rounded to a multiple of 1 / LEVELS
LEVELS = 1 << 16
_LOWEST_INT64 = torch.iinfo(torch.int64).min

# A context variable, not `module.training`: several threads may share one model, and one of them
# must not see the mode that another has set.
_disabled: ContextVar[bool] = ContextVar("genpool_dropout_disabled", default=False)


@contextmanager
def dropout_disabled() -> Iterator[None]:
    """Turns every `Dropout` layer off inside the block, whatever the mode of its model.

    The switch belongs to the current thread (and asyncio task), as `torch.no_grad` does, and no
    module is changed: a model in training mode can be evaluated by several threads at once.
    """
    token = _disabled.set(True)
    try:
        yield
    finally:
        _disabled.reset(token)


def dropout_is_disabled() -> bool:
    """Returns whether `dropout_disabled` is active: other layers that draw at random ask too."""
    return _disabled.get()


def dropout_factors(like: Tensor, p: float, scaling: DropoutScaling = "inverted") -> Tensor:
    """Returns the factors of training, of the shape and type of `like`: 0 with probability p.

    The others are 1, or with "inverted" scaling what keeps the expectation: 1 / (1 - p).
    """
    dropped_levels = round(p * LEVELS)
    count = like.numel()
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(_LOWEST_INT64, None)
    lanes = draws.view(torch.int16)[:count]  # (count,): uniform from -32768 to 32767
    factors = (lanes >= dropped_levels - LEVELS // 2).to(like.dtype)  # (count,)
    if scaling == "inverted":
        factors.mul_(LEVELS / (LEVELS - dropped_levels))
    return factors.view(like.shape)


class Dropout(nn.Dropout):
    """`nn.Dropout` with a faster draw on the CPU, obeying `dropout_disabled`."""

    def __init__(self, p: float = 0.5, scaling: DropoutScaling = "inverted") -> None:
        super().__init__(p)
        if scaling not in get_args(DropoutScaling):
            raise InputError(unknown_name("dropout scaling", scaling, get_args(DropoutScaling)))
        self.scaling = scaling

    def at_inference(self, values: Tensor) -> Tensor:
        """Returns the values as they are at inference; anything that bypasses `forward` uses it."""
        return values if self.scaling == "inverted" else values * (1 - self.p)

    def forward(self, values: Tensor) -> Tensor:
        """Returns the values, some of them dropped in training; same shape."""
        if not self.training or dropout_is_disabled():
            return self.at_inference(values)
        if self._draws_fast(values):
            return values * dropout_factors(values, self.p, self.scaling)
        if self.scaling == "inverted":
            return super().forward(values)
        return values * torch.bernoulli(torch.full_like(values, 1 - self.p))

    def _draws_fast(self, values: Tensor) -> bool:
        on_cpu = values.device.type == "cpu" and values.is_floating_point()
        return fast() and on_cpu and 0 < round(self.p * LEVELS) < LEVELS

    def extra_repr(self) -> str:
        return f"p={self.p}, scaling={self.scaling!r}"
