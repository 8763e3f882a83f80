"""Weights that do not agree with the settings are refused before memory is taken for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

from genpool import PairClassifier
from genpool.encoder.bilstm import BiLSTMLayer
from genpool.errors import FolderError
from tests.helpers.saved_folders import change_json, refusal


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("settings.pooling.heads", 3, "pooling.w1 is (2, 4, 6), the settings say (3, 4, 6)"),
        ("settings.pooling", {"name": "mean"}, "pooling.w1 is not part of it"),
        ("settings.encoder.layers", 3, "encoder.layers.2.forwards.w is missing"),
        ("settings.encoder.layers", 1, "encoder.layers.1.backwards.b is not part of it"),
        ("settings.embedding.word_dim", 5, "words is (16, 4), the settings say (16, 5)"),
        ("settings.embedding.characters", False, "spelling.letters is not part of it"),
        ("settings.classifier.hidden_dim", 6, "mlp.first.bias is (5,), the settings say (6,)"),
        ("labels", ["a", "b"], "mlp.output.bias is (3,), the settings say (2,)"),
        ("characters", "abc", "spelling.letters is (21, 3), the settings say (7, 3)"),
    ],
)
def test_sizes_that_do_not_agree_are_refused_with_both(folder, keys, value, expected) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert f"{folder / 'model.safetensors'} does not agree with config.json" in message
    assert expected in message


def test_differences_are_counted_and_not_all_listed(folder: Path) -> None:
    change_json(folder / "config.json", "settings.encoder.hidden_dim", 4)
    message = refusal(folder)
    # 2 layers x 2 directions x (w, u, b), then w1, w2 and b2 of the pooling, and two of the MLP.
    assert "(17 differences)" in message and message.count("the settings say") == 5
    assert "Were files of two models mixed?" in message


@pytest.mark.parametrize("more", [True, False])
def test_a_vocabulary_of_another_size_than_the_table_is_refused(folder: Path, more: bool) -> None:
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    if more:
        vocabulary["zebra"] = len(vocabulary)
    else:
        vocabulary.pop(next(word for word, number in vocabulary.items() if number == 15))
    path.write_text(json.dumps(content), encoding="utf-8")
    size = 17 if more else 15
    assert f"embedding.words is (16, 4), the settings say ({size}, 4)" in refusal(folder)


@pytest.mark.parametrize("fault", ["missing", "more", "shape", "integers"])
def test_tensors_other_than_the_settings_call_for_are_refused(folder: Path, fault: str) -> None:
    weights = load_file(folder / "model.safetensors")
    if fault == "missing":
        del weights["encoder.pooling.b2"]
    elif fault == "more":
        weights["surprise"] = torch.zeros(3)
    elif fault == "shape":
        weights["encoder.pooling.b2"] = weights["encoder.pooling.b2"].T.contiguous()
    else:
        weights["encoder.pooling.b2"] = weights["encoder.pooling.b2"].long()
    save_file(weights, folder / "model.safetensors")
    expected = {
        "missing": "(1 differences): encoder.pooling.b2 is missing",
        "more": "(1 differences): surprise is not part of it",
        "shape": "encoder.pooling.b2 is (6, 2), the settings say (2, 6)",
        "integers": "encoder.pooling.b2 contains I64, expected floating-point values",
    }
    assert expected[fault] in refusal(folder)


class Allocations(TorchDispatchMode):
    """The largest tensor, in bytes, that was made in real memory."""

    largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, torch.Tensor) and not tensor.is_meta:
                self.largest = max(self.largest, tensor.numel() * tensor.element_size())
        return result


HUGE = [
    ("settings.pooling.heads", 10**9),
    ("settings.pooling.hidden_dim", 10**9),
    ("settings.encoder.hidden_dim", 10**9),
    ("settings.encoder.layers", 10**9),
    ("settings.encoder", {"name": "shortcut-stacked", "hidden_dims": [3, 10**9]}),
    ("settings.encoder", {"name": "cnn", "maps": 10**9, "widths": [3]}),
    ("settings.encoder", {"name": "cnn", "maps": 3, "widths": [10**9]}),
    ("settings.encoder", {"name": "gru", "layers": 10**9}),
    ("settings.embedding.word_dim", 10**9),
    ("settings.embedding.character_maps", 10**9),
    ("settings.embedding.character_widths", [10**9]),
    ("settings.embedding.character_dim", 10**9),
    ("settings.classifier.hidden_dim", 10**9),
    ("settings.pooling.heads", 10**18),
    ("settings.embedding.character_maps", 10**18),
    ("settings.classifier.hidden_dim", 10**18),
    ("settings.embedding.word_dim", 10**30),
    ("settings.pooling.heads", 10**30),
]


@pytest.mark.parametrize(("keys", "value"), HUGE, ids=str)
def test_nothing_is_allocated_before_sizes_are_known_to_agree(
    folder: Path, monkeypatch, keys: str, value: Any
) -> None:
    resource = pytest.importorskip("resource")
    layers = iter(range(100))
    make_layer = BiLSTMLayer.__init__

    def few_layers(self, *args):
        next(layers)  # StopIteration, which is no FolderError, at the hundredth
        make_layer(self, *args)

    monkeypatch.setattr(BiLSTMLayer, "__init__", few_layers)
    change_json(folder / "config.json", keys, value)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Allocations() as allocations, pytest.raises(FolderError) as caught:
        PairClassifier.from_pretrained(folder)
    assert str(folder) in str(caught.value)
    assert allocations.largest < 10_000
    # Kilobytes on Linux, bytes on a Mac: in both, less than the smallest of the tensors above.
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert grown < 500_000


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("settings.encoder.layers", 40),
        ("settings.encoder", {"name": "shortcut-stacked", "hidden_dims": [1] * 40}),
        ("settings.encoder", {"name": "cnn", "maps": 3, "widths": [1] * 40}),
        ("settings.embedding.character_widths", [1] * 40),
    ],
    ids=["layers", "hidden_dims", "widths", "character_widths"],
)
def test_more_modules_than_there_are_tensors_are_refused_before_they_are_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, keys: str, value: object
) -> None:
    # Below the largest side of a tensor, which for a real model is the size of its vocabulary.
    tensors = load_file(folder / "model.safetensors")
    assert len(tensors) < 40 < max(side for tensor in tensors.values() for side in tensor.shape)
    monkeypatch.setattr(PairClassifier, "from_settings", lambda *parts: pytest.fail("it was made"))
    change_json(folder / "config.json", keys, value)
    assert f"but it has {len(tensors)} tensors" in refusal(folder)


def test_the_watch_on_allocations_sees_what_loading_takes(folder: Path) -> None:
    with Allocations() as allocations:
        torch.zeros(3000)
    assert allocations.largest == 12_000
