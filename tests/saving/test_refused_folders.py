"""Folders that are incomplete, damaged, changed or of another kind are refused with the reason."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch.utils._python_dispatch import TorchDispatchMode

from genpool import PairClassifier
from genpool.disk.folder_format import content_checksum, read_json, require_version
from genpool.encoder.lstm import BiLSTMLayer
from genpool.errors import FolderError, GenpoolError
from genpool.model import load_model
from tests.helpers.saved_folders import PAIRS, change_json, refusal, remove_checksums


def test_what_is_no_model_is_refused_with_what_is_there(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'}: there is no such folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "folder").mkdir()
    message = refusal(tmp_path / "folder")
    assert "has no config.json, so it is not a genpool model. It has: nothing." in message
    (tmp_path / "folder" / "thesis.tex").write_text("x")
    assert "It has: thesis.tex." in refusal(tmp_path / "folder")
    assert "is a file; expected a genpool model" in refusal(tmp_path / "folder" / "thesis.tex")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_each_missing_file_is_named_and_the_card_is_not_needed(folder: Path, name: str) -> None:
    (folder / "README.md").unlink()
    assert isinstance(load_model(folder), PairClassifier)
    (folder / name).unlink()
    message = refusal(folder)
    assert str(folder) in message and name in message
    (folder / name).mkdir()
    assert name in refusal(folder)
    for weights in {"model.safetensors", "tokenizer.json"} - {name}:
        (folder / weights).unlink()
    if name != "config.json":
        expected = f"{folder} is incomplete: model.safetensors and tokenizer.json missing."
        assert refusal(folder) == expected


def test_a_newer_format_is_refused_with_the_remedy(folder: Path) -> None:
    for version in (2, 0, True, "1"):
        change_json(folder / "config.json", "format_version", version)
        message = refusal(folder)
        assert f"has format version {version!r}; this genpool reads 1. " in message
        assert "pip install --upgrade genpool" in message
    with pytest.raises(FolderError, match=r"x has format version 3; this genpool reads 1 to 2\."):
        require_version(3, 2, Path("x"))


@pytest.mark.parametrize("kind", ["pairclassifier", None, []])
def test_an_unknown_kind_is_refused(folder: Path, kind: object) -> None:
    change_json(folder / "config.json", "kind", kind)
    with pytest.raises(FolderError, match="expected one of SentenceEncoder, TextClassifier, Pair"):
        load_model(folder)
    with pytest.raises(FolderError, match="expected a PairClassifier"):
        PairClassifier.from_pretrained(folder)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "config.json is not JSON"),
        (b'{"format": "genpool",}', "config.json is not JSON"),
        (b"\xff\xfe", "config.json is not JSON"),
        (b"[" * 100_000, "config.json is not JSON"),
        (b"[]", "contains list; expected named entries"),
        (b'{"format": "other"}', "genpool model: its format is 'other'; expected \"genpool\"."),
        (b'{"model_type": "bert"}', "Was it saved by another library (model type: bert)?"),
    ],
    ids=lambda value: len(value),
)
def test_a_config_of_another_kind_is_refused(folder: Path, content: bytes, expected: str) -> None:
    (folder / "config.json").write_bytes(content)
    message = refusal(folder)
    assert str(folder / "config.json") in message and expected in message


def test_a_disk_that_cannot_be_read_is_an_error_of_genpool(folder: Path, monkeypatch) -> None:
    def fails(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", fails)
    assert f"{folder} cannot be read" in refusal(folder)


class Evil:
    """A pickle of this runs code when it is opened."""

    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self):
        return (os.mkdir, (str(self.witness),))


def test_a_pickle_is_named_and_never_opened(folder: Path, tmp_path: Path) -> None:
    path, evil = folder / "model.safetensors", Evil(tmp_path / "run")
    for protocol in (2, 5):
        path.write_bytes(pickle.dumps(evil, protocol))
        message = refusal(folder)
        assert f"{path} contains a pickle, which could run code" in message
        assert "it was not opened" in message
    path.write_bytes(pickle.dumps(evil, 0))
    assert "is not a complete safetensors file" in refusal(folder)
    for zipped in (True, False):
        torch.save({"evil": evil}, path, _use_new_zipfile_serialization=zipped)
        assert "contains a pickle" in refusal(folder)
    path.unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(evil))
    assert "pytorch_model.bin is a pickle, which genpool never opens." in refusal(folder)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("keys", "value", "expected"),
    [
        ("characters", ["a", "b"], "characters is list, expected str"),
        ("characters", "aa", "the character 'a' occurs more than once"),
        ("labels", None, "labels is NoneType, expected list"),
        ("labels", [1, 2, 3], "labels are (1, 2, 3); expected two or more different texts"),
        ("labels", [], "expected two or more different texts"),
        ("settings", [], "settings is list, expected dict"),
        ("notes", "none", "notes is str, expected dict"),
        ("settings.encoder", 5, "encoder is 5; expected a section with a name"),
        ("settings.encoder.name", "bilsm", "unknown encoder 'bilsm'. Did you mean 'bilstm'?"),
        ("settings.encoder.name", ["bilstm"], "unknown encoder ['bilstm']"),
        ("settings.pooling.heads", "2", "pooling.heads is '2'; expected a whole number"),
        ("settings.pooling.depth", 1, "unknown option of pooling 'generalized' 'depth'"),
        ("settings.embedding.dropout", 1.5, "embedding.dropout is 1.5; expected a number below"),
        ("settings.embedding.dropout", float("nan"), "embedding.dropout is nan"),
        ("settings.text.max_length", 0, "text.max_length is 0; expected 1 or more"),
        ("plugins", {}, "plugins is dict, expected list"),
        ("settings.surprise", {}, "unknown setting 'surprise'"),
    ],
)
def test_a_wrong_value_in_the_config_is_refused_by_name(folder, keys, value, expected) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert str(folder) in message and expected in message


def places(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside nested dictionaries and lists."""
    if isinstance(content, dict | list):
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield (*way, key)
            yield from places(value, (*way, key))


