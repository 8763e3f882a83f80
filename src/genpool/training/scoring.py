"""Predictions of a model on a split."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.inference.sentence_vectors import evaluation_mode, length_groups
from genpool.model import Classifier
from genpool.text import WordTable
from genpool.training.dataset import Split


def probabilities(
    model: Classifier, split: Split, table: WordTable, batch_size: int, rows: range | None = None
) -> NDArray[np.float32]:
    """Returns the probabilities (examples, labels) of a split, in its order.

    Args:
        model: the classifier; dropout is off.
        split: the examples.
        table: the word table that the split's tokens refer to.
        batch_size: examples per forward pass, fewer where texts are long.
        rows: the examples to score. Default: all.
    """
    examples = list(range(len(split)) if rows is None else rows)
    scores = np.zeros((len(examples), len(model.labels)), dtype=np.float32)
    longest = split.lengths.max(axis=1)[examples].tolist() if examples else []
    with evaluation_mode():
        for group in length_groups(longest, batch_size):
            batch = split.batch([examples[position] for position in group], table)
            logits = model(batch.to(model.device)).logits.float()  # (group, labels)
            scores[group] = torch.softmax(logits, dim=1).cpu().numpy()
    return scores
