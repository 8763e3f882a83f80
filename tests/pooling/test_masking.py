"""A sentence's vector is its own: no batch, no order and no padding changes it."""

import numpy as np
import pytest
import torch

from genpool.pooling.masking import masked_max, masked_mean, masked_softmax
from tests.helpers.gradients import gradient

from .cases import (
    ATTENTIVE,
    CASES,
    GATE_WIDTH,
    every_mask,
    mask_of,
    pool,
    random_gates,
    random_states,
    to_numpy,
    with_garbage,
)

DIM = 32
LENGTHS = [1, 2, 7, 20]
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def difference(one, other):
    return (one - other).abs().max().item()


def sentences():
    """(states, gates) of several lengths, one sentence each, with values as a BiLSTM has them."""
    return [
        (random_states(1, length, DIM, seed=length).tanh(), random_gates(1, length, seed=length))
        for length in LENGTHS
    ]


def alone(pooling, states, gates):
    return pool(pooling, states, torch.ones(states.shape[:2], dtype=torch.bool), gates)


def padded(rows, positions, time):
    """One batch of sentences; token t of sentence b is at positions[b][t]."""
    states = torch.zeros(len(rows), time, DIM)
    gates = torch.zeros(len(rows), time, GATE_WIDTH)
    mask = torch.zeros(len(rows), time, dtype=torch.bool)
    for b, (sentence, gate) in enumerate(rows):
        states[b, positions[b]], gates[b, positions[b]] = sentence[0], gate[0]
        mask[b, positions[b]] = True
    return with_garbage(states, mask), mask, with_garbage(gates, mask)


PLACES = {
    "tight": lambda length: range(length),
    "left": lambda length: range(25 - length, 25),
    "right": lambda length: range(25),
    "both sides": lambda length: range(3, 3 + length),
    "between": lambda length: range(0, 2 * length, 2),
    "between and both sides": lambda length: range(4, 4 + 3 * length, 3),
}


@pytest.mark.parametrize("place", PLACES)
@every_case
def test_same_vector_alone_and_in_a_batch_wherever_the_padding_stands(case, place):
    pooling = case.make(DIM)
    rows = sentences()
    positions = [list(PLACES[place](length))[:length] for length in LENGTHS]
    time = max(last[-1] for last in positions) + 1 + (0 if place == "tight" else 4)
    batch = pool(pooling, *padded(rows, positions, time))
    for b, (states, gates) in enumerate(rows):
        single = alone(pooling, states, gates)
        assert difference(batch.vector[b], single.vector[0]) <= 1e-6
        assert difference(batch.heads[b], single.heads[0]) <= 1e-6
        if batch.weights is not None:
            assert difference(batch.weights[b][:, positions[b]], single.weights[0]) <= 1e-6


@every_case
def test_same_vector_for_every_possible_mask(case):
    pooling = case.make(4)
    mask = every_mask(6)
    states, gates = random_states(*mask.shape, 4), random_gates(*mask.shape)
    batch = pool(pooling, with_garbage(states, mask), mask, with_garbage(gates, mask))
    for b, present in enumerate(mask):
        single = alone(pooling, states[b : b + 1, present], gates[b : b + 1, present])
        assert difference(batch.vector[b], single.vector[0]) <= 1e-6


@every_case
def test_a_thousand_positions_of_padding_change_nothing(case):
    pooling = case.make(DIM)
    (states, gates), time = sentences()[2], 1000
    padding = padded([(states, gates)], [list(range(500, 507))], time)
    assert difference(pool(pooling, *padding).vector, alone(pooling, states, gates).vector) <= 1e-6


@every_case
def test_batch_order_does_not_matter(case):
    pooling = case.make(DIM)
    states, gates, mask = (
        random_states(6, 9, DIM),
        random_gates(6, 9),
        mask_of([9, 1, 0, 5, 7, 3], 9),
    )
    order = torch.tensor([4, 2, 5, 0, 3, 1])
    plain = pool(pooling, states, mask, gates)
    shuffled = pool(pooling, states[order], mask[order], gates[order])
    assert difference(shuffled.vector, plain.vector[order]) <= 1e-6
    assert difference(shuffled.heads, plain.heads[order]) <= 1e-6


@every_case
def test_other_sentences_get_no_gradient(case):
    pooling = case.make(4)
    states = random_states(3, 5, 4).requires_grad_()
    pooled = pool(pooling, states, mask_of([5, 4, 2], 5), random_gates(3, 5))
    pooled.vector[1].square().sum().backward()
    assert not gradient(states)[[0, 2]].any()
    assert gradient(states)[1, :4].any()
    assert not gradient(states)[1, 4:].any()


