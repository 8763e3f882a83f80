"""The settings of a training run, as a recipe gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from genpool.config import (
    ClassifierSettings,
    EmbeddingSettings,
    ModelSettings,
    Part,
    ProjectionSettings,
    TextSettings,
)
from genpool.data.reader import READERS, Reader
from genpool.errors import ConfigError, InputError
from genpool.model import PairClassifier
from genpool.pooling import POOLINGS
from genpool.saving.saved_model import PARTS as MODEL_PARTS
from genpool.tensors.modules import on_meta_device
from genpool.text import Characters, TextPipeline, Vocabulary, WordTokenizer
from genpool.training.recipe_file import read_recipe, read_toml

#: the name of "no model to start from"
SCRATCH = "scratch"
#: the name of the sentence encoder inside the package
EMBEDDED = "embedded"
#: more are taken for a mistake of typing: 400 GB of weights, four times as much in training
MAX_PARAMETERS = 10**11


@dataclass(frozen=True)
class DataSettings:
    """Which rows are trained on.

    Attributes:
        dev_share: Share of the training rows to hold out as the dev set (seeded, stratified), for
            data without a dev set. None (default) reads the dev set.
        train_rows: Number of training rows to draw by seed. None (default) uses all.
        drop_length: Leave out training rows with a side of this many tokens or more. None
            (default) keeps all.
        drop_counts_ends: Count the tokens of `text.sentence_ends` towards `drop_length`. Default:
            False.
        dev: Name of the split to select on. None (default): "dev" or "dev_matched".
        test: Names of the splits to score at the end. Empty (default): all but train and dev.
        missing_dev_share: As `dev_share`, but only if the data has no dev set. None (default)
            refuses such data.
        task: What is learned: the "label" (default), or the "score" of each row.
    """

    dev_share: float | None = field(default=None, metadata={"minimum": 0.0, "below": 1.0})
    train_rows: int | None = field(default=None, metadata={"minimum": 1})
    drop_length: int | None = field(default=None, metadata={"minimum": 2})
    drop_counts_ends: bool = False
    dev: str | None = None
    test: tuple[str, ...] = ()
    missing_dev_share: float | None = field(default=None, metadata={"minimum": 0.0, "below": 1.0})
    task: Literal["label", "score"] = "label"


@dataclass(frozen=True)
class StartSettings:
    """The model that training starts from.

    Attributes:
        model: "scratch" (default): new weights, of the sizes in the recipe; "embedded": the
            sentence encoder inside the package; or the folder of a model, whose encoder is used.
            The settings of text, embedding, encoder, pooling and projection are then those of the
            model.
        freeze: The part of the encoder that is not trained: "nothing" (default), the table of
            "words", or the complete "encoder".
        dropout: Dropout of the token vectors. None (default): that of the model.
    """

    model: str = SCRATCH
    freeze: Literal["nothing", "words", "encoder"] = "nothing"
    dropout: float | None = field(default=None, metadata={"minimum": 0.0, "below": 1.0})


@dataclass(frozen=True)
class VocabularySettings:
    """Which words have an entry of their own in the word table.

    Attributes:
        minimum_count: Occurrences in the training text that a word needs. Default: 1.
        vector_words: Add all words of the vector file. Default: False.
        lower_case: Enter words in lower case, so that all capitalizations share one entry.
            Default: False.
    """

    minimum_count: int = field(default=1, metadata={"minimum": 1})
    vector_words: bool = False
    lower_case: bool = False


@dataclass(frozen=True)
class VectorSettings:
    """The pretrained word vectors.

    Attributes:
        path: File in GloVe's text format, plain or compressed. None (default): no pretrained
            vectors.
        std: Standard deviation of the Gaussian that words without a vector start from. Default:
            0.01.
        lower_case_fallback: Give a word that is not in the file the vector of its lower-case form.
            Default: True.
    """

    path: str | None = None
    std: float = field(default=0.01, metadata={"minimum": 0.0})
    lower_case_fallback: bool = True


@dataclass(frozen=True)
class PenaltySettings:
    """The term that keeps heads apart.

    Attributes:
        name: What is kept apart: "parameter" matrices, "attention" matrices, sentence "embedding"s,
            "scalar" attention (Lin et al.), or "none" (default).
        weight: The paper's mu. Default: 1.
        threshold: The paper's lambda. Default: 1.
        average: One hinge per "sentence" (default, the paper), or one of the "batch" mean (the
            released program).
    """

    name: Literal["none", "parameter", "attention", "embedding", "scalar"] = "none"
    weight: float = field(default=1.0, metadata={"minimum": 0.0})
    threshold: float = field(default=1.0, metadata={"minimum": 0.0})
    average: Literal["sentence", "batch"] = "sentence"

    @property
    def is_enabled(self) -> bool:
        """Whether a penalty is added to the loss."""
        return self.name != "none" and self.weight > 0


@dataclass(frozen=True)
class TrainingSettings:
    """The training loop.

    Attributes:
        seed: Decides the initial weights, the order of the rows and dropout. Default: 0.
        epochs: Maximum number of passes over the training rows. Default: 20.
        steps: Number of steps that decides how many of the epochs are run: the fewer rows, the
            more. None (default) runs all of them.
        max_tokens: Number of tokens that limits the epochs that `steps` asks for, so that long
            texts do not take long. None (default): no limit.
        min_epochs: Epochs that are run in any case, if there are many rows. Default: 1.
        batch_size: Rows of a step. Default: 32.
        accumulate: Parts in which a process computes its rows of a step, one after the other, to
            use less memory: their gradients are added, and the step is the same. Default: 1.
        buffer_batches: Batches whose rows are sorted by length together. Default: 50.
        sort_by: Sort by the "longest" side of a row (default), or by its "second" side.
        shuffle: "rows" (default) shuffles all rows, then all batches; "batches" keeps the order of
            the file and shuffles the batches of each buffer.
        learning_rate: Of Adam. Default: 4e-4.
        encoder_rate: The learning rate of the encoder as a multiple of `learning_rate`, which is
            then that of the classifier alone. Default: 1.
        weight_decay: Decoupled weight decay (AdamW), of all weights but the word table. Default: 0.
        clip: Maximum norm of the gradient; 0 does not clip. Default: 10.
        schedule: "restore-halve" (default): when dev accuracy falls below the best, restore the
            best weights and halve the learning rate; "constant" keeps the rate; "linear" raises it
            over the first steps and lowers it to zero over the others.
        warmup: Of the linear schedule: the share of the steps in which the rate rises. Default:
            0.1.
        halvings: Stop at this halving of the rate. Default: 8.
        patience: Of the constant and linear schedules: stop after this many evaluations in a row
            below the best. None (default) does not stop.
        evaluate_every: Steps between evaluations within an epoch, at whose end there is always one.
            None (default): once an epoch.
        contrastive_weight: Of the supervised contrastive loss, which draws rows of one label
            together (`genpool.training.objective`). Default: 0, which leaves it out.
        contrastive_temperature: Of that loss. Default: 0.1.
        save_minutes: Minutes between checkpoints within an epoch. Default: 10.
        precision: "float32" (default), or "bfloat16" or "float16" if the device supports it.
        tensorboard: Write the metrics for TensorBoard too. Default: False.
    """

    seed: int = field(default=0, metadata={"minimum": 0})
    epochs: int = field(default=20, metadata={"minimum": 1})
    steps: int | None = field(default=None, metadata={"minimum": 1})
    max_tokens: int | None = field(default=None, metadata={"minimum": 1})
    min_epochs: int = field(default=1, metadata={"minimum": 1})
    batch_size: int = field(default=32, metadata={"minimum": 1})
    accumulate: int = field(default=1, metadata={"minimum": 1})
    buffer_batches: int = field(default=50, metadata={"minimum": 1})
    sort_by: Literal["longest", "second"] = "longest"
    shuffle: Literal["rows", "batches"] = "rows"
    learning_rate: float = field(default=4e-4, metadata={"minimum": 0.0})
    encoder_rate: float = field(default=1.0, metadata={"minimum": 0.0})
    weight_decay: float = field(default=0.0, metadata={"minimum": 0.0})
    clip: float = field(default=10.0, metadata={"minimum": 0.0})
    schedule: Literal["restore-halve", "constant", "linear"] = "restore-halve"
    warmup: float = field(default=0.1, metadata={"minimum": 0.0, "below": 1.0})
    halvings: int = field(default=8, metadata={"minimum": 1})
    patience: int | None = field(default=None, metadata={"minimum": 1})
    evaluate_every: int | None = field(default=None, metadata={"minimum": 1})
    contrastive_weight: float = field(default=0.0, metadata={"minimum": 0.0})
    contrastive_temperature: float = field(default=0.1, metadata={"minimum": 1e-3})
    save_minutes: float = field(default=10.0, metadata={"minimum": 0.0})
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    tensorboard: bool = False


@dataclass(frozen=True)
class RunSettings:
    """All settings of a training run: what a recipe holds, with the defaults of the rest.

    Attributes:
        plugins: Modules that register poolings, encoders or readers of your own; they are imported
            before the other settings are checked. Default: none.
    """

    plugins: tuple[str, ...] = ()
    reader: Part = Part("table")
    data: DataSettings = DataSettings()
    start: StartSettings = StartSettings()
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
        """The settings of the model alone, which are saved with it."""
        return ModelSettings(*(getattr(self, room.name) for room in fields(ModelSettings)))


def read_settings(
    text: str,
    overrides: Iterable[str] = (),
    source: str | Path | None = None,
    values: Mapping[str, Any] = MappingProxyType({}),
    plugins: Iterable[str] = (),
) -> RunSettings:
    """Returns the settings of a recipe for `genpool train`.

    Args:
        text: The recipe, in TOML; `genpool.recipes.recipe_text` returns that of a name.
        overrides: Settings that replace those of the recipe, as "section.key=value". Default: none.
        source: The name of the recipe, for messages. Default: None.
        values: Settings as Python values, by "section.key"; they replace those of the recipe, and
            overrides replace them. None keeps the value of the recipe. Default: none.
        plugins: Modules that register poolings, encoders or readers, in addition to `plugins` of
            the recipe. Default: none.

    Raises:
        ConfigError: with every mistake of the recipe and the overrides; or a plugin cannot be
            imported.

    Example:
        >>> from genpool.recipes import recipe_text
        >>> settings = read_settings(recipe_text("rules"), ["training.epochs=2"])
        >>> settings.training.epochs
        2
    """
    if "teacher" in read_toml(text, source):
        raise ConfigError("this recipe has a teacher: run it with genpool distil", source)
    return read_recipe(
        RunSettings, PARTS, _contradictions, text, overrides, source, values, plugins
    )


def require_trainable(settings: RunSettings, data: str | Path | Reader | None) -> None:
    """Raises ConfigError if training needs more than the recipe and the command have given.

    A recipe alone may leave both open: the place of the data and that of the word vectors.
    """
    problems = []
    if settings.start.model == SCRATCH:
        problems += frozen_random_table(settings.embedding, settings.vectors)
    if data is None and READERS[settings.reader.name].needs_path:
        name = settings.reader.name
        problems.append(f"the reader {name!r} needs the place of the data: --data FOLDER_OR_FILE.")
    if problems:
        raise ConfigError(problems)


def frozen_random_table(embedding: EmbeddingSettings, vectors: VectorSettings) -> list[str]:
    """Returns the problem of a word table that is random and would stay so."""
    if not embedding.frozen or vectors.path is not None:
        return []
    return [
        "embedding.frozen is true, but vectors.path names no vector file: the word table would "
        "stay random. Give word vectors (--set vectors.path=glove.840B.300d.zip), or train the "
        "table (--set embedding.frozen=false)."
    ]


PARTS = {"reader": READERS, **MODEL_PARTS}


def _contradictions(settings: RunSettings) -> list[str]:
    """Returns the problems of settings that are valid alone but not together."""
    problems = []
    penalty, pooling = settings.penalty.name, settings.pooling.name
    if penalty != "none" and penalty not in POOLINGS[pooling].penalties:
        able = " or ".join(name for name, cls in POOLINGS.items() if penalty in cls.penalties)
        problems.append(f"penalty.name is {penalty!r}, which needs {able} pooling, not {pooling}.")
    if settings.vocabulary.vector_words and settings.vectors.path is None:
        problems.append("vocabulary.vector_words is true, but vectors.path names no vector file.")
    if settings.vocabulary.lower_case and not settings.text.lower_case_fallback:
        problems.append(
            "vocabulary.lower_case is true, but text.lower_case_fallback is false: every word with "
            "a capital letter would be unknown."
        )
    if settings.data.drop_counts_ends and not settings.text.sentence_ends:
        problems.append(
            "data.drop_counts_ends is true, but text.sentence_ends is false: there are no begin "
            "and end tokens to count."
        )
    return problems + _size_problems(settings.model)


def _size_problems(settings: ModelSettings) -> list[str]:
    """Returns why no model can have these settings, if so; takes no memory.

    The number of words is not known yet, so that only the width of the word table counts.
    """
    text = TextPipeline(WordTokenizer(), Vocabulary.build({}), Characters(""))
    try:
        with on_meta_device():
            model = PairClassifier.from_settings(text, settings, ("a", "b"))
    except ConfigError as error:
        return error.problems
    except InputError as error:
        return [str(error)]
    except (RuntimeError, TypeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        return [f"a tensor of the model would be too large ({reason})."]
    counts = {
        name: sum(parameter.numel() for parameter in room.parameters())
        for name, room in (*model.encoder.named_children(), ("classifier", model.mlp))
    }
    if sum(counts.values()) <= MAX_PARAMETERS:
        return []
    largest = max(counts, key=lambda name: counts[name])
    return [
        f"the model would have {sum(counts.values()):,} parameters, most of them in {largest} "
        f"({counts[largest]:,}); expected at most {MAX_PARAMETERS:,}."
    ]
