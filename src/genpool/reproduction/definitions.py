"""The systems that the paper compares, and its tables and figures as rows of them.

At `--scale paper` sizes are the published ones. At smaller scales every recurrent or attentive
encoder has the width of the task's recipe, so that all systems of a table have about the same size
and training time; the report says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from genpool.errors import counted

#: a row's penalty: "none", one of PENALTIES with its weight chosen on dev, or the best of all
BEST, NONE = "best", "none"
PENALTIES = ("parameter", "attention", "embedding")


@dataclass(frozen=True)
class System:
    """How a system differs from the recipe of its task.

    In the settings, `{width}` is the width of one direction of the encoder, `{half}` and `{double}`
    half and twice of it. Syntax trees are those of the official files at `--scale paper`; at
    `--scale small` a parser makes them, at `--scale tiny` they are balanced.
    """

    overrides: tuple[str, ...]
    width: int = 0  # the published one, used at `--scale paper` in place of the scale's
    published: tuple[str, ...] = ()  # further settings at `--scale paper`
    scaled: tuple[str, ...] = ()  # further settings at smaller scales
    reads_parses: bool = False  # whether its encoder reads syntax trees

    def overrides_at(self, scale: str, width: int) -> tuple[str, ...]:
        """Returns the settings at a scale, whose encoders have a width."""
        width = self.width if scale == "paper" else width
        sizes = {"width": width, "half": max(1, width // 2), "double": 2 * width}
        overrides = tuple(override.format(**sizes) for override in self.overrides)
        parser = ("encoder.parser=spacy",) if self.reads_parses and scale == "small" else ()
        return (*overrides, *(self.published if scale == "paper" else self.scaled), *parser)


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


@dataclass(frozen=True)
class Column:
    """A column of results: a split of a task, scored by accuracy."""

    title: str
    task: str
    split: str = "test"


@dataclass(frozen=True)
class Row:
    """A row of results."""

    title: str  # as in the paper
    system: str  # in `SYSTEMS`
    paper: tuple[float, ...] = ()  # its accuracies in percent, one for each column, if it has any
    penalty: str = NONE  # or one whose weight is chosen on the dev set, or the best of all
    overrides: tuple[str, ...] = ()  # further settings of the row
    several_seeds: bool = False  # to show their spread

    @property
    def short_title(self) -> str:
        """The title without the words that most rows share."""
        return self.title.removeprefix("BiLSTM ").removesuffix(" pooling")


@dataclass(frozen=True)
class Experiment:
    """A table of the paper, or a figure, whose rows are not compared by tests."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    baseline: str | None = None  # the row that all others of a table are compared with

    def row(self, title: str) -> Row:
        return next(row for row in self.rows if row.title == title)

    def column(self, title: str) -> Column:
        return next(column for column in self.columns if column.title == title)


#: table 1: the systems of earlier papers
EARLIER = (
    Row("100D LSTM", "lstm-100", (77.6,)),
    Row("300D LSTM", "lstm-300", (80.6,)),
    Row("1024D GRU", "gru", (81.4,)),
    Row("300D Tree CNN", "tree-cnn", (82.1,)),
    Row("600D SPINN-PI", "spinn", (83.3,)),
    Row("600D BiLSTM", "bilstm", (83.3,)),
    Row("300D NTI-SLSTM-LSTM", "nti", (83.4,)),
    Row("600D BiLSTM intra-attention", "inner-attention", (84.2,)),
    Row("600D BiLSTM self-attention", "self-attention", (84.4,)),
    Row("4096D BiLSTM max pooling", "bilstm-max", (84.5,)),
    Row("300D NSE", "nse", (84.6,)),
    Row("600D BiLSTM gated-pooling", "gated", (85.5,)),
    Row("300D DiSAN", "disan", (85.6,)),
    Row("300D Gumbel TreeLSTM", "gumbel-300", (85.6,)),
    Row("600D residual stacked BiLSTM", "residual-600", (85.7,)),
    Row("300D CAFE", "cafe", (85.9,)),
    Row("600D Gumbel TreeLSTM", "gumbel-600", (86.0,)),
    Row("1200D residual stacked BiLSTM", "residual-1200", (86.0,)),
    Row("300D ReSAN", "resan", (86.3,)),
)
#: table 1: the poolings on one encoder, and what the paper compares with elsewhere (table 2, table
#: 3 and figure 2); the shortcut stacked encoder with generalized pooling is in no paper
_COMPARED = (
    Row("CBOW", "cbow"),
    Row("Shortcut stacked BiLSTM", "shortcut", several_seeds=True),
    Row("Shortcut stacked BiLSTM generalized pooling", "shortcut-generalized", several_seeds=True),
    Row("CNN max pooling", "cnn"),
    Row("BiLSTM scalar self-attention", "scalar", several_seeds=True),
    Row("BiLSTM max pooling", "max", (85.3,), several_seeds=True),
    Row("BiLSTM mean pooling", "mean", (85.0,), several_seeds=True),
    Row("BiLSTM last pooling", "last", (84.9,)),
    Row("BiLSTM generalized pooling", "generalized", (86.6,), BEST, several_seeds=True),
)
_SNLI, _YELP, _AGE = Column("SNLI", "snli"), Column("Yelp", "yelp"), Column("Age", "age")
#: figure 2: the families of attention and their systems, and the numbers of heads in the paper
FAMILIES = {"vector": "generalized", "scalar": "scalar"}
HEADS = (1, 3, 5, 7, 9)
#: the sentence of the paper's figure 3
SENTENCE = (
    'Martin Luther King "I was not afraid of the words of the violent, but of the silence of the '
    'honest"'
)

EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment(
        "Table 1: accuracies on SNLI", (_SNLI,), (*EARLIER, *_COMPARED), "BiLSTM max pooling"
    ),
    "table2": Experiment(
        "Table 2: accuracies on MultiNLI",
        (Column("In", "multinli", "in"), Column("Cross", "multinli", "cross")),
        (
            Row("CBOW", "cbow", (64.8, 64.5)),
            Row("BiLSTM", "bilstm", (66.9, 66.9)),
            Row("BiLSTM gated-pooling", "gated", (73.5, 73.6)),
            Row("Shortcut stacked BiLSTM", "shortcut", (74.6, 73.6)),
            Row("BiLSTM max pooling", "max", (73.6, 73.0)),
            Row("BiLSTM mean pooling", "mean", (71.5, 71.6)),
            Row("BiLSTM last pooling", "last", (71.6, 71.9)),
            Row("BiLSTM generalized pooling", "generalized", (73.8, 74.0), BEST),
        ),
        "BiLSTM max pooling",
    ),
    "table3": Experiment(
        "Table 3: accuracies on Yelp and Age",
        (_YELP, _AGE),
        (
            Row("BiLSTM max pooling (Lin et al.)", "bilstm-max", (61.99, 77.30)),
            Row("CNN max pooling (Lin et al.)", "cnn", (62.05, 78.15)),
            Row("BiLSTM self-attention (Lin et al.)", "self-attention", (64.21, 80.45)),
            Row("BiLSTM max pooling", "max", (65.00, 82.30)),
            Row("BiLSTM mean pooling", "mean", (65.30, 81.78)),
            Row("BiLSTM last pooling", "last", (64.95, 81.10)),
            Row("BiLSTM generalized pooling", "generalized", (66.55, 82.63), BEST),
        ),
        "BiLSTM max pooling",
    ),
    "table4": Experiment(
        "Table 4: with and without a penalty",
        (
            _SNLI,
            Column("MultiNLI in", "multinli", "in"),
            Column("MultiNLI cross", "multinli", "cross"),
            _YELP,
            _AGE,
        ),
        tuple(
            Row(title, "generalized", accuracies, penalty)
            for title, accuracies, penalty in (
                ("penalty on parameter matrices", (86.6, 73.8, 74.0, 66.55, 82.45), "parameter"),
                ("penalty on attention matrices", (86.2, 73.6, 73.8, 66.15, 82.63), "attention"),
                ("penalty on sentence embeddings", (86.1, 73.5, 73.6, 65.75, 82.15), "embedding"),
                ("no penalty", (86.4, 73.7, 73.4, 65.25, 82.18), NONE),
            )
        ),
        "no penalty",
    ),
    "figure2": Experiment(
        "Figure 2: vector and scalar attention with several heads",
        (_SNLI,),
        tuple(
            Row(
                f"{family}, {counted(heads, 'head')}", system, (), NONE, (f"pooling.heads={heads}",)
            )
            for family, system in FAMILIES.items()
            for heads in HEADS
        ),
    ),
    "figure3": Experiment(
        "Figure 3: what every head looks at",
        (_AGE,),
        (
            Row("penalty on attention matrices", "generalized", penalty="attention"),
            Row("no penalty", "generalized"),
        ),
    ),
}
