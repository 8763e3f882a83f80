"""Table 1: accuracies on SNLI, of earlier systems and of four poolings on one encoder."""

from __future__ import annotations

from genpool.reproduction.definition import Column, Experiment, Row

_SNLI = "SNLI"


def _row(title: str, system: str, accuracy: float) -> Row:
    return Row(title, system, {_SNLI: accuracy})


#: the systems of earlier papers
EARLIER = (
    _row("100D LSTM", "lstm-100", 77.6),
    _row("300D LSTM", "lstm-300", 80.6),
    _row("1024D GRU", "gru", 81.4),
    _row("300D Tree CNN", "tree-cnn", 82.1),
    _row("600D SPINN-PI", "spinn", 83.3),
    _row("600D BiLSTM", "bilstm", 83.3),
    _row("300D NTI-SLSTM-LSTM", "nti", 83.4),
    _row("600D BiLSTM intra-attention", "inner-attention", 84.2),
    _row("600D BiLSTM self-attention", "self-attention", 84.4),
    _row("4096D BiLSTM max pooling", "bilstm-max", 84.5),
    _row("300D NSE", "nse", 84.6),
    _row("600D BiLSTM gated-pooling", "gated", 85.5),
    _row("300D DiSAN", "disan", 85.6),
    _row("300D Gumbel TreeLSTM", "gumbel-300", 85.6),
    _row("600D residual stacked BiLSTM", "residual-600", 85.7),
    _row("300D CAFE", "cafe", 85.9),
    _row("600D Gumbel TreeLSTM", "gumbel-600", 86.0),
    _row("1200D residual stacked BiLSTM", "residual-1200", 86.0),
    _row("300D ReSAN", "resan", 86.3),
)

TABLE1 = Experiment(
    name="table1",
    title="Table 1: accuracies on SNLI",
    columns=(Column(_SNLI, "snli"),),
    rows=(
        *EARLIER,
        # Not in the paper's table 1, but in its comparison: table 2, table 3 and figure 2. The
        # shortcut stacked encoder with generalized instead of max pooling is in no paper.
        Row("CBOW", "cbow"),
        Row("Shortcut stacked BiLSTM", "shortcut", several_seeds=True),
        Row(
            "Shortcut stacked BiLSTM generalized pooling",
            "shortcut-generalized",
            several_seeds=True,
        ),
        Row("CNN max pooling", "cnn"),
        Row("BiLSTM scalar self-attention", "scalar", several_seeds=True),
        Row("BiLSTM max pooling", "max", {_SNLI: 85.3}, several_seeds=True),
        Row("BiLSTM mean pooling", "mean", {_SNLI: 85.0}, several_seeds=True),
        Row("BiLSTM last pooling", "last", {_SNLI: 84.9}),
        Row(
            "BiLSTM generalized pooling",
            "generalized",
            {_SNLI: 86.6},
            penalty="best",
            several_seeds=True,
        ),
    ),
    baseline="BiLSTM max pooling",
)
