"""Packed rows: the real tokens of a padded batch, and nothing else.

A recurrent layer steps through time, so its rows stand in time order: first the first tokens of
all sentences, then the second tokens, and so on, long sentences before short ones. The sentences
that are still going on at a step are then always the first `sizes[step]` of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Where the rows of one batch come from.

    index     (rows,)   position of each row in the flattened (batch * time) tensor
    sentence  (rows,)   the sentence that each row belongs to
    step      (rows,)   its place among the real tokens of its sentence: 0, 1, ...
    sizes               number of rows at each step, never growing
    shape               (batch, time) of the padded tensor
    """

    index: Tensor
    sentence: Tensor
    step: Tensor
    sizes: tuple[int, ...]
    shape: tuple[int, int]

    @classmethod
    def from_mask(cls, mask: Tensor) -> Packing:
        """The packing of a mask (batch, time): padding may stand on any side, or in between."""
        batch, time = mask.shape
        lengths = mask.sum(dim=1)  # (batch,)
        rank = lengths.argsort(descending=True, stable=True).argsort()  # (batch,): 0 is the longest
        sentence, position = mask.nonzero(as_tuple=True)  # 2 x (rows,)
        step = mask.cumsum(dim=1)[sentence, position] - 1  # (rows,)
        order = (step * batch + rank[sentence]).argsort()  # (rows,)
        sizes = torch.bincount(step) if len(step) else step
        return cls(
            index=(sentence * time + position)[order],
            sentence=sentence[order],
            step=step[order],
            sizes=tuple(sizes.tolist()),
            shape=(batch, time),
        )

    def mask(self) -> Tensor:
        """The mask (batch, time) that this packing was made from."""
        batch, time = self.shape
        flat = torch.zeros(batch * time, dtype=torch.bool, device=self.index.device)
        return flat.index_fill(0, self.index, True).view(batch, time)

    def pack(self, padded: Tensor) -> Tensor:
        """(batch, time, dim) -> (rows, dim)."""
        return padded.flatten(0, 1).index_select(0, self.index)

    def unpack(self, rows: Tensor) -> Tensor:
        """(rows, dim) -> (batch, time, dim), zeros at padding."""
        batch, time = self.shape
        return self._place(rows, self.index, batch, time)

    def align(self, rows: Tensor) -> Tensor:
        """(rows, dim) -> (batch, longest, dim): every sentence starts at 0, zeros behind it."""
        batch, longest = self.shape[0], len(self.sizes)
        return self._place(rows, self.aligned_index(), batch, longest)

    def aligned_index(self) -> Tensor:
        """Position of each row in the flattened tensor that `align` makes."""
        return self.sentence * len(self.sizes) + self.step  # (rows,)

    def previous(self, reverse: bool = False) -> Tensor:
        """The row of the token before each row (after it, if reverse); -1 where there is none."""
        offsets = torch.tensor((0, *self.sizes)).cumsum(0).to(self.step.device)  # (steps + 1,)
        row = torch.arange(len(self.step), device=self.step.device)  # (rows,)
        place = row - offsets[self.step]  # (rows,): the sentence's place among those of its step
        sizes = torch.tensor((*self.sizes, 0), device=self.step.device)  # (steps + 1,)
        if reverse:
            exists = place < sizes[self.step + 1]
            return torch.where(exists, offsets[self.step + 1] + place, -1)
        return torch.where(self.step > 0, offsets[(self.step - 1).clamp(min=0)] + place, -1)

    @staticmethod
    def _place(rows: Tensor, index: Tensor, batch: int, time: int) -> Tensor:
        padded = rows.new_zeros(batch * time, rows.shape[-1]).index_copy(0, index, rows)
        return padded.view(batch, time, rows.shape[-1])
