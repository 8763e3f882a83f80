"""Token vectors: the word table joined with the character CNN."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.embedding.characters import CharacterCNN
from genpool.errors import InputError
from genpool.tensors.dropout import Dropout
from genpool.tensors.packing import Packing
from genpool.text import Batch


class TokenEmbedding(nn.Module):
    """[word vector ; character vector] of every token, then dropout.

    Both are computed once per distinct word of a batch. The same dropped tensor feeds every
    shortcut of the encoder, as in the released program.

    Args:
        words: vocabulary size.
        word_dim: width of the word table.
        frozen: True keeps the table as it is while training (SNLI and MultiNLI in the paper).
        characters: number of character entries; 0 leaves the character CNN out.
        character_dim, character_widths, character_maps: as in `CharacterCNN`.
        dropout: share of numbers dropped while training.
    """

    def __init__(
        self,
        words: int,
        word_dim: int = 300,
        frozen: bool = True,
        characters: int = 0,
        character_dim: int = 15,
        character_widths: Sequence[int] = (1, 3, 5),
        character_maps: int = 100,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        if words < 1 or word_dim < 1:
            raise InputError(f"words={words}, word_dim={word_dim}; both must be 1 or more.")
        self.words = nn.Parameter(torch.empty(words, word_dim), requires_grad=not frozen)
        self.spelling = (
            CharacterCNN(characters, character_dim, character_widths, character_maps)
            if characters
            else None
        )
        self.dropout = Dropout(dropout)
        self.output_dim = word_dim + (self.spelling.output_dim if self.spelling else 0)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.words, std=0.01)

    def distinct(self, batch: Batch) -> Tensor:
        """[word ; characters] of each distinct word of the batch: (distinct, output_dim)."""
        vectors = functional.embedding(batch.word_ids, self.words)  # (distinct, word_dim)
        if self.spelling is None:
            return vectors
        return torch.cat([vectors, self.spelling(batch.letters, batch.character_counts)], dim=1)

    def forward(self, batch: Batch) -> Tensor:
        """-> (batch, time, output_dim)"""
        vectors: Tensor = self.dropout(functional.embedding(batch.index, self.distinct(batch)))
        return vectors

    def rows(self, batch: Batch, packing: Packing) -> Tensor:
        """The same for the real tokens alone: (rows, output_dim)"""
        index = batch.index.flatten().index_select(0, packing.index)  # (rows,)
        vectors: Tensor = self.dropout(functional.embedding(index, self.distinct(batch)))
        return vectors
