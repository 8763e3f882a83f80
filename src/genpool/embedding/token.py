"""Token vectors: the word table, with the character CNN beside it or n-grams behind it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.embedding.characters import CharacterCNN, CharacterPadding
from genpool.registry import Configured
from genpool.tensors.modules import (
    Dropout,
    DropoutScaling,
    Initialization,
    gaussian_,
    require_positive,
)
from genpool.tensors.packing import Packing
from genpool.text import Batch
from genpool.text.vocabulary import UNKNOWN


class TokenEmbedding(Configured, nn.Module):
    """[word vector ; character vector] of every token, then dropout.

    Both are computed once for each distinct word of a batch. The same dropped tensor is the input
    of every shortcut of the encoder, as in the released program.

    Args:
        words: vocabulary size.
        word_dim: dimension of the word vectors. Default: 300.
        frozen: do not train the word table (SNLI and MultiNLI in the paper). Default: True.
        characters: number of character ids; 0 leaves the character CNN out. Default: 0.
        character_dim: as `dim` in `CharacterCNN`. Default: 15.
        character_widths: as `widths` in `CharacterCNN`. Default: (1, 3, 5).
        character_maps: as `maps` in `CharacterCNN`. Default: 100.
        dropout: probability that a value is dropped in training. Default: 0.5.
        dropout_scaling: as `scaling` in `Dropout`. Default: "inverted".
        character_initialization: as `initialization` in `CharacterCNN`. Default: "torch".
        character_padding: as `padding` in `CharacterCNN`. Default: "both".
        ngrams: number of n-gram ids, from whose vectors a word without an entry gets its own; 0
            gives all of them one vector. Default: 0.
        hidden_words: probability that a known word of a batch is represented by its n-grams in
            training, which trains them. Default: 0.

    Raises:
        InputError: a size is below 1, or a name is unknown.
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
        dropout_scaling: DropoutScaling = "inverted",
        character_initialization: Initialization = "torch",
        character_padding: CharacterPadding = "both",
        ngrams: int = 0,
        hidden_words: float = 0.0,
    ) -> None:
        super().__init__()
        require_positive(words=words, word_dim=word_dim)
        # The names `words`, `spelling` and `backing` are those of the tensors in saved folders.
        self.words = nn.Parameter(torch.empty(words, word_dim), requires_grad=not frozen)
        self.spelling: CharacterCNN | None = None
        if characters:
            sizes = characters, character_dim, character_widths, character_maps
            self.spelling = CharacterCNN(*sizes, character_initialization, character_padding)
        self.backing: nn.ParameterDict | None = None
        if ngrams:
            self.backing = nn.ParameterDict({"table": torch.empty(ngrams, word_dim)})
        self.hidden_words = hidden_words
        self.dropout = Dropout(dropout, dropout_scaling)
        self.output_dim = word_dim + (self.spelling.output_dim if self.spelling else 0)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initializes the tables of n-grams and of words: Gaussian 0.01."""
        gaussian_([*(self.backing or {}).values(), self.words])

    def distinct(self, batch: Batch) -> Tensor:
        """Returns [word ; characters] of each distinct word, (distinct, output_dim): no dropout."""
        vectors = functional.embedding(batch.word_ids, self.words)  # (distinct, word_dim)
        if self.backing is not None:
            vectors = self._with_ngrams(vectors, batch, self.backing["table"])
        if self.spelling is None:
            return vectors
        characters = self.spelling(batch.character_ids, batch.character_counts)
        return torch.cat([vectors, characters], dim=1)

    def _with_ngrams(self, vectors: Tensor, batch: Batch, table: Tensor) -> Tensor:
        """Replaces the vectors (distinct, word_dim) of words that have no entry, or are hidden."""
        counts = batch.character_counts  # (distinct,)
        replaced = batch.word_ids == UNKNOWN  # (distinct,)
        if self.training and self.hidden_words:
            is_hidden = torch.rand(len(counts), device=counts.device) < self.hidden_words
            replaced = replaced | (is_hidden & (counts > 0))
        rows = replaced.nonzero().squeeze(1)  # (replaced,)
        if not len(rows):
            return vectors
        ids = batch.character_ids[replaced.repeat_interleave(counts)]  # (n-grams,)
        return vectors.index_copy(
            0, rows, ngram_vectors(ids, counts[rows], table).to(vectors.dtype)
        )

    def distinct_at_inference(self, batch: Batch) -> Tensor:
        """Returns what the encoder reads at inference, per distinct word (distinct, output_dim)."""
        return self.dropout.at_inference(self.distinct(batch))

    def forward(self, batch: Batch) -> Tensor:
        """Returns the vectors of all tokens: (batch, time, output_dim)."""
        vectors: Tensor = self.dropout(functional.embedding(batch.index, self.distinct(batch)))
        return vectors

    def rows(self, batch: Batch, packing: Packing) -> Tensor:
        """Returns the vectors of the real tokens only: (rows, output_dim)."""
        index = batch.index.flatten().index_select(0, packing.index)  # (rows,)
        vectors: Tensor = self.dropout(functional.embedding(index, self.distinct(batch)))
        return vectors


def ngram_vectors(ngram_ids: Tensor, ngram_counts: Tensor, table: Tensor) -> Tensor:
    """Returns the sum of every word's n-grams in a table (ids, dim), by the root of their number.

    A mean of many different n-grams would be short. ngram_ids (n-grams,), one word after the other;
    ngram_counts (words,) -> (words, dim).
    """
    starts = ngram_counts.cumsum(0) - ngram_counts  # (words,)
    sums = functional.embedding_bag(ngram_ids, table, starts, mode="sum")  # (words, dim)
    return sums / ngram_counts.clamp(min=1).sqrt().unsqueeze(1).to(sums.dtype)
