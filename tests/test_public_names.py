"""The public names: what `__all__` says is what is there, and what was promised stays."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from types import ModuleType

import pytest
import torch
import typer.core
import typer.main

import genpool
from genpool import PairClassifier, SentenceEncoder, TextClassifier
from genpool.cli import app
from genpool.pooling import POOLINGS, GeneralizedPooling, Pooled, penalties

_FOLDERS = """data distillation embedding encoder evaluation inference integrations.onnx
    integrations.probing integrations.sentence_transformers pooling search service text training"""
PACKAGES = ["genpool", *(f"genpool.{folder}" for folder in _FOLDERS.split())]


def public_names(module: ModuleType) -> set[str]:
    """Names without an underscore that are no modules; a name from __future__ is none of ours."""
    return {
        name
        for name in dir(module)  # a package may tell its names itself, and bring them when asked
        for value in [getattr(module, name)]
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and getattr(value, "__module__", "genpool") != "__future__"
    }


def arguments(function: Callable[..., object]) -> dict[str, object]:
    """Arguments by name with their defaults, `self` left out; `...` where there is none."""
    parameters = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    return {
        parameter.name: ... if parameter.default is empty else parameter.default
        for parameter in parameters
        if parameter.name != "self"
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_all_and_reality_agree(name: str) -> None:
    module = importlib.import_module(name)
    listed = module.__all__
    assert len(listed) == len(set(listed))
    assert all(hasattr(module, name) for name in listed)
    modules = {name for name in listed if isinstance(getattr(module, name), ModuleType)}
    assert set(listed) - modules - {"__version__"} == public_names(module)


def test_the_names_of_package_poolings_penalties_and_encoders_are_the_frozen_ones() -> None:
    frozen = {"SentenceEncoder", "TextClassifier", "PairClassifier", "pooling"}
    assert frozen <= set(genpool.__all__)
    assert isinstance(genpool.__version__, str)
    poolings = """GeneralizedPooling ScalarAttentionPooling InnerAttentionPooling GatedPooling
        SourceToTokenPooling MaxPooling MeanPooling LastPooling POOLINGS Pooled"""
    assert set(poolings.split()) <= set(genpool.pooling.__all__)
    assert POOLINGS["generalized"] is GeneralizedPooling
    for name in ("parameter", "attention", "embedding", "scalar_attention"):
        assert callable(getattr(penalties, f"{name}_penalty"))
    assert "stacked-bilstm" in importlib.import_module("genpool.encoder").ENCODERS


@pytest.mark.parametrize("kind", [SentenceEncoder, TextClassifier, PairClassifier])
def test_every_model_loads_and_saves_by_path(
    kind: type[SentenceEncoder | TextClassifier | PairClassifier],
) -> None:
    assert arguments(kind.from_pretrained) == {"path": None, "mmap": False, "plugins": ()}
    mmap = inspect.signature(kind.from_pretrained).parameters["mmap"]
    assert mmap.kind is inspect.Parameter.KEYWORD_ONLY
    assert arguments(kind.save_pretrained) == {"path": ..., "int8": False, "int4_tables": False}


def test_encode_similarity_and_explain_have_their_frozen_arguments() -> None:
    assert arguments(SentenceEncoder.encode) == {
        "sentences": ...,
        "batch_size": 64,
        "show_progress_bar": False,
        "normalize_embeddings": False,
        "convert_to_tensor": False,
        "truncate_dim": None,
    }
    assert list(arguments(SentenceEncoder.similarity).values()) == [..., ...]
    assert arguments(SentenceEncoder.explain) == {"sentence": ...}


def test_classifiers_hold_an_encoder_and_predict_from_one_argument(
    text_classifier, pair_classifier
) -> None:
    for model in (text_classifier, pair_classifier):
        assert isinstance(model.encoder, SentenceEncoder)
        for method in (model.predict, model.predict_proba):
            first, *others = arguments(method).values()
            assert first is ... and ... not in others


def test_generalized_pooling_has_its_frozen_arguments_parameters_and_result() -> None:
    parameters = inspect.signature(GeneralizedPooling).parameters
    frozen = {"input_dim": ..., "heads": 5, "hidden_dim": None}
    assert list(arguments(GeneralizedPooling).items())[:3] == list(frozen.items())
    # Whatever is added must not be in the way of arguments given by place.
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in [*parameters.values()][3:])
    pooling = GeneralizedPooling(6, heads=2, hidden_dim=4)
    shapes = {name: tuple(parameter.shape) for name, parameter in pooling.named_parameters()}
    assert shapes == {"w1": (2, 4, 6), "b1": (2, 4), "w2": (2, 6, 4), "b2": (2, 6)}
    assert (pooling.input_dim, pooling.output_dim) == (6, 12)
    pooled = pooling(torch.zeros(3, 5, 6), torch.ones(3, 5, dtype=torch.bool))
    assert isinstance(pooled, Pooled) and Pooled._fields == ("vector", "heads", "weights")
    assert pooled.weights is not None
    tensors = (pooled.vector, pooled.heads, pooled.weights)
    assert [tuple(tensor.shape) for tensor in tensors] == [(3, 12), (3, 2, 6), (3, 2, 5, 6)]


def test_the_commands_have_their_frozen_names() -> None:
    frozen = "train evaluate predict encode similarity explain export serve recipes demo"
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperGroup)
    assert set(frozen.split()) <= set(command.commands)
