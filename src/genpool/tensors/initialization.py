"""Initial weights: PyTorch's, those of the authors' released program, or none at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

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


@contextmanager
def on_meta_device() -> Iterator[None]:
    """Modules created inside the block take no memory, whatever their sizes."""
    with torch.device("meta"), _SkipRandomMethods():
        yield


class _SkipRandomMethods(TorchFunctionMode):
    """Skips random initialization: for meta tensors torch would load its compiler to do it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
