"""What is trained: the scales with their tasks, the systems, and the paper's tables and figures.

paper   the official data sets in the paper's settings: days on a GPU
small   smaller models on part of the data: minutes a cell on one core
tiny    the corpus that genpool generates: seconds a cell, for tests and for a first look

At `--scale paper` sizes are the published ones. At smaller scales every recurrent or attentive
encoder has the width of the task's recipe, so that all systems of a table have about the same size
and training time; the report says so. The tables and figures are in paper.toml, as rows of systems.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from genpool.reproduction.data_sets import generated_texts, mixed_nli, tokenized_texts

#: a row's penalty: "none", one of PENALTIES with its weight chosen on dev, or the best of all
BEST, NONE = "best", "none"
PENALTIES = ("parameter", "attention", "embedding")
#: systems by which the learning rate is chosen, for all systems
TUNED_ON = ("max", "generalized")

# --- Scales ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A data set and the settings in which all systems are trained on it.

    `needs` are files and folders below --data. The first of them is trained on, unless `prepare`
    makes the data from the folder --data, in a folder of the reproduction.
    """

    title: str  # what the report calls the data
    recipe: str
    overrides: tuple[str, ...] = ()  # settings that hold for all systems
    needs: tuple[str, ...] = ()
    prepare: Callable[[Path, Path], None] | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"test": "test"})  # by column


@dataclass(frozen=True)
class Scale:
    """The tasks of a scale, and what is tried on their dev sets.

    The learning rates are tried on SNLI before any comparison, for all systems and tasks; without
    any, the recipes' own are used. Syntax trees that the data lacks are made by the parser, or are
    balanced. What a scale changes of the paper's settings is told in templates/NAME.md, if there is
    such a file.
    """

    name: str
    tasks: dict[str, Task]
    width: int = 0  # of one direction of the encoders; 0: that of each published system
    parser: str | None = None
    decides: bool = True  # whether its data can decide a claim of the paper
    vectors: str | None = None  # word vectors below --data, if the recipes need any
    learning_rates: tuple[str, ...] = ()
    weights: tuple[str, ...] = ("1", "1e-1", "1e-2", "1e-3", "1e-4")  # of a penalty
    seeds: int = 5  # of the rows whose spread is shown


_NO_PENALTY = ("penalty.name=none",)
_YELP_FILE = "yelp_academic_dataset_review.json"
_PAPER = Scale(
    "paper",
    {
        "snli": Task("SNLI", "snli", _NO_PENALTY, ("snli_1.0",)),
        # The labels of MultiNLI's test sets are not public: the dev sets are scored, and the test
        # sets get submission files.
        "multinli": Task(
            "MultiNLI",
            "multinli",
            _NO_PENALTY,
            ("multinli_1.0",),
            splits={"in": "dev_matched", "cross": "dev_mismatched"},
        ),
        "yelp": Task("Yelp", "yelp", _NO_PENALTY, (_YELP_FILE,)),
        "age": Task("Age", "age", _NO_PENALTY, ("pan16",)),
    },
    vectors="glove.840B.300d.zip",
)

_SMALL_WIDTH = 64
_SMALL_SIZES = (
    "embedding.character_maps=20",
    f"encoder.hidden_dim={_SMALL_WIDTH}",
    f"pooling.hidden_dim={_SMALL_WIDTH}",
    "pooling.initial_std=0.1",
    f"classifier.hidden_dim={2 * _SMALL_WIDTH}",
    # In two epochs dev accuracy hardly ever falls, so that the paper's schedule would never lower
    # the rate: it falls to zero instead, and every system ends at its best.
    "training.epochs=2",
    "training.schedule=linear",
)
# Figure 2 shows dev accuracy twice an epoch, which has 1,561 steps (1,683 with MultiNLI).
_SMALL_NLI = (*_SMALL_SIZES, "encoder.layers=2", "training.evaluate_every=781")
# Batches as on SNLI, where the learning rate is chosen; those of the recipes are half as large.
_SMALL_TEXTS = (*_SMALL_SIZES, "training.batch_size=64", "reader.tokenized=true")
_STARS_ROWS = 40_000
_SMALL = Scale(
    "small",
    {
        "snli": Task("SNLI, 99,890 training pairs", "snli-small", _SMALL_NLI, ("snli",)),
        "multinli": Task(
            "SNLI's training pairs and 7,815 rows of MultiNLI dev matched",
            "snli-small",
            (*_SMALL_NLI, 'data.test=["in","cross"]'),
            ("snli", "mnli"),
            mixed_nli,
            {"in": "in", "cross": "cross"},
        ),
        "yelp": Task(
            "stars of clothing reviews, 40,000 training rows",
            "reviews-stars",
            (*_SMALL_TEXTS, f"data.train_rows={_STARS_ROWS}", "text.max_length=80"),
            ("reviews-stars",),
            lambda data, folder: tokenized_texts(data / "reviews-stars", folder, _STARS_ROWS),
        ),
        "age": Task(
            "age of bloggers, three ranges, 68,485 training rows",
            "reviews-age",
            (
                *_SMALL_TEXTS,
                'reader.labels=["13-17","23-27","33-48"]',
                "text.max_length=50",
                "vocabulary.minimum_count=3",
            ),
            ("blogs-age",),
            lambda data, folder: tokenized_texts(data / "blogs-age", folder),
        ),
    },
    width=_SMALL_WIDTH,
    parser="spacy",
    vectors="vectors/glove.840B.300d.subset.txt.xz",
    learning_rates=("0.001", "0.002", "0.004"),
)

