"""Every recipe of the package loads; the paper's have exactly the paper's settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest

from genpool.config import to_dict
from genpool.distillation import read_distillation
from genpool.encoder import ENCODERS, Encoder
from genpool.errors import ConfigError
from genpool.recipes import RECIPE_GROUPS, recipe_names, recipe_text, recipe_title
from genpool.tensors.modules import GAUSSIAN_STD, on_meta_device
from genpool.training import read_settings

NAMES = set(recipe_names()) - {"embedded"}
#: encoder and pooling of the systems that other papers published
SYSTEMS = {
    "snli-nse": ("nse", "last"),
    "snli-cafe": ("cafe", "mean-max"),
    "snli-resan": ("resan", "source-to-token"),
    "snli-spinn": ("spinn", "last"),
    "snli-tree-cnn": ("tree-cnn", "max"),
    "snli-nti": ("nti", "last"),
    "snli-gumbel-tree": ("gumbel-tree", "last"),
    "snli-gumbel-tree-600": ("gumbel-tree", "last"),
}
#: recipes of `genpool distil`: that of the package, and the further steps of the embedded encoder
STEPS = sorted((Path(__file__).parents[1] / "benchmarks" / "release" / "recipes").glob("*.toml"))
DISTILLATIONS = ["embedded", *map(str, STEPS)]
#: section 4.2 of the paper, number by number
PAPER = {
    "snli": {"layers": 3, "hidden": 600, "rate": 4e-4, "clip": 10, "batch": 128, "d_a": 600},
    "multinli": {"layers": 3, "hidden": 300, "rate": 4e-4, "clip": 10, "batch": 32, "d_a": 300},
    "age": {"layers": 1, "hidden": 300, "rate": 2e-3, "clip": 0.5, "batch": 32, "d_a": 300},
    "yelp": {"layers": 1, "hidden": 300, "rate": 1e-3, "clip": 0.5, "batch": 32, "d_a": 300},
}
FROZEN = {"snli": True, "multinli": True, "age": False, "yelp": False}
#: the best of section 5.3: attention matrices for Age, parameter matrices for the rest
PENALTY = {"snli": "parameter", "multinli": "parameter", "age": "attention", "yelp": "parameter"}


def test_every_recipe_has_its_place_in_the_list() -> None:
    listed = [name for names in RECIPE_GROUPS.values() for name in names]
    assert sorted(listed) == recipe_names() and set(PAPER) | set(SYSTEMS) <= set(listed)


@pytest.mark.parametrize("name", DISTILLATIONS, ids=lambda name: Path(name).stem)
def test_the_embedded_recipes_are_distillations(name: str) -> None:
    text = recipe_text(name)
    settings = read_distillation(text, source=name)
    scored = {"stsb/dev", "stsb/test", "sick/dev", "sick/test"}
    assert {entry.split(".tsv")[0] for entry in settings.corpus.exclude} >= scored
    command = rf"^#   genpool distil \S*{Path(name).stem}\S* --data DATA"
    assert re.search(command, text, re.MULTILINE)
    assert not re.search(r"""["'](/|~|[A-Za-z]:[\\/])""", text)
    with pytest.raises(ConfigError, match="genpool distil"):
        read_settings(text)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_recipe_loads_and_is_headed_by_the_command_that_runs_it(name: str) -> None:
    text = recipe_text(name)
    settings = read_settings(text, source=name)
    expected = SYSTEMS.get(name, (settings.encoder.name, "generalized"))
    assert (settings.encoder.name, settings.pooling.name) == expected
    head = text.split("\n\n")[0].splitlines()
    assert all(line.startswith("#") for line in head)
    assert 10 < len(recipe_title(name)) <= 100
    command = next(line for line in head if "genpool train" in line)
    words = shlex.split(command.removeprefix("#"))
    assert words[:3] == ["genpool", "train", name]
    assert not re.search(r"""["'](/|~|[A-Za-z]:[\\/])""", text)  # no place of one machine
    # What the command sets must be settings that exist.
    read_settings(text, [after for word, after in pairwise(words) if word == "--set"])


@pytest.mark.parametrize("name", sorted(PAPER))
def test_a_recipe_of_the_paper_has_its_settings(name: str) -> None:
    paper, settings = PAPER[name], read_settings(recipe_text(name))
    encoder, pooling = settings.encoder, settings.pooling
    assert settings.reader.name == name
    assert encoder.name == "stacked-bilstm"
    assert encoder.options["layers"] == paper["layers"]
    assert encoder.options["hidden_dim"] == settings.classifier.hidden_dim == paper["hidden"]
    assert encoder.options["shortcut"] == "direction"  # Eq. 1-2
    assert pooling.name == "generalized"
    assert pooling.options == {"heads": 5, "hidden_dim": paper["d_a"]}
    assert settings.embedding.word_dim == 300
    assert settings.embedding.frozen is FROZEN[name]
    assert settings.embedding.character_dim == 15
    assert settings.embedding.character_widths == (1, 3, 5)
    assert settings.embedding.character_maps == 100
    assert settings.training.learning_rate == paper["rate"]
    assert settings.training.clip == paper["clip"]
    assert settings.training.batch_size == paper["batch"]
    assert settings.penalty.name == PENALTY[name]
    assert settings.penalty.threshold == 1
    assert settings.penalty.weight in (1, 1e-1, 1e-2, 1e-3, 1e-4)
    assert settings.penalty.average == "sentence"
    # What the paper leaves out is as in its released program.
    assert settings.embedding.dropout == settings.classifier.dropout == 0.5
    assert (settings.training.schedule, settings.training.halvings) == ("restore-halve", 8)
    assert settings.data.train_rows is None


