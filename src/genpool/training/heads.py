"""The penalties that keep heads apart, and how far apart the heads of a model are.

A penalty only acts on pairs of heads that are closer than its threshold, and an active one can be
too weak to matter. Both are measured at every evaluation, on a seeded sample of rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from genpool.errors import InputError
from genpool.inference.sentence_vectors import evaluation_mode
from genpool.model import Classified, Classifier, SentenceEncoder
from genpool.pooling import Pooled
from genpool.pooling.penalties import (
    Average,
    Penalty,
    attention_penalty,
    embedding_penalty,
    parameter_penalty,
    scalar_attention_penalty,
)
from genpool.text import Batch
from genpool.training.dataset import Split
from genpool.training.objective import ExtraLoss, LossTerm
from genpool.training.preparation import Prepared
from genpool.training.settings import PenaltySettings, RunSettings

#: examples that are measured at an evaluation
SAMPLE_EXAMPLES = 32
#: where texts are long fewer are measured: attention weights need memory for every padded position
MAX_PADDED_TOKENS = 4096


def head_penalties(
    settings: PenaltySettings, encoder: SentenceEncoder, pooled: Pooled, sides: int
) -> list[Penalty]:
    """Returns the penalties of a batch: one per side of a pair, as in the released program; one on
    parameters; none where the model has nothing of the kind."""
    name, threshold, weight = settings.name, settings.threshold, settings.weight
    if name == "parameter":
        parameters = encoder.pooling.head_parameters()
        return [] if parameters is None else [parameter_penalty(parameters, threshold, weight)]
    values = pooled.heads if name == "embedding" else pooled.weights
    if values is None or name == "none":
        return []
    if name == "scalar":
        return [scalar_attention_penalty(side, weight) for side in values.chunk(sides)]
    penalty = attention_penalty if name == "attention" else embedding_penalty
    return [penalty(side, threshold, weight, settings.average) for side in values.chunk(sides)]


class HeadPenalty:
    """The penalty of the settings as an extra loss of the training loop."""

    def __init__(self, settings: PenaltySettings) -> None:
        self.settings = settings
        self.needs_weights = settings.name in ("attention", "scalar")

    def __call__(
        self, model: Classifier, output: Classified, losses: Tensor, targets: Tensor
    ) -> list[LossTerm]:
        per_example = self.settings.name != "parameter"
        sides = model.sentences_per_example
        return [
            LossTerm(penalty.term, per_example, penalty)
            for penalty in head_penalties(self.settings, model.encoder, output.pooled, sides)
        ]


def add_penalties(sums: dict[str, float], terms: Sequence[LossTerm], share: float) -> float:
    """Adds the penalties of a part of a step, which is `share` of the batch, to the sums since the
    last evaluation; returns the smallest distance. The sums of all processes are those of one."""
    penalties = [term.penalty for term in terms if term.penalty is not None]
    distances = torch.cat([penalty.distances.flatten() for penalty in penalties])
    sums["penalty"] += share * sum(float(penalty.term.detach()) for penalty in penalties)
    active = sum(float(penalty.active) for penalty in penalties) / len(penalties)
    sums["penalty_active"] += share * active
    if not len(distances):  # one head has no pairs
        return math.inf
    sums["penalty_distance"] += share * float(distances.mean())
    return float(distances.min())


def penalty_metrics(sums: Mapping[str, float], steps: float, closest: float) -> dict[str, float]:
    """Returns the means over so many steps as metrics; empty where there is no penalty."""
    if not steps:
        return {}
    report = {name: sums[name] / steps for name in ("penalty", "penalty_active")}
    report["penalty_distance_mean"] = sums["penalty_distance"] / steps
    return report | ({"penalty_distance_min": closest} if closest < math.inf else {})


def inactive_warning(settings: PenaltySettings, mean_distance: float) -> str:
    """Returns the warning for a penalty that had no active hinge since the last evaluation."""
    return (
        f"the {settings.name} penalty was inactive: no pair of heads was closer than its threshold "
        f"{settings.threshold:g} in any step (mean distance {mean_distance:.3g}). It has no effect."
    )


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
        values: dict[str, float] = {}
        for name in ("parameter", "attention", "embedding"):
            distances = getattr(self, name if name == "attention" else f"{name}s")
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
    if encoder.pooling.heads < 2:
        raise InputError("the model's pooling has 1 head; expected two or more to compare.")
    if not len(batch.mask):
        raise InputError("the batch has no sentence; expected one or more.")
    with evaluation_mode():
        pooled = encoder(batch.to(encoder.device), weights=True)
        parameters, attention, embeddings = (
            head_penalties(PenaltySettings(name, 1.0, threshold, average), encoder, pooled, sides)
            for name in ("parameter", "attention", "embedding")
        )
        return HeadsReport(
            encoder.pooling.heads,
            len(batch.mask),
            threshold,
            _summary(parameters) if parameters else None,
            _summary(attention) if attention else None,
            _summary(embeddings),
        )


def run_metrics(
    settings: RunSettings, prepared: Prepared, extra_losses: Sequence[ExtraLoss]
) -> dict[str, float]:
    """Returns the distances on rows of dev and, with a penalty, its share of the gradient."""
    train, dev, table = prepared.train, prepared.dev, prepared.table
    penalty, seed = settings.penalty, settings.training.seed
    batch = dev.batch(sample_rows(dev, seed), table)
    metrics = heads_report(prepared.model, batch, penalty.threshold, penalty.average).metrics()
    if penalty.is_enabled:
        rows = sample_rows(train, seed)
        batch, targets = train.batch(rows, table), torch.from_numpy(train.targets[rows])
        share = penalty_gradient_share(prepared.model, batch, targets, extra_losses)
        metrics |= {} if share is None else {"penalty_gradient_share": share}
    return metrics


def penalty_gradient_share(
    model: Classifier, batch: Batch, targets: Tensor, extra_losses: Sequence[ExtraLoss]
) -> float | None:
    """Returns the norm of the penalties' gradient on the pooling over that of the whole loss.

    It exceeds 1 where the two pull in opposite directions; None where no extra loss is a penalty.
    """
    parameters = [weight for weight in model.encoder.pooling.parameters() if weight.requires_grad]
    with evaluation_mode(), torch.enable_grad():
        needs_weights = any(extra_loss.needs_weights for extra_loss in extra_losses)
        output: Classified = model(batch.to(model.device), weights=needs_weights)
        targets, logits = targets.to(model.device), output.logits.float()
        losses = functional.cross_entropy(logits, targets, reduction="none")  # (examples,)
        terms = [term for extra in extra_losses for term in extra(model, output, losses, targets)]
        penalties = [term.value for term in terms if term.penalty is not None]
        if not penalties or not parameters:
            return None
        penalty_norm = _gradient_norm(torch.stack(penalties).sum(), parameters)
        loss = losses.mean() + torch.stack([term.value for term in terms]).sum()
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
    squares = [float(grad.double().square().sum()) for grad in gradients if grad is not None]
    return math.sqrt(sum(squares))
