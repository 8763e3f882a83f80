"""Table 2: accuracies on MultiNLI, in the genres of the training set and in others."""

from __future__ import annotations

from genpool.reproduction.definition import Column, Experiment, Row


def _row(title: str, system: str, inside: float, across: float, penalty: str = "none") -> Row:
    return Row(title, system, {"In": inside, "Cross": across}, penalty)


TABLE2 = Experiment(
    name="table2",
    title="Table 2: accuracies on MultiNLI",
    columns=(Column("In", "multinli", "in"), Column("Cross", "multinli", "cross")),
    rows=(
        _row("CBOW", "cbow", 64.8, 64.5),
        _row("BiLSTM", "bilstm", 66.9, 66.9),
        _row("BiLSTM gated-pooling", "gated", 73.5, 73.6),
        _row("Shortcut stacked BiLSTM", "shortcut", 74.6, 73.6),
        _row("BiLSTM max pooling", "max", 73.6, 73.0),
        _row("BiLSTM mean pooling", "mean", 71.5, 71.6),
        _row("BiLSTM last pooling", "last", 71.6, 71.9),
        _row("BiLSTM generalized pooling", "generalized", 73.8, 74.0, penalty="best"),
    ),
    baseline="BiLSTM max pooling",
)