ANYTHING: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 3, 10**9, 10**30, 0.5, float("inf"), "", "x", "gru", [], [0], {}, [[]]]
)


@settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_stands_in_a_config_it_loads_or_gets_an_error_of_genpool(saved, data) -> None:
    content = read_json(saved / "config.json")
    copied = saved.parent / "any"
    shutil.rmtree(copied, ignore_errors=True)
    shutil.copytree(saved, copied)
    *way, last = data.draw(st.sampled_from(list(places(content))))
    place = content
    for key in way:
        place = place[key]
    place[last] = data.draw(ANYTHING)
    (copied / "config.json").write_text(json.dumps(content), encoding="utf-8")
    try:
        loaded = cast(PairClassifier, load_model(copied))
    except GenpoolError as error:
        assert str(copied) in str(error)
    else:
        assert np.isfinite(loaded.predict_proba(PAIRS)).all()


def test_checksums_are_those_that_sha256sum_prints(folder: Path) -> None:
    config = read_json(folder / "config.json")
    assert set(config["checksums"]) == {"config.json", "model.safetensors", "tokenizer.json"}
    for name in ("model.safetensors", "tokenizer.json"):
        expected = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert config["checksums"][name] == f"sha256:{expected}"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_flipped_bit_is_recognised_wherever_it_is(folder: Path, name: str) -> None:
    path = folder / name
    content = path.read_bytes()
    expected = load_model(folder)
    generator = random.Random(0)
    for _ in range(30):
        place, bit = generator.randrange(len(content)), generator.randrange(8)
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        path.write_bytes(damaged)
        try:
            model = load_model(folder)
        except FolderError as error:
            assert str(folder) in str(error)
        else:  # white space between entries of a JSON file, or the name "checksums" itself
            assert name == "config.json"
            assert model.settings == expected.settings and model.labels == expected.labels
            assert model.text.characters.characters == expected.text.characters.characters


