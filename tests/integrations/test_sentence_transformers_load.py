"""Saving and loading: the same values come back, and what cannot be read is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import assert_type, get_args, get_overloads, get_type_hints

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from genpool.errors import FolderError
from genpool.integrations.sentence_transformers import PoolingModule, load
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    change_json,
    lively_pooling,
    tiny_model,
)

TYPE = "genpool.integrations.sentence_transformers.PoolingModule"


@pytest.fixture
def model(tmp_path: Path) -> SentenceTransformer:
    return tiny_model(tmp_path / "bert")


@pytest.fixture
def folder(model: SentenceTransformer, tmp_path: Path) -> Path:
    model.save(str(tmp_path / "saved"))
    return tmp_path / "saved"


def test_a_module_comes_back_with_its_weights(tmp_path: Path) -> None:
    saved = lively_pooling(heads=2, include_prompt=False, write_weights=False)
    saved.save(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    actual = PoolingModule.load(str(tmp_path))
    assert actual.get_config_dict() == saved.get_config_dict()
    for name, parameter in saved.state_dict().items():
        assert torch.equal(actual.state_dict()[name], parameter)
    assert all(parameter.requires_grad for parameter in actual.parameters())


def test_a_model_comes_back_with_its_vectors(model: SentenceTransformer, folder: Path) -> None:
    actual = load(folder)
    assert_type(actual, SentenceTransformer)  # what mypy infers
    assert isinstance(actual, SentenceTransformer) and actual.prompts["query"] == "query : "
    np.testing.assert_array_equal(actual.encode(SENTENCES), model.encode(SENTENCES))
    trusted = SentenceTransformer(str(folder), trust_remote_code=True)
    np.testing.assert_array_equal(trusted.encode(SENTENCES), model.encode(SENTENCES))


def test_the_type_that_load_returns_is_known_from_its_arguments() -> None:
    *others, usual = (get_type_hints(overload) for overload in get_overloads(load))
    assert "model_class" not in usual and usual["return"] is SentenceTransformer
    for hints in others:
        assert get_args(hints["model_class"]) == (hints["return"],)
    assert len(others) == 2  # the class by its place, and by its name


def test_without_trust_sentence_transformers_itself_refuses(folder: Path) -> None:
    """The reason why `load` exists."""
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(folder))


def test_the_saved_names_are_public_interface(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    assert modules[1]["type"] == TYPE
    config = json.loads((folder / "1_PoolingModule" / "config.json").read_text("utf-8"))
    assert config == {
        "pooling": {
            "name": "generalized",
            "input_dim": WIDTH,
            "heads": 3,
            "hidden_dim": 5,
            "initial_std": 0.01,
            "start": "random",
        },
        "include_prompt": True,
        "write_weights": True,
    }


def test_a_saved_model_asks_for_genpool(folder: Path) -> None:
    path = folder / "config_sentence_transformers.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["requirements"]["genpool"]["specifier"] == ">=0.1.0"
    assert config["prompts"]["query"] == "query : ", "the rest is as it was"
    change_json(path, lambda config: config["requirements"]["genpool"].update(specifier=">=999"))
    with pytest.raises(ImportError, match="genpool"):
        load(folder)


def test_weights_are_safetensors_even_where_others_were_asked_for(tmp_path: Path) -> None:
    lively_pooling().save(str(tmp_path), safe_serialization=False)
    assert (tmp_path / "model.safetensors").is_file()
    assert not (tmp_path / "pytorch_model.bin").exists()


def test_files_that_do_not_agree_are_refused(folder: Path) -> None:
    config = folder / "1_PoolingModule" / "config.json"
    change_json(config, lambda config: config["pooling"].update(heads=10**9))
    with pytest.raises(FolderError, match=r"does not agree with config\.json"):
        load(folder)
    change_json(config, lambda config: config["pooling"].update(heads=3, color="red"))
    with pytest.raises(FolderError, match=r"cannot be used: .*color"):
        load(folder)
    change_json(config, lambda config: config["pooling"].pop("color"))
    (folder / "1_PoolingModule" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(FolderError, match="not a complete safetensors file"):
        load(folder)


def test_a_folder_of_another_kind_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="contains a SentenceTransformer; expected a MultiVector"):
        load(folder, MultiVectorEncoder)
    with pytest.raises(FolderError, match="there is no such folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match=r"neither modules\.json .* It contains: nothing"):
        load(tmp_path / "empty")


def test_the_extra_is_asked_for_where_it_is_used_and_nowhere_else() -> None:
    code = """
import sys, genpool
print({"sentence_transformers", "transformers"} & set(sys.modules))
sys.modules["sentence_transformers"] = None  # as if it were not installed
try:
    import genpool.integrations.sentence_transformers
except genpool.GenpoolError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nothing, message = done.stdout.splitlines()
    assert nothing == "set()" and "pip install 'genpool[st]'" in message
