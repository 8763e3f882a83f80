"""The encoders of the reproduction beside their references, added to those of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import nn

from genpool.reproduction.encoders import (
    CAFEEncoder,
    DiSANEncoder,
    GumbelTreeEncoder,
    NSEEncoder,
    NTIEncoder,
    ReSANEncoder,
    SPINNEncoder,
    TreeCNNEncoder,
)
from tests.encoder.cases import CASES, INPUT_DIM, Case, direction, to_numpy
from tests.helpers.tree_shapes import Nested, halves, middle_heads

from . import reference, tree_reference
from .tree_reference import Layer


def weights_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: to_numpy(parameter) for name, parameter in module.named_parameters()}


def _disan(encoder: DiSANEncoder, sentence: np.ndarray) -> np.ndarray:
    everyone = [True] * len(sentence)
    return reinforced(encoder, sentence, everyone, everyone)


def mapped(inputs: nn.Module, sentence: np.ndarray) -> np.ndarray:
    """The words at the width of the encoder, as NSE and CAFE need them."""
    return sentence @ to_numpy(inputs.weight).T if isinstance(inputs, nn.Linear) else sentence


def _nse(encoder: NSEEncoder, sentence: np.ndarray) -> np.ndarray:
    words, compose = mapped(encoder.inputs, sentence), weights_of(encoder.compose)
    return reference.nse(words, direction(encoder.read), compose, direction(encoder.write))


def _cafe(encoder: CAFEEncoder, sentence: np.ndarray) -> np.ndarray:
    machines = (encoder.joined, encoder.difference, encoder.product)
    return reference.cafe(
        mapped(encoder.inputs, sentence),
        [weights_of(layer) for layer in encoder.highways],
        weights_of(encoder.key),
        [weights_of(machine) for machine in machines],
        direction(encoder.lstm),
    )


def _resan(encoder: ReSANEncoder, sentence: np.ndarray) -> np.ndarray:
    selectors = (encoder.head_selector, encoder.dependent_selector)
    odds = [reference.log_odds(sentence, weights_of(selector)) for selector in selectors]
    return reinforced(encoder, sentence, *([value >= 0 for value in row] for row in odds))


def reinforced(
    encoder: DiSANEncoder | ReSANEncoder,
    sentence: np.ndarray,
    heads: list[bool],
    dependents: list[bool],
) -> np.ndarray:
    """ReSAN's states where heads and dependents are chosen; DiSAN's, where all words are."""
    return np.hstack(
        [
            reference.reinforced_attention(
                sentence, weights_of(part), part.reverse, heads, dependents
            )
            for part in (encoder.forwards, encoder.backwards)
        ]
    )


def layer(module: nn.Linear) -> Layer:
    bias = np.zeros(module.out_features) if module.bias is None else to_numpy(module.bias)
    return Layer(to_numpy(module.weight), bias)


def spinn(encoder: SPINNEncoder, sentence: np.ndarray, tree: Nested | None = None) -> np.ndarray:
    tracking = None
    if encoder.tracking_dim:
        buffer, stack = layer(encoder.tracking_buffer), layer(encoder.tracking_stack)

        def tracking(first, top, below, e):
            return buffer(first) + stack(top, below, e)

    return tree_reference.spinn(
        sentence,
        halves(0, len(sentence)) if tree is None else tree,
        layer(encoder.words),
        layer(encoder.composition),
        tracking,
        encoder.tracking_dim,
    )


def tree_cnn(
    encoder: TreeCNNEncoder,
    sentence: np.ndarray,
    heads: list[int] | None = None,
    relations: list[int] | None = None,
) -> np.ndarray:
    return tree_reference.tree_cnn(
        sentence,
        middle_heads(len(sentence)) if heads is None else heads,
        [0] * len(sentence) if relations is None else relations,
        layer(encoder.parent),
        to_numpy(encoder.relations),
    )


def nti(encoder: NTIEncoder, sentence: np.ndarray) -> np.ndarray:
    return tree_reference.nti(
        sentence,
        direction(encoder.leaves),
        layer(encoder.gates),
        layer(encoder.candidate),
        layer(encoder.output_gate),
    )


def gumbel_tree(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> tuple[np.ndarray, Nested]:
    leaves = tree_reference.lstm_nodes(sentence, direction(encoder.leaves))
    return tree_reference.gumbel_tree(leaves, layer(encoder.composition), to_numpy(encoder.query))


def case(make: Callable[[], Any], states: Callable[..., np.ndarray], **options: Any) -> Case:
    return Case(make, lambda encoder, sentence: (states(encoder, sentence), None), **options)


CASES |= {
    "disan": case(lambda: DiSANEncoder(INPUT_DIM, 3), _disan),
    "nse": case(lambda: NSEEncoder(INPUT_DIM, 3), _nse),
    "nse, width of the words": case(lambda: NSEEncoder(INPUT_DIM, INPUT_DIM), _nse),
    "cafe": case(lambda: CAFEEncoder(INPUT_DIM, 3, factors=2), _cafe),
    "cafe, width of the words": case(lambda: CAFEEncoder(INPUT_DIM, INPUT_DIM, factors=3), _cafe),
    "resan": case(lambda: ReSANEncoder(INPUT_DIM, 3), _resan),
    "spinn": case(lambda: SPINNEncoder(INPUT_DIM, 3, tracking_dim=2), spinn),
    "spinn, no tracking": case(lambda: SPINNEncoder(INPUT_DIM, 3, tracking_dim=0), spinn),
    "tree-cnn": case(lambda: TreeCNNEncoder(INPUT_DIM, maps=12), tree_cnn),
    "nti": case(lambda: NTIEncoder(INPUT_DIM, 3), nti),
    # In evaluation mode: in training mode the trees are drawn at random. With 4 dimensions no two
    # scores are so near that bfloat16 chooses another tree.
    "gumbel-tree": case(
        lambda: GumbelTreeEncoder(INPUT_DIM, 4).eval(),
        lambda encoder, sentence: gumbel_tree(encoder, sentence)[0],
        choosing=("query",),
    ),
}
