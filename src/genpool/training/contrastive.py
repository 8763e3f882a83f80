"""The supervised contrastive loss: rows of one label are drawn together, others apart.

Khosla et al. 2020, "Supervised Contrastive Learning", Eq. 2, on the input of the classifier. With
few rows every pair of them says something about the labels, which is why SetFit trains on pairs;
here all pairs of a batch are compared at once, beside the cross-entropy.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from genpool.model import Classified, Classifier
from genpool.training.losses import LossTerm


def supervised_contrastive(vectors: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Returns the mean loss over the rows that share their label with another row.

    For row i it is the mean over the other rows p of its label of
    -log(exp(z_i z_p / T) / sum_{a != i} exp(z_i z_a / T)), z being the vectors at length 1.

    Args:
        vectors: (rows, dim).
        labels: (rows,), label ids.
        temperature: the T above: the lower, the more the nearest rows of other labels count.

    Returns:
        A scalar tensor; 0 if no row shares its label with another.
    """
    units = functional.normalize(vectors.float(), dim=1)  # (rows, dim)
    itself = torch.eye(len(units), dtype=torch.bool, device=units.device)  # (rows, rows)
    # Not minus infinity: its product with a zero below would be NaN.
    cosines = (units @ units.T / temperature).masked_fill(itself, -1e9)  # (rows, rows)
    log_shares = cosines.log_softmax(dim=1)  # (rows, rows)
    same = (labels.unsqueeze(1) == labels) & ~itself  # (rows, rows)
    counts = same.sum(dim=1)  # (rows,)
    means = (log_shares * same).sum(dim=1) / counts.clamp(min=1)  # (rows,)
    return -means.sum() / (counts > 0).sum().clamp(min=1)


@dataclass(frozen=True)
class ContrastiveLoss:
    """The supervised contrastive loss as a term of the loss of a step.

    Attributes:
        weight: its factor.
        temperature: as in `supervised_contrastive`.
    """

    weight: float
    temperature: float

    def __call__(self, model: Classifier, output: Classified, labels: Tensor) -> LossTerm:
        """Returns the term for a batch with these label ids (examples,)."""
        features = model.features(output.pooled.vector)  # (examples, features)
        return LossTerm(self.weight * supervised_contrastive(features, labels, self.temperature))
