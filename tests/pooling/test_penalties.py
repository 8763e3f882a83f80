"""The penalties: against the equations, by hand, and whether they are active at the start."""

import numpy as np
import pytest
import torch

from genpool.pooling import GeneralizedPooling
from genpool.pooling.penalties import (
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
    scalar_attention_penalty,
)
from tests.helpers.gradients import gradient

from . import reference
from .cases import Case, mask_of, random_states, to_numpy, with_garbage

SETTINGS = [(0.3, 0.01), (20.0, 2.0)]
settings = pytest.mark.parametrize(("threshold", "weight"), SETTINGS)
several_heads = pytest.mark.parametrize("heads", [1, 5])
either_average = pytest.mark.parametrize("average", ["sentence", "batch"])
BATCH_PENALTIES = {"attention": attention_penalty, "embedding": embedding_penalty}
AVERAGES = {"sentence": reference.sentence_penalty, "batch": reference.batch_penalty}


def pooled_batch(heads, name="generalized", lengths=(6, 2, 4, 0), dtype=torch.float64):
    pooling = Case(name, {"heads": heads}, heads).make(4, dtype)
    mask = mask_of(list(lengths), max(lengths))
    return pooling(with_garbage(random_states(*mask.shape, 4, dtype=dtype), mask), mask)


def check(penalty, expected, distances, threshold=None):
    """The term, the distances, and the share of them below the threshold, if there is one."""
    distances = np.asarray(distances)
    assert penalty.term.item() == pytest.approx(expected, abs=1e-12)
    np.testing.assert_allclose(to_numpy(penalty.distances), distances, 0, 1e-12)
    below = 1.0 if threshold is None else (distances < threshold).sum() / max(distances.size, 1)
    assert penalty.active.item() == pytest.approx(below, abs=1e-6)


@settings
@several_heads
def test_parameter_penalty_follows_its_equation(heads, threshold, weight):
    w1 = 0.6 * random_states(heads, 3, 4, dtype=torch.float64)
    expected = reference.parameter_penalty(to_numpy(w1), threshold, weight)
    distances = reference.distances(to_numpy(w1))
    check(parameter_penalty(w1, threshold, weight), expected, distances, threshold)


@either_average
@settings
@several_heads
@pytest.mark.parametrize("of", ["attention", "embedding"])
def test_batch_penalties_follow_their_equations(of, heads, threshold, weight, average):
    pooled = pooled_batch(heads)
    penalty, batch = BATCH_PENALTIES[of], pooled.weights if of == "attention" else pooled.heads
    distances = np.array([reference.distances(sentence) for sentence in to_numpy(batch)])
    if average == "batch":
        distances = distances.mean(axis=0)
    expected = AVERAGES[average](to_numpy(batch), threshold, weight)
    check(penalty(batch, threshold, weight, average), expected, distances, threshold)


@pytest.mark.parametrize("weight", [1.0, 0.25])
@several_heads
def test_penalty_of_lin_follows_its_equation(heads, weight):
    weights = pooled_batch(heads, "scalar").weights
    expected = reference.scalar_attention_penalty(to_numpy(weights).squeeze(-1), weight)
    distances = [reference.distances(sentence) for sentence in to_numpy(weights)]
    check(scalar_attention_penalty(weights, weight), expected, distances)


def test_penalty_of_lin_worked_by_hand():
    weights = torch.tensor([[[[0.5], [0.5]], [[1.0], [0.0]]], [[[1.0], [0.0]], [[0.0], [1.0]]]])
    # A A^T - I = [[-1/2, 1/2], [1/2, 0]] for the first sentence, zeros for the second.
    assert scalar_attention_penalty(weights).term.item() == pytest.approx(0.75 / 2, abs=1e-7)


def test_mean_of_hinges_is_not_the_hinge_of_the_mean():
    # Squared distances 0 and 4 of two sentences: hinges 1 and 0, but a mean distance of 2.
    heads = torch.tensor([[[1.0], [1.0]], [[0.0], [2.0]]])
    per_sentence, of_mean = embedding_penalty(heads), embedding_penalty(heads, average="batch")
    assert (per_sentence.term.item(), per_sentence.active.item()) == (0.5, 0.5)
    assert (of_mean.term.item(), of_mean.active.item()) == (0, 0)
    assert per_sentence.distances.tolist() == [[0], [4]]
    assert of_mean.distances.tolist() == [2]


