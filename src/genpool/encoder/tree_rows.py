"""The syntax trees of a batch, as an encoder reads them."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.tensors.packing import Packing
from genpool.trees import TREE_KINDS, pad_trees


def tree_rows(packing: Packing, kind: str) -> Tensor:
    """Returns the trees (rows, columns) of a packing; balanced ones where it has none.

    Raises:
        InputError: the integers are not trees of this kind.
    """
    trees = TREE_KINDS[kind]
    rows = packing.trees
    if rows is None:
        lengths = torch.bincount(packing.sentence, minlength=packing.shape[0]).tolist()
        padded = torch.from_numpy(pad_trees([*map(trees.balanced, lengths)], len(packing.sizes)))
        flat = padded.flatten(0, 1).to(packing.index.device)  # (batch * longest, columns)
        return flat.index_select(0, packing.aligned_index())
    if rows.shape[1] != trees.columns or rows.is_floating_point():
        raise InputError(
            f"trees have {rows.shape[1]} columns of {rows.dtype}; expected {trees.columns} columns "
            f"of integers, for {kind} trees."
        )
    return rows
