"""Modules without memory, of which only the sizes are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: methods that initialize weights; tensors without memory have nothing to initialize
RANDOM_METHODS = ("normal_", "uniform_")


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
        if getattr(func, "__name__", "") in RANDOM_METHODS:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
