"""Table 4: generalized pooling with each of the three penalties, and with none, on every task."""

from __future__ import annotations

from genpool.reproduction.definition import Column, Experiment, Row


def _row(title: str, penalty: str, *accuracies: float) -> Row:
    titles = (column.title for column in COLUMNS)
    return Row(title, "generalized", dict(zip(titles, accuracies, strict=True)), penalty)


COLUMNS = (
    Column("SNLI", "snli"),
    Column("MultiNLI in", "multinli", "in"),
    Column("MultiNLI cross", "multinli", "cross"),
    Column("Yelp", "yelp"),
    Column("Age", "age"),
)

TABLE4 = Experiment(
    name="table4",
    title="Table 4: with and without a penalty",
    columns=COLUMNS,
    rows=(
        _row("penalty on parameter matrices", "parameter", 86.6, 73.8, 74.0, 66.55, 82.45),
        _row("penalty on attention matrices", "attention", 86.2, 73.6, 73.8, 66.15, 82.63),
        _row("penalty on sentence embeddings", "embedding", 86.1, 73.5, 73.6, 65.75, 82.15),
        _row("no penalty", "none", 86.4, 73.7, 73.4, 65.25, 82.18),
    ),
    baseline="no penalty",
)
