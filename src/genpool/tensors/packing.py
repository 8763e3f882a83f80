"""Packed rows: the tokens of a padded batch without padding, and values as small integers.

A recurrent layer steps through time, so the rows of a batch are in time order: the first tokens of
all sentences, then the second tokens, and so on, long sentences before short ones. The sentences
that have a token at a step are then always the first `sizes[step]` of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor

#: the number of rows at each step, never increasing
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Packing:
    """Where the rows of one batch come from."""

    index: Tensor  # (rows,): the position of each row in the flattened (batch * time) tensor
    sentence: Tensor  # (rows,): the sentence that each row belongs to
    step: Tensor  # (rows,): its position among the real tokens of its sentence: 0, 1, ...
    sizes: Sizes  # the number of rows at each step
    shape: tuple[int, int]  # (batch, time) of the padded tensor
    annotations: Tensor | None = None  # (rows, columns): see `genpool.tensors.arrays`

    @classmethod
    def from_mask(cls, mask: Tensor, annotations: Tensor | None = None) -> Packing:
        """Returns the packing of a mask (batch, time); padding may be on any side or in between.

        annotations (batch, time, columns): in the order of the real tokens.
        """
        batch, time = mask.shape
        lengths = mask.sum(dim=1)  # (batch,)
        rank = lengths.argsort(descending=True, stable=True).argsort()  # (batch,): 0 is the longest
        sentence, position = mask.nonzero(as_tuple=True)  # 2 x (rows,)
        step = mask.cumsum(dim=1)[sentence, position] - 1  # (rows,)
        order = (step * batch + rank[sentence]).argsort()  # (rows,)
        sizes = tuple(torch.bincount(step).tolist()) if len(step) else ()
        index = (sentence * time + position)[order]  # (rows,)
        rows = None if annotations is None else annotations.flatten(0, 1)[index]  # (rows, columns)
        return cls(index, sentence[order], step[order], sizes, (batch, time), rows)

    def mask(self) -> Tensor:
        """Returns the mask (batch, time) that this packing was made from."""
        batch, time = self.shape
        flat = torch.zeros(batch * time, dtype=torch.bool, device=self.index.device)
        return flat.index_fill(0, self.index, True).view(batch, time)

    def aligned(self) -> Packing:
        """Returns the packing of the same rows where sentences start at 0: (batch, longest)."""
        longest = len(self.sizes)
        index = self.sentence * longest + self.step  # (rows,)
        return replace(self, index=index, shape=(self.shape[0], longest))

    def pack(self, padded: Tensor) -> Tensor:
        """Returns the rows (rows, dim) of a padded tensor (batch, time, dim)."""
        return padded.flatten(0, 1).index_select(0, self.index)

    def unpack(self, rows: Tensor) -> Tensor:
        """Returns rows (rows, dim) as a padded tensor (batch, time, dim), zeros at padding."""
        (batch, time), dim = self.shape, rows.shape[-1]
        flat = rows.new_zeros(batch * time, dim).index_copy(0, self.index, rows)
        return flat.view(batch, time, dim)

    def align(self, rows: Tensor) -> Tensor:
        """Returns rows (rows, dim) as (batch, longest, dim): sentences start at 0, zeros follow."""
        return self.aligned().unpack(rows)

    def lengths(self) -> Tensor:
        """Returns the number of tokens of every sentence, (batch,)."""
        return torch.bincount(self.sentence, minlength=self.shape[0])


def steps_of(sizes: Sizes, reverse: bool = False) -> list[tuple[slice, int]]:
    """Returns the rows of every step and their number, in the order of computation."""
    starts = accumulate((0, *sizes))
    steps = [(slice(at, at + size), size) for at, size in zip(starts, sizes, strict=False)]
    return steps[::-1] if reverse else steps


# --- rows of 8-bit and of 4-bit integers, which have one scale each to multiply them by

MAX_INT8, MAX_INT4 = 127, 7
#: parts of a row's largest value that are tried as the end of its 4-bit scale: clipping the largest
#: values leaves smaller steps for the others
_CLIPS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
#: a row of zeros needs a scale to be divided by
_SMALLEST = 1e-30
#: rows that are unpacked together, within a processor's cache
_UNPACK_ROWS = 2048


def quantize_rows(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns 8-bit integers (..., rows, dim) and the scales (..., rows, 1) to multiply them by."""
    scales = values.abs().amax(dim=-1, keepdim=True).clamp_(min=_SMALLEST).div_(MAX_INT8)
    return (values / scales).round_().to(torch.int8), scales


def quantize_rows_int4(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns bytes (rows, (dim + 1) // 2) and the scales (rows, 1) of the smallest squared error.

    The low half of a byte is the earlier value. Halves contain the integer plus 8, so that a zero
    byte, which no row has, is a sign of damage; an odd row ends with a half of 8.
    """
    largest = values.abs().amax(dim=-1, keepdim=True).clamp(min=_SMALLEST)  # (rows, 1)
    clips = torch.tensor(_CLIPS, dtype=torch.float64) / MAX_INT4
    clipped = largest * clips.to(values)  # (rows, clips): the scales that are tried
    steps = torch.split(clipped, 1, dim=1)  # clips x (rows, 1)
    errors = [(_int4(values, step) * step - values).square().sum(-1) for step in steps]
    best = torch.stack(errors, dim=1).argmin(dim=1, keepdim=True)  # (rows, 1)
    scales = clipped.gather(1, best)  # (rows, 1)
    halves = _int4(values, scales).to(torch.int16) + 8  # (rows, dim)
    if values.shape[-1] % 2:
        halves = torch.nn.functional.pad(halves, (0, 1), value=8)
    packed = halves[..., 0::2] + 16 * halves[..., 1::2]  # (rows, (dim + 1) // 2)
    return packed.to(torch.uint8), scales


def _int4(values: Tensor, scales: Tensor) -> Tensor:
    return (values / scales).round().clamp(-MAX_INT4, MAX_INT4)  # (rows, dim)


def dequantize_rows_int4(packed: Tensor, scales: Tensor, dim: int) -> Tensor:
    """Returns the values (rows, dim) of bytes (rows, (dim + 1) // 2) and scales (rows, 1)."""
    pairs = scales.new_empty(*packed.shape, 2)  # (rows, (dim + 1) // 2, 2)
    parts = (torch.split(tensor, _UNPACK_ROWS) for tensor in (packed, scales.unsqueeze(-1), pairs))
    for packed_part, scales_part, pairs_part in zip(*parts, strict=True):
        pairs_part[..., 0], pairs_part[..., 1] = packed_part & 15, packed_part >> 4
        pairs_part.sub_(8).mul_(scales_part)
    return pairs.flatten(-2)[..., :dim].contiguous()