_TINY_SIZES = (
    "embedding.word_dim=8",
    "embedding.character_maps=2",
    "encoder.hidden_dim=8",
    "pooling.hidden_dim=8",
    "pooling.initial_std=0.1",
    "classifier.hidden_dim=8",
    "training.epochs=2",
    "training.learning_rate=0.01",
)
_TINY_PAIRS = (*_TINY_SIZES, "reader.sizes=[300,60,60]")
_TINY_TEXTS = (*_TINY_SIZES, "embedding.frozen=false", "vocabulary.minimum_count=1")
_TINY = Scale(
    "tiny",
    {
        "snli": Task("pairs generated by rules", "rules", _TINY_PAIRS),
        "multinli": Task(
            "pairs generated by rules, another seed",
            "rules",
            (*_TINY_PAIRS, "reader.seed=100"),
            splits={"in": "test", "cross": "test"},
        ),
        "yelp": Task(
            "the rule of a generated pair",
            "texts-scratch",
            _TINY_TEXTS,
            prepare=lambda _, folder: generated_texts(folder, seed=10),
        ),
        "age": Task(
            "the rule of a generated pair, another seed",
            "texts-scratch",
            _TINY_TEXTS,
            prepare=lambda _, folder: generated_texts(folder, seed=20),
        ),
    },
    width=8,
    decides=False,
    weights=("1", "1e-2"),
    seeds=2,
)

SCALES = {scale.name: scale for scale in (_PAPER, _SMALL, _TINY)}

