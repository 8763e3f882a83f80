"""Settings: read from plain dictionaries, all mistakes reported at once."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import torch
from torch import nn

from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    TextSettings,
    from_dict,
    to_dict,
)
from genpool.encoder import ENCODERS
from genpool.errors import ConfigError, GenpoolError
from genpool.model.sentence_encoder import build_module
from genpool.pooling import POOLINGS
from genpool.registry import Registry
from genpool.saving.saved_model import PARTS
from genpool.tensors.modules import on_meta_device


def read(given: dict[str, Any]) -> ModelSettings:
    return from_dict(ModelSettings, given, PARTS)


def problems_of(given: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(given)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


def test_nothing_given_is_the_papers_model() -> None:
    settings = read({})
    assert settings == ModelSettings()
    assert settings.embedding == EmbeddingSettings(300, True, True, 15, (1, 3, 5), 100, 0.5)
    assert settings.classifier == ClassifierSettings(300, 0.5)
    assert (settings.encoder.name, settings.pooling.name) == ("stacked-bilstm", "generalized")


FULL = ModelSettings(
    text=TextSettings("whitespace", True, 40, False),
    embedding=EmbeddingSettings(
        7, False, False, 3, (2,), 9, 0.25, "test", "gaussian", character_padding="right"
    ),
    encoder=Part("shortcut-stacked", {"hidden_dims": (4, 5)}),
    pooling=Part("generalized", {"heads": 3, "hidden_dim": None}),
    classifier=ClassifierSettings(11, 0.0, "gaussian", "test"),
)


def test_settings_come_back_from_their_dictionary() -> None:
    assert read(json.loads(json.dumps(to_dict(FULL)))) == FULL
    assert read(to_dict(ModelSettings())) == ModelSettings()
    as_dict = to_dict(FULL)
    assert as_dict["pooling"] == {"name": "generalized", "heads": 3, "hidden_dim": None}
    assert as_dict["embedding"]["character_widths"] == [2]


def test_all_mistakes_are_reported_at_once() -> None:
    problems = problems_of(
        {
            "txet": {},
            "text": {"rules": "pen", "max_length": 0, "sentence_end": True},
            "embedding": {"word_dim": "300", "dropout": 1, "character_widths": [1, 0]},
            "encoder": {"name": "bilsm"},
            "pooling": {"name": "generalized", "heads": 0},
            "classifier": 300,
        }
    )
    assert problems == [
        "unknown setting 'txet'. Did you mean 'text'? "
        "Known: classifier, embedding, encoder, pooling, projection, text.",
        "unknown text.rules 'pen'. Did you mean 'penn'? Known: parts, penn, whitespace.",
        "text.max_length is 0; expected 1 or more.",
        "unknown setting 'text.sentence_end'. Did you mean 'text.sentence_ends'? "
        "Known: text.folding, text.lower_case_fallback, text.max_length, text.rules, "
        "text.sentence_ends.",
        "embedding.word_dim is '300'; expected a whole number.",
        "embedding.dropout is 1; expected a number below 1.0.",
        "embedding.character_widths is [1, 0]; expected 1 or more.",
        "unknown encoder 'bilsm'. Did you mean 'bilstm'? Known: "
        + ", ".join(sorted(ENCODERS))
        + ".",
        "pooling: heads is 0; expected a whole number of 1 or more.",
        "classifier is 300; expected a section of settings.",
    ]


def test_the_message_lists_the_mistakes_under_their_number_and_source() -> None:
    given = {"text": {"max_length": 0}, "embedding": {"word_dim": 0}}
    with pytest.raises(ConfigError) as caught:
        from_dict(ModelSettings, given, PARTS, "my.toml")
    assert str(caught.value) == (
        "my.toml: 2 settings are wrong:\n"
        "  - text.max_length is 0; expected 1 or more.\n"
        "  - embedding.word_dim is 0; expected 1 or more."
    )
    assert isinstance(caught.value, GenpoolError) and isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [
        ({"pooling": "generalised"}, "'generalized'"),
        ({"pooling": {"name": "generalized", "head": 3}}, "'heads'"),
        ({"encoder": {"name": "stacked-bilstm", "shortcut": "bth"}}, "'both'"),
        ({"pooling": {"name": "generalized", "input_dim": 4}}, "'hidden_dim'"),
        ({"embedding": {"dropuot": 0.5}}, "'embedding.dropout'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(given, nearest: str) -> None:
    (problem,) = problems_of(given)
    assert f"Did you mean {nearest}?" in problem and "Known: " in problem


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("text", "sentence_ends", 1, "expected true or false"),
        ("text", "max_length", 2.0, "expected a whole number or none"),
        ("text", "max_length", -5, "expected 1 or more"),
        ("text", "rules", ["penn"], "unknown text.rules ['penn']"),
        ("embedding", "word_dim", 300.0, "expected a whole number"),
        ("embedding", "dropout", "0.5", "expected a number"),
        ("embedding", "dropout", -0.1, "expected 0.0 or more"),
        ("embedding", "dropout", 1.0, "expected a number below 1.0"),
        ("embedding", "dropout", float("nan"), "expected 0.0 or more"),
        ("embedding", "dropout_scaling", "tset", "Did you mean 'test'? Known: inverted, test"),
        ("embedding", "character_widths", 3, "expected a list in which every value is a whole"),
        ("embedding", "character_widths", [1, "3"], "expected a list in which every value is a"),
        ("embedding", "character_widths", [], "expected at least one value"),
        ("pooling", "heads", 2.5, "expected a whole number"),
        ("pooling", "hidden_dim", 0, "hidden_dim is 0; expected a whole number of 1 or more"),
        ("encoder", "layers", 0, "expected 1 to 1,000"),
        ("encoder", "hidden_dim", 10**30, "a tensor would be too large"),
    ],
)
def test_a_value_of_the_wrong_type_or_range_is_refused(section, key, value, expected) -> None:
    part = {"pooling": {"name": "generalized"}, "encoder": {"name": "bilstm"}}
    (problem,) = problems_of({section: {**part.get(section, {}), key: value}})
    assert expected in problem
    assert problem.startswith((f"{section}.{key}", f"{section}: ", f"unknown {section}.{key}"))


@pytest.mark.parametrize("given", [5, None, {"heads": 5}])
def test_a_part_without_a_name_is_refused(given: object) -> None:
    (problem,) = problems_of({"pooling": given})
    assert problem == f"pooling is {given!r}; expected a section with a name."


@pytest.mark.parametrize("classes", [ENCODERS, POOLINGS], ids=["encoders", "poolings"])
def test_a_module_remembers_its_options_with_their_defaults(classes: Registry[Any]) -> None:
    for name in classes:
        with on_meta_device():
            module = build_module(classes, Part(name), 4)
            again = build_module(classes, Part(name, module.options), 4)
        assert "input_dim" not in module.options
        part = Part(name, module.options)
        assert getattr(read({classes.kind: {"name": name, **module.options}}), classes.kind) == part
        assert again.options == module.options
        assert copy.deepcopy(module).options == module.options


def test_an_unknown_part_or_option_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"unknown encoder 'gruu'\. Did you mean 'gru'"):
        build_module(ENCODERS, Part("gruu"), 4)
    with pytest.raises(ConfigError) as caught:
        build_module(ENCODERS, Part("gru", {"layer": 1, "input_dim": 5}), 4)
    assert len(caught.value.problems) == 2


def test_options_are_tried_without_taking_memory() -> None:
    places = []

    class Vast(nn.Module):
        def __init__(self, input_dim: int, size: int = 1) -> None:
            super().__init__()
            places.append(torch.empty(size, input_dim).device.type)

    values = {"encoder": {"name": "vast", "size": 10**12}}
    settings = from_dict(
        ModelSettings, values, {"encoder": Registry("encoder", nn.Module, {"vast": Vast})}
    )
    assert settings.encoder == Part("vast", {"size": 10**12})
    assert places == ["meta"]


@pytest.mark.parametrize("encoder", ["stacked-bilstm", "bilstm", "residual-stacked", "gru"])
def test_layers_without_end_are_refused_before_they_are_made(encoder: str) -> None:
    values = {"encoder": {"name": encoder, "layers": 10**9}}
    with pytest.raises(ConfigError, match="encoder: layers is 1000000000; expected 1 to 1,000"):
        from_dict(ModelSettings, values, PARTS)
    few = from_dict(ModelSettings, {"encoder": {"name": encoder, "layers": 100}}, PARTS)
    assert few.encoder.options["layers"] == 100
