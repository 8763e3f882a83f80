"""The settings of a distillation: what its recipe says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from genpool.config import (
    EmbeddingSettings,
    ModelSettings,
    Part,
    ProjectionSettings,
    TextSettings,
)
from genpool.distillation.corpus import CorpusSettings
from genpool.errors import ConfigError
from genpool.saving.saved_model import PARTS
from genpool.training.recipe_file import read_recipe, read_toml
from genpool.training.settings import VectorSettings, VocabularySettings


@dataclass(frozen=True)
class TeacherSettings:
    """The model whose vectors are learned: a sentence-transformers folder, or PACKAGE:FOLDER."""

    model: str = ""


@dataclass(frozen=True)
class DistillationLoopSettings:
    """The loop.

    batch_size     sentences a step, in whole groups
    learning_rate  reached after `warm_up` steps; from there it falls in a straight line to zero
    similarity     weight of the error of the batch's matrix of cosines
    dev            a table of scored pairs: after each epoch, Spearman's correlation of the cosine
                   with the scores chooses the model that is kept
    start          folder of an earlier student to go on from, on another corpus or with other
                   settings of this section; it brings its own vocabulary and sizes
    save_minutes   minutes between checkpoints within an epoch
    """

    seed: int = field(default=0, metadata={"minimum": 0})
    epochs: int = field(default=8, metadata={"minimum": 1})
    batch_size: int = field(default=256, metadata={"minimum": 2})
    learning_rate: float = field(default=1e-3, metadata={"minimum": 0.0})
    warm_up: int = field(default=200, metadata={"minimum": 1})
    clip: float = field(default=5.0, metadata={"minimum": 0.0})
    similarity: float = field(default=1.0, metadata={"minimum": 0.0})
    dev: str | None = None
    start: str | None = None
    save_minutes: float = field(default=10.0, metadata={"minimum": 0.0})


@dataclass(frozen=True)
class DistillationSettings:
    """Everything that decides the outcome, but the data's place."""

    teacher: TeacherSettings = TeacherSettings()
    corpus: CorpusSettings = CorpusSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    vectors: VectorSettings = VectorSettings()
    text: TextSettings = TextSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    encoder: Part = Part("bilstm")
    pooling: Part = Part("generalized")
    projection: ProjectionSettings = ProjectionSettings()
    training: DistillationLoopSettings = DistillationLoopSettings()

    @property
    def model(self) -> ModelSettings:
        return ModelSettings(self.text, self.embedding, self.encoder, self.pooling, self.projection)


def read_distillation(
    text: str, overrides: Iterable[str] = (), source: str | Path | None = None
) -> DistillationSettings:
    """The settings of a recipe for `genpool distil`."""
    if "reader" in read_toml(text, source):
        raise ConfigError("this recipe has no teacher: run it with genpool train", source)
    return read_recipe(DistillationSettings, PARTS, _missing, text, overrides, source)


def _missing(settings: DistillationSettings) -> list[str]:
    if settings.teacher.model:
        return []
    return ["teacher.model is missing; expected a folder or PACKAGE:FOLDER."]
