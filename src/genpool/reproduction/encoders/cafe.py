"""CAFE in its sentence-encoding form (Tay, Tuan & Hui 2018): attention compressed to features.

    x = highway(highway(e))
    highway(x) = T * relu(W_H x + b_H) + (1 - T) * x,  T = sigmoid(W_T x + b_T)
    x'_i = sum_j softmax_j(F(x_i) . F(x_j)) x_j,  F(x) = relu(W_F x + b_F)     intra-attention
    f = [FM([x ; x']) ; FM(x - x') ; FM(x * x')]                               three features
    FM(u) = w_0 + w . u + sum_{i<j} (v_i . v_j) u_i u_j                        factorization machine
    h = LSTM([x ; f])

The complete model also aligns the two sentences of a pair, which a sentence encoder cannot.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from genpool.encoder.lstm import LSTMDirection
from genpool.reproduction.encoders.shared import PackedEncoder, width_layer
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing

#: the first bias of a highway's gate: most of the input is carried at first (Srivastava et al.)
GATE_BIAS = -1.0
#: standard deviation of the first factors of a factorization machine
FACTOR_STD = 0.01
#: features that the intra-attention is compressed to: of [x ; x'], x - x' and x * x'
FEATURES = 3


class Highway(nn.Module):
    """T * relu(W_H x + b_H) + (1 - T) * x with T = sigmoid(W_T x + b_T)."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.transform = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, dim)
        nn.init.constant_(self.gate.bias, GATE_BIAS)

    def forward(self, values: Tensor) -> Tensor:
        """values (..., dim) -> (..., dim)"""
        gate = torch.sigmoid(self.gate(values))  # (..., dim)
        return gate * torch.relu(self.transform(values)) + (1 - gate) * values


class FactorizationMachine(nn.Module):
    """w_0 + w . u + sum_{i<j} (v_i . v_j) u_i u_j (Rendle 2010), one value for each vector u."""

    def __init__(self, dim: int, factors: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, 1)
        self.factors = nn.Parameter(torch.empty(dim, factors))  # v
        nn.init.normal_(self.factors, std=FACTOR_STD)

    def forward(self, values: Tensor) -> Tensor:
        """values (..., dim) -> (..., 1)"""
        # The sum over pairs is half of (the squared sum - the sum of squares), for each factor.
        total = values @ self.factors  # (..., factors)
        squares = values.square() @ self.factors.square()  # (..., factors)
        pairs = (total.square() - squares).sum(dim=-1, keepdim=True) / 2  # (..., 1)
        linear: Tensor = self.linear(values)  # (..., 1)
        return linear + pairs


def intra_attention(values: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
    """Returns x'_i = sum_j softmax_j(k_i . k_j) x_j of values x and keys k (batch, time, dim)."""
    scores = keys @ keys.mT  # (batch, time, time)
    # The lowest finite value: a sentence without tokens has finite weights, of vectors that are 0.
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~mask.unsqueeze(1), lowest).softmax(dim=2)
    return weights @ values


class CAFEEncoder(PackedEncoder):
    """CAFE in its sentence-encoding form (Tay, Tuan & Hui 2018).

    Two highway layers, intra-sentence attention that factorization machines compress to three
    features of each word, and an LSTM over the words and their features. The original pools the
    states with `MeanMaxPooling`.

    A linear map without a bias brings the token vectors to hidden_dim before the highway layers,
    where they have another width; the paper does not say how. It leaves open the activations and
    the first bias of the highway layers too.

    Args:
        hidden_dim: dimensions of the highway layers and of a state. Default: 300.
        factors: factors of each factorization machine. Default: 10.

    Example:
        >>> states, _ = CAFEEncoder(300)(vectors, mask)   # (batch, time, 300)
    """

    def __init__(self, input_dim: int, hidden_dim: int = 300, factors: int = 10) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim, factors=factors)
        super().__init__(input_dim, output_dim=hidden_dim)
        self.inputs = width_layer(input_dim, hidden_dim)
        self.highways = nn.Sequential(Highway(hidden_dim), Highway(hidden_dim))
        self.key = nn.Linear(hidden_dim, hidden_dim)
        self.joined = FactorizationMachine(2 * hidden_dim, factors)
        self.difference = FactorizationMachine(hidden_dim, factors)
        self.product = FactorizationMachine(hidden_dim, factors)
        self.lstm = LSTMDirection(hidden_dim + FEATURES, hidden_dim)

    def transformed(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Returns x and F(x), both (..., hidden), of token vectors (..., input_dim)."""
        values: Tensor = self.highways(self.inputs(tokens))  # (..., hidden)
        return values, torch.relu(self.key(values))

    def with_features(self, values: Tensor, aligned: Tensor) -> Tensor:
        """Returns [x ; f] (..., hidden + 3) of x and x', both (..., hidden)."""
        features = [
            self.joined(torch.cat([values, aligned], dim=-1)),
            self.difference(values - aligned),
            self.product(values * aligned),
        ]
        return torch.cat([values, *features], dim=-1)  # (..., hidden + 3)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        values, keys = self.transformed(rows)  # 2 x (rows, hidden)
        padded = packing.aligned()
        mask = padded.mask()  # (batch, longest)
        aligned = intra_attention(padded.unpack(values), padded.unpack(keys), mask)
        partners = aligned.flatten(0, 1).index_select(0, padded.index)  # (rows, hidden)
        states: Tensor = self.lstm(self.with_features(values, partners), packing.sizes)
        return states

    def padded_states(
        self, tokens: Tensor, mask: Tensor, lstm: Callable[[LSTMDirection, Tensor], Tensor]
    ) -> Tensor:
        values, keys = self.transformed(tokens)  # 2 x (batch, time, hidden)
        partners = intra_attention(values, keys, mask)  # (batch, time, hidden)
        return lstm(self.lstm, self.with_features(values, partners))
