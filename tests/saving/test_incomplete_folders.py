"""Folders that are missing, incomplete or of another kind."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from genpool import PairClassifier
from genpool.errors import FolderError
from genpool.model import load_model
from tests.helpers.saved_folders import change_json, refusal


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert f"{tmp_path / 'nowhere'}: there is no such folder" in refusal(tmp_path / "nowhere")


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "model").write_text("x")
    assert "there is no such folder" in refusal(tmp_path / "model")


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    message = refusal(tmp_path)
    assert "has no config.json, so it is not a genpool model. It has: nothing." in message


def test_a_folder_of_other_files_is_no_model_and_they_are_listed(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    assert "It has: thesis.tex." in refusal(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("as_folder", [False, True])
def test_each_missing_file_is_named(folder: Path, name: str, as_folder: bool) -> None:
    (folder / name).unlink()
    if as_folder:
        (folder / name).mkdir()
    message = refusal(folder)
    assert str(folder) in message and name in message


def test_two_missing_files_are_named_together(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "tokenizer.json").unlink()
    expected = f"{folder} is incomplete: model.safetensors and tokenizer.json missing."
    assert refusal(folder) == expected


def test_the_card_is_not_needed_to_load(folder: Path) -> None:
    (folder / "README.md").unlink()
    assert isinstance(load_model(folder), PairClassifier)


def test_a_newer_format_is_refused_with_the_remedy(folder: Path) -> None:
    change_json(folder / "config.json", "format_version", 2)
    message = refusal(folder)
    assert "has format version 2; this genpool reads 1. " in message
    assert "pip install --upgrade genpool" in message


@pytest.mark.parametrize("version", [0, -1, "1", 1.0, None, True, [1]])
def test_a_version_that_is_none_is_refused(folder: Path, version: object) -> None:
    change_json(folder / "config.json", "format_version", version)
    assert f"has format version {version!r}" in refusal(folder)


@pytest.mark.parametrize("kind", ["Pickle", "pairclassifier", "", None, 5, [], {}])
def test_an_unknown_kind_is_refused(folder: Path, kind: object) -> None:
    change_json(folder / "config.json", "kind", kind)
    with pytest.raises(FolderError, match="expected one of SentenceEncoder, TextClassifier, Pair"):
        load_model(folder)
    with pytest.raises(FolderError, match="expected a PairClassifier"):
        PairClassifier.from_pretrained(folder)


@pytest.mark.parametrize(
    "content",
    ["", "{", "[1, 2", "not json", '{"format": "genpool",}', "\x00", "[" * 100_000],
    ids=["nothing", "cut", "cut list", "words", "comma", "zero", "deep"],
)
def test_a_config_that_is_not_json_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    assert f"{folder / 'config.json'} is not JSON" in refusal(folder)


def test_a_config_that_is_not_utf8_is_refused(folder: Path) -> None:
    (folder / "config.json").write_bytes(b'{"format": "\xff\xfe"}')
    assert "is not JSON" in refusal(folder)


@pytest.mark.parametrize("content", ["[]", "5", '"genpool"', "null", "{}", '{"format": "other"}'])
def test_json_of_another_kind_is_refused(folder: Path, content: str) -> None:
    (folder / "config.json").write_text(content)
    message = refusal(folder)
    assert "is not of a genpool model" in message and '"format": "genpool"' in message


def test_the_folder_of_another_library_is_refused_by_its_model_type(folder: Path) -> None:
    bert = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 768}
    (folder / "config.json").write_text(json.dumps(bert))
    message = refusal(folder)
    assert "model type: bert" in message and "another library" in message


def test_a_disk_that_cannot_be_read_is_an_error_of_genpool(folder: Path, monkeypatch) -> None:
    def fails(*args, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", fails)
    assert f"{folder} cannot be read" in refusal(folder)