@pytest.mark.parametrize("name", sorted(SYSTEMS))
def test_a_recipe_of_another_system_has_its_published_sizes_and_the_papers_data(name: str) -> None:
    settings = read_settings(recipe_text(name))
    assert settings.reader.name == "snli"
    width = 600 if name.endswith("-600") else 300
    sizes = settings.encoder.options
    assert sizes.get("hidden_dim", sizes.get("maps")) == width
    assert settings.embedding.word_dim == 300
    assert settings.embedding.frozen is True
    assert (settings.training.schedule, settings.training.halvings) == ("restore-halve", 8)
    assert settings.penalty.name == "none"


#: weights in millions: of the paper's system, of its classifier by hand, and what may be left over:
#: rounding; for the tree CNN and NTI also what their papers leave open
PUBLISHED_MILLIONS = {
    "snli-spinn": (3.7, (4 * 300 + 1024 + 3) * 1024 / 1e6, 0.05),
    "snli-tree-cnn": (3.5, (4 * 300 + 3) * 200 / 1e6, 0.25),
    "snli-nti": (4.0, (4 * 300 + 3) * 1024 / 1e6, 0.6),
    "snli-gumbel-tree": (2.9, (4 * 300 + 3) * 1024 / 1e6, 0.05),
    "snli-gumbel-tree-600": (10.0, (4 * 600 + 2 * 1024 + 3) * 1024 / 1e6, 0.5),
}


@pytest.mark.parametrize("name", sorted(PUBLISHED_MILLIONS))
def test_a_tree_encoder_has_as_many_weights_as_published(name: str) -> None:
    encoder = read_settings(recipe_text(name)).encoder
    with on_meta_device():
        module = cast(Callable[..., Encoder], ENCODERS[encoder.name])(300, **encoder.options)
    millions = sum(parameter.numel() for parameter in module.parameters()) / 1e6
    published, classifier, open_ = PUBLISHED_MILLIONS[name]
    assert abs(millions + classifier - published) < open_


#: every setting in which the released program differs from the paper's recipe
RELEASED = {
    "data.drop_length": 100,
    "data.drop_counts_ends": True,
    "vectors.lower_case_fallback": False,
    "text.sentence_ends": True,
    "text.lower_case_fallback": False,
    "embedding.dropout_scaling": "test",
    "embedding.character_initialization": "gaussian",
    "embedding.character_padding": "right",
    "encoder.shortcut": "both",
    "pooling.initial_std": 0.01,
    "classifier.initialization": "gaussian",
    "classifier.dropout_scaling": "test",
    "penalty.average": "batch",
    "training.epochs": 5000,
    "training.buffer_batches": 20,
    "training.sort_by": "second",
    "training.shuffle": "batches",
}


def flat(name: str) -> dict[str, object]:
    sections = to_dict(read_settings(recipe_text(name)))
    return {
        f"{section}.{key}": value
        for section, values in sections.items()
        if section != "plugins"
        for key, value in values.items()
    }


def test_the_released_program_differs_from_the_paper_in_these_settings_alone() -> None:
    paper, released = flat("snli"), flat("snli-released")
    assert {
        name: value for name, value in released.items() if name not in paper or paper[name] != value
    } == RELEASED
    assert paper.keys() <= released.keys()
    head = recipe_text("snli").split("\n\n[")[0].replace("\n# ", " ")
    assert "The paper leaves open:" in head and "snli-released" in head
    for point in ("dropout", "schedule", "epochs", "initial weights", "order of the batches"):
        assert point in head
    assert released["penalty.name"] == "parameter"
    assert released["penalty.weight"] == 1e-2
    assert released["vectors.std"] == GAUSSIAN_STD == 0.01


def test_a_recipe_is_a_name_of_the_package_or_a_file_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[training]\nepochs = 3\n")
    assert recipe_text(str(path)) == "[training]\nepochs = 3\n"
    path.write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"mine\.toml cannot be read.*utf-8"):
        recipe_text(str(path))
    with pytest.raises(ConfigError, match="there is no recipe file"):
        recipe_text(str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match=r"unknown recipe 'snil'. Did you mean 'snli'\?"):
        recipe_text("snil")
