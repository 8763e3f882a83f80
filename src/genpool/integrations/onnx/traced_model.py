"""The whole sentence encoder as one module that a graph can be made from."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.embedding import CharacterCNN
from genpool.integrations.onnx.alignment import Aligned, left_aligned
from genpool.integrations.onnx.traced_encoders import graph_encoder
from genpool.integrations.onnx.traced_poolings import graph_pooling
from genpool.model import SentenceEncoder
from genpool.pooling import Pooled
from genpool.saving.quantization import SCALE, quantize_weights


def spelled(letters: Tensor, cnn: CharacterCNN) -> Tensor:
    """Character vectors of padded words: letters (words, longest), 0 for none -> (words, dim)."""
    real = (letters > 0).unsqueeze(1)  # (words, 1, longest)
    vectors = functional.embedding(letters, cnn.letters).mT  # (words, letter_dim, longest)
    vectors = vectors.masked_fill(~real, 0)
    found = []
    for each in cnn.filters:
        width = each.shape[2]
        padded = functional.pad(vectors, ((width - 1) // 2, width // 2))
        # ReLU gives nothing below zero, so that zero may stand where there is no letter.
        features = functional.conv1d(padded, each).relu().masked_fill(~real, 0)
        found.append(features.amax(dim=2))  # (words, maps)
    return torch.cat(found, dim=1)


class SentenceGraph(nn.Module):
    """Numbers of words and letters in, sentence vectors out; padding may stand anywhere.

    It is for tracing alone (see `recurrent`), and shares the weights of the model, but for those of
    recurrent layers, which are put in ONNX's order. int8: the word table in 8 bits, with a scale
    for every word, because one for the whole table would be too coarse for rare words.
    """

    table: Tensor
    scales: Tensor | None

    def __init__(self, model: SentenceEncoder, int8: bool = False) -> None:
        super().__init__()
        words = model.embedding.words.detach()
        parts = quantize_weights({"words": words}) if int8 else {"words": words}
        self.register_buffer("table", parts["words"])  # (words, word_dim)
        self.register_buffer("scales", parts.get("words" + SCALE))  # (words,)
        self.embedding, self.projection = model.embedding, model.projection
        self.encoder = graph_encoder(model.encoder)
        self.pooling = graph_pooling(model.pooling)
        self.needs_gates = model.pooling.needs_gates

    @property
    def reads_letters(self) -> bool:
        return self.embedding.spelling is not None

    def forward(self, word_ids: Tensor, letters: Tensor | None, mask: Tensor) -> Tensor:
        """(batch, time), (batch, time, longest), (batch, time) -> (batch, output_dim)"""
        order = left_aligned(mask)  # (batch, time)
        aligned = Aligned.of(mask)
        ids = word_ids.gather(1, order)  # (batch, time)
        vectors = self._word_vectors(ids)  # (batch, time, word_dim)
        if self.embedding.spelling is not None and letters is not None:
            batch, time, longest = letters.shape
            where = order.unsqueeze(2).expand(batch, time, longest)
            words = letters.gather(1, where).flatten(0, 1)  # (batch * time, longest)
            characters = spelled(words, self.embedding.spelling)
            characters = characters.view(batch, time, characters.shape[1])
            vectors = torch.cat([vectors, characters], dim=2)  # (batch, time, embedding)
        states, gates = self.encoder(vectors, aligned, self.needs_gates)
        more = {"gates": gates} if self.needs_gates else {}
        pooled = cast(Pooled, self.pooling(states, aligned.mask, **more))
        vector = pooled.vector
        return vector if self.projection is None else cast(Tensor, self.projection(vector))

    def _word_vectors(self, ids: Tensor) -> Tensor:
        rows = functional.embedding(ids, self.table)
        return rows if self.scales is None else rows.float() * self.scales[ids].unsqueeze(2)


class UnspelledGraph(nn.Module):
    """The same for a model that reads no letters: its graph has no such input."""

    def __init__(self, graph: SentenceGraph) -> None:
        super().__init__()
        self.whole = graph  # `graph` is a name that the tracer keeps for itself

    def forward(self, word_ids: Tensor, mask: Tensor) -> Tensor:
        return cast(Tensor, self.whole(word_ids, None, mask))