@every_case
def test_time_major_tensors_can_be_pooled(case):
    pooling = case.make(4)
    states, gates, mask = random_states(3, 5, 4), random_gates(3, 5), mask_of([5, 4, 2], 5)
    plain = pool(pooling, states, mask, gates)
    views = [
        tensor.transpose(0, 1).contiguous().transpose(0, 1) for tensor in (states, mask, gates)
    ]
    assert not views[0].is_contiguous()
    assert difference(pool(pooling, *views).vector, plain.vector) <= 1e-6


@pytest.mark.parametrize("filling", ["zeros", "garbage"])
@every_case
def test_sentence_with_no_token_gives_zeros(case, filling):
    pooling = case.make(4)
    mask = mask_of([3, 0, 1], 3)
    states, gates = random_states(3, 3, 4), random_gates(3, 3)
    if filling == "garbage":
        states, gates = with_garbage(states, mask), with_garbage(gates, mask)
    pooled = pool(pooling, states, mask, gates)
    for part in pooled:
        if part is not None:
            assert not part[1].any()
            assert part[0].any()
            assert part[2].any()


@every_case
def test_sentence_with_no_token_adds_nothing_to_the_gradients(case):
    def gradients(states, gates, mask):
        pooling = case.make(4)
        states = states.clone().requires_grad_()
        pool(pooling, states, mask, gates).vector.square().sum().backward()
        return states.grad, [parameter.grad for parameter in pooling.parameters()]

    mask = mask_of([3, 0, 1], 3)
    states = with_garbage(random_states(3, 3, 4), mask)
    gates = with_garbage(random_gates(3, 3), mask)
    of_states, of_parameters = gradients(states, gates, mask)
    assert not of_states[~mask].any()  # NaN would be true
    kept = torch.tensor([0, 2])
    states_without, parameters_without = gradients(states[kept], gates[kept], mask[kept])
    assert difference(of_states[kept], states_without) <= 1e-6
    for one, other in zip(of_parameters, parameters_without, strict=True):
        assert other.isfinite().all()
        torch.testing.assert_close(one, other)


def test_sentence_with_no_token_gives_the_gates_no_gradient():
    pooling = next(case for case in CASES if case.name == "gated").make(4)
    mask = mask_of([3, 0, 1], 3)
    gates = with_garbage(random_gates(3, 3), mask).requires_grad_()
    pooling(random_states(3, 3, 4), mask, gates).vector.square().sum().backward()
    assert not gradient(gates)[~mask].any()
    assert gradient(gates)[0].any()


@every_case
def test_batch_of_no_tokens_at_all_gives_zeros_and_finite_gradients(case):
    pooling = case.make(4)
    states = torch.full((2, 3, 4), float("nan"), requires_grad=True)
    gates = torch.full((2, 3, GATE_WIDTH), float("nan"))
    vector = pool(pooling, states, torch.zeros(2, 3, dtype=torch.bool), gates).vector
    assert not vector.any()
    vector.sum().backward()
    assert not gradient(states).any()
    assert all(not parameter.grad.any() for parameter in pooling.parameters())


@every_case
def test_time_may_be_zero(case):
    pooling = case.make(4)
    states = torch.zeros(2, 0, 4)
    pooled = pool(pooling, states, torch.zeros(2, 0, dtype=torch.bool), torch.zeros(2, 0, 3))
    assert torch.equal(pooled.vector, torch.zeros(2, 4 * case.heads))
    assert torch.equal(pooled.heads, torch.zeros(2, case.heads, 4))
    if case in ATTENTIVE:
        assert pooled.weights is not None
        assert pooled.weights.shape[:3] == (2, case.heads, 0)


