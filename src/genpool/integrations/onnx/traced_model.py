"""A sentence encoder as one module that PyTorch's exporter can trace."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.embedding import CharacterCNN
from genpool.embedding.characters import filter_reach
from genpool.integrations.onnx.traced_encoders import traced_encoder
from genpool.integrations.onnx.traced_poolings import traced_pooling
from genpool.integrations.onnx.traced_recurrent import Aligned, left_aligned
from genpool.model import SentenceEncoder
from genpool.pooling import Pooled
from genpool.saving.weights_file import SCALE, quantize_weights
from genpool.text.vocabulary import UNKNOWN


def padded_character_vectors(character_ids: Tensor, cnn: CharacterCNN) -> Tensor:
    """Returns the character vectors (words, dim) of padded words (words, longest), 0 at padding.

    The same values as `genpool.embedding.characters.character_vectors`, which joins all words in
    one row whose length depends on the data; a graph needs shapes that depend on shapes only, so
    here every word is padded to the longest. The check of an export compares the two.
    """
    mask = (character_ids > 0).unsqueeze(1)  # (words, 1, longest)
    vectors = functional.embedding(character_ids, cnn.letters).mT  # (words, dim, longest)
    vectors = vectors.masked_fill(~mask, 0)
    maxima = []
    for weights in cnn.filters:
        padded = functional.pad(vectors, filter_reach(weights.shape[2], cnn.padding))
        # ReLU returns nothing below zero, so that zeros at padding never change a maximum.
        features = functional.conv1d(padded, weights).relu().masked_fill(~mask, 0)
        maxima.append(features.amax(dim=2))  # (words, maps)
    return torch.cat(maxima, dim=1)


class RowTable(nn.Module):
    """A table of vectors of words or n-grams.

    Args:
        rows: (ids, dim).
        int8: keep them in 8 bits, with one scale per row, because one scale for the table would be
            too coarse for rows with small values. Default: False.
    """

    rows: Tensor
    scales: Tensor | None

    def __init__(self, rows: Tensor, int8: bool = False) -> None:
        super().__init__()
        parts = quantize_weights({"rows": rows}) if int8 else {"rows": rows}
        self.register_buffer("rows", parts["rows"])  # (ids, dim)
        self.register_buffer("scales", parts.get("rows" + SCALE))  # (ids,)

    def forward(self, ids: Tensor) -> Tensor:
        """Returns the vectors (..., dim) of ids (...)."""
        rows = functional.embedding(ids, self.rows)
        return rows if self.scales is None else rows.float() * self.scales[ids].unsqueeze(-1)


def padded_ngram_vectors(ngram_ids: Tensor, table: RowTable) -> Tensor:
    """Returns the vectors (words, dim) of padded n-grams (words, longest), 0 at padding.

    The same values as `genpool.embedding.token.ngram_vectors`.
    """
    mask = (ngram_ids > 0).unsqueeze(2)  # (words, longest, 1)
    vectors: Tensor = table(ngram_ids).masked_fill(~mask, 0)
    return vectors.sum(dim=1) / mask.sum(dim=1).clamp(min=1).sqrt()


class TracedSentenceEncoder(nn.Module):
    """Word and character ids in, sentence vectors out; padding may be anywhere.

    It is for tracing only (see `traced_recurrent`), and shares the weights of the model, except
    those of recurrent layers, which are reordered for ONNX.

    Args:
        model: the sentence encoder, in single precision on the CPU.
        int8: the tables of words and n-grams in 8 bits. Default: False.
    """

    def __init__(self, model: SentenceEncoder, int8: bool = False) -> None:
        super().__init__()
        backing = model.embedding.backing
        self.words = RowTable(model.embedding.words.detach(), int8)
        self.ngrams = None if backing is None else RowTable(backing.table.detach(), int8)
        self.embedding, self.projection = model.embedding, model.projection
        self.encoder = traced_encoder(model.encoder)
        self.pooling = traced_pooling(model.pooling)
        self.needs_gates = model.pooling.needs_gates

    @property
    def reads_characters(self) -> bool:
        """Whether the model reads characters or n-grams, and so has an input of their ids."""
        return self.embedding.spelling is not None or self.ngrams is not None

    def forward(self, word_ids: Tensor, character_ids: Tensor | None, mask: Tensor) -> Tensor:
        """(batch, time), (batch, time, longest), (batch, time) -> (batch, output_dim)"""
        order = left_aligned(mask)  # (batch, time)
        aligned = Aligned.from_mask(mask)
        ordered = word_ids.gather(1, order)  # (batch, time)
        vectors = self.words(ordered)  # (batch, time, word_dim)
        if character_ids is not None:
            vectors = self._with_characters(vectors, ordered, character_ids, order)
        vectors = self.embedding.dropout.at_inference(vectors)
        states, gates = self.encoder(vectors, aligned, self.needs_gates)
        extra = {"gates": gates} if self.needs_gates else {}
        pooled = cast(Pooled, self.pooling(states, aligned.mask, **extra))
        vector = pooled.vector
        return vector if self.projection is None else cast(Tensor, self.projection(vector))

    def _with_characters(
        self, vectors: Tensor, word_ids: Tensor, character_ids: Tensor, order: Tensor
    ) -> Tensor:
        """Word vectors (batch, time, word_dim) -> (batch, time, embedding)"""
        batch, time, longest = character_ids.shape
        index = order.unsqueeze(2).expand(batch, time, longest)
        words = character_ids.gather(1, index).flatten(0, 1)  # (batch * time, longest)
        if self.ngrams is not None:
            backing = padded_ngram_vectors(words, self.ngrams)
            is_unknown = (word_ids == UNKNOWN).unsqueeze(2)  # (batch, time, 1)
            vectors = torch.where(is_unknown, backing.view(batch, time, -1), vectors)
        if self.embedding.spelling is not None:
            characters = padded_character_vectors(words, self.embedding.spelling)
            characters = characters.view(batch, time, characters.shape[1])
            vectors = torch.cat([vectors, characters], dim=2)  # (batch, time, embedding)
        return vectors


class TracedWordEncoder(nn.Module):
    """The same for a model without characters, whose graph has no input for them."""

    def __init__(self, encoder: TracedSentenceEncoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, word_ids: Tensor, mask: Tensor) -> Tensor:
        """(batch, time), (batch, time) -> (batch, output_dim)"""
        return cast(Tensor, self.encoder(word_ids, None, mask))
