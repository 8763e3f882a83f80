"""The systems that the paper compares: how each differs from the recipe of its task.

At `--scale paper` sizes are the published ones. At smaller scales every recurrent or attentive
encoder has the width of the task's recipe (`{hidden}` for each direction), so that all systems
of a table have about the same size and training time; the report says so.
"""

from __future__ import annotations

from dataclasses import dataclass

#: how the tables of `--scale small`, which have no parses, get them
PARSED = "encoder.parser=spacy"


@dataclass(frozen=True)
class System:
    """A system of a table.

    Attributes:
        title: what the report calls it.
        published: overrides with the published sizes.
        scaled: overrides for smaller scales; `{hidden}` is the width of one direction, `{half}`
            and `{double}` half and twice of it. None: the published overrides hold there too.
        reads_parses: whether its encoder reads syntax trees. Those of the official files are used
            at `--scale paper`; at `--scale small` a parser makes them, at `--scale tiny` they are
            balanced. Default: False.
    """

    title: str
    published: tuple[str, ...]
    scaled: tuple[str, ...] | None = None
    reads_parses: bool = False

    def overrides(self, scale: str, hidden: int) -> tuple[str, ...]:
        """Returns the overrides at a scale."""
        if scale == "paper" or self.scaled is None:
            return self.published
        sizes = {"hidden": hidden, "half": max(1, hidden // 2), "double": 2 * hidden}
        scaled = tuple(override.format(**sizes) for override in self.scaled)
        return (*scaled, PARSED) if self.reads_parses and scale == "small" else scaled


def _encoder(name: str, size: int, *others: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the published and the scaled overrides of an encoder with one width."""
    named = f"encoder.name={name}"
    published = (named, f"encoder.hidden_dim={size}", *others)
    return published, (named, "encoder.hidden_dim={hidden}", *others)


_MEAN, _MAX, _LAST = "pooling.name=mean", "pooling.name=max", "pooling.name=last"
_ONE_LAYER, _FIVE_HEADS = "encoder.layers=1", "pooling.heads=5"
_SHORTCUT = ("encoder.name=shortcut-stacked", "encoder.hidden_dims=[512,1024,2048]")
_SHORTCUT_SCALED = (_SHORTCUT[0], "encoder.hidden_dims=[{half},{hidden},{double}]")

SYSTEMS: dict[str, System] = {
    "generalized": System("BiLSTM generalized pooling", (_FIVE_HEADS,)),
    "max": System("BiLSTM max pooling", (_MAX,)),
    "mean": System("BiLSTM mean pooling", (_MEAN,)),
    "last": System("BiLSTM last pooling", (_LAST,)),
    # With the start of generalized pooling, so that only scalar or vector weights differ.
    "scalar": System(
        "BiLSTM scalar self-attention",
        ("pooling.name=scalar", _FIVE_HEADS, "pooling.initial_std=0.01"),
        ("pooling.name=scalar", _FIVE_HEADS, "pooling.initial_std=0.1"),
    ),
    "cbow": System("CBOW", ("encoder.name=bag-of-words", _MEAN)),
    "lstm-100": System("100D LSTM", *_encoder("lstm", 100, _ONE_LAYER, _LAST)),
    "lstm-300": System("300D LSTM", *_encoder("lstm", 300, _ONE_LAYER, _LAST)),
    "gru": System("1024D GRU", *_encoder("gru", 1024, _ONE_LAYER, _LAST)),
    "bilstm": System("600D BiLSTM", *_encoder("bilstm", 300, _ONE_LAYER, _MEAN)),
    "inner-attention": System(
        "600D BiLSTM intra-attention",
        *_encoder("bilstm", 300, _ONE_LAYER, "pooling.name=inner"),
    ),
    "self-attention": System(
        "600D BiLSTM self-attention",
        (
            *_encoder("bilstm", 300, _ONE_LAYER)[0],
            "pooling.name=scalar",
            "pooling.heads=30",
            "penalty.name=scalar",
            "penalty.weight=0.3",
        ),
        (
            *_encoder("bilstm", 300, _ONE_LAYER)[1],
            "pooling.name=scalar",
            "pooling.heads=10",
            "penalty.name=scalar",
            "penalty.weight=0.3",
        ),
    ),
    "bilstm-max": System("4096D BiLSTM max pooling", *_encoder("bilstm", 2048, _ONE_LAYER, _MAX)),
    "gated": System("600D BiLSTM gated-pooling", ("pooling.name=gated",)),
    "disan": System("300D DiSAN", *_encoder("disan", 300, "pooling.name=source-to-token")),
    "residual-600": System(
        "600D residual stacked BiLSTM",
        ("encoder.name=residual-stacked", "encoder.hidden_dim=300", "encoder.layers=3", _MAX),
        ("encoder.name=residual-stacked", "encoder.hidden_dim={half}", "encoder.layers=3", _MAX),
    ),
    "residual-1200": System(
        "1200D residual stacked BiLSTM",
        ("encoder.name=residual-stacked", "encoder.hidden_dim=600", "encoder.layers=3", _MAX),
        ("encoder.name=residual-stacked", "encoder.hidden_dim={hidden}", "encoder.layers=3", _MAX),
    ),
    "shortcut": System("Shortcut stacked BiLSTM", (*_SHORTCUT, _MAX), (*_SHORTCUT_SCALED, _MAX)),
    # Not in a paper: it shows how much of a lead is the encoder's, and how much the pooling's.
    "shortcut-generalized": System(
        "Shortcut stacked BiLSTM generalized pooling",
        (*_SHORTCUT, _FIVE_HEADS),
        (*_SHORTCUT_SCALED, _FIVE_HEADS),
    ),
    "cnn": System(
        "CNN max pooling",
        ("encoder.name=cnn", "encoder.maps=100", _MAX),
        ("encoder.name=cnn", "encoder.maps={hidden}", _MAX),
    ),
    "tree-cnn": System(
        "300D Tree CNN",
        ("encoder.name=tree-cnn", "encoder.maps=300", _MAX),
        ("encoder.name=tree-cnn", "encoder.maps={hidden}", _MAX),
        reads_parses=True,
    ),
    "spinn": System("600D SPINN-PI", *_encoder("spinn", 300, _LAST), reads_parses=True),
    "nti": System("300D NTI-SLSTM-LSTM", *_encoder("nti", 300, _LAST)),
    "nse": System("300D NSE", *_encoder("nse", 300, _LAST)),
    "gumbel-300": System("300D Gumbel TreeLSTM", *_encoder("gumbel-tree", 300, _LAST)),
    "gumbel-600": System(
        "600D Gumbel TreeLSTM",
        ("encoder.name=gumbel-tree", "encoder.hidden_dim=600", _LAST),
        ("encoder.name=gumbel-tree", "encoder.hidden_dim={double}", _LAST),
    ),
    "cafe": System("300D CAFE", *_encoder("cafe", 300, "pooling.name=mean-max")),
    "resan": System(
        "300D ReSAN",
        _encoder("resan", 300, "pooling.name=source-to-token")[0],
        (
            *_encoder("resan", 300, "pooling.name=source-to-token")[1],
            # Half of the epochs at smaller scales, instead of the ten of the encoder's default.
            "encoder.pretraining_epochs=1",
        ),
    ),
}
