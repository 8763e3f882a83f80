"""What every pooling shares: the result, the base classes, and reductions over the real tokens."""

from __future__ import annotations

from math import inf
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError
from genpool.registry import Configured
from genpool.tensors.modules import boolean_mask, require_positive, require_tensor
from genpool.tensors.packing import Packing

#: the other tokens' total weight below which their ratios may have been lost to underflow
MIN_REMAINING_WEIGHT = 1e-25


class Pooled(NamedTuple):
    """The result of a pooling.

    Attributes:
        vector: sentence vectors (batch, output_dim): the heads concatenated, v1;v2;...
        heads: the same values, one vector per head: (batch, heads, input_dim).
        weights: attention weights (batch, heads, time, input_dim), or (batch, heads, time, 1) for
            scalar attention; they sum to 1 over the real tokens and are 0 at padding. None where a
            pooling has no weights, or where they were not computed (`Pooling.pool_rows`).

    Example:
        >>> vector, heads, weights = GeneralizedPooling(768, heads=5)(states, mask)
    """

    vector: Tensor
    heads: Tensor
    weights: Tensor | None


class Pooling(Configured, nn.Module):
    """Base class: token states and a mask in, one vector per sentence out.

    Call a pooling as `pooling(states, mask)`. The states (batch, time, input_dim) may come from any
    model; the mask (batch, time) is boolean, True at real tokens, or of integers, 1 at real tokens
    and 0 at padding, as tokenizers return it. The values at the other positions, and how many of
    them there are, never change the result. A sentence without tokens returns zeros. States or
    masks that do not fit raise an InputError.

    To add a pooling, subclass this class, write `forward`, and register it by a name:
    `genpool.pooling.register("mine", MyPooling)`. The arguments of its constructor are remembered
    in `options`, by which a model is saved. The class attributes say what the rest of genpool may
    do with it.

    Args:
        input_dim: dimensions of a token state.
        heads: number of vectors of input_dim dimensions that are concatenated.

    Attributes:
        output_dim: dimensions of a sentence vector, heads * input_dim.

    Raises:
        InputError: a size, here or in a subclass, is not a whole number of 1 or more.

    Example:
        >>> class FirstPooling(Pooling):
        ...     def forward(self, states, mask):
        ...         mask = self.check(states, mask)   # boolean
        ...         vector = states[:, 0].masked_fill(~mask[:, :1], 0)   # (batch, input_dim)
        ...         return Pooled(vector, vector.unsqueeze(1), None)
    """

    #: whether `forward` also needs the gates of an LSTM (see `GatedPooling`)
    needs_gates: ClassVar[bool] = False
    #: whether the constructor takes `bidirectional`, which the encoder decides (see `LastPooling`)
    needs_direction: ClassVar[bool] = False
    #: whether `pool_rows` works on packed rows alone, without a padded tensor
    is_packed: ClassVar[bool] = False
    #: whether the weights of other tokens keep their ratios when a token is left out, as in a
    #: softmax whose logits depend on one state each
    keeps_weight_ratios: ClassVar[bool] = False
    #: the penalties that can be computed for this pooling (see `genpool.pooling.penalties`)
    penalties: ClassVar[tuple[str, ...]] = ()

    def __init__(self, input_dim: int, heads: int = 1) -> None:
        super().__init__()
        require_positive(input_dim=input_dim, heads=heads)
        self.input_dim = input_dim
        self.heads = heads
        self.output_dim = heads * input_dim

    def head_parameters(self) -> Tensor | None:
        """Returns the parameter (heads, ...) of the penalty of Eq. 7; None where heads share it."""
        return None

    def pool_rows(self, rows: Tensor, packing: Packing, gates: Tensor | None = None) -> Pooled:
        """Pools packed rows; a pooling that does so without padding overrides it (`is_packed`).

        Args:
            rows: states of the real tokens (rows, input_dim).
            packing: where the rows belong.
            gates: input gates (rows, width) for a pooling with `needs_gates`.

        Returns:
            The same vectors and heads as `forward`; the weights may be None.
        """
        extra = {} if gates is None else {"gates": packing.unpack(gates)}
        pooled: Pooled = self(packing.unpack(rows), packing.mask(), **extra)
        return pooled

    def heads_without(self, states: Tensor, mask: Tensor, gates: Tensor | None = None) -> Tensor:
        """Pools with one token left out, for every token in turn.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.
            gates: input gates (batch, time, width) for a pooling with `needs_gates`.

        Returns:
            Heads (batch, heads, time, input_dim): at a token's position, the heads of the sentence
            without that token; zeros at padding, and where no token remains.

        Example:
            >>> without = pooling.heads_without(states, mask)   # (batch, heads, time, input_dim)
        """
        mask = self.check(states, mask)
        extra = {} if gates is None else {"gates": gates}
        pooled: Pooled = self(states, mask, **extra)
        heads = pooled.heads.unsqueeze(2).repeat(1, 1, states.shape[1], 1)
        positions = list(range(states.shape[1]))
        if pooled.weights is not None and self.keeps_weight_ratios:
            # The weighted mean of all tokens but one, per dimension: (v - a_t h_t) / (1 - a_t).
            rest = sum_of_others(pooled.weights)  # (batch, heads, time, dim or 1): 1 - a_t
            weighted = pooled.weights * hide_padding(states, mask).unsqueeze(1)
            heads = sum_of_others(weighted) / rest.masked_fill(rest == 0, 1)
            # A token with all weight of several loses the ratios of the others.
            lost = (rest < MIN_REMAINING_WEIGHT).amax(dim=(1, 3)) & mask  # (batch, time)
            lost &= mask.sum(dim=1, keepdim=True) > 1
            positions = lost.any(dim=0).nonzero().flatten().tolist()
        for position in positions:  # where there is no closed form
            others = mask.clone()
            others[:, position] = False
            heads[:, :, position] = self(states, others, **extra).heads  # (batch, heads, input_dim)
        return heads.masked_fill(~mask[:, None, :, None], 0)

    def check(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns the mask as booleans, after checking both arguments of `forward`.

        Args:
            states: token states (batch, time, input_dim).
            mask: (batch, time), True or 1 at real tokens, False or 0 at padding.

        Raises:
            InputError: a shape, a type or a value of the mask does not fit.
        """
        hint = "; pass output.last_hidden_state" if hasattr(states, "last_hidden_state") else ""
        require_tensor("states", states, f"a tensor (batch, time, input_dim){hint}")
        if states.dim() != 3:
            raise InputError(
                f"states have shape {tuple(states.shape)}; expected three dimensions "
                "(batch, time, input_dim). For one sentence, add the batch: states.unsqueeze(0)."
            )
        if states.shape[-1] != self.input_dim:
            raise InputError(
                f"states have width {states.shape[-1]} (shape {tuple(states.shape)}); this pooling "
                f"was made with input_dim={self.input_dim}."
            )
        if not states.is_floating_point():
            raise InputError(f"states have type {states.dtype}; expected a floating-point type.")
        mask = boolean_mask(mask, states.shape[:2])
        dtype = next((parameter.dtype for parameter in self.parameters()), states.dtype)
        if dtype is not states.dtype and not torch.is_autocast_enabled(states.device.type):
            raise InputError(
                f"states have type {states.dtype}, this pooling another; expected the same: "
                "pooling.to(states.dtype), or states.to(...)."
            )
        return mask

    def extra_repr(self) -> str:
        return f"input_dim={self.input_dim}, output_dim={self.output_dim}"


class AttentionPooling(Pooling):
    """Base class of poolings with weights: v^i = sum_t A^i_t * h_t.

    A subclass writes `weights`. The arguments are those of `Pooling`.
    """

    keeps_weight_ratios = True

    def weights(self, states: Tensor, mask: Tensor) -> Tensor:
        """Returns the attention weights A, (batch, heads, time, input_dim or 1).

        states (batch, time, input_dim), zeros at padding; mask (batch, time), True at real tokens.
        """
        raise NotImplementedError

    def forward(self, states: Tensor, mask: Tensor) -> Pooled:
        """Pools a batch of sentences: states (batch, time, input_dim), mask (batch, time)."""
        mask = self.check(states, mask)
        clean = hide_padding(states, mask)  # (batch, time, input_dim)
        weights = self.weights(clean, mask)
        heads = weighted_sum(weights, clean)  # (batch, heads, input_dim)
        return Pooled(heads.flatten(1), heads, weights)


def require_std(name: str, value: float) -> None:
    """Raises InputError unless the value can be the standard deviation of a Gaussian."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise InputError(f"{name} is {value!r}; expected a finite number of 0 or more.")


# --- reductions over the real tokens; padding is removed with `where`, never by multiplication: it
#     may contain inf or NaN, and 0 * NaN is NaN


def hide_padding(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the states (batch, time, dim) with zeros at padding."""
    return states.masked_fill(~mask.unsqueeze(-1), 0)  # (batch, time, dim)


def masked_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Returns the softmax of logits (batch, ..., time, dim) over the real tokens; 0 at padding."""
    between = [1] * (logits.dim() - 3)
    real = mask.view(mask.shape[0], *between, mask.shape[1], 1)  # (batch, ..., time, 1)
    # The lowest finite value instead of -inf: a sentence without tokens then has a finite softmax,
    # whose gradient is finite too, before the second fill makes it zero.
    filled = logits.masked_fill(~real, torch.finfo(logits.dtype).min)
    return filled.softmax(dim=-2).masked_fill(~real, 0)  # (batch, ..., time, dim)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the mean over the real tokens (batch, dim); zeros for a sentence without tokens."""
    count = mask.sum(dim=1, keepdim=True).clamp(min=1).to(states.dtype)  # (batch, 1)
    return hide_padding(states, mask).sum(dim=1) / count  # (batch, dim)


def masked_max(states: Tensor, mask: Tensor) -> Tensor:
    """Returns the maximum over the real tokens (batch, dim); zeros for one without tokens."""
    if states.shape[1] == 0:
        return states.new_zeros(states.shape[0], states.shape[2])  # (batch, dim)
    filled = states.masked_fill(~mask.unsqueeze(-1), float("-inf"))  # (batch, time, dim)
    empty = ~mask.any(dim=1, keepdim=True)  # (batch, 1)
    return filled.amax(dim=1).masked_fill(empty, 0)  # (batch, dim)


def weighted_sum(weights: Tensor, states: Tensor) -> Tensor:
    """Returns the sum over time of weights (batch, heads, time, dim or 1) times states."""
    if weights.shape[-1] == 1:
        return weights.squeeze(-1) @ states  # (batch, heads, dim)
    return (weights * states.unsqueeze(1)).sum(dim=2)  # (batch, heads, dim)


def sum_of_others(values: Tensor) -> Tensor:
    """Returns, for every token, the sum over all other tokens; values (..., time, dim).

    Subtracting from the total would leave rounding errors where nearly all is in one token.
    """
    before = functional.pad(values, (0, 0, 1, 0))[..., :-1, :].cumsum(dim=-2)
    after = functional.pad(values, (0, 0, 0, 1))[..., 1:, :].flip(-2).cumsum(dim=-2).flip(-2)
    return before + after  # (..., time, dim)
