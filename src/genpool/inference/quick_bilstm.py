"""A BiLSTM stack for inference: the products of its layers with a word come from a table."""

from __future__ import annotations

from itertools import accumulate
from typing import Self, cast

import torch
from torch import Tensor
from torch.nn import functional

from genpool.encoder import Encoder
from genpool.encoder.bilstm import BiLSTMLayer, BiLSTMStack, DirectionPair
from genpool.encoder.fused_lstm import AddProduct, adder, run_steps
from genpool.inference.int8 import Int8Product
from genpool.tensors.packing import Packing
from genpool.tensors.threads import run_both


class ProjectedStack:
    """The layers of a BiLSTM stack, with W e + b of all of them as one product per word."""

    def __init__(self, encoder: BiLSTMStack, int8: bool = False) -> None:
        self.encoder = encoder
        self.layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        directions = [way for layer in self.layers for way in (layer.forwards, layer.backwards)]
        #: where the gates of every direction start in a row of the table, and where the last end
        self.columns = [0, *accumulate(4 * way.hidden_dim for way in directions)]
        # Every layer has two directions, which see the same number of columns of word vectors.
        word_columns = [columns for columns in encoder.word_columns() for _ in range(2)]
        split = [
            (way.w[:, :columns].detach(), way.w[:, columns:].detach())
            for way, columns in zip(directions, word_columns, strict=True)
        ]
        # A layer that does not see the words has no columns for them, only a bias.
        self.from_words = torch.cat(
            [functional.pad(words, (0, encoder.input_dim - words.shape[1])) for words, _ in split]
        )  # (all gates, embedding)
        self.biases = torch.cat([way.b.detach() for way in directions])  # (all gates,)
        #: add the product with the layers below (the first layer has none), and with h_{t-1}
        self.add_below = [_adder(below, int8) if below.shape[1] else None for _, below in split]
        self.add_recurrent = [
            Int8Product(way.u).add_to if int8 else adder(way.u.detach()) for way in directions
        ]

    @classmethod
    def of(cls, encoder: Encoder, int8: bool = False) -> Self | None:
        """Returns the projected form of a BiLSTM stack; None for every other encoder."""
        return cls(encoder, int8) if isinstance(encoder, BiLSTMStack) else None

    def project(self, vectors: Tensor) -> Tensor:
        """Word vectors (words, embedding) -> (words, all gates)"""
        return torch.addmm(self.biases, vectors, self.from_words.T)

    def __call__(self, table: Tensor, index: Tensor, packing: Packing) -> Tensor:
        """Returns the top states (rows, 2 hidden) of the words at `index` (rows,) of the table."""
        no_words = table.new_empty(len(index), 0)
        below: list[DirectionPair] = []
        states = no_words
        for number, layer in enumerate(self.layers):
            inputs = self.encoder.layer_rows(no_words, below) if below else (no_words, no_words)
            states = table.new_empty(len(index), 2 * layer.forwards.hidden_dim)
            halves = states.chunk(2, dim=1)
            self._layer(number, inputs, table, index, packing, halves)
            below.append((halves[0], halves[1]))
        return states

    def _layer(
        self,
        number: int,
        inputs: DirectionPair,
        table: Tensor,
        index: Tensor,
        packing: Packing,
        halves: tuple[Tensor, ...],
    ) -> None:
        """Puts the states of the two directions into the two halves (rows, hidden)."""

        def direction(side: int) -> None:
            way = 2 * number + side
            from_words = table[:, self.columns[way] : self.columns[way + 1]]
            gates = from_words.index_select(0, index)  # (rows, 4 hidden)
            add_below = self.add_below[way]
            if add_below is not None:
                add_below(gates, inputs[side])
            add_recurrent = self.add_recurrent[way]
            run_steps(gates, packing.sizes, add_recurrent, bool(side), halves[side])

        run_both(lambda: direction(0), lambda: direction(1), table.device)


def _adder(weight: Tensor, int8: bool) -> AddProduct:
    if not int8:
        return adder(weight)
    product = Int8Product(weight)
    return lambda gates, inputs: gates.add_(product(inputs))
