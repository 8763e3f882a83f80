"""Reinforced self-attention: what is chosen when, and what the samplers learn from."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from genpool.errors import InputError
from genpool.reproduction.encoders import DiSANEncoder, ReSANEncoder
from genpool.reproduction.encoders.resan import reinforce_loss
from genpool.tensors.modules import dropout_disabled
from genpool.tensors.packing import Packing
from tests.encoder.cases import INPUT_DIM, MASK, lively, sentences, to_numpy

from .cases import reinforced

SELECTORS = ("head_selector", "dependent_selector")


def sampling(encoder: ReSANEncoder, epoch: int = 0) -> ReSANEncoder:
    """The encoder in the second phase of its training."""
    encoder.train().set_epoch(encoder.pretraining_epochs + epoch)
    return encoder


def set_log_odds(encoder: ReSANEncoder, head: float, dependent: float) -> None:
    """Makes the samplers choose every word with the same probability."""
    with torch.no_grad():
        for selector, value in zip(SELECTORS, (head, dependent), strict=True):
            output = getattr(encoder, selector).output
            output.weight.zero_()
            output.bias.fill_(value)


def test_an_encoder_whose_samplers_are_untrained_is_disan() -> None:
    """All words are chosen, in the first phase and outside training."""
    encoder, disan = ReSANEncoder(INPUT_DIM, 3), DiSANEncoder(INPUT_DIM, 3)
    disan.load_state_dict(encoder.state_dict(), strict=False)  # without the samplers
    inputs = sentences()
    expected = disan(inputs, MASK).states
    encoder.train().set_epoch(encoder.pretraining_epochs - 1)
    torch.testing.assert_close(encoder(inputs, MASK).states, expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(encoder.eval()(inputs, MASK).states, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_sampled_choices_lead_to_the_states_of_the_equations(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = sampling(lively(ReSANEncoder(INPUT_DIM, 3)).double())
    set_log_odds(encoder, 0.0, 0.5)
    sampled = []
    choose = encoder._choose

    def recording(log_odds: Tensor, packing: Packing) -> Tensor:
        chosen = choose(log_odds, packing)
        sampled.append(packing.align(chosen))  # (batch, longest, 2)
        return chosen

    monkeypatch.setattr(encoder, "_choose", recording)
    inputs = sentences(dtype=torch.float64)
    torch.manual_seed(seed)
    states = encoder(inputs, MASK).states
    heads, dependents = sampled[0].unbind(dim=2)
    assert 0 < heads.sum() < MASK.sum() and 0 < dependents.sum() < MASK.sum()
    for row in range(len(MASK)):
        words = to_numpy(inputs[row, MASK[row]])
        chosen = (choices[row, : len(words)].tolist() for choices in (heads, dependents))
        expected = reinforced(encoder, words, *chosen)
        np.testing.assert_allclose(to_numpy(states[row, MASK[row]]), expected, rtol=0, atol=1e-12)


def test_choices_are_sampled_in_the_second_phase_of_training_only() -> None:
    encoder, inputs = lively(ReSANEncoder(INPUT_DIM, 3, pretraining_epochs=2)), sentences()
    fixed = encoder.eval()(inputs, MASK).states

    def changes() -> bool:
        return any(not torch.equal(encoder(inputs, MASK).states, fixed) for _ in range(5))

    encoder.set_epoch(7)
    assert not changes()  # not in training
    encoder.train()
    assert changes()
    with dropout_disabled():  # evaluation of a model in training
        assert not changes()
    encoder.set_epoch(1)
    assert not changes()
    encoder.set_epoch(2)
    assert changes()


def test_log_probability_and_share_of_the_choices_worked_by_hand() -> None:
    encoder = sampling(ReSANEncoder(INPUT_DIM, 3))
    mask = torch.tensor([[1, 1, 1], [0, 1, 0], [0, 0, 0]]).bool()
    packing = Packing.from_mask(mask)
    log_odds = torch.tensor([[0.3, -0.2], [1.0, 0.0], [-2.0, 0.7], [0.1, 0.4]])
    torch.manual_seed(1)
    chosen = encoder._choose(log_odds, packing)
    decisions = encoder._decisions
    assert decisions is not None
    for sentence in range(3):
        rows = [row for row in range(4) if packing.sentence[row] == sentence]
        total, shares = 0.0, [0.0, 0.0]
        for row, place in itertools.product(rows, range(2)):
            probability = 1 / (1 + math.exp(-log_odds[row, place]))
            total += math.log(probability if chosen[row, place] else 1 - probability)
            shares[place] += float(chosen[row, place]) / len(rows)
        assert float(decisions.log_probability[sentence].detach()) == pytest.approx(total, abs=1e-6)
        assert float(decisions.share[sentence]) == pytest.approx(shares[0] * shares[1])


def expected_reward(parameters: Tensor, reward: dict[tuple[bool, ...], float]) -> Tensor:
    """Of independent choices with these log-odds (choices,), by enumeration of all of them."""
    total = parameters.new_zeros(())
    for choices, value in reward.items():
        signs = torch.tensor([1.0 if choice else -1.0 for choice in choices], dtype=torch.float64)
        total = total + value * (signs * parameters).sigmoid().prod()
    return total


def test_the_estimator_has_the_gradient_of_the_expected_reward() -> None:
    """Two examples with two words each: all 16 choices, weighted by their probabilities."""
    parameters = torch.tensor([[0.4, -0.9], [1.3, 0.2]], dtype=torch.float64, requires_grad=True)
    pairs = list(itertools.product([False, True], repeat=2))
    rewards = [
        dict(zip(pairs, (0.1, -1.0, 2.0, 0.7), strict=True)),
        dict(zip(pairs, (-3.0, 0.2, 0.0, 1.1), strict=True)),
    ]
    exact = torch.stack([expected_reward(parameters[row], rewards[row]) for row in range(2)]).mean()
    (gradient,) = torch.autograd.grad(exact, parameters)
    estimate = torch.zeros_like(parameters)
    for first, second in itertools.product(pairs, pairs):
        signs = torch.tensor([first, second]).double() * 2 - 1
        log_probabilities = torch.nn.functional.logsigmoid(signs * parameters).sum(dim=1)
        loss = reinforce_loss(
            log_probabilities.unsqueeze(0),
            torch.tensor([[rewards[0][first], rewards[1][second]]], dtype=torch.float64),
        )
        (sampled,) = torch.autograd.grad(loss, parameters)
        estimate -= log_probabilities.sum().exp().detach() * sampled
    torch.testing.assert_close(estimate, gradient, rtol=0, atol=1e-12)


def test_both_sentences_of_a_pair_get_the_reward_of_their_example() -> None:
    encoder = sampling(lively(ReSANEncoder(INPUT_DIM, 3, price=0.5)))
    inputs = sentences(torch.ones(4, 3, dtype=torch.bool))  # two pairs: a, b, then their partners
    torch.manual_seed(3)
    encoder(inputs, torch.ones(4, 3, dtype=torch.bool))
    decisions = encoder._decisions
    loss = encoder.extra_loss(torch.tensor([-1.0, -4.0]))
    assert decisions is not None and loss is not None
    shares, log_p = decisions.share.view(2, 2), decisions.log_probability.view(2, 2).detach()
    assert len(set(shares.flatten().tolist())) > 1
    expected = 0.0
    for side in range(2):  # each example's advantage over the other; the mean over two examples
        ahead = float((-1.0 - 0.5 * shares[side, 0]) - (-4.0 - 0.5 * shares[side, 1]))
        expected -= ahead * float(log_p[side, 0] - log_p[side, 1]) / 2
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)


def test_the_reward_trains_the_samplers_alone_and_the_label_the_rest_alone() -> None:
    encoder = sampling(lively(ReSANEncoder(INPUT_DIM, 3)))
    inputs = sentences().requires_grad_()
    encoder(inputs, MASK)
    loss = encoder.extra_loss(torch.arange(len(MASK)).float())
    assert loss is not None
    loss.backward()
    trained = {name for name, value in encoder.named_parameters() if value.grad is not None}
    assert trained == {name for name, _ in encoder.named_parameters() if name.startswith(SELECTORS)}
    assert inputs.grad is None
    encoder.zero_grad()
    encoder(inputs, MASK).states.square().sum().backward()
    for name, value in encoder.named_parameters():
        assert value.grad is not None  # distributed training waits for all of them
        assert bool(value.grad.any()) is not name.startswith(SELECTORS), name


def test_impossible_options_are_refused() -> None:
    options: list[dict[str, Any]] = [{"price": -0.1}, {"price": math.nan}]
    for option in [*options, {"pretraining_epochs": -1}]:
        ((name, value),) = option.items()
        with pytest.raises(InputError, match=f"{name} is {value}; expected a finite number of 0"):
            ReSANEncoder(4, **option)


def test_choices_are_the_same_in_half_precision() -> None:
    """Rounding to 8 bits would change those near one half."""
    encoder = lively(ReSANEncoder(INPUT_DIM, 3)).bfloat16()
    words, means = torch.randn(2, 500, INPUT_DIM).bfloat16()
    odds = encoder.log_odds(words, means)
    wide = copy.deepcopy(encoder).double().log_odds(words.double(), means.double())
    torch.testing.assert_close(odds.double(), wide, rtol=0, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(encoder.log_odds(words, means), odds)


def test_words_are_sampled_with_their_probabilities() -> None:
    encoder = sampling(ReSANEncoder(INPUT_DIM, 3))
    set_log_odds(encoder, 1.0, -0.5)
    mask = torch.ones(200, 50, dtype=torch.bool)
    packing = Packing.from_mask(mask)
    torch.manual_seed(0)
    zeros = torch.zeros(len(packing.index), INPUT_DIM)
    log_odds = encoder.log_odds(zeros, zeros)
    chosen = encoder._choose(log_odds, packing)
    for place, value in enumerate((1.0, -0.5)):
        probability = 1 / (1 + math.exp(-value))
        deviation = math.sqrt(probability * (1 - probability) / 10_000)
        assert abs(float(chosen[:, place].double().mean()) - probability) < 5 * deviation


def test_the_mean_of_the_other_rewards_is_subtracted_and_a_reward_alone_is_kept() -> None:
    log_probabilities = torch.tensor([[-1.0, -2.0, -4.0]], requires_grad=True)
    loss = reinforce_loss(log_probabilities, torch.tensor([[3.0, 0.0, 6.0]]))
    # Advantages 3 - 3, 0 - 4.5, 6 - 1.5.
    assert float(loss.detach()) == pytest.approx(-(0 * -1 - 4.5 * -2 + 4.5 * -4) / 3)
    alone = reinforce_loss(log_probabilities[:, :1], torch.tensor([[3.0]]))
    assert float(alone.detach()) == 3.0
