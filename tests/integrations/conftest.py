"""What every test of an integration must leave behind as it was, and a saved encoder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from genpool import SentenceEncoder


@pytest.fixture(autouse=True)
def gradients_stay_on() -> Iterator[None]:
    yield
    assert torch.is_grad_enabled()


@pytest.fixture
def folder(sentence_encoder: SentenceEncoder, tmp_path: Path) -> str:
    """The folder of `sentence_encoder`."""
    sentence_encoder.save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder")
