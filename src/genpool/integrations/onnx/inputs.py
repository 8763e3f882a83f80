"""What the graph of a sentence encoder is given: padded arrays of numbers, made from a batch.

word_ids  (batch, time)            vocabulary number of each token
letters   (batch, time, longest)   numbers of its letters, 0 where there is none; only where
                                   the model reads letters
mask      (batch, time)            True at real tokens
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.text import Batch

WORD_IDS, LETTERS, MASK, OUTPUT = "word_ids", "letters", "mask", "sentence_embedding"
#: the arrays of one run, by the names of the graph's inputs
Feeds = dict[str, NDArray[Any]]


def input_names(spelled: bool) -> list[str]:
    """The names of the inputs in their order; spelled: whether the model reads letters."""
    return [WORD_IDS, LETTERS, MASK] if spelled else [WORD_IDS, MASK]


def padded_inputs(batch: Batch, spelled: bool) -> list[Tensor]:
    """The inputs of one batch. At least one column each: a graph has no rule for none."""
    mask, ids = batch.mask, batch.ids  # (batch, time)
    missing = max(0, 1 - mask.shape[1])
    ids, mask = (torch.nn.functional.pad(each, (0, missing)) for each in (ids, mask))
    if not spelled:
        return [ids, mask]
    counts = batch.character_counts  # (distinct,)
    longest = max(1, int(counts.max())) if len(counts) else 1
    has_letter = torch.arange(longest) < counts.unsqueeze(1)  # (distinct, longest)
    # The last row is the spelling of padding: no letter.
    spellings = torch.zeros(len(counts) + 1, longest, dtype=torch.long)
    spellings[:-1][has_letter] = batch.letters
    index = torch.nn.functional.pad(batch.index, (0, missing))
    letters = spellings[index.masked_fill(~mask, len(counts))]  # (batch, time, longest)
    return [ids, letters, mask]


def feeds(inputs: list[Tensor]) -> Feeds:
    """The inputs as onnxruntime takes them."""
    names = input_names(spelled=len(inputs) == 3)
    return dict(zip(names, (np.ascontiguousarray(each.numpy()) for each in inputs), strict=True))
