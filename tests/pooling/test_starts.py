"""How generalized pooling is initialized: as the mean or as soft max pooling, able to learn."""

import numpy as np
import pytest
import torch

from genpool.errors import InputError
from genpool.pooling import GeneralizedPooling, MeanPooling
from genpool.pooling.generalized import SHARPNESS
from genpool.tensors.initialization import on_meta_device
from tests.helpers.gradients import gradient

from .cases import mask_of, real, with_garbage

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


@pytest.mark.parametrize("heads", [1, 3])
def test_the_start_at_the_mean(heads):
    pooling = GeneralizedPooling(4, heads, 3, start="mean").double()
    states, mask = bounded_states(4)
    mean = MeanPooling(4)(states, mask).heads.expand(-1, heads, -1)
    torch.testing.assert_close(pooling(states, mask).heads, mean, rtol=0, atol=1e-12)


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
def test_a_start_draws_the_same_values_again(start):
    makings = []
    for _ in range(2):
        torch.manual_seed(3)
        makings.append(GeneralizedPooling(6, 2, 4, start=start).state_dict())
    assert all(torch.equal(makings[0][name], makings[1][name]) for name in makings[0])


@pytest.mark.parametrize("start", ["random", "mean", "max"])
def test_a_start_without_memory_takes_no_time(start):
    with on_meta_device():
        huge = GeneralizedPooling(10**6, 10**4, 10**6, start=start)
    assert huge.w1.is_meta


def test_an_unknown_start_is_reported():
    with pytest.raises(InputError, match=r"unknown start 'maks'\. Did you mean 'max'"):
        GeneralizedPooling(4, start="maks")  # type: ignore[arg-type]
