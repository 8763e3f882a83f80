"""Rows written once and read many times: values and gradients are those of plain indexing."""

from __future__ import annotations

import torch
from torch import Tensor

from genpool.tensors.row_memory import new_memory, read_rows, write_rows


def with_memory(first: Tensor, second: Tensor) -> Tensor:
    memory = write_rows(new_memory(6, first), first, 1)
    memory, early = read_rows(memory, torch.tensor([2, 1, 2, 0]))
    memory = write_rows(memory, second * early[:2], 4)
    memory, late = read_rows(memory, torch.tensor([5, 4, 1, 5, 2]))
    return torch.cat([early.square(), late.sin()])


def with_lists(first: Tensor, second: Tensor) -> Tensor:
    rows = [torch.zeros_like(first[0]), *first.unbind()]
    early = torch.stack([rows[2], rows[1], rows[2], rows[0]])
    rows += (second * early[:2]).unbind()
    late = torch.stack([rows[5], rows[4], rows[1], rows[5], rows[2]])
    return torch.cat([early.square(), late.sin()])


def inputs() -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(0)
    first = torch.randn(3, 2, generator=random, dtype=torch.float64)
    second = torch.randn(2, 2, generator=random, dtype=torch.float64)
    return first.requires_grad_(), second.requires_grad_()


def test_values_and_gradients_are_those_of_plain_indexing() -> None:
    gradients = []
    for function in (with_memory, with_lists):
        first, second = inputs()
        result = function(first, second)
        gradients.append((result.detach(), *torch.autograd.grad(result.sum(), (first, second))))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=0, atol=1e-14)


def test_gradients_agree_with_finite_differences() -> None:
    assert torch.autograd.gradcheck(with_memory, inputs())


def test_a_second_backward_pass_starts_from_zero() -> None:
    first, second = inputs()
    total = with_memory(first, second).sum()
    once = torch.autograd.grad(total, (first, second), retain_graph=True)
    again = torch.autograd.grad(total, (first, second))
    torch.testing.assert_close(once, again, rtol=0, atol=0)


def test_rows_that_need_no_gradient_can_be_written_between() -> None:
    first, second = inputs()
    result = with_memory(first.detach(), second)
    (gradient,) = torch.autograd.grad(result.sum(), second)
    expected = torch.autograd.grad(with_lists(first.detach(), second).sum(), second)[0]
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-14)


def test_without_gradients_it_is_a_plain_tensor() -> None:
    first, second = inputs()
    with torch.no_grad():
        result = with_memory(first, second)
    assert not result.requires_grad
    torch.testing.assert_close(result, with_lists(first, second).detach(), rtol=0, atol=0)
