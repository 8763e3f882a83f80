"""The floating-point operations that the equations need, and so the time that sgemm would take."""

from __future__ import annotations

from genpool.model import Classifier
from genpool.text import Batch


def forward_operations(model: Classifier, batch: Batch) -> float:
    """Multiplications and additions of one forward pass: matrix products over real tokens only.

    Element-wise work (gates, softmax, dropout), the letters and the optimizer are not counted: the
    limit is that of a machine on which they cost nothing.
    """
    tokens = float(batch.mask.sum())
    encoder = model.encoder
    per_token = 0.0
    for layer in encoder.encoder.layers:
        for direction in (layer.forwards, layer.backwards):
            per_token += direction.w.numel() + direction.u.numel()
    per_token += encoder.pooling.w1.numel() + encoder.pooling.w2.numel()
    examples = len(batch.mask) / model.sentences_per_example
    per_example = sum(each.weight.numel() for each in (model.mlp.first, model.mlp.second))
    return 2.0 * (tokens * per_token + examples * per_example)


def training_operations(model: Classifier, batch: Batch) -> float:
    """Forward, and twice as much backward: gradients of the inputs and of the weights."""
    return 3.0 * forward_operations(model, batch)
