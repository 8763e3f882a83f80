"""Modules of other libraries are exported in eval mode, and keep the mode that they had."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from genpool.integrations.onnx.graph import eval_mode


def nested() -> nn.Sequential:
    return nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(2, 2)))


@pytest.mark.parametrize("training", [True, False])
def test_eval_mode_has_no_dropout_and_no_gradients(training: bool) -> None:
    model = nested().train(training)
    with eval_mode(model):
        assert not any(part.training for part in model.modules())
        assert not model(torch.ones(1, 2)).requires_grad
    assert all(part.training is training for part in model.modules())
    assert torch.is_grad_enabled()


def test_parts_in_different_modes_get_their_own_back() -> None:
    model = nested()
    model[1].eval()
    with eval_mode(model):
        pass
    assert [part.training for part in model.modules()] == [True, True, False, False, False]


def test_the_mode_comes_back_after_an_error() -> None:
    model = nested()
    with pytest.raises(KeyboardInterrupt), eval_mode(model):
        raise KeyboardInterrupt
    assert all(part.training for part in model.modules()) and torch.is_grad_enabled()
