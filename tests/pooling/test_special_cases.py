"""Generalized pooling contains the mean, scalar attention and the maximum, and can start there."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from genpool.errors import InputError
from genpool.pooling import (
    POOLINGS,
    GeneralizedPooling,
    MaxPooling,
    MeanPooling,
    ScalarAttentionPooling,
)
from genpool.pooling.generalized import SHARPNESS
from genpool.tensors.modules import on_meta_device
from tests.helpers.gradients import gradient

from . import reference
from .cases import ATTENTIVE, Case, mask_of, random_states, real, to_numpy, with_garbage

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
def test_second_matrix_of_zeros_gives_the_mean_and_so_does_the_start_there(heads):
    pooling, started = random_generalized(heads), GeneralizedPooling(DIM, heads, 3, start="mean")
    with torch.no_grad():
        pooling.w2.zero_()
    states, mask = batch()
    mean = MeanPooling(DIM)(states, mask).heads.expand(-1, heads, -1)
    for form in (pooling, started.double()):
        torch.testing.assert_close(form(states, mask).heads, mean, rtol=0, atol=1e-12)


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


@pytest.mark.parametrize("scales", [[1.0], [10.0], [1000.0], [1.0, 30.0, 1e7]], ids=str)
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


# --- How the parameters start --------------------------------------------------------------------


def test_parameters_have_the_frozen_names_and_shapes():
    pooling = GeneralizedPooling(6, heads=3, hidden_dim=4)
    shapes = {name: tuple(tensor.shape) for name, tensor in pooling.state_dict().items()}
    assert shapes == {"w1": (3, 4, 6), "b1": (3, 4), "w2": (3, 6, 4), "b2": (3, 6)}
    assert set(shapes) == {name for name, _ in pooling.named_parameters()}
    for dim, hidden in ((600, 300), (7, 3), (1, 1)):  # five heads, half as wide as the states
        assert GeneralizedPooling(dim).w1.shape == (5, hidden, dim)


LENGTHS = [5, 2, 1]


def bounded_states(dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """States between -1 and 1, as an LSTM's are."""
    torch.manual_seed(0)
    mask = mask_of(LENGTHS, 5)
    return with_garbage(torch.rand(3, 5, dim, dtype=torch.float64) * 2 - 1, mask), mask


def soft_max(tokens: np.ndarray, leaders: list[int]) -> np.ndarray:
    """Every dimension, weighed over time by softmax(k h) of the dimension that leads it."""
    result = []
    for dim, leader in enumerate(leaders):
        shares = [np.exp(SHARPNESS * token[leader]) for token in tokens]
        summed = sum(s * token[dim] for s, token in zip(shares, tokens, strict=True))
        result.append(summed / sum(shares))
    return np.array(result)


@pytest.mark.parametrize(
    ("dim", "hidden", "leaders"),
    [
        (4, 4, [[0, 1, 2, 3], [0, 1, 2, 3]]),
        (4, 6, [[0, 1, 2, 3], [0, 1, 2, 3]]),  # more hidden units than dimensions: two are not used
        (6, 3, [[0, 0, 2, 2, 4, 4], [1, 1, 3, 3, 5, 5]]),
        (5, 2, [[0, 0, 0, 3, 3], [1, 1, 1, 4, 4]]),
        (3, 1, [[0, 0, 0], [1, 1, 1]]),
    ],
)
def test_the_start_at_the_maximum_by_loops(dim, hidden, leaders):
    pooling = GeneralizedPooling(dim, 2, hidden, initial_std=0.0, start="max").double()
    pooling.reset_parameters()  # the square root of k, in double precision
    states, mask = bounded_states(dim)
    heads = pooling(states, mask).heads.detach().numpy()
    for row in range(len(LENGTHS)):
        for head in range(2):
            expected = soft_max(real(states, mask, row), leaders[head])
            np.testing.assert_allclose(heads[row, head], expected, rtol=0, atol=1e-12)


