"""Reinforced self-attention (ReSAN, Shen et al. 2018): hard choices, soft attention between them.

    p(z_i = 1) = sigmoid(w . elu(W [x_i ; mean(x) ; x_i * mean(x)] + b) + b_w)

Two samplers of this form choose heads and dependents among the words. In each direction, as in
DiSAN, a chosen head attends to the chosen dependents before (or after) it, per dimension; a word
that is not a chosen head sees the mean of the other words instead:

    m = elu(W x + b)
    s_i = sum_j softmax_j(5 tanh((W1 m_j + W2 m_i + b) / 5)) * m_j     j a dependent, i a head
    s_i = sum_{j != i} m_j / (words - 1)                               i not a head
    f = sigmoid(W3 m + W4 s + b);  out = f * m + (1 - f) * s

Training has two phases. First every word is chosen. Then choices are sampled, and REINFORCE trains
the samplers: the reward of a sentence is log p(label) - price * share of heads * share of
dependents. A model that is not in training chooses the words with p >= 1/2.
"""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from genpool.errors import InputError
from genpool.reproduction.encoders.disan import (
    DirectionalAttention,
    directed_pairs,
    in_both_directions,
)
from genpool.reproduction.encoders.shared import PackedEncoder
from genpool.tensors.modules import dropout_is_disabled, require_positive
from genpool.tensors.packing import Packing

#: log-odds of every word before training: all are chosen, and 12 % are dropped when sampling starts
FIRST_LOG_ODDS = 2.0


class Selector(nn.Module):
    """The log-odds of a choice: w . elu(W [x ; mean(x) ; x * mean(x)] + b) + b_w."""

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(3 * input_dim, hidden_dim)
        self.output = nn.Linear(hidden_dim, 1)
        nn.init.xavier_uniform_(self.hidden.weight)
        # Zeros: until the selector is trained, inference chooses every word, as pretraining does.
        nn.init.zeros_(self.output.weight)
        nn.init.constant_(self.output.bias, FIRST_LOG_ODDS)


class Decisions(NamedTuple):
    """The sampled choices of a training step."""

    log_probability: Tensor  # (sentences,): of all choices of a sentence together
    share: Tensor  # (sentences,): share of heads * share of dependents


def sentence_means(rows: Tensor, packing: Packing) -> Tensor:
    """Returns the mean of every sentence's rows, (batch, dim), in single precision or better."""
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    zeros = wide.new_zeros(packing.shape[0], rows.shape[1])  # (batch, dim)
    return zeros.index_add(0, packing.sentence, wide) / packing.lengths().clamp(min=1).unsqueeze(1)


def mean_of_others(hidden: Tensor, mean: Tensor, count: Tensor) -> Tensor:
    """Returns the mean of the other words (..., dim), zeros for a word that is alone.

    hidden: m (..., dim); mean: that of the sentence (..., dim); count: its words (...,).
    """
    words = count.unsqueeze(-1)  # (..., 1)
    return ((words * mean - hidden) / (words - 1).clamp(min=1)).to(hidden.dtype)


def reinforce_loss(log_probabilities: Tensor, rewards: Tensor) -> Tensor:
    """Returns the loss whose gradient estimates that of the expected reward, with its sign changed.

    log_probabilities of the choices and rewards (sides, examples) -> scalar.
    """
    examples = rewards.shape[1]
    # The mean reward of the others does not depend on the choices that it is subtracted for, so
    # that the expectation stays and the variance shrinks.
    baseline = (rewards.sum(dim=1, keepdim=True) - rewards) / max(examples - 1, 1)
    advantage = (rewards - baseline).detach()  # (sides, examples); alone, the reward itself
    return -(advantage * log_probabilities).sum(dim=0).mean()


