"""Predictions of a model on a split."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from genpool.inference.batching import evaluation_mode, length_groups
from genpool.model import Classifier
from genpool.text import WordTable
from genpool.training.dataset import Split


def probabilities(
    model: Classifier, split: Split, table: WordTable, batch_size: int, rows: range | None = None
) -> NDArray[np.float32]:
    """(examples, labels), in the order of the split; `rows` takes some of its examples only."""
    numbers = list(range(len(split)) if rows is None else rows)
    found = np.zeros((len(numbers), len(model.labels)), dtype=np.float32)
    longest = split.lengths.max(axis=1)[numbers].tolist() if numbers else []
    with evaluation_mode(model):
        for group in length_groups(longest, batch_size):
            batch = split.batch([numbers[place] for place in group], table).to(model.device)
            logits = model(batch).logits.float()
            found[group] = torch.softmax(logits, dim=1).cpu().numpy()
    return found


def accuracy(found: NDArray[np.float32], split: Split) -> float:
    """The share of examples whose most probable label is the gold one."""
    return float((found.argmax(axis=1) == split.labels).mean()) if len(split) else 0.0
