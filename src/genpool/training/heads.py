"""How far apart the heads of a model are, and which penalties would act on them.

A penalty only acts on pairs of heads that are closer than its threshold, and an active penalty can
still be too weak to matter. So the training loop measures both at every evaluation of a multi-head
model, whether or not the run has a penalty, and writes them into metrics.jsonl:

    heads_parameter_distance_mean, _min   between the heads' parameters W1, unless they share them
    heads_attention_distance_mean, _min   between the heads' attention matrices
    heads_embedding_distance_mean, _min   between the heads' vectors
    heads_*_active                        share of the hinges that would be active at the threshold
    penalty_gradient_share                see `penalty_gradient_share`; only with a penalty

All distances are squared norms of differences (Frobenius norms of matrices), the quantity that the
hinges of the paper's Eq. 7-9 compare with the threshold. They are measured without dropout on a
fixed, seeded sample (`sample_rows`): attention and vectors on rows of the dev set, gradients on
rows of the training set. Nothing is added to a training step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from genpool.errors import InputError
from genpool.inference.sentence_vectors import evaluation_mode
from genpool.model import Classified, Classifier, SentenceEncoder
from genpool.pooling.penalties import (
    Average,
    Penalty,
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
)
from genpool.text import Batch
from genpool.training.dataset import Split
from genpool.training.losses import ExtraLoss, extra_terms

#: examples that are measured at an evaluation
SAMPLE_EXAMPLES = 32
#: where texts are long fewer are measured: attention weights need memory for every padded position
MAX_PADDED_TOKENS = 4096


@dataclass(frozen=True)
class HeadDistances:
    """Squared distances between heads in one respect.

    Attributes:
        mean: the mean over the pairs of heads; of attention and vectors, over the sentences too.
        smallest: the distance of the closest pair, averaged over the sentences.
        active: share of the hinges with a distance below the threshold, from 0 to 1.
    """

    mean: float
    smallest: float
    active: float


@dataclass(frozen=True)
class HeadsReport:
    """How far apart the heads of a model are.

    Attributes:
        heads: number of heads.
        sentences: number of sentences that attention and vectors were measured on.
        threshold: the hinges' threshold, the paper's lambda.
        parameters: distances of the heads' parameters W1; None where the heads share them.
        attention: distances of the attention matrices; None where a pooling has no weights.
        embeddings: distances of the heads' vectors v_i.
    """

    heads: int
    sentences: int
    threshold: float
    parameters: HeadDistances | None
    attention: HeadDistances | None
    embeddings: HeadDistances

    def metrics(self) -> dict[str, float]:
        """Returns the values by the names that metrics.jsonl has for them."""
        measured = {
            "parameter": self.parameters,
            "attention": self.attention,
            "embedding": self.embeddings,
        }
        values: dict[str, float] = {}
        for name, distances in measured.items():
            if distances is not None:
                values[f"heads_{name}_distance_mean"] = distances.mean
                values[f"heads_{name}_distance_min"] = distances.smallest
                values[f"heads_{name}_active"] = distances.active
        return values


def heads_report(
    model: SentenceEncoder | Classifier,
    batch: Batch,
    threshold: float = 1.0,
    average: Average = "sentence",
) -> HeadsReport:
    """Measures the distances between the heads of a model, without dropout.

    Args:
        model: an encoder or classifier whose pooling has two heads or more.
        batch: the sentences that attention and vectors are measured on, as
            `model.text.batch(words)` returns them; for a `PairClassifier` all first sentences,
            then all second ones.
        threshold: the hinges' threshold, the paper's lambda. Default: 1, as in the paper.
        average: "sentence" (default) for a hinge per sentence, as in the paper; "batch" for one
            hinge of the mean distance on each side, as in the released program. Decides `active`
            only.

    Returns:
        Mean and smallest distance over the pairs of heads, and the share of active hinges, of
        parameters, attention and vectors.

    Raises:
        InputError: the model has a single head, or the batch no sentence.

    Example:
        >>> model = TextClassifier.from_pretrained("runs/age/best")
        >>> words = [model.text.words(text) for text in texts]
        >>> report = heads_report(model, model.text.batch(words))
        >>> report.parameters.mean, report.parameters.active
    """
    # A classifier's encoder is a SentenceEncoder, a SentenceEncoder's is the layer inside it.
    encoder = model.encoder if isinstance(model, Classifier) else model
    sides = model.sentences_per_example if isinstance(model, Classifier) else 1
    if not encoder.pooling.multi_head:
        raise InputError("the model's pooling has 1 head; expected two or more to compare.")
    if not len(batch.mask):
        raise InputError("the batch has no sentence; expected one or more.")
    with evaluation_mode():
        pooled = encoder(batch.to(encoder.device), weights=True)
        parameters = encoder.pooling.head_parameters()
        weights = pooled.weights

        def attention(side: Tensor) -> Penalty:
            return attention_penalty(side, threshold, average=average)

        def embedding(side: Tensor) -> Penalty:
            return embedding_penalty(side, threshold, average=average)

        return HeadsReport(
            heads=encoder.pooling.heads,
            sentences=len(batch.mask),
            threshold=threshold,
            parameters=None
            if parameters is None
            else _summary([parameter_penalty(parameters, threshold)]),
            attention=None if weights is None else _by_side(weights, sides, attention),
            embeddings=_by_side(pooled.heads, sides, embedding),
        )


def penalty_gradient_share(
    model: Classifier, batch: Batch, labels: Tensor, extra_losses: Sequence[ExtraLoss]
) -> float | None:
    """Returns how much of the gradient on the pooling's parameters is the penalty's.

    That is the norm of the penalty terms' gradient over the norm of the gradient of the whole loss
    (mean cross-entropy and all extra terms), both on all parameters of the pooling, on one batch
    and without dropout. It exceeds 1 where the two pull in opposite directions.

    Args:
        model: the classifier.
        batch: training sentences, with all first sentences before all second ones.
        labels: (examples,) their label ids.
        extra_losses: the run's extra losses, the penalty among them.

    Returns:
        The share; 0 where the penalty is asleep; None where no extra loss is a penalty.
    """
    parameters = [weight for weight in model.encoder.pooling.parameters() if weight.requires_grad]
    with evaluation_mode(), torch.enable_grad():
        needs_weights = any(extra_loss.needs_weights for extra_loss in extra_losses)
        output: Classified = model(batch.to(model.device), weights=needs_weights)
        losses = functional.cross_entropy(
            output.logits.float(), labels.to(model.device), reduction="none"
        )  # (examples,)
        terms = extra_terms(model, output, losses, extra_losses)
        penalties = [term.value for term in terms if term.penalty is not None]
        if not penalties or not parameters:
            return None
        loss = sum((term.value for term in terms), losses.mean())
        penalty_norm = _gradient_norm(torch.stack(penalties).sum(), parameters)
        loss_norm = _gradient_norm(loss, parameters)
    return penalty_norm / loss_norm if loss_norm else 0.0


def sample_rows(split: Split, seed: int) -> list[int]:
    """Returns a seeded choice of SAMPLE_EXAMPLES rows, fewer where the texts are long."""
    longest_sides = split.lengths.max(axis=1) if len(split) else np.zeros(0, dtype=np.int64)
    rows: list[int] = []
    longest = 0
    for row in np.random.default_rng(seed).permutation(len(split))[:SAMPLE_EXAMPLES].tolist():
        longest = max(longest, int(longest_sides[row]))
        if rows and (len(rows) + 1) * split.sides * longest > MAX_PADDED_TOKENS:
            break
        rows.append(row)
    return rows


def _by_side(values: Tensor, sides: int, penalty: Callable[[Tensor], Penalty]) -> HeadDistances:
    """Measures the first and the second sentences of pairs apart, as the penalties do."""
    return _summary([penalty(side) for side in values.chunk(sides)])


def _summary(penalties: Sequence[Penalty]) -> HeadDistances:
    # The sentences come first: a sentence of one token has distance 0 in any model, so that the
    # smallest over all sentences would say nothing.
    of_pairs = [
        penalty.distances.double().reshape(-1, penalty.distances.shape[-1]).mean(dim=0)
        for penalty in penalties
    ]  # one (pairs,) for each side
    distances = torch.stack(of_pairs).mean(dim=0)  # (pairs,)
    active = sum(float(penalty.active) for penalty in penalties) / len(penalties)
    return HeadDistances(float(distances.mean()), float(distances.min()), active)


def _gradient_norm(value: Tensor, parameters: Sequence[Tensor]) -> float:
    if not value.requires_grad:  # a constant, such as the penalty on no pair at all
        return 0.0
    gradients = torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
    squares = [
        float(gradient.double().square().sum()) for gradient in gradients if gradient is not None
    ]
    return math.sqrt(sum(squares))
