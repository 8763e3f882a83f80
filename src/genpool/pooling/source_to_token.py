"""Source-to-token attention (DiSAN, Shen et al. 2017): one vector-based head with ELU."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from genpool.pooling.base import Pooled, Pooling
from genpool.pooling.generalized import attention_pool
from genpool.pooling.masking import hide_padding, masked_softmax, weighted_sum
from genpool.tensors.packing import Packing


def source_to_token_weights(
    states: Tensor, mask: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor
) -> Tensor:
    """Returns P = softmax_t(W2 elu(W1 h_t + b1) + b2), per dimension: (batch, 1, time, dim).

    states (batch, time, dim); w1, w2 (dim, dim); b1, b2 (dim,).
    """
    inner = functional.elu(functional.linear(hide_padding(states, mask), w1, b1))
    logits = functional.linear(inner, w2, b2)  # (batch, time, dim)
    return masked_softmax(logits.unsqueeze(1), mask)  # (batch, 1, time, dim)


class SourceToTokenPooling(Pooling):
    """DiSAN's pooling (Shen et al. 2017): a weight for every dimension of every token, one head.

    P = softmax_t(W2 elu(W1 h_t + b1) + b2) per dimension; v = sum_t P_t * h_t.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> pooled = SourceToTokenPooling(600)(states, mask)   # states (batch, time, 600)
        >>> pooled.weights.shape    # (batch, 1, time, 600)
    """

    keeps_weight_ratios = True
    is_packed = True
    penalties = ("attention",)

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim)
        self.first = nn.Linear(input_dim, input_dim)
        self.second = nn.Linear(input_dim, input_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Re-initializes: matrices Xavier uniform, biases 0."""
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Returns:
            Vectors (batch, input_dim), heads (batch, 1, input_dim), weights (batch, 1, time,
            input_dim).

        Raises:
            InputError: a shape or a type does not fit.
        """
        mask = self.check(states, mask)
        weights = source_to_token_weights(
            states, mask, self.first.weight, self.first.bias, self.second.weight, self.second.bias
        )
        heads = weighted_sum(weights, states, mask)  # (batch, 1, input_dim)
        return Pooled(heads.flatten(1), heads, weights)

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        """Pools packed rows without making the weights.

        Args:
            rows: states of the real tokens, (rows, input_dim).
            packing: where the rows belong.
            gates: not used. Default: None.

        Returns:
            The same vectors and heads as `forward`; the weights are None.
        """
        inner = functional.elu(self.first(rows))  # (rows, input_dim)
        # A softmax over time does not depend on the second bias, which stays in the graph because
        # every parameter must have a gradient.
        heads = attention_pool(inner, self.second.weight.unsqueeze(0), rows, packing)
        heads = heads + 0 * self.second.bias  # (batch, 1, input_dim)
        return Pooled(heads.flatten(1), heads, None)
