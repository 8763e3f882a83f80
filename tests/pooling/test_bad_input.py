"""A user's mistake gets an InputError that says what was given and what was expected."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from genpool.errors import GenpoolError, InputError
from genpool.pooling import (
    POOLINGS,
    GatedPooling,
    GeneralizedPooling,
    LastPooling,
    ScalarAttentionPooling,
)
from genpool.pooling.penalties import (
    attention_penalty,
    embedding_penalty,
    scalar_attention_penalty,
)

from .cases import CASES, pool

every_case = pytest.mark.parametrize("case", CASES, ids=str)
STATES, MASK, GATES = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3, 5)


def message(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def assert_says(text, *parts):
    for part in parts:
        assert part in text


def test_input_error_is_a_value_error_and_a_genpool_error():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, GenpoolError)


@pytest.mark.parametrize("shape", [(2, 4), (3, 2), (2, 3, 1), (6,)], ids=str)
@every_case
def test_mask_of_another_shape(case, shape):
    mask = torch.ones(shape, dtype=torch.bool)
    text = message(pool, case.make(4), STATES, mask, GATES)
    assert_says(text, "mask", str(shape), "(2, 3)")


def test_the_output_of_a_transformer_in_place_of_its_states():
    output = SimpleNamespace(last_hidden_state=STATES)
    text = message(GeneralizedPooling(4), output, MASK)
    assert_says(text, "SimpleNamespace", "pass output.last_hidden_state")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex64], ids=str)
@every_case
def test_mask_of_another_type(case, dtype):
    text = message(pool, case.make(4), STATES, MASK.to(dtype), GATES)
    assert_says(text, "mask", str(dtype), "torch.bool", "1 at real tokens")


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-1, 1), (-10000, 0), (7, 7)])
@every_case
def test_mask_of_integers_that_are_not_zeros_and_ones(case, low, high):
    mask = torch.tensor([[low, high, high], [low, low, high]])
    text = message(pool, case.make(4), STATES, mask, GATES)
    assert_says(text, "mask", f"from {low} to {high}", "1 at real tokens", "mask > 0")


@pytest.mark.parametrize("mask", [None, [[True] * 3] * 2, np.ones((2, 3), bool)], ids=repr)
@every_case
def test_mask_that_is_no_tensor(case, mask):
    text = message(pool, case.make(4), STATES, mask, GATES)
    assert_says(text, "mask", type(mask).__name__, "boolean tensor")


@every_case
def test_states_of_another_width(case):
    text = message(pool, case.make(4), torch.zeros(2, 3, 6), MASK, GATES)
    assert_says(text, "states", "width 6", "(2, 3, 6)", "input_dim=4")


@pytest.mark.parametrize("shape", [(3, 4), (4,), (1, 2, 3, 4)], ids=str)
@every_case
def test_states_without_three_dimensions(case, shape):
    text = message(pool, case.make(4), torch.zeros(shape), MASK, GATES)
    assert_says(text, "states", str(shape), "(batch, time, input_dim)")


@pytest.mark.parametrize(
    "states", [None, STATES.tolist(), STATES.numpy()], ids=["None", "list", "array"]
)
@every_case
def test_states_that_are_no_tensor(case, states):
    text = message(pool, case.make(4), states, MASK, GATES)
    assert_says(text, "states", type(states).__name__, "tensor")


@every_case
def test_states_of_whole_numbers(case):
    text = message(pool, case.make(4), STATES.long(), MASK, GATES)
    assert_says(text, "states", "torch.int64", "float")


@pytest.mark.parametrize("value", [0, -3, 2.5, "8", None, True], ids=repr)
@every_case
def test_input_dim_that_is_no_whole_number_of_one_or_more(case, value):
    text = message(case.make, value)
    assert_says(text, "input_dim", repr(value), "1 or more")


@pytest.mark.parametrize("option", ["heads", "hidden_dim"])
@pytest.mark.parametrize("value", [0, -1, 2.0, "3", False], ids=repr)
@pytest.mark.parametrize("kind", [GeneralizedPooling, ScalarAttentionPooling])
def test_heads_or_hidden_dim_that_is_no_whole_number_of_one_or_more(kind, value, option):
    text = message(kind, 4, **{option: value})
    assert_says(text, option, repr(value), "1 or more")


def test_last_pooling_of_two_directions_in_an_odd_width():
    assert_says(message(LastPooling, 5), "input_dim", "5", "even", "bidirectional=False")
    assert LastPooling(5, bidirectional=False).output_dim == 5


def test_gates_that_are_missing():
    assert_says(message(GatedPooling(4), STATES, MASK), "without gates", "(batch, time, width)")


@pytest.mark.parametrize("shape", [(2, 4, 5), (3, 3, 5), (2, 3), (2, 3, 5, 1)], ids=str)
def test_gates_of_another_shape(shape):
    text = message(GatedPooling(4), STATES, MASK, torch.ones(shape))
    assert_says(text, "gates", str(shape), "2, 3", "width")


@pytest.mark.parametrize("gates", [GATES.tolist(), GATES.numpy()], ids=["list", "array"])
def test_gates_that_are_no_tensor(gates):
    text = message(GatedPooling(4), STATES, MASK, gates)
    assert_says(text, "gates", type(gates).__name__, "tensor")


@pytest.mark.parametrize("average", ["sentense", "Batch", "", None], ids=repr)
@pytest.mark.parametrize(
    ("penalty", "batch"),
    [(attention_penalty, torch.zeros(2, 3, 4, 5)), (embedding_penalty, torch.zeros(2, 3, 5))],
)
def test_unknown_average(penalty, batch, average):
    text = message(penalty, batch, average=average)
    assert_says(text, "average", repr(average), "sentence", "batch")


def test_unknown_average_names_the_nearest():
    text = message(embedding_penalty, torch.zeros(2, 3, 5), average="sentense")
    assert_says(text, "Did you mean 'sentence'?")


def test_penalty_of_lin_on_vector_based_weights():
    text = message(scalar_attention_penalty, torch.zeros(2, 3, 4, 5))
    assert_says(text, "(2, 3, 4, 5)", "(batch, heads, time, 1)", "attention_penalty")


@pytest.mark.parametrize("penalty", [attention_penalty, scalar_attention_penalty])
def test_attention_penalty_of_a_pooling_that_has_no_weights(penalty):
    assert_says(message(penalty, None), "weights", "None", "(batch, heads, time")


def test_embedding_penalty_of_vectors_instead_of_heads():
    text = message(embedding_penalty, torch.zeros(2, 15))
    assert_says(text, "heads", "(2, 15)", "(batch, heads, dim)")


@pytest.mark.parametrize("name", ["generalized", "scalar", "inner", "source-to-token"])
def test_states_of_another_floating_point_type(name):
    text = message(pool, POOLINGS[name](4), STATES.bfloat16(), MASK, GATES)
    assert_says(text, "torch.bfloat16", "pooling.to(states.dtype)")
