"""The settings of a distillation: what its recipe says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

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
from genpool.training.settings import VectorSettings, VocabularySettings, frozen_random_table


@dataclass(frozen=True)
class TeacherSettings:
    """The model whose vectors are learned, or several.

    Attributes:
        model: a sentence-transformers folder, or one with tokenizer.json and onnx/model.onnx;
            PACKAGE:FOLDER for one inside a Python package. A list names several. Required.
        weights: how much each of several counts. Default: none, all the same.
        centre: subtract the mean of the teacher's vectors, so that unrelated sentences have a
            cosine near 0. Several teachers are always centred, and their weights divided by the
            spread of their cosines, so that they are comparable. Default: False.
        centre_share: how much of the mean is subtracted. A little less than all of it can rank
            similar sentences better; unrelated ones then have a cosine above 0. Default: 1.
        pooling: of an ONNX graph of token states: "mean" or "cls". Default: "mean".
        max_tokens: tokens of a sentence that an ONNX graph reads. Default: 128.
        int8: round the weights of an ONNX graph to 8 bits, which is faster. Default: False.
    """

    model: str | tuple[str, ...] = ""
    weights: tuple[float, ...] = field(default=(), metadata={})
    centre: bool = False
    centre_share: float = field(default=1.0, metadata={"minimum": 0.0})
    pooling: Literal["mean", "cls"] = "mean"
    max_tokens: int = field(default=128, metadata={"minimum": 3})
    int8: bool = False

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all teachers."""
        names = (self.model,) if isinstance(self.model, str) else self.model
        return tuple(name for name in names if name)


@dataclass(frozen=True)
class DistillationLoopSettings:
    """The training loop of a distillation.

    Attributes:
        seed: decides the initial weights, the order of the groups and dropout. Default: 0.
        epochs: passes over the corpus. Default: 8.
        batch_size: sentences per step, in whole groups. Default: 256.
        learning_rate: reached after `warm_up` steps, then falls linearly to zero. Default: 1e-3.
        warm_up: steps. Default: 200.
        clip: maximum norm of the gradient; 0 does not clip. Default: 5.
        similarity: weight of the error of the cosines within a batch. Default: 1.
        widths: also count the errors of the first dimensions alone, of these numbers of them, so
            that truncated vectors lose little. Default: none.
        neighbours: put so many sentences with similar vectors of the teacher together in a batch.
            Default: 1, which leaves the groups of the corpus as they are.
        dev: a table of scored pairs: after each epoch, Spearman's correlation of the cosines with
            the scores decides which model is kept. Default: None, which keeps the last.
        start: folder of an earlier student to continue from, on another corpus or with other
            settings of this section; it brings its vocabulary and sizes. Default: None.
        axes: of the vectors of an earlier student: "learned" keeps them; "leading" rotates its
            projection to the axes of the teacher's largest variance, for a student that gets
            another teacher and whose vectors are truncated. Default: "learned".
        freeze_words: do not train the tables of words and n-grams: the last steps of a student
            whose tables are stored in 4 bits, so that its other weights fit them. Default: False.
        save_minutes: minutes between checkpoints within an epoch. Default: 10.
    """

    seed: int = field(default=0, metadata={"minimum": 0})
    epochs: int = field(default=8, metadata={"minimum": 1})
    batch_size: int = field(default=256, metadata={"minimum": 2})
    learning_rate: float = field(default=1e-3, metadata={"minimum": 0.0})
    warm_up: int = field(default=200, metadata={"minimum": 1})
    clip: float = field(default=5.0, metadata={"minimum": 0.0})
    similarity: float = field(default=1.0, metadata={"minimum": 0.0})
    widths: tuple[int, ...] = ()
    neighbours: int = field(default=1, metadata={"minimum": 1})
    dev: str | None = None
    start: str | None = None
    axes: Literal["learned", "leading"] = "learned"
    freeze_words: bool = False
    save_minutes: float = field(default=10.0, metadata={"minimum": 0.0})


@dataclass(frozen=True)
class DistillationSettings:
    """Everything that decides the outcome of a distillation, except the path of the data."""

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
        """The settings of the student."""
        return ModelSettings(self.text, self.embedding, self.encoder, self.pooling, self.projection)


def read_distillation(
    text: str, overrides: Iterable[str] = (), source: str | Path | None = None
) -> DistillationSettings:
    """Returns the settings of a recipe for `genpool distil`.

    Args:
        text: the recipe, in TOML.
        overrides: settings that replace those of the recipe, such as "training.epochs=3".
            Default: none.
        source: the name of the recipe, for messages. Default: None.

    Raises:
        ConfigError: with every mistake of the recipe and the overrides.

    Example:
        >>> settings = read_distillation(recipe_text("embedded"), ["training.epochs=1"])
    """
    if "reader" in read_toml(text, source):
        raise ConfigError("this recipe has no teacher: run it with genpool train", source)
    return read_recipe(DistillationSettings, PARTS, _missing, text, overrides, source)


def _missing(settings: DistillationSettings) -> list[str]:
    teacher = settings.teacher
    if not teacher.models:
        return ["teacher.model is missing; expected a folder or PACKAGE:FOLDER."]
    if teacher.weights and len(teacher.weights) != len(teacher.models):
        return [
            f"teacher.weights has {len(teacher.weights)} values for {len(teacher.models)} "
            "teachers; expected one for each, or none."
        ]
    return []


def require_trainable(settings: DistillationSettings) -> None:
    """Raises ConfigError if a new student would have a word table that is random and frozen."""
    is_new = settings.training.start is None
    if is_new and (problems := frozen_random_table(settings.embedding, settings.vectors)):
        raise ConfigError(problems)
