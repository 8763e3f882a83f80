"""Generalized pooling contains the mean, scalar attention and, in the limit, the maximum."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from genpool.pooling import (
    GeneralizedPooling,
    MaxPooling,
    MeanPooling,
    ScalarAttentionPooling,
)

from . import reference
from .cases import Case, mask_of, random_states, real, to_numpy, with_garbage

DIM, HIDDEN = 4, 3
one_head_and_several = pytest.mark.parametrize("heads", [1, 3])


def batch():
    mask = mask_of([6, 3, 1], 6)
    return with_garbage(random_states(3, 6, DIM, dtype=torch.float64), mask), mask


def random_generalized(heads):
    options = {"heads": heads, "hidden_dim": HIDDEN}
    return Case("generalized", options, heads).make(DIM, torch.float64)


def signed_identity(scales):
    """W1 = [I; -I], W2 = k [I, -I], a head for every k: logits k * h, as ReLU(x) - ReLU(-x) = x."""
    pooling = GeneralizedPooling(DIM, heads=len(scales), hidden_dim=2 * DIM).double()
    eye = torch.eye(DIM, dtype=torch.float64)
    with torch.no_grad():
        for head, scale in enumerate(scales):
            pooling.w1[head] = torch.cat([eye, -eye], dim=0)
            pooling.w2[head] = scale * torch.cat([eye, -eye], dim=1)
    return pooling


@one_head_and_several
def test_second_matrix_of_zeros_gives_the_mean(heads):
    pooling = random_generalized(heads)
    with torch.no_grad():
        pooling.w2.zero_()
    states, mask = batch()
    mean = MeanPooling(DIM)(states, mask).heads.expand(-1, heads, -1)
    torch.testing.assert_close(pooling(states, mask).heads, mean, rtol=0, atol=1e-12)


@one_head_and_several
def test_second_matrix_with_equal_rows_gives_one_weight_per_token(heads):
    pooling = random_generalized(heads)
    with torch.no_grad():
        pooling.w2.copy_(pooling.w2[:, :1].expand(-1, DIM, -1).clone())
        pooling.b2.copy_(pooling.b2[:, :1].expand(-1, DIM).clone())
    states, mask = batch()
    pooled = pooling(states, mask)
    first = pooled.weights[..., :1].expand_as(pooled.weights)
    torch.testing.assert_close(pooled.weights, first, rtol=0, atol=1e-12)
    w1, b1, w2 = (to_numpy(parameter) for parameter in (pooling.w1, pooling.b1, pooling.w2))
    for row in range(len(states)):
        tokens = real(states, mask, row)
        for head in range(heads):
            hidden = [np.maximum(w1[head] @ token + b1[head], 0) for token in tokens]
            logits = np.array([w2[head, 0] @ units for units in hidden])
            vector, _ = reference.scalar_attention(tokens, logits)
            np.testing.assert_allclose(to_numpy(pooled.heads)[row, head], vector, 0, 1e-12)


@one_head_and_several
def test_equal_rows_meet_the_scalar_attention_of_lin_where_its_tanh_is_straight(heads):
    # tanh(small U h) / small tends to U h, and so does ReLU(U h) - ReLU(-U h).
    small = 1e-5
    first = random_states(HIDDEN, DIM, dtype=torch.float64, seed=7)
    second = random_states(heads, HIDDEN, dtype=torch.float64, seed=8)
    scalar = ScalarAttentionPooling(DIM, heads=heads, hidden_dim=HIDDEN).double()
    general = GeneralizedPooling(DIM, heads=heads, hidden_dim=2 * HIDDEN).double()
    with torch.no_grad():
        scalar.w1.copy_(small * first)
        scalar.w2.copy_(second / small)
        general.w1.copy_(torch.cat([first, -first]).expand(heads, -1, -1))
        rows = torch.cat([second, -second], dim=1)  # (heads, 2 * HIDDEN)
        general.w2.copy_(rows.unsqueeze(1).expand(-1, DIM, -1))
    states, mask = batch()
    one, other = general(states, mask), scalar(states, mask)
    assert (other.weights[0].amax(dim=1) > 2 / 6).all()  # six tokens: far from the mean
    torch.testing.assert_close(one.heads, other.heads, rtol=0, atol=1e-7)
    weights = other.weights.expand_as(one.weights)
    torch.testing.assert_close(one.weights, weights, rtol=0, atol=1e-7)


@pytest.mark.parametrize("scales", [[1.0], [10.0], [1000.0], [1.0, 30.0, 1000.0]], ids=str)
def test_signed_identities_stay_within_the_bound_of_the_maximum(scales):
    # A token x below the maximum weighs at most e^{-kx}, and x e^{-kx} <= 1 / (k e).
    states, mask = batch()
    heads = signed_identity(scales)(states, mask).heads
    maximum = MaxPooling(DIM)(states, mask).heads  # (batch, 1, DIM)
    below = maximum - heads
    others = mask.sum(dim=1) - 1  # (batch,)
    for head, scale in enumerate(scales):
        bound = others / (math.e * scale) + 1e-12
        assert (below[:, head] >= -1e-12).all()
        assert (below[:, head] <= bound.unsqueeze(1)).all()


@one_head_and_several
def test_signed_identities_tend_to_the_maximum_as_they_grow(heads):
    states, mask = batch()
    maximum = MaxPooling(DIM)(states, mask).heads
    errors = []
    for scale in (0.0, 1.0, 10.0, 100.0, 1e4):
        pooled = signed_identity([scale] * heads)(states, mask).heads
        errors.append((maximum - pooled)[:2].abs().amax(dim=(0, 2)))  # the third has one token
    for farther, nearer in pairwise(errors):
        assert (nearer < farther).all()
    assert (errors[0] > 0.5).all()
    assert (errors[-1] < 1e-6).all()


def test_heads_of_one_pooling_can_be_mean_and_maximum_at_once():
    states, mask = batch()
    heads = signed_identity([0.0, 1e5]).forward(states, mask).heads
    mean, maximum = MeanPooling(DIM)(states, mask).vector, MaxPooling(DIM)(states, mask).vector
    torch.testing.assert_close(heads[:, 0], mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(heads[:, 1], maximum, rtol=0, atol=1e-6)


def test_negated_scale_tends_to_the_minimum():
    states, mask = batch()
    minimum = -MaxPooling(DIM)(-states, mask).heads
    pooled = signed_identity([-1e5])(states, mask).heads
    torch.testing.assert_close(pooled, minimum, rtol=0, atol=1e-6)
