"""model.safetensors: truncated, not finite, read or mapped; in 8 bits, with tables in 4 bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from genpool import PairClassifier, SentenceEncoder
from genpool.disk.folder_format import read_json
from genpool.errors import FolderError
from genpool.model import load_model
from genpool.pooling import GeneralizedPooling
from genpool.saving.weights_file import (
    WeightsFile,
    dequantize_weights,
    first_not_finite,
    quantize_weights,
)
from tests.helpers.random_encoders import SENTENCES, model
from tests.helpers.saved_folders import change_json, content_of, refusal, remove_checksums

BIAS = "encoder.pooling.b2"


def change_weight(folder: Path, name: str, value: float) -> None:
    """Sets one value of a tensor, in a folder that carries no checksums."""
    weights = load_file(folder / "model.safetensors")
    weights[name].view(-1)[-1] = value
    save_file(weights, folder / "model.safetensors")
    remove_checksums(folder)


def test_weights_that_are_truncated_anywhere_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    lengths = [0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(content) - 1]
    for length in lengths:
        path.write_bytes(content[:length])
        assert f"{path} is not a complete safetensors file" in refusal(folder)
    path.write_bytes(content + b"\0")
    assert f"{path} is not a complete safetensors file" in refusal(folder)


@pytest.mark.parametrize(
    ("name", "value"), [(BIAS, float("nan")), ("encoder.embedding.words", -float("inf"))]
)
def test_weights_that_are_not_finite_are_refused_by_name(
    folder: Path, name: str, value: float
) -> None:
    change_weight(folder, name, value)
    message = refusal(folder)
    assert str(folder / "model.safetensors") in message
    assert f"its tensor {name} contains NaN or infinity" in message
    with pytest.raises(FolderError, match=f"its tensor {name} contains NaN"):
        PairClassifier.from_pretrained(folder, mmap=True)


def test_finite_weights_whose_sum_overflows_are_not_refused(folder: Path) -> None:
    largest = torch.finfo(torch.float32).max
    assert first_not_finite({"w": torch.full((2, 2), largest)}) is None
    assert first_not_finite({"a": torch.ones(2), "w": torch.tensor([1.0, float("nan")])}) == "w"
    assert first_not_finite({"w": torch.tensor([float("inf"), -float("inf")])}) == "w"
    assert first_not_finite({"w": torch.zeros(0), "n": torch.tensor([3])}) is None


@pytest.mark.parametrize(("value", "int8"), [(float("nan"), False), (float("inf"), True)])
def test_a_model_that_is_not_finite_is_not_saved(folder: Path, value: float, int8: bool) -> None:
    model = PairClassifier.from_pretrained(folder)
    pooling = model.encoder.pooling
    assert isinstance(pooling, GeneralizedPooling)
    before = content_of(folder)
    with torch.no_grad():
        pooling.b2[0, 0] = value
    for target in (folder, folder.parent / "new"):
        with pytest.raises(FolderError, match=f"was not saved, because its tensor {BIAS}"):
            model.save_pretrained(target, int8=int8)
    assert content_of(folder) == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_mapped_weights_are_equal_and_in_the_file_and_others_are_not(folder: Path) -> None:
    loaded = [PairClassifier.from_pretrained(folder, mmap=mmap) for mmap in (True, False)]
    for mapped, read in zip(*(one.parameters() for one in loaded), strict=True):
        assert torch.equal(mapped, read)
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not list what is mapped")
    ranges = [
        [int(bound, 16) for bound in line.split()[0].split("-")]
        for line in maps.read_text().splitlines()
        if line.endswith(str(folder / "model.safetensors"))
    ]

    def in_file(tensor: torch.Tensor) -> bool:
        return any(first <= tensor.data_ptr() < last for first, last in ranges)

    assert in_file(mapped) and not in_file(read)


def test_weights_are_aligned_as_torch_aligns_its_own(folder: Path) -> None:
    weights, _ = WeightsFile.open(folder / "model.safetensors").read()
    assert len(weights) > 10
    assert all(weight.data_ptr() % 64 == 0 for weight in weights.values())


def test_a_file_that_is_exchanged_between_header_and_content_is_recognised(folder: Path) -> None:
    file = WeightsFile.open(folder / "model.safetensors")
    save_file({"other": torch.zeros(3)}, folder / "model.safetensors")
    with pytest.raises(FolderError, match="was changed while it was read"):
        file.read()


def test_an_empty_tensor_of_absurd_shape_lifts_no_bound(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    largest = max(side for weight in weights.values() for side in weight.shape)
    save_file({**weights, "huge": torch.zeros(0, 10**15)}, folder / "model.safetensors")
    file = WeightsFile.open(folder / "model.safetensors")
    assert file.shapes["huge"] == (0, 10**15)
    assert file.largest_side == largest
    with pytest.raises(FolderError, match="huge is not part of it"):
        load_model(folder)


@pytest.mark.parametrize(
    ("mmap", "int8"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_values_next_to_zero_become_zero(
    sentence_encoder: SentenceEncoder, tmp_path: Path, mmap: bool, int8: bool
) -> None:
    with torch.no_grad():
        sentence_encoder.embedding.words[5] = 1e-40
        sentence_encoder.embedding.words[5, 0] = -1e-41
        sentence_encoder.embedding.words[6, 1] = 2e-38  # small, but as fast as any other
    sentence_encoder.save_pretrained(tmp_path / "model", int8=int8)
    content = (tmp_path / "model" / "model.safetensors").read_bytes()
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model", mmap=mmap)
    words = loaded.embedding.words.detach()
    assert words[5].tolist() == [0, 0, 0, 0]
    if not int8:
        assert torch.equal(words[:5], sentence_encoder.embedding.words[:5])
        assert torch.equal(words[6:], sentence_encoder.embedding.words[6:])
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == content


def test_a_hand_worked_matrix() -> None:
    weights = {"w": torch.tensor([[1.0, -2.0, 0.0], [0.0, 0.0, 0.0]]), "b": torch.tensor([3.5])}
    quantized = quantize_weights(weights)
    assert quantized["w"].dtype is torch.int8
    assert quantized["w"].tolist() == [[64, -127, 0], [0, 0, 0]]  # 1 / (2 / 127) = 63.5, to even
    assert quantized["w.scale"].tolist() == pytest.approx([2 / 127, 0.0])
    assert torch.equal(quantized["b"], weights["b"])
    back = dequantize_weights(quantized, weights)
    assert set(back) == {"w", "b"}
    assert back["w"][0].tolist() == pytest.approx([128 / 127, -2.0, 0.0])


def test_every_value_is_within_half_a_step_of_its_row() -> None:
    torch.manual_seed(0)
    weights = {"w": torch.randn(3, 5, 7) * torch.tensor([1e-3, 1.0, 1e3])[:, None, None]}
    back = dequantize_weights(quantize_weights(weights), weights)["w"]
    step = weights["w"].abs().amax(dim=-1, keepdim=True) / 127
    assert ((back - weights["w"]).abs() <= 0.5001 * step).all()


@pytest.mark.parametrize(
    ("options", "precision", "tolerance"),
    [({"int8": True}, "int8", 0.05), ({"int4_tables": True}, "int4-tables", 0.3)],
)
def test_a_model_in_fewer_bits_is_smaller_and_nearly_the_same(
    tmp_path: Path, options: dict[str, bool], precision: str, tolerance: float
) -> None:
    plain = model("bilstm")
    plain.save_pretrained(tmp_path / "full")
    plain.save_pretrained(tmp_path / "small", **options)
    assert read_json(tmp_path / "full" / "config.json")["precision"] == "float"
    assert read_json(tmp_path / "small" / "config.json")["precision"] == precision
    first = SentenceEncoder.from_pretrained(tmp_path / "full").encode(SENTENCES)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "small")
    assert loaded.dtype is torch.float32
    vectors = loaded.encode(SENTENCES)
    assert np.abs(vectors - first).max() < tolerance * np.abs(first).max()
    assert np.abs(vectors).max() > 0
    stored = load_file(tmp_path / "small" / "model.safetensors")
    assert stored["pooling.w1"].dtype is torch.int8
    if precision == "int4-tables":
        words, dim = plain.embedding.words.shape
        assert stored["embedding.words"].dtype is torch.uint8
        assert stored["embedding.words"].shape == (words, (dim + 1) // 2)
        assert stored["embedding.words.scale"].dtype is torch.float16


WORDS = "embedding.words"
DAMAGES: dict[str, tuple[str, str, Callable[[Any], torch.Tensor | None]]] = {
    "another scale": ("int8", "pooling.b1.scale", lambda scales: torch.zeros(1)),
    "no scale": ("int8", f"{WORDS}.scale", lambda scales: None),
    "wrong scale": ("int8", f"{WORDS}.scale", lambda scales: scales[:-1].clone()),
    "floats": ("int8", WORDS, lambda table: table.float()),
    "8 bits": ("int4_tables", WORDS, lambda table: table.to(torch.int8)),
    "wider": ("int4_tables", WORDS, lambda table: torch.cat([table, table], dim=1)),
    "floats in place of 4 bits": ("int4_tables", WORDS, lambda table: table.float()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_folder_of_few_bits_is_refused(tmp_path: Path, damage: str) -> None:
    option, name, change = DAMAGES[damage]
    model("bilstm").save_pretrained(tmp_path / "small", **{option: True})
    weights = load_file(tmp_path / "small" / "model.safetensors")
    changed = {**weights, name: change(weights.get(name))}
    given = {key: weight for key, weight in changed.items() if weight is not None}
    save_file(given, tmp_path / "small" / "model.safetensors")
    with pytest.raises(FolderError, match=r"embedding\.words|pooling\.b1\.scale"):
        SentenceEncoder.from_pretrained(tmp_path / "small")


def test_scales_and_a_precision_that_do_not_fit_the_weights_are_refused(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "small"
    model("bilstm").save_pretrained(folder, int8=True)
    for precision, problem in (("float", "does not agree"), ("int16", "precision is 'int16'")):
        change_json(folder / "config.json", "precision", precision)
        with pytest.raises(FolderError, match=problem):
            SentenceEncoder.from_pretrained(folder)
    change_json(folder / "config.json", "precision", "int8")
    change_weight(folder, "embedding.words.scale", float("nan"))
    with pytest.raises(FolderError, match=r"its tensor embedding\.words\.scale contains NaN"):
        SentenceEncoder.from_pretrained(folder)
