"""Saved folders come back, and a stranger's runs no code: no foreign modules, no pickles."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router

from genpool.errors import FolderError, InputError
from genpool.integrations.sentence_transformers import PoolingModule, load
from tests.integrations.tiny_bert import (
    SENTENCES,
    WIDTH,
    change_json,
    lively_pooling,
    tiny_model,
    tiny_transformer,
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
    saved.save(str(tmp_path), safe_serialization=False)  # never a pickle, even where asked for
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
    with pytest.raises(ValueError, match="trust_remote_code=True"):  # the reason for `load`
        SentenceTransformer(str(folder))
    trusted = SentenceTransformer(str(folder), trust_remote_code=True)
    np.testing.assert_array_equal(trusted.encode(SENTENCES), model.encode(SENTENCES))


def test_the_saved_names_are_public_interface_and_genpool_is_required(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
    assert modules[1]["type"] == TYPE
    config = json.loads((folder / "1_PoolingModule" / "config.json").read_text("utf-8"))
    assert config == {
        "pooling": {"name": "generalized", "input_dim": WIDTH, "heads": 3, "hidden_dim": 5}
        | {"initial_std": 0.01, "start": "random"},
        "include_prompt": True,
        "write_weights": True,
    }
    path = folder / "config_sentence_transformers.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["requirements"]["genpool"]["specifier"] == ">=0.1.0"
    assert config["prompts"]["query"] == "query : ", "the rest is as it was"
    change_json(path, lambda config: config["requirements"]["genpool"].update(specifier=">=999"))
    with pytest.raises(ImportError, match="genpool"):
        load(folder)


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


def test_a_folder_of_another_kind_and_trust_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="contains a SentenceTransformer; expected a MultiVector"):
        load(folder, MultiVectorEncoder)
    with pytest.raises(FolderError, match="there is no such folder"):
        load(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FolderError, match=r"neither modules\.json .* It contains: nothing"):
        load(tmp_path / "empty")
    trust: dict[str, Any] = {"trust_remote_code": True}
    for options in (trust, {"model_kwargs": trust}):
        with pytest.raises(InputError, match="takes no trust_remote_code"):
            load(folder, **options)


def test_an_extra_is_asked_for_where_it_is_used_and_nowhere_else() -> None:
    code = """
import importlib, sys, genpool
print({"sentence_transformers", "transformers", "sklearn"} & set(sys.modules))
for name in ("sentence_transformers", "sklearn"):
    sys.modules[name] = None  # as if it were not installed
    try:
        importlib.import_module("genpool.integrations." + name)
    except genpool.GenpoolError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    nothing, transformers, sklearn = done.stdout.splitlines()
    assert nothing == "set()"
    assert transformers.endswith("pip install 'genpool[st]'")
    assert sklearn.endswith("pip install 'genpool[sklearn]'")


# --- trust


def test_a_module_of_a_stranger_is_refused_and_not_imported(folder: Path, tmp_path: Path) -> None:
    mark = tmp_path / "was-run"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Module: pass\n", "utf-8")
    change_json(folder / "modules.json", lambda modules: modules[1].update(type="evil.Module"))
    with pytest.raises(FolderError, match=r"type 'evil\.Module'; expected .*PoolingModule"):
        load(folder)
    assert not mark.exists()


@pytest.mark.parametrize("place", ["", "1_PoolingModule"])
def test_a_pickle_is_refused(folder: Path, place: str) -> None:
    weights = folder / place / "model.safetensors"
    weights.rename(weights.with_name("pytorch_model.bin"))
    with pytest.raises(FolderError, match="is a pickle, which could run code"):
        load(folder)
    # A file of another name beside it does not help.
    weights.with_name("model_decoy.safetensors").write_bytes(b"")
    with pytest.raises(FolderError, match=r"pytorch_model.bin is a pickle"):
        load(folder)
    if place:  # the module alone refuses it too
        with pytest.raises(FolderError, match=r"has no model\.safetensors"):
            PoolingModule.load(str(folder), subfolder=place)


def test_the_pickle_of_an_adapter_is_refused_and_harmless_files_are_not(folder: Path) -> None:
    change_json(folder / "config.json", lambda config: config.update(_attn_implementation="eager"))
    (folder / "training_args.bin").write_bytes(b"their trainer leaves it; loading ignores it")
    (folder / "pytorch_model.bin").write_bytes(b"beside model.safetensors it is not read")
    load(folder)
    (folder / "adapter_model.bin").write_bytes(b"")
    with pytest.raises(FolderError, match=r"adapter_model\.bin is a pickle"):
        load(folder)


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


IMPORTLIB = "sentence_transformers.util.misc.importlib"
MODEL_CLASS = "sentence_transformers.SentenceTransformer"
CODE = {"auto_map": {"AutoModel": "evil.Model", "AutoTokenizer": ["evil.T", None]}}


@pytest.mark.parametrize(
    ("name", "edit", "refused"),
    [
        # only modules of sentence-transformers are taken from it
        ("modules.json", {"type": IMPORTLIB}, f"names a module of type '{IMPORTLIB}'"),
        ("modules.json", {"type": MODEL_CLASS}, f"names a module of type '{MODEL_CLASS}'"),
        # modules stay inside the folder
        ("modules.json", {"path": "../bert"}, "which is outside of"),
        ("modules.json", {"path": "/"}, "which is outside of"),
        ("modules.json", {"path": "1_PoolingModule/../../bert"}, "which is outside of"),
        # settings lead to no code from elsewhere
        ("config.json", CODE, 'has "auto_map"'),
        ("tokenizer_config.json", CODE, 'has "auto_map"'),
        ("config.json", {"_attn_implementation": "strangers/kernel"}, "_attn_implementation"),
        ("config.json", {"text_config": [{"attn_implementation": "a/b:c"}]}, "attn_implementation"),
        ("config.json", {"quantization_config": {"quant_method": "x"}}, "quantization_config"),
        ("sentence_bert_config.json", {"model_args": {"trust_remote_code": True}}, "trust_remote"),
        ("sentence_bert_config.json", {"backend": "onnx"}, "has the settings backend"),
    ],
)
def test_what_leads_to_code_from_elsewhere_is_refused(
    folder: Path, name: str, edit: dict[str, Any], refused: str
) -> None:
    modules = name == "modules.json"
    change_json(folder / name, lambda config: (config[1] if modules else config).update(edit))
    with pytest.raises(FolderError, match=refused):
        load(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", '{"a": 1}'),
        ("modules.json", "[]"),
        ("modules.json", "[1]"),
        ("modules.json", '[{"type": 3, "path": ""}]'),
        ("modules.json", "[{"),
        ("config.json", "{}"),
        ("config.json", '{"model_type": "bert", "hidden_size": "large"}'),
        ("tokenizer.json", "{}"),
        ("model.safetensors", "damaged"),
        ("config_sentence_transformers.json", '{"prompts": 3}'),
    ],
)
def test_a_damaged_folder_is_refused_in_words(folder: Path, name: str, content: str) -> None:
    (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(FolderError, match=name if name == "modules.json" else "saved"):
        load(folder)
