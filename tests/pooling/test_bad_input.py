"""A user's mistake gets an InputError that says what was given and what was expected."""

from types import SimpleNamespace

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

STATES, MASK, GATES = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.ones(2, 3, 5)


def says(parts, call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    for part in parts:
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, GenpoolError)


@pytest.mark.parametrize(
    ("states", "mask", "parts"),
    [
        (STATES, torch.ones(2, 4, dtype=torch.bool), ["mask", "(2, 4)", "(2, 3)"]),
        (STATES, torch.ones(2, 3, 1, dtype=torch.bool), ["mask", "(2, 3, 1)", "(2, 3)"]),
        (STATES, MASK.float(), ["torch.float32", "torch.bool", "added to attention scores"]),
        (STATES, MASK.to(torch.complex64), ["mask", "torch.complex64", "torch.bool"]),
        (STATES, MASK.long() * 2, ["mask", "from 2 to 2", "1 at real tokens", "mask > 0"]),
        (STATES, (MASK.long() - 1) * 10000 - 1, ["mask", "from -1 to -1"]),
        (STATES, None, ["mask", "NoneType", "boolean tensor"]),
        (STATES, MASK.numpy(), ["mask", "ndarray", "boolean tensor"]),
        (torch.zeros(2, 3, 6), MASK, ["states", "width 6", "(2, 3, 6)", "input_dim=4"]),
        (torch.zeros(3, 4), MASK, ["states", "(3, 4)", "(batch, time, input_dim)"]),
        (STATES.tolist(), MASK, ["states", "list", "tensor"]),
        (STATES.long(), MASK, ["states", "torch.int64", "float"]),
        (
            SimpleNamespace(last_hidden_state=STATES),
            MASK,
            ["SimpleNamespace", "pass output.last_hidden_state"],
        ),
    ],
)
def test_states_and_masks_that_do_not_fit(states, mask, parts):
    for case in CASES:
        says(parts, pool, case.make(4), states, mask, GATES)


@pytest.mark.parametrize("name", ["generalized", "scalar", "inner", "source-to-token"])
def test_states_of_another_floating_point_type(name):
    parts = ["torch.bfloat16", "pooling.to(states.dtype)"]
    says(parts, POOLINGS[name](4), STATES.bfloat16(), MASK)


@pytest.mark.parametrize("value", [0, -3, 2.5, "8", True], ids=repr)
def test_sizes_that_are_no_whole_number_of_one_or_more(value):
    for case in CASES:
        says(["input_dim", repr(value), "1 or more"], case.make, value)
    for kind in (GeneralizedPooling, ScalarAttentionPooling):
        for option in ("heads", "hidden_dim"):
            says([option, repr(value), "1 or more"], kind, 4, **{option: value})


def test_last_pooling_of_two_directions_in_an_odd_width():
    says(["input_dim", "5", "even", "bidirectional=False"], LastPooling, 5)
    assert LastPooling(5, bidirectional=False).output_dim == 5


@pytest.mark.parametrize(
    ("gates", "parts"),
    [
        (None, ["without gates", "(batch, time, width)"]),
        (torch.ones(2, 4, 5), ["gates", "(2, 4, 5)", "2, 3", "width"]),
        (torch.ones(2, 3), ["gates", "(2, 3)", "width"]),
        (GATES.numpy(), ["gates", "ndarray", "tensor"]),
    ],
)
def test_gates_that_do_not_fit(gates, parts):
    says(parts, GatedPooling(4), STATES, MASK, gates)
    says(parts, GatedPooling(4).heads_without, STATES, MASK, gates)


@pytest.mark.parametrize(
    ("parts", "penalty", "shape", "options"),
    [
        (["average", "'Batch'", "sentence"], attention_penalty, (2, 3, 4, 5), {"average": "Batch"}),
        (["Did you mean 'sentence'?"], embedding_penalty, (2, 3, 5), {"average": "sentense"}),
        (["(2, 3, 4, 5)", "attention_penalty"], scalar_attention_penalty, (2, 3, 4, 5), {}),
        (["weights", "None", "(batch, heads, time"], attention_penalty, None, {}),
        (["weights", "None", "(batch, heads, time"], scalar_attention_penalty, None, {}),
        (["heads", "(2, 15)", "(batch, heads, dim)"], embedding_penalty, (2, 15), {}),
    ],
)
def test_penalties_of_what_does_not_fit(parts, penalty, shape, options):
    says(parts, penalty, shape and torch.zeros(shape), **options)
