"""Packed rows: the real tokens of a padded batch, without padding.

A recurrent layer steps through time, so the rows are in time order: the first tokens of all
sentences, then the second tokens, and so on, long sentences before short ones. The sentences that
have a token at a step are then always the first `sizes[step]` of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Where the rows of one batch come from."""

    index: Tensor  # (rows,): the position of each row in the flattened (batch * time) tensor
    sentence: Tensor  # (rows,): the sentence that each row belongs to
    step: Tensor  # (rows,): its position among the real tokens of its sentence: 0, 1, ...
    sizes: tuple[int, ...]  # the number of rows at each step, never increasing
    shape: tuple[int, int]  # (batch, time) of the padded tensor
    annotations: Tensor | None = None  # (rows, columns): see `genpool.tensors.annotations`

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
        sizes = torch.bincount(step) if len(step) else step
        index = (sentence * time + position)[order]  # (rows,)
        return cls(
            index=index,
            sentence=sentence[order],
            step=step[order],
            sizes=tuple(sizes.tolist()),
            shape=(batch, time),
            annotations=None if annotations is None else annotations.flatten(0, 1)[index],
        )

    def mask(self) -> Tensor:
        """Returns the mask (batch, time) that this packing was made from."""
        batch, time = self.shape
        flat = torch.zeros(batch * time, dtype=torch.bool, device=self.index.device)
        return flat.index_fill(0, self.index, True).view(batch, time)

    def pack(self, padded: Tensor) -> Tensor:
        """Returns the rows (rows, dim) of a padded tensor (batch, time, dim)."""
        return padded.flatten(0, 1).index_select(0, self.index)

    def unpack(self, rows: Tensor) -> Tensor:
        """Returns rows (rows, dim) as a padded tensor (batch, time, dim), zeros at padding."""
        batch, time = self.shape
        return self._scatter(rows, self.index, batch, time)

    def align(self, rows: Tensor) -> Tensor:
        """Returns rows (rows, dim) as (batch, longest, dim): sentences start at 0, zeros follow."""
        batch, longest = self.shape[0], len(self.sizes)
        return self._scatter(rows, self.aligned_index(), batch, longest)

    def aligned_index(self) -> Tensor:
        """Returns the position (rows,) of each row in the flattened tensor of `align`."""
        return self.sentence * len(self.sizes) + self.step  # (rows,)

    def lengths(self) -> Tensor:
        """Returns the number of tokens of every sentence, (batch,)."""
        return torch.bincount(self.sentence, minlength=self.shape[0])

    def aligned_mask(self) -> Tensor:
        """Returns the mask (batch, longest) of the tensor of `align`, True at real tokens."""
        position = torch.arange(len(self.sizes), device=self.step.device)  # (longest,)
        return position < self.lengths().unsqueeze(1)

    def previous(self, reverse: bool = False) -> Tensor:
        """Returns the row of the token before each row (after it, if reverse); -1 for none."""
        offsets = torch.tensor((0, *self.sizes)).cumsum(0).to(self.step.device)  # (steps + 1,)
        row = torch.arange(len(self.step), device=self.step.device)  # (rows,)
        rank = row - offsets[self.step]  # (rows,): the sentence's rank among those of its step
        sizes = torch.tensor((*self.sizes, 0), device=self.step.device)  # (steps + 1,)
        if reverse:
            exists = rank < sizes[self.step + 1]
            return torch.where(exists, offsets[self.step + 1] + rank, -1)
        return torch.where(self.step > 0, offsets[(self.step - 1).clamp(min=0)] + rank, -1)

    @staticmethod
    def _scatter(rows: Tensor, index: Tensor, batch: int, time: int) -> Tensor:
        padded = rows.new_zeros(batch * time, rows.shape[-1]).index_copy(0, index, rows)
        return padded.view(batch, time, rows.shape[-1])
