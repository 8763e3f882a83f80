"""The settings of a distillation: what its recipe says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from genpool.config import EmbeddingSettings, ModelSettings, Part, ProjectionSettings, TextSettings
from genpool.errors import ConfigError
from genpool.saving.saved_model import PARTS
from genpool.training.recipe_file import read_recipe, read_toml
from genpool.training.settings import VectorSettings, VocabularySettings


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
    weights: tuple[float, ...] = ()
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
class CorpusSettings:
    """Which sentences the student is trained on. Files are found below the folder of the data.

    Attributes:
        tables: "FILE:COLUMN,COLUMN" entries. Every cell is a sentence; rows with the same first
            cell form a group. "FILE:COLUMN,COLUMN:SENTENCES" uses no more than so many.
            Default: none.
        texts: "FILE:COLUMN:SENTENCES" entries: long texts, split into sentences, with the maximum
            number of sentences to use. Default: none.
        wordnet: folder with WordNet's data.noun, data.verb, data.adj and data.adv, whose
            definitions and examples are used. Default: None.
        mixed: "FILE:SOURCE,TEXT": a table of sentences of many sources. Default: None.
        counts: "SOURCE=COUNT" entries: sentences of each source of it, "*=COUNT" for all others.
            Default: none.
        skip: "SOURCE=COUNT" entries: sentences of a source that are passed over first, such as
            those that an earlier recipe has learned. Default: none.
        held_out: sentences of each source that are not learned, but scored. Default: 0.
        exclude: "FILE:COLUMN,COLUMN" entries: sentences that are left out wherever they occur,
            whatever their case, spacing and punctuation. Default: none.
        min_words: words that a sentence needs. Default: 3.
        max_words: words that a sentence may have. Default: 50.
    """

    tables: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    wordnet: str | None = None
    mixed: str | None = None
    counts: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    held_out: int = field(default=0, metadata={"minimum": 0})
    exclude: tuple[str, ...] = ()
    min_words: int = field(default=3, metadata={"minimum": 0})
    max_words: int = field(default=50, metadata={"minimum": 1})


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
        source: the name of the recipe, for messages.

    Raises:
        ConfigError: with every mistake of the recipe and the overrides.

    Example:
        >>> settings = read_distillation(recipe_text("embedded"), ["training.epochs=1"])
    """
    if "reader" in read_toml(text, source):
        raise ConfigError("this recipe has no teacher: run it with genpool train", source)
    return read_recipe(DistillationSettings, PARTS, _teacher_problems, text, overrides, source)


def _teacher_problems(settings: DistillationSettings) -> list[str]:
    teacher = settings.teacher
    if not teacher.models:
        return ["teacher.model is missing; expected a folder or PACKAGE:FOLDER."]
    if teacher.weights and len(teacher.weights) != len(teacher.models):
        return [
            f"teacher.weights has {len(teacher.weights)} values for {len(teacher.models)} "
            "teachers; expected one for each, or none."
        ]
    return []