class ReSANEncoder(PackedEncoder):
    """Reinforced self-attention (ReSAN, Shen et al. 2018), both directions concatenated.

    The original pools it with `SourceToTokenPooling`. `genpool train` runs both phases: every word
    is chosen in the first `pretraining_epochs`, and choices are sampled from then on.

    Directions, the mean for words that are no heads, and the reward are those of the authors'
    program. Three points differ from it: the mean reward of the batch's other examples is
    subtracted from a reward, the samplers and the rest are trained together from the start of the
    second phase, and choices are not sampled outside training.

    Args:
        hidden_dim: dimensions of each direction, and of the samplers' hidden layer. Default: 300.
        price: what a reward loses if all words are chosen as heads and as dependents. Default:
            0.02.
        pretraining_epochs: epochs of the first phase. Default: 10.

    Raises:
        InputError: a size is less than 1, or another number negative or not finite.

    Example:
        >>> states, _ = ReSANEncoder(300)(vectors, mask)   # (batch, time, 2 * 300)
    """

    has_extra_loss = True

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int = 300,
        price: float = 0.02,
        pretraining_epochs: int = 10,
    ) -> None:
        require_positive(input_dim=input_dim, hidden_dim=hidden_dim)
        for name, value in (("price", price), ("pretraining_epochs", pretraining_epochs)):
            if not (isfinite(value) and value >= 0):
                raise InputError(f"{name} is {value}; expected a finite number of 0 or more.")
        super().__init__(input_dim, output_dim=2 * hidden_dim)
        self.price, self.pretraining_epochs = price, pretraining_epochs
        self.head_selector = Selector(input_dim, hidden_dim)
        self.dependent_selector = Selector(input_dim, hidden_dim)
        self.forwards = DirectionalAttention(input_dim, hidden_dim, reverse=False)
        self.backwards = DirectionalAttention(input_dim, hidden_dim, reverse=True)
        self._in_second_phase = False
        self._decisions: Decisions | None = None

    def set_epoch(self, epoch: int) -> None:
        """Starts the second phase with epoch `pretraining_epochs`, counted from 0."""
        self._in_second_phase = epoch >= self.pretraining_epochs

    def extra_loss(self, log_likelihoods: Tensor) -> Tensor | None:
        """Returns the loss of the samplers for the last forward pass, if they have sampled."""
        decisions, self._decisions = self._decisions, None
        if decisions is None:
            return None
        shape = (-1, len(log_likelihoods))  # (sides, examples)
        rewards = log_likelihoods.detach() - self.price * decisions.share.view(shape)
        return reinforce_loss(decisions.log_probability.view(shape), rewards)

    def log_odds(self, tokens: Tensor, mean: Tensor, sentence: Tensor | None = None) -> Tensor:
        """Returns the log-odds (..., 2) of head and dependent, of tokens (..., input_dim).

        mean: mean(x), (..., input_dim), or of every sentence, with the `sentence` of every token.
        """
        # In single precision or better, because rounding must not change a choice.
        wide = torch.promote_types(tokens.dtype, torch.float32)
        tokens, mean = tokens.to(wide), mean.to(wide)
        selectors = (self.head_selector, self.dependent_selector)
        with torch.autocast(tokens.device.type, enabled=False):
            # Both in one product: twice as wide is faster than twice as many.
            weight = torch.cat([selector.hidden.weight for selector in selectors]).to(wide)
            bias = torch.cat([selector.hidden.bias for selector in selectors]).to(wide)
            of_token, of_mean, of_product = weight.chunk(3, dim=1)  # 3 x (2 hidden, input_dim)
            from_mean = functional.linear(mean, of_mean, bias)
            if sentence is not None:  # multiplied once for each sentence, not for each token
                mean, from_mean = mean[sentence], from_mean[sentence]
            logits = functional.linear(tokens, of_token) + from_mean
            hidden = functional.elu(logits + functional.linear(tokens * mean, of_product))
            odds = []
            for selector, part in zip(selectors, hidden.chunk(2, dim=-1), strict=True):
                output = selector.output
                odds.append(functional.linear(part, output.weight.to(wide), output.bias.to(wide)))
        return torch.cat(odds, dim=-1)

    def _choose(self, log_odds: Tensor, packing: Packing) -> Tensor:
        """Returns the choices (rows, 2), True for head and for dependent."""
        if not (self.training and self._in_second_phase) or dropout_is_disabled():
            return log_odds >= 0
        chosen = torch.rand_like(log_odds) < log_odds.detach().sigmoid()  # (rows, 2)
        of_rows = functional.logsigmoid(torch.where(chosen, log_odds, -log_odds)).sum(dim=1)
        zeros = of_rows.new_zeros(packing.shape[0])  # (sentences,)
        counts = zeros.new_zeros(len(zeros), 2).index_add(0, packing.sentence, chosen.to(zeros))
        shares = counts / packing.lengths().clamp(min=1).unsqueeze(1)  # (sentences, 2)
        self._decisions = Decisions(
            zeros.index_add(0, packing.sentence, of_rows), shares.prod(dim=1)
        )
        return chosen

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        # Detached: the reward trains the samplers, not the word vectors.
        words = rows.detach()
        log_odds = self.log_odds(words, sentence_means(words, packing), packing.sentence)
        chosen = self._choose(log_odds, packing)  # (rows, 2)

        def context(part: DirectionalAttention, hidden: Tensor) -> Tensor:
            pairs = directed_pairs(packing, part.reverse, chosen)
            seen = part.context_of_pairs(hidden, pairs)  # (rows, hidden)
            mean, count = sentence_means(hidden, packing), packing.lengths()
            others = mean_of_others(hidden, mean[packing.sentence], count[packing.sentence])
            return torch.where(chosen[:, :1], seen, others)

        states = in_both_directions((self.forwards, self.backwards), rows, context)
        if log_odds.requires_grad:
            # Adds 0: distributed training needs a gradient of every parameter at every step.
            states = states + 0 * log_odds.sum(dim=1, keepdim=True).to(states.dtype)
        return states  # (rows, 2 hidden)

    def padded_states(self, tokens: Tensor, mask: Tensor, lstm: object) -> Tensor:
        # Words that were not chosen are masked instead of left out.
        count = mask.sum(dim=1, keepdim=True)  # (batch, 1)
        words = count.clamp(min=1).unsqueeze(2)  # (batch, 1, 1)
        mean = tokens.sum(dim=1, keepdim=True) / words  # (batch, 1, input_dim)
        chosen = self.log_odds(tokens, mean) >= 0  # (batch, time, 2)

        def context(part: DirectionalAttention, hidden: Tensor) -> Tensor:
            hidden = hidden.masked_fill(~mask.unsqueeze(2), 0)  # (batch, time, hidden)
            seen = part.context(hidden, mask & chosen[:, :, 1])
            others = mean_of_others(hidden, hidden.sum(dim=1, keepdim=True) / words, count)
            return torch.where(chosen[:, :, :1], seen, others)

        return in_both_directions((self.forwards, self.backwards), tokens, context)
