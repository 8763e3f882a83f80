"""The floating-point operations that the equations need, and so the time that sgemm would take."""

from __future__ import annotations

from benchmarks.speed.paper_parts import bilstm_layers, generalized_pooling
from genpool.model import Classifier
from genpool.text import Batch


def forward_operations(model: Classifier, batch: Batch) -> float:
    """Returns multiplications and additions of one forward pass: matrix products of real tokens.

    Element-wise work (gates, softmax, dropout), the characters and the optimizer are not counted:
    the limit is that of a machine on which they cost nothing.
    """
    tokens = float(batch.mask.sum())
    pooling = generalized_pooling(model.encoder)
    per_token = 0.0
    for layer in bilstm_layers(model.encoder):
        for direction in (layer.forwards, layer.backwards):
            per_token += direction.w.numel() + direction.u.numel()
    per_token += pooling.w1.numel() + pooling.w2.numel()
    examples = len(batch.mask) / model.sentences_per_example
    per_example = sum(layer.weight.numel() for layer in (model.mlp.first, model.mlp.second))
    return 2.0 * (tokens * per_token + examples * per_example)


def training_operations(model: Classifier, batch: Batch) -> float:
    """Returns the operations of a step: backward has twice those of forward."""
    return 3.0 * forward_operations(model, batch)
