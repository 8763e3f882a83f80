"""The top-layer classifier."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.classifier import MLP
from genpool.errors import InputError

from . import reference


def made(dropout: float = 0.5) -> MLP:
    torch.manual_seed(0)
    return MLP(input_dim=4, hidden_dim=3, classes=5, dropout=dropout).double()


def features() -> Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randn(6, 4, generator=random, dtype=torch.float64)


def layers(mlp: MLP) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (each.weight.detach().numpy(), each.bias.detach().numpy())
        for each in (mlp.first, mlp.second, mlp.output)
    ]


def test_logits_are_those_of_the_equations() -> None:
    mlp, given = made().eval(), features()
    expected = [reference.mlp(row, layers(mlp)) for row in given.numpy()]
    np.testing.assert_allclose(mlp(given).detach().numpy(), expected, rtol=0, atol=1e-12)


class Kept(nn.Module):
    """Stands for dropout: multiplies by chosen numbers, one after the other."""

    def __init__(self, *factors: Tensor) -> None:
        super().__init__()
        self.factors = list(factors)

    def forward(self, given: Tensor) -> Tensor:
        return given * self.factors.pop(0)


def test_dropout_falls_on_both_hidden_layers_and_nowhere_else() -> None:
    mlp, given = made(), features()
    random = torch.Generator().manual_seed(2)
    factors = [torch.rand(3, generator=random, dtype=torch.float64) for _ in range(2)]
    mlp.dropout = Kept(*factors)
    logits = mlp(given).detach().numpy()
    kept = [each.numpy() for each in factors]
    expected = [reference.mlp(row, layers(mlp), kept) for row in given.numpy()]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)
    assert mlp.dropout.factors == []


def test_dropout_works_while_training_only() -> None:
    mlp, given = made(dropout=0.5), features()
    assert torch.equal(mlp.eval()(given), mlp.eval()(given))
    assert not torch.equal(mlp.train()(given), mlp.eval()(given))
    without = made(dropout=0.0)
    assert torch.equal(without.train()(given), mlp.eval()(given))


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_dropout_drops_the_share_that_is_asked_for(share: float) -> None:
    mlp = MLP(1, 10, 2, dropout=share).train()
    seen = []
    mlp.output.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    nn.init.zeros_(mlp.second.weight)
    nn.init.ones_(mlp.second.bias)
    torch.manual_seed(0)
    mlp(torch.zeros(1000, 1))
    assert seen[0].unique().tolist() == pytest.approx([0, 1 / (1 - share)])
    assert (seen[0] == 0).float().mean().item() == pytest.approx(share, abs=0.03)


def test_the_output_layer_sees_the_second_hidden_layer_alone() -> None:
    mlp, given = made().eval(), features()
    nn.init.zeros_(mlp.second.weight)
    nn.init.zeros_(mlp.second.bias)
    assert torch.equal(mlp(given), mlp.output.bias.expand(6, 5))


def test_gradients_are_those_of_finite_differences() -> None:
    mlp, given = made().eval(), features().requires_grad_()
    names = [name for name, _ in mlp.named_parameters()]
    values = [each.detach().clone().requires_grad_() for each in mlp.parameters()]

    def logits(rows: Tensor, *parameters: Tensor) -> Tensor:
        weights = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(mlp, weights, (rows,))

    assert torch.autograd.gradcheck(logits, (given, *values))


@pytest.mark.parametrize(("inputs", "hidden", "classes"), [(4, 3, 5), (7, 1, 2), (1, 6, 1)])
def test_parameters_counted_by_hand(inputs: int, hidden: int, classes: int) -> None:
    first = inputs * hidden + hidden
    second = (inputs + hidden) * hidden + hidden
    output = hidden * classes + classes
    found = sum(each.numel() for each in MLP(inputs, hidden, classes).parameters())
    assert found == first + second + output


def test_defaults_are_the_papers() -> None:
    mlp = MLP(10)
    assert mlp.first.out_features == mlp.second.out_features == 300
    assert mlp.output.out_features == 3 and mlp.dropout.p == 0.5


def test_logits_of_an_example_do_not_depend_on_the_others() -> None:
    mlp, given = made().eval(), features()
    torch.testing.assert_close(mlp(given)[2:3], mlp(given[2:3]), rtol=0, atol=1e-12)
    assert mlp(given[:0]).shape == (0, 5)


def test_state_dict_round_trips_bit_for_bit() -> None:
    first, second = made().eval(), MLP(4, 3, 5).double().eval()
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(features()), second(features()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_other_number_types_run(dtype: torch.dtype) -> None:
    mlp = made().eval()
    expected = mlp(features()).float()
    logits = mlp.to(dtype)(features().to(dtype))
    assert logits.dtype is dtype
    torch.testing.assert_close(logits.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("sizes", "given"),
    [
        ((0, 3, 2), "input_dim=0"),
        ((4, 0, 2), "hidden_dim=0"),
        ((4, 3, -1), "classes=-1"),
    ],
)
def test_sizes_below_one_are_refused(sizes: tuple[int, int, int], given: str) -> None:
    with pytest.raises(InputError, match=rf"{given}.*must be 1 or more"):
        MLP(*sizes)
