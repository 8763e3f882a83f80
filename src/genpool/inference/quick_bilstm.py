"""A BiLSTM stack for inference: what its layers make of a word comes from a table."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from genpool.encoder.bilstm import BiLSTMLayer, BiLSTMStack, BothWays
from genpool.encoder.fused_lstm import AddProduct, adder, run_steps
from genpool.inference.int8 import Int8Product
from genpool.tensors.packing import Packing
from genpool.tensors.threads import run_both


class ProjectedStack:
    """The layers of a BiLSTM stack, with W e + b of all of them as one product per word."""

    def __init__(self, encoder: BiLSTMStack, int8: bool = False) -> None:
        self.encoder = encoder
        self.layers = cast("list[BiLSTMLayer]", list(encoder.layers))
        directions = [each for layer in self.layers for each in (layer.forwards, layer.backwards)]
        self.columns = [0]  # where the gates of each direction begin in a row of the table
        for each in directions:
            self.columns.append(self.columns[-1] + 4 * each.hidden_dim)
        columns = encoder.word_columns()
        seen = [
            each.w[:, : columns[number // 2]].detach() for number, each in enumerate(directions)
        ]
        # A layer that does not see the words has no columns for them, only a bias.
        self.from_words = torch.cat(
            [torch.nn.functional.pad(each, (0, encoder.input_dim - each.shape[1])) for each in seen]
        )  # (all gates, embedding)
        self.biases = torch.cat([each.b.detach() for each in directions])  # (all gates,)
        below = [
            each.w[:, columns[number // 2] :].detach() for number, each in enumerate(directions)
        ]
        #: what adds the product with the layers below (none below the first), and with h_{t-1}
        self.add_below = [_adder(each, int8) if each.shape[1] else None for each in below]
        self.add_recurrent = [
            Int8Product(each.u).add_to if int8 else adder(each.u.detach()) for each in directions
        ]

    def project(self, vectors: Tensor) -> Tensor:
        """Word vectors (words, embedding) -> (words, all gates)"""
        return torch.addmm(self.biases, vectors, self.from_words.T)

    def __call__(self, table: Tensor, index: Tensor, packing: Packing) -> Tensor:
        """index (rows,): places in the table (words, all gates) -> top states (rows, 2 hidden)."""
        nothing = table.new_empty(len(index), 0)
        below: list[BothWays] = []
        states = nothing
        for number, layer in enumerate(self.layers):
            given = self.encoder.layer_rows(nothing, below) if below else (nothing, nothing)
            states = table.new_empty(len(index), 2 * layer.forwards.hidden_dim)
            halves = states.chunk(2, dim=1)
            self._layer(number, given, table, index, packing, halves)
            below.append((halves[0], halves[1]))
        return states

    def _layer(
        self,
        number: int,
        given: BothWays,
        table: Tensor,
        index: Tensor,
        packing: Packing,
        halves: tuple[Tensor, ...],
    ) -> None:
        """Puts the states of the two directions into the two halves (rows, hidden)."""

        def direction(side: int) -> None:
            place = 2 * number + side
            known = table[:, self.columns[place] : self.columns[place + 1]]
            gates = known.index_select(0, index)  # (rows, 4 hidden)
            add_below = self.add_below[place]
            if add_below is not None:
                add_below(gates, given[side])
            add_recurrent = self.add_recurrent[place]
            run_steps(gates, packing.sizes, add_recurrent, bool(side), halves[side])

        run_both(lambda: direction(0), lambda: direction(1), table.device)


def _adder(weight: Tensor, int8: bool) -> AddProduct:
    if not int8:
        return adder(weight)
    product = Int8Product(weight)
    return lambda gates, inputs: gates.add_(product(inputs))
