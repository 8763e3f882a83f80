"""Dropout, fast or as PyTorch's, rescaled where it is asked to; the switch of the fast paths."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from scipy import stats
from torch import nn

from genpool.errors import InputError
from genpool.tensors.modules import (
    Dropout,
    DropoutScaling,
    dropout_disabled,
    dropout_factors,
    fast,
    fast_paths,
    run_both,
)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("lane", range(4))
def test_every_element_is_dropped_with_its_share(share: float, lane: int) -> None:
    torch.manual_seed(0)
    factors = dropout_factors(torch.empty(40_000), share)[lane::4]
    dropped = int((factors == 0).sum())
    assert stats.binomtest(dropped, len(factors), share).pvalue > 1e-4
    kept = factors[factors != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-3)


def test_neighbours_are_independent() -> None:
    torch.manual_seed(0)
    kept = (dropout_factors(torch.empty(40_000), 0.5) != 0).float()
    for distance in (1, 2, 3, 4, 5):
        first, second = kept[:-distance], kept[distance:]
        assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.02


def test_the_same_seed_drops_the_same_and_gradients_follow() -> None:
    layer = Dropout(0.5)
    values = torch.randn(7, 3, requires_grad=True)
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(layer(values))
    assert torch.equal(results[0], results[1])
    (gradient,) = torch.autograd.grad(results[0].sum(), values)
    assert torch.equal(gradient, (results[0] / values).detach().round())


def test_nothing_is_dropped_outside_of_training_or_with_share_zero() -> None:
    values = torch.randn(5, 2)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert not Dropout(1.0)(values).any()
    assert Dropout(0.5)(torch.zeros(0, 4)).shape == (0, 4)


def test_the_plain_path_is_pytorchs() -> None:
    values = torch.randn(50, 4)
    torch.manual_seed(0)
    expected = nn.functional.dropout(values, 0.3)
    torch.manual_seed(0)
    with fast_paths(False):
        assert torch.equal(Dropout(0.3)(values), expected)


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_without_rescaling_in_training_kept_values_stay_as_they_are(
    enabled: bool, share: float
) -> None:
    torch.manual_seed(0)
    values = torch.rand(20_000).add(1).requires_grad_()
    with fast_paths(enabled):
        dropped = Dropout(share, scaling="test")(values)
    zeros = dropped == 0
    assert torch.equal(dropped[~zeros], values[~zeros])
    (gradient,) = torch.autograd.grad(dropped.sum(), values)
    assert torch.equal(gradient, (~zeros).float())
    assert stats.binomtest(int(zeros.sum()), len(values), share).pvalue > 1e-4


def test_without_rescaling_in_training_values_are_scaled_at_inference() -> None:
    # p = 0.25 keeps three quarters: 8, -4 and 1 become 6, -3 and 0.75.
    values = torch.tensor([8.0, -4.0, 1.0])
    layer = Dropout(0.25, scaling="test").eval()
    assert layer(values).tolist() == layer.at_inference(values).tolist() == [6.0, -3.0, 0.75]


def test_an_unknown_scaling_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown dropout scaling 'inverse'.*'inverted'.*test"):
        Dropout(0.5, scaling="inverse")  # type: ignore[arg-type]


@pytest.mark.parametrize(("scaling", "factor"), [("inverted", 1.0), ("test", 0.5)])
def test_a_layer_in_training_mode_can_be_switched_off(
    scaling: DropoutScaling, factor: float
) -> None:
    layer, values = Dropout(0.5, scaling), torch.rand(1000) + 1
    with dropout_disabled():
        with pytest.raises(KeyError), dropout_disabled():
            raise KeyError
        assert torch.equal(layer(values), factor * values)
        assert layer.training
    assert (layer(values) == 0).any()


def test_the_switch_is_undone_after_an_error():
    assert fast()
    with pytest.raises(ZeroDivisionError), fast_paths(False):
        assert not fast()
        raise ZeroDivisionError
    assert fast()


def test_the_environment_turns_fast_paths_off():
    command = "from genpool.tensors.modules import fast; print(fast())"
    printed = subprocess.run(
        [sys.executable, "-c", command],
        env={**os.environ, "GENPOOL_FAST": "0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == "False"


def test_two_pieces_of_work_leave_the_threads_as_they_were():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        both = run_both(lambda side: (side, torch.is_grad_enabled()), torch.device("cpu"))
        assert both == ((0, False), (1, False))
        with pytest.raises(ZeroDivisionError):
            run_both(lambda side: 1 // (1 - side), torch.device("cpu"))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
