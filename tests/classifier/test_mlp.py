"""The features of a pair, and the top-layer classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.classifier import MLP, pair_features
from genpool.config import ClassifierSettings
from genpool.errors import InputError
from genpool.tensors.modules import DropoutScaling


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """bias_i + sum_j weight_ij x_j"""
    result = []
    for row, start in zip(weight, bias, strict=True):
        total = float(start)
        for value, factor in zip(x, row, strict=True):
            total += float(value) * float(factor)
        result.append(total)
    return np.array(result)


def mlp_loops(
    x: np.ndarray,
    layers: Sequence[tuple[np.ndarray, np.ndarray]],
    kept: Sequence[np.ndarray],
) -> np.ndarray:
    """Logits of one example, with the factors of dropout for both hidden layers."""
    (w1, b1), (w2, b2), (w3, b3) = layers
    h1 = np.maximum(linear(x, w1, b1), 0) * kept[0]
    h2 = np.maximum(linear(np.append(x, h1), w2, b2), 0) * kept[1]
    return linear(h2, w3, b3)


def pair_loops(a: Sequence[float], b: Sequence[float]) -> list[float]:
    """[a ; b ; |a - b| ; a * b]"""
    pairs = list(zip(a, b, strict=True))
    return [*a, *b, *(abs(x - y) for x, y in pairs), *(x * y for x, y in pairs)]


def made(dropout: float = 0.5, dropout_scaling: DropoutScaling = "inverted") -> MLP:
    torch.manual_seed(0)
    return MLP(4, 3, classes=5, dropout=dropout, dropout_scaling=dropout_scaling).double()


def features() -> Tensor:
    random = torch.Generator().manual_seed(1)
    return torch.randn(6, 4, generator=random, dtype=torch.float64)


def layers(mlp: MLP) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy())
        for layer in (mlp.first, mlp.second, mlp.output)
    ]


@pytest.mark.parametrize(("scaling", "factor"), [("inverted", 1.0), ("test", 0.75)])
def test_logits_are_those_of_the_equations(scaling: DropoutScaling, factor: float) -> None:
    mlp, inputs = made(dropout=0.25, dropout_scaling=scaling).eval(), features()
    expected = [mlp_loops(row, layers(mlp), [np.full(3, factor)] * 2) for row in inputs.numpy()]
    np.testing.assert_allclose(mlp(inputs).detach().numpy(), expected, rtol=0, atol=1e-12)


class Kept(nn.Module):
    """Replaces dropout: multiplies by fixed factors, one after the other."""

    def __init__(self, *factors: Tensor) -> None:
        super().__init__()
        self.factors = list(factors)

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.factors.pop(0)


def test_dropout_is_applied_to_both_hidden_layers_and_nowhere_else() -> None:
    mlp, inputs = made(), features()
    random = torch.Generator().manual_seed(2)
    factors = [torch.rand(3, generator=random, dtype=torch.float64) for _ in range(2)]
    kept_layers = Kept(*factors)
    mlp._modules["dropout"] = kept_layers
    logits = mlp(inputs).detach().numpy()
    kept = [factor.numpy() for factor in factors]
    expected = [mlp_loops(row, layers(mlp), kept) for row in inputs.numpy()]
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-12)
    assert kept_layers.factors == []


def test_gradients_are_those_of_finite_differences() -> None:
    mlp, inputs = made().eval(), features().requires_grad_()
    names = [name for name, _ in mlp.named_parameters()]
    values = [weights.detach().clone().requires_grad_() for weights in mlp.parameters()]

    def logits(rows: Tensor, *parameters: Tensor) -> Tensor:
        weights = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(mlp, weights, (rows,))

    assert torch.autograd.gradcheck(logits, (inputs, *values))


def test_gaussian_initial_weights_have_deviation_one_hundredth_and_zero_biases() -> None:
    torch.manual_seed(0)
    mlp = MLP(200, 100, 50, initialization="gaussian")
    for layer in (mlp.first, mlp.second, mlp.output):
        values = layer.weight.detach().double()
        assert abs(values.std().item() - 0.01) < 5 * 0.01 / math.sqrt(2 * values.numel())
        assert abs(values.mean().item()) < 5 * 0.01 / math.sqrt(values.numel())
        assert (values.abs() < 0.01).double().mean().item() == pytest.approx(0.6827, abs=0.03)
        assert not layer.bias.any()


def test_default_initial_weights_are_those_of_pytorchs_linear_layers() -> None:
    torch.manual_seed(0)
    mlp = MLP(4, 3, 5)
    assert vars(ClassifierSettings()).items() <= MLP(4).options.items()  # also by default
    assert MLP(4).output.out_features == 3
    torch.manual_seed(0)
    for layer, sizes in ((mlp.first, (4, 3)), (mlp.second, (7, 3)), (mlp.output, (3, 5))):
        expected = nn.Linear(*sizes)
        assert torch.equal(layer.weight, expected.weight)
        assert torch.equal(layer.bias, expected.bias)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"input_dim": 0}, "input_dim is 0; expected .* 1 or more"),
        ({"classes": -1}, "classes is -1; expected .* 1 or more"),
        ({"initialization": "uniform"}, r"unknown initialization 'uniform'.*gaussian, torch"),
    ],
)
def test_options_that_are_not_possible_are_refused(options: dict, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        MLP(**{"input_dim": 4, **options})


def test_a_hand_worked_pair() -> None:
    features = pair_features(torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 5.0]]))
    assert features.tolist() == [[1, -2, 3, 5, 2, 7, 3, -10]]


def test_features_are_those_of_the_equation() -> None:
    random = torch.Generator().manual_seed(0)
    first, second = torch.randn(2, 7, 3, generator=random, dtype=torch.float64)
    expected = [pair_loops(a, b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    assert pair_features(first, second).tolist() == expected
    sides = first.requires_grad_(), second.requires_grad_()
    assert torch.autograd.gradcheck(pair_features, sides)


def test_sides_that_could_be_broadcast_are_refused() -> None:
    with pytest.raises(InputError, match=r"\(2, 3\) and \(1, 3\)"):
        pair_features(torch.zeros(2, 3), torch.zeros(1, 3))