def test_changed_files_and_checksums_are_refused_with_the_remedy(folder: Path) -> None:
    path, config = folder / "model.safetensors", folder / "config.json"
    content = path.read_bytes()
    save_file({name: weight + 1 for name, weight in load_file(path).items()}, path)
    message = refusal(folder)
    assert f"{path} and {config} do not belong together" in message
    assert 'remove "checksums" from config.json' in message
    path.write_bytes(content)
    saved = read_json(config)["checksums"]
    change_json(config, "checksums", {**saved, "tokenizer.json": 5})
    assert "saved was 5" in refusal(folder)
    change_json(config, "checksums", saved)
    change_json(config, "settings.text.max_length", 7)
    message = refusal(folder)
    assert f"{config} was changed" in message
    assert 'remove "checksums" from config.json' in message
    change_json(config, "checksums", [])
    assert "is damaged: checksums is list" in refusal(folder)
    remove_checksums(folder)
    assert isinstance(load_model(folder), PairClassifier)


def test_the_checksum_of_a_config_does_not_depend_on_its_layout() -> None:
    config = {"b": [1, 2.5], "a": "ü", "checksums": {}}
    again = json.loads(json.dumps(dict(reversed(config.items())), indent=7, ensure_ascii=False))
    assert content_checksum(config) == content_checksum(again)
    assert content_checksum(config) != content_checksum({**config, "a": "u"})


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
        # 2 layers x 2 directions x (w, u, b), then w1, w2 and b2 of the pooling, two of the MLP.
        ("settings.encoder.hidden_dim", 4, "(17 differences)"),
    ],
)
def test_sizes_that_do_not_agree_are_refused_with_both(folder, keys, value, expected) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert f"{folder / 'model.safetensors'} does not agree with config.json" in message
    assert expected in message
    if expected.startswith("(17"):  # five of them are shown
        assert message.count("the settings say") == 5
    assert "Were files of two models mixed?" in message


def test_a_vocabulary_of_another_size_than_the_table_is_refused(folder: Path) -> None:
    words = read_json(folder / "tokenizer.json")["model"]["vocab"]
    fewer = {word: number for word, number in words.items() if number < 15}
    for vocabulary in (fewer, {**words, "zebra": 16}):
        change_json(folder / "tokenizer.json", "model.vocab", vocabulary)
        expected = f"embedding.words is (16, 4), the settings say ({len(vocabulary)}, 4)"
        assert expected in refusal(folder)


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("encoder.pooling.b2", None, "(1 differences): encoder.pooling.b2 is missing"),
        ("surprise", torch.zeros(3), "(1 differences): surprise is not part of it"),
        ("encoder.pooling.b2", torch.zeros(6, 2), "b2 is (6, 2), the settings say (2, 6)"),
        ("encoder.pooling.b2", torch.zeros(2, 6).long(), "I64, expected floating-point values"),
    ],
    ids=["missing", "more", "shape", "integers"],
)
def test_tensors_other_than_the_settings_call_for_are_refused(
    folder: Path, name: str, change: torch.Tensor | None, expected: str
) -> None:
    weights = {**load_file(folder / "model.safetensors"), name: change}
    given = {key: weight for key, weight in weights.items() if weight is not None}
    save_file(given, folder / "model.safetensors")
    assert expected in refusal(folder)


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
    ("settings.encoder.hidden_dim", 10**9),
    ("settings.encoder.layers", 10**9),
    ("settings.encoder", {"name": "shortcut-stacked", "hidden_dims": [3, 10**9]}),
    ("settings.encoder", {"name": "cnn", "maps": 3, "widths": [10**9]}),
    ("settings.encoder", {"name": "gru", "layers": 10**9}),
    ("settings.embedding.word_dim", 10**9),
    ("settings.embedding.character_widths", [10**9]),
    ("settings.classifier.hidden_dim", 10**9),
    ("settings.pooling.heads", 10**18),
    ("settings.embedding.word_dim", 10**30),
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
    with Allocations() as watch:
        torch.zeros(3000)
    assert watch.largest == 12_000
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


def test_a_damaged_tokenizer_or_one_of_another_model_is_refused(folder: Path) -> None:
    path = folder / "tokenizer.json"
    change_json(path, "model.vocab", {"[UNK]": 0, "dog": 1})
    assert "a vocabulary starts with ('<pad>', '<unk>', '<s>', '</s>')" in refusal(folder)
    for content in (b"{}", b"<html>", b"\xff" * 1000):
        path.write_bytes(content)
        assert refusal(folder).startswith(f"{path} cannot be used: ")
