"""The settings of a training run: what a recipe says."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Literal

from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    PartKind,
    ProjectionSettings,
    TextSettings,
    from_dict,
)
from genpool.data.base import BAD_ROWS
from genpool.data.readers import READERS, reader_options
from genpool.errors import ConfigError, unknown_name
from genpool.saving.saved_model import PARTS as MODEL_PARTS
from genpool.training.recipe_file import read_recipe, read_toml


@dataclass(frozen=True)
class DataSettings:
    """Which rows are trained on.

    dev_share    take this share of the training rows as dev set (seeded, stratified); for data
                 that has no dev set
    train_rows   use only so many training rows (seeded choice)
    drop_length  leave out training rows with a side of so many tokens or more; counted
    dev, test    names of the splits to select on and to score; None: the usual names
    """

    dev_share: float | None = field(default=None, metadata={"minimum": 0.0, "below": 1.0})
    train_rows: int | None = field(default=None, metadata={"minimum": 1})
    drop_length: int | None = field(default=None, metadata={"minimum": 2})
    dev: str | None = None
    test: tuple[str, ...] = ()


@dataclass(frozen=True)
class VocabularySettings:
    """Words of the training text that occur often enough; by option those of the vector file.

    lower_case: enter words in lower case, under which every spelling of them is found
    """

    minimum_count: int = field(default=1, metadata={"minimum": 1})
    vector_words: bool = False
    lower_case: bool = False


@dataclass(frozen=True)
class VectorSettings:
    """The word-vector file, if any, and the deviation of words that are not in it."""

    path: str | None = None
    std: float = field(default=0.01, metadata={"minimum": 0.0})


@dataclass(frozen=True)
class PenaltySettings:
    """The term that keeps heads apart: its weight is the paper's mu, its threshold lambda."""

    name: Literal["none", "parameter", "attention", "embedding", "scalar"] = "none"
    weight: float = field(default=1.0, metadata={"minimum": 0.0})
    threshold: float = field(default=1.0, metadata={"minimum": 0.0})
    average: Literal["sentence", "batch"] = "sentence"


@dataclass(frozen=True)
class TrainingSettings:
    """The loop.

    schedule        "restore-halve": when dev accuracy falls below the best, restore the best
                    weights and halve the learning rate, stop at the 8th halving; "constant"
    epochs          passes over the data at the most
    patience        constant schedule: stop after so many evaluations without a better one
    evaluate_every  steps between evaluations; None: once an epoch
    save_minutes    minutes between checkpoints within an epoch
    precision       "bfloat16" or "float16" where the device has it
    """

    seed: int = field(default=0, metadata={"minimum": 0})
    epochs: int = field(default=20, metadata={"minimum": 1})
    batch_size: int = field(default=32, metadata={"minimum": 1})
    learning_rate: float = field(default=4e-4, metadata={"minimum": 0.0})
    clip: float = field(default=10.0, metadata={"minimum": 0.0})
    schedule: Literal["restore-halve", "constant"] = "restore-halve"
    halvings: int = field(default=8, metadata={"minimum": 1})
    patience: int | None = field(default=None, metadata={"minimum": 1})
    evaluate_every: int | None = field(default=None, metadata={"minimum": 1})
    save_minutes: float = field(default=10.0, metadata={"minimum": 0.0})
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    tensorboard: bool = False


@dataclass(frozen=True)
class RunSettings:
    """Everything that decides the outcome of a run, but the data's place."""

    reader: Part = Part("table")
    data: DataSettings = DataSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    vectors: VectorSettings = VectorSettings()
    text: TextSettings = TextSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    encoder: Part = Part("stacked-bilstm")
    pooling: Part = Part("generalized")
    projection: ProjectionSettings = ProjectionSettings()
    classifier: ClassifierSettings = ClassifierSettings()
    penalty: PenaltySettings = PenaltySettings()
    training: TrainingSettings = TrainingSettings()

    @property
    def model(self) -> ModelSettings:
        return ModelSettings(
            self.text,
            self.embedding,
            self.encoder,
            self.pooling,
            self.projection,
            self.classifier,
        )


def _check_reader(section: str, name: str, options: Mapping[str, Any]) -> list[str]:
    known = reader_options(name)
    problems = [
        unknown_name(f"option of {section} {name!r}", key, known)
        for key in options
        if key not in known
    ]
    hints: dict[str, Any] = {}
    for kind in READERS[name].__mro__:
        if "__init__" in vars(kind):
            hints = {**typing.get_type_hints(vars(kind)["__init__"]), **hints}
    shape = make_dataclass("Options", [(key, hints[key], field(default=None)) for key in known])
    try:
        from_dict(shape, {key: options[key] for key in known if key in options}, {})
    except ConfigError as error:
        problems += [f"{section}.{problem}" for problem in error.problems]
    chosen = options.get("bad_rows")
    if isinstance(chosen, str) and chosen not in BAD_ROWS:
        problems.append(unknown_name(f"{section}.bad_rows", chosen, BAD_ROWS))
    return problems


PARTS = {"reader": PartKind(READERS, reader_options, _check_reader), **MODEL_PARTS}


def read_settings(
    text: str, overrides: Iterable[str] = (), source: str | Path | None = None
) -> RunSettings:
    """The settings of a recipe for `genpool train`."""
    if "teacher" in read_toml(text, source):
        raise ConfigError("this recipe has a teacher: run it with genpool distil", source)
    return read_recipe(RunSettings, PARTS, _contradictions, text, overrides, source)


def _contradictions(settings: RunSettings) -> list[str]:
    """Settings that are right alone but not together."""
    problems = []
    penalty, pooling = settings.penalty.name, settings.pooling.name
    needs = {
        "parameter": ("generalized",),
        "attention": ("generalized", "source-to-token", "scalar"),
        "embedding": ("generalized", "scalar"),
        "scalar": ("scalar",),
    }
    if penalty in needs and pooling not in needs[penalty]:
        able = " or ".join(needs[penalty])
        problems.append(f"penalty.name is {penalty!r}, which needs {able} pooling, not {pooling}.")
    if settings.vocabulary.vector_words and settings.vectors.path is None:
        problems.append("vocabulary.vector_words is true, but vectors.path names no vector file.")
    return problems
