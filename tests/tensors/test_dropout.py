"""The faster dropout is dropout."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from genpool.tensors.dropout import Dropout, kept_scale
from genpool.tensors.fast import fast_paths


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("lane", range(4))
def test_every_element_is_dropped_with_its_share(share: float, lane: int) -> None:
    torch.manual_seed(0)
    scale = kept_scale(torch.empty(40_000), share)[lane::4]
    dropped = int((scale == 0).sum())
    assert stats.binomtest(dropped, len(scale), share).pvalue > 1e-4
    kept = scale[scale != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-3)


def test_neighbours_are_independent() -> None:
    torch.manual_seed(0)
    kept = (kept_scale(torch.empty(40_000), 0.5) != 0).float()
    for distance in (1, 2, 3, 4, 5):
        first, second = kept[:-distance], kept[distance:]
        assert abs(float(torch.corrcoef(torch.stack([first, second]))[0, 1])) < 0.02


def test_the_same_seed_drops_the_same_and_gradients_follow() -> None:
    layer = Dropout(0.5)
    values = torch.randn(7, 3, requires_grad=True)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(layer(values))
    assert torch.equal(found[0], found[1])
    found[0].sum().backward()
    assert torch.equal(values.grad, (found[0] / values).detach().round())


def test_nothing_is_dropped_outside_of_training_or_with_share_zero() -> None:
    values = torch.randn(5, 2)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert not Dropout(1.0)(values).any()
    assert Dropout(0.5)(torch.zeros(0, 4)).shape == (0, 4)


def test_the_plain_path_is_pytorchs() -> None:
    values = torch.randn(50, 4)
    torch.manual_seed(0)
    expected = torch.nn.functional.dropout(values, 0.3)
    torch.manual_seed(0)
    with fast_paths(False):
        assert torch.equal(Dropout(0.3)(values), expected)