def test_noise_tells_heads_apart_at_the_maximum():
    torch.manual_seed(0)
    pooling = GeneralizedPooling(4, 2, 4, initial_std=0.05, start="max").double()
    heads = pooling(*bounded_states(4)).heads
    assert (heads[:2, 0] - heads[:2, 1]).abs().min() > 1e-6


@pytest.mark.parametrize("start", ["random", "mean", "max"])
def test_every_start_can_learn(start):
    torch.manual_seed(0)
    pooling = GeneralizedPooling(4, 2, 4, start=start).double()
    pooling(*bounded_states(4)).vector.square().sum().backward()
    assert gradient(pooling.w2).abs().max() > 1e-4
    with torch.no_grad():
        pooling.w2.sub_(0.1 * gradient(pooling.w2))  # from the mean, W1 learns once W2 is not zero
    pooling.zero_grad()
    pooling(*bounded_states(4)).vector.square().sum().backward()
    assert gradient(pooling.w1).abs().max() > 1e-6


@pytest.mark.parametrize("start", ["random", "mean", "max"])
def test_a_start_without_memory_takes_no_time(start):
    with on_meta_device():
        huge = GeneralizedPooling(10**6, 10**4, 10**6, start=start)
    assert huge.w1.is_meta


def test_an_unknown_start_is_reported():
    with pytest.raises(InputError, match=r"unknown start 'maks'\. Did you mean 'max'"):
        GeneralizedPooling(4, start="maks")  # type: ignore[arg-type]


BOUNDS = [(6 / fans) ** 0.5 for fans in (60 + 50, 50 + 50)]  # of Xavier, for W1 and W2


@pytest.mark.parametrize(
    ("make", "name", "first", "second"),
    [
        (lambda: GeneralizedPooling(300, heads=2), "norm", (0, 0.01), (0, 0.01)),
        (lambda: scalar_attention(initial_std=0.03), "norm", (0, 0.03), (0, 0.03)),
        (lambda: scalar_attention(), "uniform", *((-bound, 2 * bound) for bound in BOUNDS)),
    ],
    ids=["released program", "given deviation", "Xavier"],
)
def test_weights_start_as_a_sample_of_their_distribution(make, name, first, second):
    torch.manual_seed(0)
    pooling = make()
    for weight, parameters in ((pooling.w1, first), (pooling.w2, second)):
        values = weight.detach().flatten().double().numpy()
        assert stats.kstest(values, name, parameters).pvalue > 0.01
        if name == "norm":  # five standard errors: of a mean and of a deviation
            error = 5 * parameters[1] / values.size**0.5
            assert abs(values.mean()) < error
            assert abs(values.std() - parameters[1]) < error / 2**0.5
    assert not any(getattr(pooling, bias).any() for bias in ("b1", "b2") if hasattr(pooling, bias))


def scalar_attention(**options):
    return ScalarAttentionPooling(60, heads=50, hidden_dim=50, **options)


@pytest.mark.parametrize("case", ATTENTIVE, ids=str)
def test_a_reset_starts_again(case):
    pooling: Any = POOLINGS[case.name](4, **case.options)
    states = []
    for _ in range(2):
        with torch.no_grad():
            for parameter in pooling.parameters():
                parameter.fill_(7)
        torch.manual_seed(0)
        pooling.reset_parameters()
        states.append([parameter.clone() for parameter in pooling.parameters()])
    assert all(map(torch.equal, *states)) and not any((one == 7).any() for one in states[0])


@pytest.mark.parametrize("std", [-0.1, float("nan"), True, "0.1"], ids=repr)
@pytest.mark.parametrize("cls", [ScalarAttentionPooling, GeneralizedPooling])
def test_a_deviation_that_is_none_is_refused(cls, std):
    with pytest.raises(InputError, match=r"initial_std is .*; expected a finite number of 0"):
        cls(4, initial_std=std)
