"""Pickles are never opened, wherever they are."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch

from tests.helpers.saved_folders import refusal


class Evil:
    """A pickle of this runs code when it is opened."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return (os.mkdir, (str(self.witness),))


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_a_pickle_in_place_of_safetensors_is_named_and_not_opened(folder, tmp_path, protocol):
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil(tmp_path / "run"), protocol))
    message = refusal(folder)
    assert f"{folder / 'model.safetensors'} contains a pickle, which could run code" in message
    assert "it was not opened" in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("zipped", [True, False])
def test_what_torch_save_writes_is_named_as_a_pickle(folder: Path, tmp_path, zipped: bool) -> None:
    content = {"weights": torch.zeros(2), "evil": Evil(tmp_path / "run")}
    torch.save(content, folder / "model.safetensors", _use_new_zipfile_serialization=zipped)
    assert "contains a pickle" in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("protocol", [0, 1])
def test_an_old_pickle_is_refused_too(folder: Path, tmp_path: Path, protocol: int) -> None:
    (folder / "model.safetensors").write_bytes(pickle.dumps(Evil(tmp_path / "run"), protocol))
    assert "is not a complete safetensors file" in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "model.pth"])
def test_a_pickle_beside_missing_weights_is_named_and_not_opened(folder, tmp_path, name):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Evil(tmp_path / "run")))
    message = refusal(folder)
    assert "incomplete: model.safetensors missing." in message
    assert f"{name} is a pickle, which genpool never opens." in message
    assert not (tmp_path / "run").exists()
