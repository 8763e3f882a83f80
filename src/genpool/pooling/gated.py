"""Gated pooling (Chen et al. 2017): mean, max, and a mean weighted by the LSTM's input gates."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.pooling.base import Pooled, Pooling, require_tensor
from genpool.pooling.leave_one_out import max_without, mean_without, weighted_without
from genpool.pooling.masking import masked_max, masked_mean, weighted_sum


def gate_weights(gates: Tensor, mask: Tensor) -> Tensor:
    """Returns g_t / sum_t g_t with g_t = ||gates_t||_2, as weights (batch, 1, time, 1).

    gates (batch, time, any width); mask (batch, time).
    """
    clean = gates.masked_fill(~mask.unsqueeze(-1), 0)  # (batch, time, width)
    norms: Tensor = torch.linalg.vector_norm(clean, dim=-1)  # (batch, time)
    total = norms.sum(dim=1, keepdim=True)  # (batch, 1)
    # Gates that are all zero prefer no token: weights of zero rather than 0 / 0.
    weights = norms / total.masked_fill(total == 0, 1)  # (batch, time)
    return weights[:, None, :, None]  # (batch, 1, time, 1)


class GatedPooling(Pooling):
    """Gated pooling (Chen et al. 2017): v = [mean ; max ; sum_t g_t h_t / sum_t g_t].

    The three parts are its three heads. The gates are an argument of `forward`, so that the states
    may come from any model: for an LSTM they are the top layer's input gates, both directions
    concatenated (encoders with `has_gates` return them with the states), but any non-negative
    saliency (batch, time, width) works.

    Args:
        input_dim: dimensions of a token state.

    Raises:
        InputError: input_dim is not a whole number of 1 or more.

    Example:
        >>> encoded = BiLSTMEncoder(300, hidden_dim=512)(vectors, mask, gates=True)
        >>> pooled = GatedPooling(1024)(encoded.states, mask, encoded.gates)
        >>> pooled.vector.shape     # (batch, 3 * 1024)
    """

    needs_gates = True

    def __init__(self, input_dim: int) -> None:
        super().__init__(input_dim, heads=3)

    def forward(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Pooled:
        """Pools a batch of sentences.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.
            gates: input gates (batch, time, width); required.

        Returns:
            Vectors (batch, 3 * input_dim), heads (batch, 3, input_dim), no weights.

        Raises:
            InputError: the gates are missing, or a shape or a type does not fit.
        """
        mask, gates = self.check(states, mask), self._check_gates(gates, mask)
        gated = weighted_sum(gate_weights(gates, mask), states, mask)  # (batch, 1, input_dim)
        plain = [masked_mean(states, mask), masked_max(states, mask)]  # 2 x (batch, input_dim)
        heads = torch.cat([torch.stack(plain, dim=1), gated], dim=1)  # (batch, 3, input_dim)
        return Pooled(heads.flatten(1), heads, None)

    def heads_without(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Tensor:
        """Pools with one token left out, for every token in turn: (batch, 3, time, input_dim).

        The arguments, and the zeros, are those of `Pooling.heads_without`.
        """
        mask, gates = self.check(states, mask), self._check_gates(gates, mask)
        plain = [mean_without(states, mask), max_without(states, mask)]  # 2 x (batch, time, dim)
        gated = weighted_without(gate_weights(gates, mask), states, mask).heads
        return torch.cat([torch.stack(plain, dim=1), gated], dim=1)  # (batch, 3, time, input_dim)

    def _check_gates(self, gates: Tensor | None, mask: Tensor) -> Tensor:
        if gates is None:
            raise InputError(
                "gated pooling was called without gates; expected pooling(states, mask, gates), "
                "gates (batch, time, width): the input gates of the LSTM that made the states."
            )
        require_tensor("gates", gates, "a tensor (batch, time, width)")
        if gates.dim() != 3 or gates.shape[:2] != mask.shape:
            raise InputError(
                f"gates have shape {tuple(gates.shape)}; expected {(*mask.shape, 'width')}."
            )
        return gates
