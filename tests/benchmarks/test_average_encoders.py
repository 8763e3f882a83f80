"""The average of two encoders, weight by weight."""

from __future__ import annotations

import copy

import numpy as np
import torch

from benchmarks.release.average_encoders import averaged
from genpool import SentenceEncoder


def test_every_weight_is_the_weighted_mean() -> None:
    first = SentenceEncoder.from_pretrained()
    second = copy.deepcopy(first)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in second.parameters():
            weights.add_(torch.randn(weights.shape, generator=generator))
    expected = {
        name: 0.6 * tensor.numpy().astype(np.float64) + 0.4 * second.state_dict()[name].numpy()
        for name, tensor in first.state_dict().items()
    }
    for name, tensor in averaged(first, second, 0.6).state_dict().items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], atol=1e-6)