def test_three_heads_worked_by_hand():
    w1 = torch.tensor([[[0.0, 0.0]], [[0.5, 0.0]], [[0.5, 1.0]]])
    penalty = parameter_penalty(w1, threshold=1.125, weight=2.0)
    assert penalty.distances.tolist() == [0.25, 1.25, 1.0]  # pairs (0, 1), (0, 2), (1, 2)
    assert penalty.term.item() == 2 * (0.875 + 0 + 0.125)
    assert penalty.active.item() == pytest.approx(2 / 3)


@pytest.mark.parametrize(("dim", "hidden", "distance"), [(1200, 600, 144), (600, 300, 36)])
def test_parameter_penalty_is_inactive_at_the_start_of_the_papers_models(dim, hidden, distance):
    torch.manual_seed(0)
    pooling = GeneralizedPooling(dim, heads=5, hidden_dim=hidden)
    penalty = parameter_penalty(pooling.w1, threshold=1.0)
    # 2 * 0.01^2 * dim * hidden values: the sum of n squares strays by sqrt(2 / n) of itself.
    stray = 5 * distance * (2 / (dim * hidden)) ** 0.5
    np.testing.assert_allclose(to_numpy(penalty.distances), [distance] * 10, rtol=0, atol=stray)
    assert penalty.term.item() == 0
    assert penalty.active.item() == 0
    penalty.term.backward()
    assert not gradient(pooling.w1).any()


@either_average
@pytest.mark.parametrize("penalty", [attention_penalty, embedding_penalty])
@pytest.mark.parametrize(("dim", "hidden"), [(1200, 600), (600, 300)])
def test_the_other_penalties_are_active_at_the_start(dim, hidden, penalty, average):
    torch.manual_seed(0)
    pooling = GeneralizedPooling(dim, heads=5, hidden_dim=hidden)
    states, mask = random_states(3, 12, dim).tanh(), mask_of([12, 7, 4], 12)
    pooled = pooling(states, mask)
    batch = pooled.weights if penalty is attention_penalty else pooled.heads
    result = penalty(batch, threshold=1.0, average=average)
    assert result.term.item() > 0
    assert result.active.item() == 1
    result.term.backward()
    assert gradient(pooling.w1).any()
    assert gradient(pooling.w2).any()


@pytest.mark.parametrize(
    ("penalty", "shape", "options"),
    [
        (parameter_penalty, (4, 2, 3), {}),
        *((attention_penalty, (3, 4, 5, 2), {"average": name}) for name in AVERAGES),
        *((embedding_penalty, (3, 4, 5), {"average": name}) for name in AVERAGES),
        (scalar_attention_penalty, (2, 3, 4, 1), {}),
    ],
)
def test_gradients(penalty, shape, options):
    values = random_states(*shape, dtype=torch.float64, seed=3).requires_grad_()
    if penalty is not scalar_attention_penalty:  # distances on both sides of the threshold
        options = {**options, "threshold": penalty(values, **options).distances.mean().item()}
        assert 0 < penalty(values, **options).active.item() < 1
    assert torch.autograd.gradcheck(lambda x: penalty(x, weight=0.5, **options).term, values)


def test_near_heads_keep_the_digits_of_their_distance():
    heads = torch.tensor([[[1000.0, 1000.0], [1000.0, 1000.0625]]])
    assert embedding_penalty(heads).distances.item() == 0.0625**2


@either_average
def test_batch_of_no_sentences_has_no_penalty(average):
    for penalty in (
        attention_penalty(torch.zeros(0, 3, 2, 4), average=average),
        embedding_penalty(torch.zeros(0, 3, 4), average=average),
        scalar_attention_penalty(torch.zeros(0, 3, 2, 1)),
    ):
        assert penalty.term.item() == 0
