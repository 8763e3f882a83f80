"""The other side of the speed comparisons is honest: same loss, same gradients."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.speed.limit import forward_operations
from benchmarks.speed.paper_parts import bilstm_layers, character_cnn, generalized_pooling
from benchmarks.speed.sizes import MULTINLI, REVIEWS, SNLI, make_batch, make_model
from benchmarks.speed.textbook import TextbookModel, sides_of
from genpool.encoder.lstm import torch_gate_order

SMALL = [
    replace(size, hidden=6, attention=5, examples=4, frozen=False)
    for size in (SNLI, MULTINLI, REVIEWS)
]


def gradient(parameter: object) -> Tensor:
    assert isinstance(parameter, Tensor) and parameter.grad is not None
    return parameter.grad


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
    pooling = generalized_pooling(encoder)
    pairs = [
        (gradient(encoder.embedding.words), gradient(theirs.words.weight)),
        (gradient(character_cnn(encoder).letters), gradient(theirs.letters.weight)),
        (gradient(pooling.w1), torch.stack([gradient(head.weight) for head in theirs.first])),
        (gradient(pooling.w2), torch.stack([gradient(head.weight) for head in theirs.second])),
        (gradient(ours.mlp.first.weight), gradient(theirs.mlp.first.weight)),
    ]
    for layer, lstm in zip(bilstm_layers(encoder), theirs.lstms, strict=True):
        forwards, backwards = gradient(layer.forwards.w), gradient(layer.backwards.u)
        pairs.append((torch_gate_order(forwards), gradient(lstm.weight_ih_l0)))
        pairs.append((torch_gate_order(backwards), gradient(lstm.weight_hh_l0_reverse)))
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
