"""A stranger's folder runs no code: what it may name is on a list, and pickles stay closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router

from genpool.errors import FolderError, InputError
from genpool.integrations.sentence_transformers import PoolingModule, load
from tests.integrations.tiny_bert import (
    SENTENCES,
    change_json,
    lively_pooling,
    tiny_model,
    tiny_transformer,
)

TYPE = "genpool.integrations.sentence_transformers.PoolingModule"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_model(tmp_path / "bert").save(str(tmp_path / "saved"))
    return tmp_path / "saved"


def test_a_module_of_a_stranger_is_refused_and_not_imported(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Module: pass\n", "utf-8")
    change_json(folder / "modules.json", lambda modules: modules[1].update(type="evil.Module"))
    with pytest.raises(FolderError, match=r"type 'evil\.Module'; expected .*PoolingModule"):
        load(folder)
    assert not mark.exists()


@pytest.mark.parametrize(
    "name",
    ["sentence_transformers.util.misc.importlib", "sentence_transformers.SentenceTransformer"],
)
def test_only_modules_of_sentence_transformers_are_taken_from_it(folder: Path, name: str) -> None:
    change_json(folder / "modules.json", lambda modules: modules[1].update(type=name))
    with pytest.raises(FolderError, match=f"names a module of type '{name}'"):
        load(folder)


@pytest.mark.parametrize("place", ["../bert", "/", "1_PoolingModule/../../bert"])
def test_modules_stay_inside_the_folder(folder: Path, place: str) -> None:
    change_json(folder / "modules.json", lambda modules: modules[1].update(path=place))
    with pytest.raises(FolderError, match="which is outside of"):
        load(folder)


@pytest.mark.parametrize("content", ['{"a": 1}', "[]", "[1]", '[{"type": 3, "path": ""}]', "[{"])
def test_a_damaged_list_of_modules_is_refused(folder: Path, content: str) -> None:
    (folder / "modules.json").write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match=r"modules\.json"):
        load(folder)


@pytest.mark.parametrize("place", ["", "1_PoolingModule"])
def test_a_pickle_is_refused(folder: Path, place: str) -> None:
    weights = folder / place / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(FolderError, match="is a pickle, which could run code"):
        load(folder)
    if place:  # the module alone refuses it too
        with pytest.raises(FolderError, match=r"has no model\.safetensors"):
            PoolingModule.load(str(folder), subfolder=place)


def test_the_pickle_of_an_adapter_is_refused_and_other_files_are_not(folder: Path) -> None:
    (folder / "training_args.bin").write_bytes(b"their trainer leaves it; loading ignores it")
    (folder / "pytorch_model.bin").write_bytes(b"beside model.safetensors it is not read")
    load(folder)
    (folder / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(FolderError, match=r"adapter_model\.bin is a pickle"):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_of_the_folder_is_refused(folder: Path, name: str) -> None:
    edit = {"auto_map": {"AutoModel": "evil.Model", "AutoTokenizer": ["evil.T", None]}}
    change_json(folder / name, lambda config: config.update(edit))
    with pytest.raises(FolderError, match='has "auto_map"'):
        load(folder)


@pytest.mark.parametrize(
    "options", [{"trust_remote_code": True}, {"model_kwargs": {"trust_remote_code": True}}]
)
def test_nothing_is_ever_trusted(folder: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="takes no trust_remote_code"):
        load(folder, **options)


def test_modules_inside_a_router_are_looked_at_too(tmp_path: Path) -> None:
    routes = {
        "query": [tiny_transformer(tmp_path / "a"), lively_pooling()],
        "document": [tiny_transformer(tmp_path / "b"), lively_pooling()],
    }
    folder = tmp_path / "routed"
    model = SentenceTransformer(
        modules=[Router.for_query_document(routes["query"], routes["document"])]
    )
    model.save(str(folder))
    actual: SentenceTransformer = load(folder)
    np.testing.assert_array_equal(actual.encode_query(SENTENCES), model.encode_query(SENTENCES))

    def spoil(config: dict[str, Any]) -> None:
        name = next(name for name, kind in config["types"].items() if kind == TYPE)
        config["types"][name] = "evil.Module"

    change_json(folder / "router_config.json", spoil)
    with pytest.raises(FolderError, match=r"router_config.json names .* 'evil\.Module'"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "edit", "refused"),
    [
        ("config.json", {"_attn_implementation": "strangers/kernel"}, "_attn_implementation"),
        ("config.json", {"text_config": [{"attn_implementation": "a/b:c"}]}, "attn_implementation"),
        ("config.json", {"quantization_config": {"quant_method": "x"}}, "quantization_config"),
        ("sentence_bert_config.json", {"model_args": {"trust_remote_code": True}}, "trust_remote"),
        ("sentence_bert_config.json", {"backend": "onnx"}, "has the settings backend"),
    ],
)
def test_settings_that_lead_to_code_from_elsewhere_are_refused(
    folder: Path, name: str, edit: dict[str, Any], refused: str
) -> None:
    change_json(folder / name, lambda config: config.update(edit))
    with pytest.raises(FolderError, match=refused):
        load(folder)


def test_a_known_attention_is_no_reason_to_refuse(folder: Path) -> None:
    change_json(folder / "config.json", lambda config: config.update(_attn_implementation="eager"))
    load(folder)


def test_a_decoy_beside_a_pickle_does_not_help_it(folder: Path) -> None:
    weights = folder / "1_PoolingModule" / "model.safetensors"
    weights.with_name("pytorch_model.bin").write_bytes(b"\x80\x04K\x01.")
    weights.rename(weights.with_name("model_decoy.safetensors"))
    with pytest.raises(FolderError, match=r"pytorch_model.bin is a pickle"):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", "{}"),
        ("config.json", '{"model_type": "bert", "hidden_size": "large"}'),
        ("tokenizer.json", "{}"),
        ("model.safetensors", "damaged"),
        ("config_sentence_transformers.json", '{"prompts": 3}'),
    ],
)
def test_a_damaged_folder_is_refused_in_words(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match="saved"):
        load(folder)
