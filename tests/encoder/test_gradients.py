"""Gradients against finite differences, in float64 and with a mask."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import functional_call

from .cases import CASES, INPUT_DIM, made

MASK = torch.tensor([[1, 1, 1], [0, 1, 0], [0, 0, 0], [1, 0, 1]]).bool()


def inputs() -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(4, 3, INPUT_DIM, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("name", CASES)
def test_gradient_of_the_token_vectors(name: str) -> None:
    encoder = made(name, torch.float64)
    vectors = inputs().requires_grad_()
    assert torch.autograd.gradcheck(lambda values: encoder(values, MASK).states, (vectors,))


@pytest.mark.parametrize("name", [name for name in CASES if list(CASES[name].make().parameters())])
def test_gradient_of_every_parameter(name: str) -> None:
    encoder, vectors = made(name, torch.float64), inputs()
    names = [key for key, _ in encoder.named_parameters()]
    values = tuple(
        parameter.detach().clone().requires_grad_() for parameter in encoder.parameters()
    )

    def states(*parameters: Tensor) -> Tensor:
        weights = dict(zip(names, parameters, strict=True))
        return functional_call(encoder, weights, (vectors, MASK)).states

    # Fast mode: one random direction through all values of a parameter, not one value at a time.
    assert torch.autograd.gradcheck(states, values, fast_mode=True)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].make().has_gates])
def test_gradient_through_the_gates(name: str) -> None:
    encoder = made(name, torch.float64)
    vectors = inputs().requires_grad_()
    assert torch.autograd.gradcheck(
        lambda values: encoder(values, MASK, gates=True).gates, (vectors,)
    )
