"""The inference form of a sentence encoder: what depends on a word alone is computed once.

A word's vector, and what the layers of a BiLSTM make of it (W e + b), are the same in every
sentence. The inference form keeps them in a table that is filled as words appear and bounded in
size: known words, and unknown ones, which are computed from their letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from genpool.encoder.bilstm import BiLSTMLayer, BiLSTMStack, BothWays
from genpool.encoder.fused_lstm import run_steps
from genpool.errors import InputError
from genpool.inference import evaluating
from genpool.model import SentenceEncoder
from genpool.packing import Packing
from genpool.sentence_vectors import SentenceVectors
from genpool.text import WordTable
from genpool.threads import both


class QuickEncoder(SentenceVectors):
    """A sentence encoder that is used, not trained: the same vectors in less time.

    It reads the model's weights when it is made. Every encoder and pooling works; the BiLSTMs gain
    most, because their products with the word vectors are in the table too.

    Args:
        capacity: words in the table at the most; a full table is emptied and filled anew.

    Example:
        >>> quick = QuickEncoder(SentenceEncoder.from_pretrained("my-model"))
        >>> vectors = quick.encode(sentences)
    """

    def __init__(self, model: SentenceEncoder, capacity: int = 50_000) -> None:
        if capacity < 1:
            raise InputError(f"capacity is {capacity}; expected 1 word or more.")
        self.model, self.capacity = model, capacity
        self.text = model.text
        # Gated pooling needs the inputs of the top layer, so there the vectors are kept instead.
        stacked = isinstance(model.encoder, BiLSTMStack) and not model.pooling.needs_gates
        self._stack = _ProjectedStack(cast(BiLSTMStack, model.encoder)) if stacked else None
        self._forget()

    @property
    def output_dim(self) -> int:
        return self.model.output_dim

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def vectors_of(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        if len(self._words) > self.capacity:
            self._forget()
        rows = [self._words.row(words, self.text.sentence_ends) for words in sentences]
        lengths = torch.tensor([len(row) for row in rows])  # (batch,)
        mask = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)  # (batch, time)
        places = torch.zeros(mask.shape, dtype=torch.long)
        places[mask] = torch.from_numpy(np.concatenate(rows)).long()
        packing = Packing.from_mask(mask.to(self.device))
        with evaluating(self.model):
            self._fill()
            index = places.to(self.device).flatten().index_select(0, packing.index)  # (rows,)
            known = self._table.index_select(0, index)  # (rows, width of the table)
            states, gates = self._states(known, packing)
            return self.model.pooling.pool_rows(states, packing, gates).vector

    def _states(self, known: Tensor, packing: Packing) -> tuple[Tensor, Tensor | None]:
        if self._stack is not None:
            return self._stack(known, packing), None
        needs_gates = self.model.pooling.needs_gates
        return self.model.encoder.encode_rows(known, packing, needs_gates)

    def _forget(self) -> None:
        self._words: WordTable = self.text.table()
        self._table = torch.empty(0, 0, device=self.device)

    def _fill(self) -> None:
        """Computes the rows of words that are new to the table."""
        begin, end = len(self._table), len(self._words)
        if begin == end:
            return
        batch = self._words.batch([np.arange(begin, end, dtype=np.int32)]).to(self.device)
        fresh = self.model.embedding.distinct(batch)  # (new words, embedding)
        if self._stack is not None:
            fresh = self._stack.project(fresh)
        self._table = torch.cat([self._table, fresh]) if begin else fresh


class _ProjectedStack:
    """The layers of a BiLSTM stack, with W e + b of all of them as one product per word."""

    def __init__(self, encoder: BiLSTMStack) -> None:
        self.encoder = encoder
        self.layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        directions = [each for layer in self.layers for each in (layer.forwards, layer.backwards)]
        self.hidden = [4 * each.hidden_dim for each in directions]
        columns = encoder.word_columns()
        seen = [
            each.w[:, : columns[number // 2]].detach() for number, each in enumerate(directions)
        ]
        # A layer that does not see the words has no columns for them, only a bias.
        self.from_words = torch.cat(
            [torch.nn.functional.pad(each, (0, encoder.input_dim - each.shape[1])) for each in seen]
        )  # (all gates, embedding)
        self.biases = torch.cat([each.b.detach() for each in directions])  # (all gates,)
        self.from_states = [
            each.w[:, columns[number // 2] :].detach().T.contiguous()
            for number, each in enumerate(directions)
        ]

    def project(self, vectors: Tensor) -> Tensor:
        """Word vectors (words, embedding) -> (words, all gates)"""
        return torch.addmm(self.biases, vectors, self.from_words.T)

    def __call__(self, known: Tensor, packing: Packing) -> Tensor:
        """Projected rows (rows, all gates) -> states of the top layer (rows, 2 hidden)."""
        gates = torch.split(known, self.hidden, dim=1)
        nothing = known.new_empty(len(known), 0)
        below: list[BothWays] = []
        for number, layer in enumerate(self.layers):
            given = self.encoder.layer_rows(nothing, below) if below else (nothing, nothing)
            below.append(self._layer(number, layer, given, gates, packing))
        return torch.cat(below[-1], dim=1)

    def _layer(
        self,
        number: int,
        layer: BiLSTMLayer,
        given: BothWays,
        gates: tuple[Tensor, ...],
        packing: Packing,
    ) -> BothWays:
        if not packing.sizes:
            empty = given[0].new_empty(0, layer.forwards.hidden_dim)
            return empty, empty

        def direction(side: int) -> Tensor:
            place = 2 * number + side
            own = (layer.forwards, layer.backwards)[side]
            start = gates[place].contiguous()
            if given[side].shape[1]:
                start = torch.addmm(start, given[side], self.from_states[place])
            return run_steps(start, packing.sizes, own.u, bool(side)).states

        return both(lambda: direction(0), lambda: direction(1), given[0].device)
