"""The other side of the speed comparisons is honest: same loss, same gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from benchmarks.limit import forward_operations
from benchmarks.sizes import MULTINLI, REVIEWS, SNLI, make_batch, make_model
from benchmarks.textbook import TextbookModel, sides_of
from torch.nn import functional

from genpool.encoder.lstm import torch_gate_order

SMALL = [
    replace(size, hidden=6, attention=5, examples=4, frozen=False)
    for size in (SNLI, MULTINLI, REVIEWS)
]


@pytest.mark.parametrize("size", SMALL, ids=lambda size: size.name)
def test_same_loss_and_gradients_as_genpool(size):
    ours = make_model(size, dropout=0.0).double()
    theirs = TextbookModel(ours).double()
    batch = make_batch(ours, size)
    labels = torch.arange(size.examples) % size.classes
    one = functional.cross_entropy(ours(batch).logits, labels)
    other = functional.cross_entropy(theirs(sides_of(batch, size.sides)), labels)
    torch.testing.assert_close(one, other)
    one.backward()
    other.backward()
    encoder = ours.encoder
    pairs = [
        (encoder.embedding.words.grad, theirs.words.weight.grad),
        (encoder.embedding.spelling.letters.grad, theirs.letters.weight.grad),
        (encoder.pooling.w1.grad, torch.stack([each.weight.grad for each in theirs.first])),
        (encoder.pooling.w2.grad, torch.stack([each.weight.grad for each in theirs.second])),
        (ours.mlp.first.weight.grad, theirs.mlp.first.weight.grad),
    ]
    for layer, lstm in zip(encoder.encoder.layers, theirs.lstms, strict=True):
        pairs.append((torch_gate_order(layer.forwards.w.grad), lstm.weight_ih_l0.grad))
        pairs.append((torch_gate_order(layer.backwards.u.grad), lstm.weight_hh_l0_reverse.grad))
    for found, wanted in pairs:
        assert wanted.abs().max() > 0
        torch.testing.assert_close(found, wanted)


def test_the_operations_of_a_small_model_counted_by_hand():
    size = SMALL[2]
    model = make_model(size)
    batch = model.text.batch([list(model.text.vocabulary.words[4:7])])  # three tokens
    # A BiLSTM from 600 to 6 each way, 5 heads of 12 -> 5 -> 12, an MLP from 60 (and 66) to 6.
    per_token = 2 * 24 * (600 + 6) + 5 * 2 * 12 * 5
    assert forward_operations(model, batch) == 2 * (3 * per_token + 60 * 6 + 66 * 6)
