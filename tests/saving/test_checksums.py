"""The checksums of a folder: damage anywhere is recognised, and earlier folders still load."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from genpool import PairClassifier
from genpool.errors import FolderError
from genpool.model import load_model
from genpool.saving.storage import config_checksum
from tests.helpers.saved_folders import change_json, refusal, remove_checksums


def test_checksums_are_those_that_sha256sum_prints(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
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
    for _ in range(60):
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


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ("labels", ["yes", "no", "never"]),
        ("settings.text.max_length", 7),
        ("settings.text.sentence_ends", True),
        ("notes", {"title": "another"}),
    ],
)
def test_a_config_that_was_changed_is_refused_with_the_remedy(
    folder: Path, keys: str, value: object
) -> None:
    change_json(folder / "config.json", keys, value)
    message = refusal(folder)
    assert f"{folder / 'config.json'} was changed" in message
    assert 'remove "checksums" from config.json' in message
    remove_checksums(folder)
    assert isinstance(load_model(folder), PairClassifier)


def test_a_folder_of_an_earlier_version_is_loaded_without(folder: Path) -> None:
    remove_checksums(folder)
    assert isinstance(load_model(folder), PairClassifier)


@pytest.mark.parametrize("value", [5, "x", [], None])
def test_checksums_of_another_type_are_refused(folder: Path, value: object) -> None:
    change_json(folder / "config.json", "checksums", value)
    assert "is damaged: checksums is" in refusal(folder)


@pytest.mark.parametrize("value", [5, "x", [], None, "sha256:0"])
def test_a_checksum_that_is_none_is_refused(folder: Path, value: object) -> None:
    path = folder / "config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["checksums"]["tokenizer.json"] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    assert f"saved was {value}" in refusal(folder)


def test_notes_of_any_json_come_back(folder: Path) -> None:
    model = load_model(folder)
    notes: dict[Any, Any] = {10: "ten", 9: ("a", 1.5e-300), "none": None}
    model.notes = {**notes, "deep": {"ü": [float("inf"), True]}}
    model.save_pretrained(folder)
    assert load_model(folder).notes == json.loads(json.dumps(model.notes))


def test_the_checksum_of_a_config_does_not_depend_on_its_layout() -> None:
    config = {"b": [1, 2.5], "a": "ü", "checksums": {}}
    again = json.loads(json.dumps(dict(reversed(config.items())), indent=7, ensure_ascii=False))
    assert config_checksum(config) == config_checksum(again)
    assert config_checksum(config) != config_checksum({**config, "a": "u"})
