"""The trees of a batch, in the order of the packed rows."""

from __future__ import annotations

import torch

from genpool.encoder.tree_rows import tree_rows
from genpool.tensors.packing import Packing
from genpool.trees import TREE_KINDS


def test_a_packing_without_trees_has_balanced_ones() -> None:
    mask = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]).bool()
    packing = Packing.from_mask(mask)
    for name, kind in TREE_KINDS.items():
        rows = packing.unpack(tree_rows(packing, name))
        for sentence, real in enumerate(mask):
            expected = kind.balanced(int(real.sum())).tolist()
            assert rows[sentence, real].tolist() == expected


def test_a_packing_keeps_trees_with_their_tokens() -> None:
    mask = torch.tensor([[0, 1, 1], [1, 1, 1]]).bool()
    trees = torch.arange(12).view(2, 3, 2)
    rows = tree_rows(Packing.from_mask(mask, trees), "dependency")
    assert Packing.from_mask(mask).unpack(rows)[mask].tolist() == trees[mask].tolist()
