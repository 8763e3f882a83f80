"""What modules share: checks of arguments, fast paths, threads, initial weights, dropout."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, TypeVar, get_args

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from genpool.errors import InputError, unknown_name

Item = TypeVar("Item")
Result = TypeVar("Result")

# --- checks


def require_positive(**sizes: int) -> None:
    """Raises InputError for sizes, passed by name, that are not whole numbers of 1 or more."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InputError(f"{name} is {size!r}; expected a whole number of 1 or more.")


def require_tensor(name: str, value: object, expected: str) -> None:
    """Raises InputError unless the value is a tensor."""
    if not isinstance(value, Tensor):
        raise InputError(f"{name} is {type(value).__name__}; expected {expected}.")


def require_literal(kind: str, value: str, literal: Any) -> None:
    """Raises InputError unless the value is one of those that a Literal type lists."""
    if value not in get_args(literal):
        raise InputError(unknown_name(kind, value, get_args(literal)))


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
        low, high = map(int, torch.aminmax(mask))
        if not 0 <= low <= high <= 1:
            raise InputError(
                f"mask has values from {low} to {high}; expected 1 at real tokens and 0 at "
                "padding. Use `mask > 0` if yours counts the real tokens."
            )
    return mask.bool()


# --- fast paths

_enabled = os.environ.get("GENPOOL_FAST") != "0"


def fast() -> bool:
    """Returns whether fast paths are on."""
    return _enabled


@contextmanager
def fast_paths(enabled: bool) -> Iterator[None]:
    """Turns fast paths on or off inside the block, for all threads.

    With `fast_paths(False)` all is plain autograd; GENPOOL_FAST=0 does it for a whole program.
    """
    global _enabled
    before, _enabled = _enabled, enabled
    try:
        yield
    finally:
        _enabled = before


# --- threads


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """PyTorch uses this number of threads inside, in the current thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_second_thread = ThreadPoolExecutor(1, thread_name_prefix="genpool-direction")


def run_both(work: Callable[[int], Result], device: torch.device) -> tuple[Result, Result]:
    """Returns work(0) and work(1), in parallel on a CPU with threads; no gradient is recorded.

    The directions of an LSTM are synchronized once so, and not at every small operation.
    """
    threads = torch.get_num_threads()

    # Both settings are per thread: a new one starts with torch's defaults.
    @torch.no_grad()
    def run(side: int) -> Result:
        with torch_threads(max(1, threads // 2)):  # both run at the same time
            return work(side)

    if device.type != "cpu" or threads == 1:
        return run(0), run(1)
    second = _second_thread.submit(run, 1)
    return run(0), second.result()


def map_threaded(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Iterator[Result]:
    """Yields the results of all items, which are read at once, in order; one thread an item.

    Small operations gain nothing from being split over threads; several batches at once do.
    """
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    with torch_threads(1), pool:
        yield from pool.map(work, items)


# --- initial weights

#: "torch": PyTorch's own initial weights; "gaussian": those of the authors' released program
Initialization = Literal["torch", "gaussian"]
#: standard deviation of the released program's initial weights
GAUSSIAN_STD = 0.01


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
    """Skips random initialization: for meta tensors torch would load its compiler."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in ("normal_", "uniform_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


# --- dropout

#: "inverted": x * mask / (1 - p) in training, x at inference (PyTorch's rule);
#: "test": x * mask in training, x * (1 - p) at inference (the authors' released program)
DropoutScaling = Literal["inverted", "test"]
#: a 16-bit draw decides about one element, so that p is rounded to a multiple of 1 / LEVELS
LEVELS = 1 << 16

# Not `module.training`: threads that share a model must not see the mode that another has set.
_disabled: ContextVar[bool] = ContextVar("genpool_dropout_disabled", default=False)


@contextmanager
def dropout_disabled() -> Iterator[None]:
    """Turns every `Dropout` layer off inside the block, in the current thread or asyncio task.

    No module is changed: a model in training mode can be evaluated by several threads at once.
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

    PyTorch draws one random number for every element, which on a CPU takes longer than the rest of
    a dropout layer; here one draw of 64 bits is enough for four elements.
    """
    dropped_levels, count = round(p * LEVELS), like.numel()
    lowest = torch.iinfo(torch.int64).min
    draws = torch.empty((count + 3) // 4, dtype=torch.int64).random_(lowest, None)
    lanes = draws.view(torch.int16)[:count]  # (count,): uniform from -32768 to 32767
    factors = (lanes >= dropped_levels - LEVELS // 2).to(like.dtype)  # (count,)
    if scaling == "inverted":
        factors.mul_(LEVELS / (LEVELS - dropped_levels))
    return factors.view(like.shape)


class Dropout(nn.Dropout):
    """`nn.Dropout` with a faster draw on the CPU, obeying `dropout_disabled`."""

    def __init__(self, p: float = 0.5, scaling: DropoutScaling = "inverted") -> None:
        super().__init__(p)
        require_literal("dropout scaling", scaling, DropoutScaling)
        self.scaling = scaling

    def at_inference(self, values: Tensor) -> Tensor:
        """Returns the values as they are at inference; anything that bypasses `forward` uses it."""
        return values if self.scaling == "inverted" else values * (1 - self.p)

    def forward(self, values: Tensor) -> Tensor:
        """Returns the values, some of them dropped in training; same shape."""
        if not self.training or dropout_is_disabled():
            return self.at_inference(values)
        on_cpu = values.device.type == "cpu" and values.is_floating_point()
        if fast() and on_cpu and 0 < round(self.p * LEVELS) < LEVELS:
            return values * dropout_factors(values, self.p, self.scaling)
        if self.scaling == "inverted":
            return super().forward(values)
        return values * torch.bernoulli(torch.full_like(values, 1 - self.p))

    def extra_repr(self) -> str:
        return f"p={self.p}, scaling={self.scaling!r}"