@every_case
def test_batch_may_be_empty(case):
    pooling = case.make(4)
    states = torch.zeros(0, 3, 4)
    pooled = pool(pooling, states, torch.zeros(0, 3, dtype=torch.bool), torch.zeros(0, 3, 3))
    assert pooled.vector.shape == (0, 4 * case.heads)
    assert pooled.heads.shape == (0, case.heads, 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", ATTENTIVE, ids=str)
def test_weights_are_shares_of_the_real_tokens_and_exactly_zero_at_padding(case, dtype):
    pooling = case.make(4, dtype)
    mask = every_mask(5)[1:]  # every mask with a token
    states = with_garbage(random_states(*mask.shape, 4, dtype=dtype), mask)
    weights = pool(pooling, states, mask).weights  # (batch, heads, time, 4 or 1)
    assert weights is not None
    precision = 10 * torch.finfo(dtype).eps
    np.testing.assert_allclose(to_numpy(weights.sum(dim=2)), 1, rtol=0, atol=precision)
    at = weights.movedim(2, 1)  # (batch, time, heads, 4 or 1)
    assert (at[mask] > 0).all()
    assert not at[~mask].any()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@every_case
def test_result_has_the_shapes_of_the_design_and_the_type_of_the_states(case, dtype):
    pooling = case.make(4, dtype)
    states, mask = random_states(3, 6, 4, dtype=dtype), mask_of([6, 0, 2], 6)
    pooled = pool(pooling, states, mask, random_gates(3, 6, dtype=dtype))
    assert (pooling.input_dim, pooling.output_dim) == (4, 4 * case.heads)
    assert pooled.vector.shape == (3, pooling.output_dim)
    assert pooled.heads.shape == (3, case.heads, 4)
    if case.name in ("generalized", "source-to-token"):
        assert pooled.weights is not None
        assert pooled.weights.shape == (3, case.heads, 6, 4)
    elif case in ATTENTIVE:
        assert pooled.weights is not None
        assert pooled.weights.shape == (3, case.heads, 6, 1)
    else:
        assert pooled.weights is None
    assert {part.dtype for part in pooled if part is not None} == {dtype}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@every_case
def test_vector_is_the_heads_one_after_the_other(case, dtype):
    pooling = case.make(4, dtype)
    states, mask = random_states(3, 6, 4, dtype=dtype), mask_of([6, 0, 2], 6)
    pooled = pool(pooling, states, mask, random_gates(3, 6, dtype=dtype))
    assert torch.equal(pooled.vector, torch.cat(pooled.heads.unbind(dim=1), dim=1))


@every_case
def test_bfloat16_is_near_double_precision(case):
    states, gates = random_states(3, 6, 4).bfloat16(), random_gates(3, 6).bfloat16()
    mask = mask_of([6, 4, 2], 6)
    rough = case.make(4, torch.bfloat16)
    exact = case.make(4, torch.bfloat16).double()
    one = pool(rough, with_garbage(states, mask), mask, with_garbage(gates, mask)).vector.double()
    other = pool(exact, states.double(), mask, gates.double()).vector
    # Eight bits of mantissa, through two products and a softmax of logits up to about 4.
    assert difference(one, other) <= 0.05


@every_case
def test_automatic_mixed_precision_is_near_double_precision(case):
    states, gates, mask = random_states(3, 6, 4), random_gates(3, 6), mask_of([6, 4, 0], 6)
    pooling = case.make(4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = pool(pooling, states, mask, gates).vector
    exact = pool(pooling.double(), states.double(), mask, gates.double()).vector
    assert difference(mixed.double(), exact) <= 0.05


@every_case
def test_training_and_evaluation_give_the_same_vector(case):
    pooling = case.make(4)
    states, gates, mask = random_states(3, 6, 4), random_gates(3, 6), mask_of([6, 0, 2], 6)
    training = pool(pooling.train(), states, mask, gates).vector
    assert torch.equal(pool(pooling.eval(), states, mask, gates).vector, training)


@every_case
def test_arguments_are_left_as_they_were(case):
    pooling = case.make(4)
    states, gates, mask = random_states(3, 6, 4), random_gates(3, 6), mask_of([6, 0, 2], 6)
    before = [tensor.clone() for tensor in (states, mask, gates)]
    pool(pooling, states, mask, gates)
    assert all(map(torch.equal, before, (states, mask, gates)))


def test_softmax_of_huge_logits_is_a_choice_and_not_nan():
    logits = torch.tensor([[[1e30], [-1e30], [3e38]]])
    mask = torch.tensor([[True, True, False]])
    assert masked_softmax(logits, mask).flatten().tolist() == [1, 0, 0]


def test_softmax_takes_any_number_of_dimensions_before_time():
    mask = mask_of([3, 1], 3)
    logits = random_states(2, 5, 4, 3, 2, dtype=torch.float64)
    weights = masked_softmax(logits, mask)
    for b, length in enumerate([3, 1]):
        powers = np.exp(to_numpy(logits)[b, :, :, :length])
        expected = powers / powers.sum(axis=2, keepdims=True)
        np.testing.assert_allclose(to_numpy(weights)[b, :, :, :length], expected, 0, 1e-12)
        assert not weights[b, :, :, length:].any()


def test_zeros_of_padding_never_win_a_maximum():
    states = torch.tensor([[[-3.0], [-2.0], [0.0]]])
    assert masked_max(states, torch.tensor([[True, True, False]])).item() == -2


def test_maximum_of_minus_infinity_is_the_same_with_and_without_padding():
    states = torch.full((1, 2, 1), float("-inf"))
    assert masked_max(states, torch.tensor([[True, True]])).item() == float("-inf")
    assert masked_max(states, torch.tensor([[True, False]])).item() == float("-inf")


def test_tokens_that_share_a_maximum_share_its_gradient():
    states = torch.tensor([[[2.0], [2.0], [2.0]]], requires_grad=True)
    masked_max(states, torch.tensor([[True, True, False]])).sum().backward()
    assert gradient(states).flatten().tolist() == [0.5, 0.5, 0]


def test_mean_divides_by_the_real_tokens():
    states = torch.tensor([[[2.0], [4.0], [9.0], [9.0]]])
    assert masked_mean(states, torch.tensor([[True, True, False, False]])).item() == 3
