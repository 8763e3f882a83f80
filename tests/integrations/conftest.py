"""What every test of an integration must leave behind as it was."""

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def gradients_stay_on() -> Iterator[None]:
    yield
    assert torch.is_grad_enabled()
