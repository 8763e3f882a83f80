"""The inputs of an exported sentence encoder: padded arrays of ids, made from a batch.

word_ids  (batch, time)            vocabulary id of each token
letters   (batch, time, longest)   ids of its characters, 0 where there is none; only where the
                                   model reads characters
mask      (batch, time)            True at real tokens
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from genpool.text import Batch

#: names of the graph's inputs and of its output, part of the exported format
WORD_IDS, CHARACTER_IDS, MASK, OUTPUT = "word_ids", "letters", "mask", "sentence_embedding"
#: the arrays of one run, by the names of the graph's inputs
Feeds = dict[str, NDArray[Any]]


def input_names(reads_characters: bool) -> list[str]:
    """Returns the names of the inputs in order."""
    return [WORD_IDS, CHARACTER_IDS, MASK] if reads_characters else [WORD_IDS, MASK]


def padded_inputs(batch: Batch, reads_characters: bool) -> list[Tensor]:
    """Returns the inputs of one batch, each with at least one column: a graph cannot take none."""
    mask, ids = batch.mask, batch.ids  # (batch, time)
    missing = max(0, 1 - mask.shape[1])
    ids, mask = (torch.nn.functional.pad(columns, (0, missing)) for columns in (ids, mask))
    if not reads_characters:
        return [ids, mask]
    counts = batch.character_counts  # (distinct,)
    longest = max(1, int(counts.max())) if len(counts) else 1
    is_character = torch.arange(longest) < counts.unsqueeze(1)  # (distinct, longest)
    # The last row is the padding token, which has no characters.
    by_word = torch.zeros(len(counts) + 1, longest, dtype=torch.long)
    by_word[:-1][is_character] = batch.character_ids
    index = torch.nn.functional.pad(batch.index, (0, missing))  # (batch, time)
    character_ids = by_word[index.masked_fill(~mask, len(counts))]  # (batch, time, longest)
    return [ids, character_ids, mask]


def feeds(inputs: list[Tensor]) -> Feeds:
    """Returns the inputs as arrays for onnxruntime."""
    names = input_names(reads_characters=len(inputs) == 3)
    arrays = (np.ascontiguousarray(tensor.numpy()) for tensor in inputs)
    return dict(zip(names, arrays, strict=True))
