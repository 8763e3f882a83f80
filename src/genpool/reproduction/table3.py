"""Table 3: accuracies on single texts, the stars of a review and the age of an author."""

from __future__ import annotations

from genpool.reproduction.definition import Column, Experiment, Row


def _row(title: str, system: str, yelp: float, age: float, penalty: str = "none") -> Row:
    return Row(title, system, {"Yelp": yelp, "Age": age}, penalty)


TABLE3 = Experiment(
    name="table3",
    title="Table 3: accuracies on Yelp and Age",
    columns=(Column("Yelp", "yelp"), Column("Age", "age")),
    rows=(
        _row("BiLSTM max pooling (Lin et al.)", "bilstm-max", 61.99, 77.30),
        _row("CNN max pooling (Lin et al.)", "cnn", 62.05, 78.15),
        _row("BiLSTM self-attention (Lin et al.)", "self-attention", 64.21, 80.45),
        _row("BiLSTM max pooling", "max", 65.00, 82.30),
        _row("BiLSTM mean pooling", "mean", 65.30, 81.78),
        _row("BiLSTM last pooling", "last", 64.95, 81.10),
        _row("BiLSTM generalized pooling", "generalized", 66.55, 82.63, penalty="best"),
    ),
    baseline="BiLSTM max pooling",
)
