"""The loss of a step: cross-entropy, and a list of extra terms that anything may add to.

An extra loss is a callable `(model, output, losses) -> terms`. The penalties on heads are one (see
`HeadPenalty`), the term of an encoder whose choices have no gradient is another (`EncoderLoss`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from genpool.model import Classified, Classifier
from genpool.pooling.penalties import Penalty


@dataclass(frozen=True)
class LossTerm:
    """One term that is added to the cross-entropy.

    Attributes:
        value: scalar tensor, its weight included.
        per_example: True (default) for a mean over the examples of the batch, of which every
            process of a distributed run computes its share; False for a term on parameters, which
            is the same in all processes.
        penalty: the distances and active hinges behind a penalty, for its monitor; None for others.
    """

    value: Tensor
    per_example: bool = True
    penalty: Penalty | None = None


class ExtraLoss(Protocol):
    """Computes extra terms of the loss from the output of a training step."""

    @property
    def needs_weights(self) -> bool:
        """Whether `output.pooled.weights` is needed, which costs a padded tensor."""

    def __call__(self, model: Classifier, output: Classified, losses: Tensor) -> Sequence[LossTerm]:
        """Returns the terms; an empty sequence adds nothing.

        Args:
            model: the classifier in training.
            output: what it returned for the batch.
            losses: (examples,), the cross-entropy of each example.
        """


class EncoderLoss:
    """The term of an encoder with `has_extra_loss` as an extra loss of the training loop."""

    needs_weights = False

    def __call__(self, model: Classifier, output: Classified, losses: Tensor) -> list[LossTerm]:
        term = model.encoder.encoder.extra_loss(-losses.detach())
        return [] if term is None else [LossTerm(term)]


@dataclass(frozen=True)
class BatchShare:
    """The part of a batch that one of several processes computes at a time.

    Attributes:
        rows: the training rows to compute. Never empty: all processes have to meet at the
            gradients, so a process without rows computes one and counts none.
        count: how many of them count, 0 or `len(rows)`.
        batch_size: the rows of the whole batch.
        processes: how many processes share it.
        parts: how many parts this process computes one after the other, whose gradients are added.
            Default: 1.
    """

    rows: NDArray[np.int64]
    count: int
    batch_size: int
    processes: int
    parts: int = 1

    @property
    def scale(self) -> float:
        """The factor of a mean over `rows`, so that the sum over parts and the average over
        processes is the mean over the whole batch."""
        return self.processes * self.count / self.batch_size

    def factor(self, term: LossTerm) -> float:
        """The factor of an extra term in the loss of this process."""
        return self.scale if term.per_example else 1.0 / self.parts


@dataclass(frozen=True)
class StepLoss:
    """The loss of one step, and what it consists of.

    Attributes:
        total: scalar tensor, what is differentiated.
        entropy: scalar tensor, the cross-entropy summed over the examples that count.
        terms: the extra terms, unscaled.
    """

    total: Tensor
    entropy: Tensor
    terms: list[LossTerm]

    def with_term(self, term: LossTerm, share: BatchShare) -> StepLoss:
        """Returns the loss with a further term."""
        return StepLoss(
            self.total + share.factor(term) * term.value, self.entropy, [*self.terms, term]
        )


def step_loss(
    model: Classifier,
    output: Classified,
    labels: Tensor,
    share: BatchShare,
    extra_losses: Sequence[ExtraLoss],
) -> StepLoss:
    """Returns the loss whose gradient, averaged over the processes, is that of the whole batch."""
    logits = output.logits.float()  # (examples, labels)
    losses = functional.cross_entropy(logits, labels, reduction="none")  # (examples,)
    entropy = losses.sum() * min(share.count, 1)  # ()
    terms = extra_terms(model, output, losses, extra_losses)
    extra = sum((share.factor(term) * term.value for term in terms), entropy.new_zeros(()))
    return StepLoss(share.processes / share.batch_size * entropy + extra, entropy, terms)


def extra_terms(
    model: Classifier, output: Classified, losses: Tensor, extra_losses: Sequence[ExtraLoss]
) -> list[LossTerm]:
    """Returns the terms of all extra losses, in their order."""
    return [term for extra_loss in extra_losses for term in extra_loss(model, output, losses)]
