"""How well predicted scores agree with the gold ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from genpool.disk.markdown import markdown_table
from genpool.evaluation.similarity import correlations
from genpool.evaluation.vectors import FloatArray


@dataclass(frozen=True)
class ScoreReport:
    """The correlation of predicted and gold scores.

    Args:
        total: the number of rows.
        pearson: Pearson's correlation.
        spearman: Spearman's correlation.
    """

    total: int
    pearson: float
    spearman: float

    @classmethod
    def from_scores(cls, gold: FloatArray, predicted: FloatArray) -> ScoreReport:
        """Returns the report on the scores of the same rows; 0 where a side does not vary."""
        for values in (gold, predicted):
            # Values that differ by rounding only are constant: a model that has learned nothing.
            if len(values) < 2 or np.ptp(values) <= 1e-12 * np.abs(values).max():
                return cls(len(gold), 0.0, 0.0)
        return cls(len(gold), *correlations(gold, predicted, "predicted scores"))

    def to_dict(self) -> dict[str, Any]:
        """Returns the three values, ready for JSON."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Returns the three values as a Markdown table of one row."""
        row = [f"{self.total:,}", f"{self.pearson:.4f}", f"{self.spearman:.4f}"]
        return markdown_table(["rows", "Pearson", "Spearman"], [row]) + "\n"

    def __str__(self) -> str:
        return f"Pearson {self.pearson:.4f}, Spearman {self.spearman:.4f}"