# --- Systems --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """How a system differs from the recipe of its task.

    In the settings, `{width}` is the width of one direction of the encoder, `{half}` and `{double}`
    half and twice of it.
    """

    overrides: tuple[str, ...]
    width: int = 0  # the published one, used at `--scale paper` in place of the scale's
    published: tuple[str, ...] = ()  # further settings at `--scale paper`
    scaled: tuple[str, ...] = ()  # further settings at smaller scales
    reads_parses: bool = False  # whether its encoder reads syntax trees

    def overrides_at(self, scale: Scale) -> tuple[str, ...]:
        """Returns the settings at a scale."""
        width, others = (scale.width, self.scaled) if scale.width else (self.width, self.published)
        sizes = {"width": width, "half": max(1, width // 2), "double": 2 * width}
        overrides = tuple(override.format(**sizes) for override in self.overrides)
        if self.reads_parses and scale.parser is not None:
            others += (f"encoder.parser={scale.parser}",)
        return (*overrides, *others)


def _encoder(name: str, *others: str) -> tuple[str, ...]:
    return f"encoder.name={name}", "encoder.hidden_dim={width}", *others


_MEAN, _MAX, _LAST = "pooling.name=mean", "pooling.name=max", "pooling.name=last"
_SCALAR, _FIVE_HEADS, _ONE_LAYER = "pooling.name=scalar", "pooling.heads=5", "encoder.layers=1"
_SOURCE_TO_TOKEN = "pooling.name=source-to-token"
_LIN_PENALTY = ("penalty.name=scalar", "penalty.weight=0.3")
_RESIDUAL = ("encoder.name=residual-stacked", "encoder.layers=3", _MAX)
_SHORTCUT = ("encoder.name=shortcut-stacked", "encoder.hidden_dims=[{half},{width},{double}]")
SYSTEMS: dict[str, System] = {
    "generalized": System((_FIVE_HEADS,)),
    "max": System((_MAX,)),
    "mean": System((_MEAN,)),
    "last": System((_LAST,)),
    # With the start of generalized pooling, so that only scalar or vector weights differ.
    "scalar": System(
        (_SCALAR, _FIVE_HEADS),
        published=("pooling.initial_std=0.01",),
        scaled=("pooling.initial_std=0.1",),
    ),
    "cbow": System(("encoder.name=bag-of-words", _MEAN)),
    "lstm-100": System(_encoder("lstm", _ONE_LAYER, _LAST), 100),
    "lstm-300": System(_encoder("lstm", _ONE_LAYER, _LAST), 300),
    "gru": System(_encoder("gru", _ONE_LAYER, _LAST), 1024),
    "bilstm": System(_encoder("bilstm", _ONE_LAYER, _MEAN), 300),
    "inner-attention": System(_encoder("bilstm", _ONE_LAYER, "pooling.name=inner"), 300),
    "self-attention": System(
        _encoder("bilstm", _ONE_LAYER, _SCALAR, *_LIN_PENALTY),
        300,
        published=("pooling.heads=30",),
        scaled=("pooling.heads=10",),
    ),
    "bilstm-max": System(_encoder("bilstm", _ONE_LAYER, _MAX), 2048),
    "gated": System(("pooling.name=gated",)),
    "disan": System(_encoder("disan", _SOURCE_TO_TOKEN), 300),
    "residual-600": System((*_RESIDUAL, "encoder.hidden_dim={half}"), 600),
    "residual-1200": System((*_RESIDUAL, "encoder.hidden_dim={width}"), 600),
    "shortcut": System((*_SHORTCUT, _MAX), 1024),
    # Not in a paper: it shows how much of a lead is the encoder's, and how much the pooling's.
    "shortcut-generalized": System((*_SHORTCUT, _FIVE_HEADS), 1024),
    "cnn": System(("encoder.name=cnn", "encoder.maps={width}", _MAX), 100),
    "tree-cnn": System(
        ("encoder.name=tree-cnn", "encoder.maps={width}", _MAX), 300, reads_parses=True
    ),
    "spinn": System(_encoder("spinn", _LAST), 300, reads_parses=True),
    "nti": System(_encoder("nti", _LAST), 300),
    "nse": System(_encoder("nse", _LAST), 300),
    "gumbel-300": System(_encoder("gumbel-tree", _LAST), 300),
    "gumbel-600": System(("encoder.name=gumbel-tree", "encoder.hidden_dim={double}", _LAST), 300),
    "cafe": System(_encoder("cafe", "pooling.name=mean-max"), 300),
    # Pretrained for half of the epochs, instead of the ten of the encoder's default.
    "resan": System(
        _encoder("resan", _SOURCE_TO_TOKEN), 300, scaled=("encoder.pretraining_epochs=1",)
    ),
}


# --- Tables and figures ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of results: a split of a task, scored by accuracy."""

    title: str
    task: str
    split: str = "test"


@dataclass(frozen=True)
class Row:
    """A row of results; see paper.toml."""

    title: str
    system: str
    paper: Sequence[float] = ()
    penalty: str = NONE
    overrides: Sequence[str] = ()
    several_seeds: bool = False

    @property
    def short_title(self) -> str:
        """The title without the words that most rows share."""
        return self.title.removeprefix("BiLSTM ").removesuffix(" pooling")


@dataclass(frozen=True)
class Experiment:
    """A table of the paper, or a figure, whose rows are not compared by tests."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    baseline: str | None = None  # the row that all others of a table are compared with

    def row(self, title: str) -> Row:
        return next(row for row in self.rows if row.title == title)

    def column(self, title: str) -> Column:
        return next(column for column in self.columns if column.title == title)


def _experiment(name: str) -> Experiment:
    content = PAPER[name]
    columns = [Column(**column) for column in content["columns"]]
    rows = [Row(**row) for row in [*content.get("earlier", ()), *content["rows"]]]
    return Experiment(content["title"], columns, rows, content.get("baseline"))


#: what the paper reports: tables, figures and claims
PAPER: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("paper.toml").read_text(encoding="utf-8")
)
EXPERIMENTS = {
    name: _experiment(name)
    for name in ("table1", "table2", "table3", "table4", "figure2", "figure3")
}
#: table 1: the systems of earlier papers
EARLIER = EXPERIMENTS["table1"].rows[: len(PAPER["table1"]["earlier"])]
#: figure 2: the families of attention and their systems
FAMILIES = {"vector": "generalized", "scalar": "scalar"}
#: the sentence of the paper's figure 3
SENTENCE = (
    'Martin Luther King "I was not afraid of the words of the violent, but of the silence of the '
    'honest"'
)
