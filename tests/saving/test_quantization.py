"""8-bit weights on disk: a quarter of the size, close to what they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from genpool import SentenceEncoder
from genpool.errors import FolderError
from genpool.saving.weights_file import dequantize_weights, quantize_weights
from tests.helpers.random_encoders import SENTENCES, model


def test_a_hand_worked_matrix() -> None:
    weights = {"w": torch.tensor([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0]]), "b": torch.tensor([3.5])}
    quantized = quantize_weights(weights)
    assert quantized["w"].dtype is torch.int8
    assert quantized["w"].tolist() == [[64, -127, 0], [0, 0, 0]]  # 1 / (2 / 127) = 63.5, to even
    assert quantized["w.scale"].tolist() == pytest.approx([2 / 127, 0.0])
    assert torch.equal(quantized["b"], weights["b"])
    back = dequantize_weights(quantized)
    assert set(back) == {"w", "b"}
    assert back["w"][0].tolist() == pytest.approx([128 / 127, -2.0, 0.0])


def test_every_value_is_within_half_a_step_of_its_row() -> None:
    torch.manual_seed(0)
    weights = {"w": torch.randn(3, 5, 7) * torch.tensor([1e-3, 1.0, 1e3])[:, None, None]}
    back = dequantize_weights(quantize_weights(weights))["w"]
    step = weights["w"].abs().amax(dim=-1, keepdim=True) / 127
    assert ((back - weights["w"]).abs() <= 0.5001 * step).all()


def test_a_model_is_smaller_and_nearly_the_same(tmp_path: Path) -> None:
    plain = model("bilstm")
    plain.save_pretrained(tmp_path / "full")
    plain.save_pretrained(tmp_path / "small", int8=True)
    first = SentenceEncoder.from_pretrained(tmp_path / "full").encode(SENTENCES)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "small")
    assert loaded.dtype is torch.float32
    assert np.abs(loaded.encode(SENTENCES) - first).max() < 0.05 * np.abs(first).max()
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    assert config["precision"] == "int8"
    assert json.loads((tmp_path / "full" / "config.json").read_text())["precision"] == "float"


def damaged(tmp_path: Path, change: str) -> Path:
    folder = tmp_path / "small"
    model("bilstm").save_pretrained(folder, int8=True)
    weights = load_file(folder / "model.safetensors")
    if change == "no scale":
        del weights["embedding.words.scale"]
    elif change == "wrong scale":
        weights["embedding.words.scale"] = weights["embedding.words.scale"][:-1].clone()
    elif change == "floats":
        weights["embedding.words"] = weights["embedding.words"].float()
    elif change == "integer bias":
        weights["pooling.b1.scale"] = torch.zeros(1)
    save_file(weights, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("change", ["no scale", "wrong scale", "floats", "integer bias"])
def test_a_damaged_folder_is_refused(tmp_path: Path, change: str) -> None:
    with pytest.raises(FolderError, match=r"embedding\.words|pooling\.b1"):
        SentenceEncoder.from_pretrained(damaged(tmp_path, change))


def test_another_precision_than_that_of_the_weights_is_refused(tmp_path: Path) -> None:
    folder = damaged(tmp_path, "nothing")
    config = json.loads((folder / "config.json").read_text())
    for precision, problem in (("float", "does not agree"), ("int16", "precision is 'int16'")):
        (folder / "config.json").write_text(json.dumps({**config, "precision": precision}))
        with pytest.raises(FolderError, match=problem):
            SentenceEncoder.from_pretrained(folder)


def test_word_tables_in_4_bits_take_half_of_8(tmp_path: Path) -> None:
    plain = model("bilstm")
    plain.save_pretrained(tmp_path / "full")
    plain.save_pretrained(tmp_path / "small", int4_tables=True)
    first = SentenceEncoder.from_pretrained(tmp_path / "full").encode(SENTENCES)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "small")
    assert loaded.dtype is torch.float32
    assert np.abs(loaded.encode(SENTENCES) - first).max() < 0.3 * np.abs(first).max()
    config = json.loads((tmp_path / "small" / "config.json").read_text())
    assert config["precision"] == "int4-tables"
    stored = load_file(tmp_path / "small" / "model.safetensors")
    words, dim = plain.embedding.words.shape
    assert stored["embedding.words"].dtype is torch.uint8
    assert stored["embedding.words"].shape == (words, (dim + 1) // 2)
    assert stored["embedding.words.scale"].dtype is torch.float16
    assert stored["pooling.w1"].dtype is torch.int8
    assert np.abs(loaded.encode(SENTENCES)).max() > 0


@pytest.mark.parametrize("change", ["8 bits", "wider", "floats"])
def test_a_damaged_folder_of_4_bits_is_refused(tmp_path: Path, change: str) -> None:
    folder = tmp_path / "small"
    model("bilstm").save_pretrained(folder, int4_tables=True)
    weights = load_file(folder / "model.safetensors")
    table = weights["embedding.words"]
    changed = {
        "8 bits": table.to(torch.int8),
        "wider": torch.cat([table, table], dim=1),
        "floats": table.float(),
    }
    weights["embedding.words"] = changed[change]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(FolderError, match=r"embedding\.words"):
        SentenceEncoder.from_pretrained(folder)
