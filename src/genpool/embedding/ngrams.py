"""Vectors of words without an entry: the sum of their n-grams' vectors (fastText's subwords)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError
from genpool.tensors.initialization import gaussian_


def ngram_vectors(ngram_ids: Tensor, ngram_counts: Tensor, table: Tensor) -> Tensor:
    """Returns the sum of the vectors of every word's n-grams, divided by the root of their number.

    The root keeps the length: a mean of many different n-grams would be short, and words of many
    n-grams alike.

    Args:
        ngram_ids: (n-grams,), those of all words, one word after the other.
        ngram_counts: (words,), the number of n-grams of each word.
        table: (ids, dim), the vectors of the n-grams.

    Returns:
        (words, dim); zeros for a word without n-grams.
    """
    starts = ngram_counts.cumsum(0) - ngram_counts  # (words,)
    sums = functional.embedding_bag(ngram_ids, table, starts, mode="sum")  # (words, dim)
    return sums / ngram_counts.clamp(min=1).sqrt().unsqueeze(1).to(sums.dtype)


class NgramTable(nn.Module):
    """The table of n-grams, in the place of the character CNN.

    Args:
        ids: number of ids (`len(CharacterNgrams)`).
        dim: dimension of a vector, that of the word table.

    Raises:
        InputError: a size is below 1.
    """

    def __init__(self, ids: int, dim: int) -> None:
        super().__init__()
        if min(ids, dim) < 1:
            raise InputError(f"ids={ids}, dim={dim}; both must be 1 or more.")
        # The name `table` is that of the tensor in saved folders.
        self.table = nn.Parameter(torch.empty(ids, dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes the vectors: Gaussian 0.01."""
        gaussian_([self.table])

    def forward(self, ngram_ids: Tensor, ngram_counts: Tensor) -> Tensor:
        """Returns the vectors (words, dim) of words, from ids (n-grams,) and counts (words,)."""
        return ngram_vectors(ngram_ids, ngram_counts, self.table)
