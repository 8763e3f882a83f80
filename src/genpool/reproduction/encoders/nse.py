"""Neural semantic encoder (NSE, Munkhdalai & Yu 2017): a memory of the sentence, read and written.

    o_t = LSTM_read(x_t)                         read
    z_t = softmax_j(o_t . M_j)                   over the memory slots, one per word
    m_t = sum_j z_tj M_j
    c_t = W_c [o_t ; m_t] + b_c                  compose
    h_t = LSTM_write(c_t)                        write
    M_j = (1 - z_tj) M_j + z_tj h_t              erase and add

The memory M starts as the word vectors. The read LSTM does not depend on the memory, so it runs
over all words first; only what follows it is a loop over the words.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.encoder.lstm import LSTMDirection, lstm_cell
from genpool.reproduction.encoders.shared import PackedEncoder, initialize_parts, width_layer
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing, steps_of


class NSEEncoder(PackedEncoder):
    """Neural semantic encoder (Munkhdalai & Yu 2017). Its last state is the sentence vector.

    The state of a token is h_t, which the write LSTM returns; the original pools it with
    `LastPooling(..., bidirectional=False)`. Training keeps one memory (batch, time, hidden_dim) for
    every token of the longest sentence.

    The compose step is linear, as in the authors' program. Word vectors of another width than
    hidden_dim are mapped to it by a matrix without a bias, which the original does not need.

    Args:
        hidden_dim: dimensions of the memory and of a state. Default: 300.

    Example:
        >>> states, _ = NSEEncoder(300)(vectors, mask)   # (batch, time, 300)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        super().__init__(input_dim, output_dim=hidden_dim)
        self.inputs = width_layer(input_dim, hidden_dim)
        self.read = LSTMDirection(hidden_dim, hidden_dim)
        self.compose = nn.Linear(2 * hidden_dim, 2 * hidden_dim)
        self.write = LSTMDirection(2 * hidden_dim, hidden_dim)
        initialize_parts(self.compose)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        words = self.inputs(rows)  # (rows, hidden)
        queries = self.read(words, packing.sizes)  # (rows, hidden): o
        # Sentences by rank, so that those that have a token at a step are the first of them.
        order = packing.sentence[: packing.sizes[0]]  # (sentences with a token,)
        memory = packing.align(words).index_select(0, order)  # (sentences, longest, hidden)
        empty = ~packing.aligned().mask().index_select(0, order)  # (sentences, longest)
        from_query, from_memory = self.compose.weight.chunk(2, dim=1)  # 2 x (2 hidden, hidden)
        composed = functional.linear(queries, from_query, self.compose.bias)  # (rows, 2 hidden)
        projected = functional.linear(composed, self.write.w, self.write.b)  # (rows, 4 hidden)
        # W (W_m m) = (W W_m) m: one product for each batch instead of a second one for each step.
        recurrent = torch.cat([self.write.w @ from_memory, self.write.u], dim=1)  # (4 h, 2 h)
        h = c = projected.new_zeros(len(memory), self.output_dim)  # (sentences, hidden)
        states: list[Tensor] = []
        for now, size in steps_of(packing.sizes):
            memory, empty, h, c = memory[:size], empty[:size], h[:size], c[:size]
            attention = attend(memory, empty, queries[now])  # (size, longest): z
            read = (attention.unsqueeze(1) @ memory).squeeze(1)  # (size, hidden): m
            logits = functional.linear(torch.cat([read, h], dim=1), recurrent)
            logits = logits + projected[now]  # (size, 4 hidden)
            h, c = lstm_cell(logits, c)
            # M + z (h - M)
            erased = attention.unsqueeze(2).to(memory.dtype)  # (size, longest, 1)
            memory = torch.lerp(memory, h.unsqueeze(1).to(memory.dtype), erased)
            states.append(h)
        return torch.cat(states)


def attend(memory: Tensor, empty: Tensor, queries: Tensor) -> Tensor:
    """Returns z = softmax_j(o . M_j), exactly 0 at empty slots; not all of a sentence are empty."""
    # memory (batch, slots, hidden); empty (batch, slots); queries (batch, hidden)
    scores = (memory @ queries.unsqueeze(2)).squeeze(2)  # (batch, slots)
    return scores.masked_fill(empty, float("-inf")).softmax(dim=1)
