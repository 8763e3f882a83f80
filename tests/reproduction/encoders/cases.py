"""The encoders of the reproduction beside their references, added to those of the core."""

from __future__ import annotations

from typing import cast

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
from genpool.reproduction.encoders.cafe import FactorizationMachine, Highway
from genpool.reproduction.encoders.disan import DirectionalAttention
from genpool.reproduction.encoders.resan import Selector
from tests.encoder.cases import CASES, INPUT_DIM, Case, direction, to_numpy
from tests.helpers.tree_shapes import Nested, halves, middle_heads

from . import reference, tree_reference
from .tree_reference import Layer, Node


def attention_weights(module: DirectionalAttention) -> dict[str, np.ndarray]:
    return {
        "W": to_numpy(module.inputs.weight),
        "b": to_numpy(module.inputs.bias),
        "W1": to_numpy(module.key.weight),
        "W2": to_numpy(module.query.weight),
        "b_logits": to_numpy(module.query.bias),
        "W3": to_numpy(module.gate_own.weight),
        "W4": to_numpy(module.gate_seen.weight),
        "b_gate": to_numpy(module.gate_own.bias),
    }


def _disan(encoder: DiSANEncoder, sentence: np.ndarray):
    forwards, backwards = attention_weights(encoder.forwards), attention_weights(encoder.backwards)
    onward = reference.directional_attention(sentence, forwards, False)
    back = reference.directional_attention(sentence, backwards, True)
    return np.hstack([onward, back]), None


def mapped(inputs: nn.Module, sentence: np.ndarray) -> np.ndarray:
    """The words at the width of the encoder, as NSE and CAFE need them."""
    return sentence @ to_numpy(inputs.weight).T if isinstance(inputs, nn.Linear) else sentence


def _nse(encoder: NSEEncoder, sentence: np.ndarray):
    compose = to_numpy(encoder.compose.weight), to_numpy(encoder.compose.bias)
    words = mapped(encoder.inputs, sentence)
    return reference.nse(words, direction(encoder.read), compose, direction(encoder.write)), None


def _cafe(encoder: CAFEEncoder, sentence: np.ndarray):
    def highway(layer: Highway) -> dict[str, np.ndarray]:
        return {
            "W_T": to_numpy(layer.gate.weight),
            "b_T": to_numpy(layer.gate.bias),
            "W_H": to_numpy(layer.transform.weight),
            "b_H": to_numpy(layer.transform.bias),
        }

    def machine(module: FactorizationMachine) -> dict[str, np.ndarray]:
        return {
            "w_0": to_numpy(module.linear.bias)[0],
            "w": to_numpy(module.linear.weight)[0],
            "v": to_numpy(module.factors),
        }

    states = reference.cafe(
        mapped(encoder.inputs, sentence),
        [highway(cast(Highway, layer)) for layer in encoder.highways],
        (to_numpy(encoder.key.weight), to_numpy(encoder.key.bias)),
        [machine(module) for module in (encoder.joined, encoder.difference, encoder.product)],
        direction(encoder.lstm),
    )
    return states, None


def selector_weights(selector: Selector) -> dict[str, np.ndarray]:
    return {
        "W": to_numpy(selector.hidden.weight),
        "b": to_numpy(selector.hidden.bias),
        "w": to_numpy(selector.output.weight)[0],
        "b_w": to_numpy(selector.output.bias)[0],
    }


def _resan(encoder: ReSANEncoder, sentence: np.ndarray):
    heads, dependents = (
        [odds >= 0 for odds in reference.log_odds(sentence, selector_weights(selector))]
        for selector in (encoder.head_selector, encoder.dependent_selector)
    )
    halves = [
        reference.reinforced_attention(
            sentence, attention_weights(part), part.reverse, heads, dependents
        )
        for part in (encoder.forwards, encoder.backwards)
    ]
    return np.hstack(halves), None


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


def gumbel_leaves(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> list[Node]:
    return tree_reference.lstm_nodes(sentence, direction(encoder.leaves))


def gumbel_tree(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> tuple[np.ndarray, Nested]:
    leaves = gumbel_leaves(encoder, sentence)
    return tree_reference.gumbel_tree(leaves, layer(encoder.composition), to_numpy(encoder.query))


CASES |= {
    "disan": Case(lambda: DiSANEncoder(INPUT_DIM, 3), _disan),
    "nse": Case(lambda: NSEEncoder(INPUT_DIM, 3), _nse),
    "nse, width of the words": Case(lambda: NSEEncoder(INPUT_DIM, INPUT_DIM), _nse),
    "cafe": Case(lambda: CAFEEncoder(INPUT_DIM, 3, factors=2), _cafe),
    "cafe, width of the words": Case(lambda: CAFEEncoder(INPUT_DIM, INPUT_DIM, factors=3), _cafe),
    "resan": Case(lambda: ReSANEncoder(INPUT_DIM, 3), _resan),
    "spinn": Case(
        lambda: SPINNEncoder(INPUT_DIM, 3, tracking_dim=2),
        lambda encoder, sentence: (spinn(encoder, sentence), None),
    ),
    "spinn, no tracking": Case(
        lambda: SPINNEncoder(INPUT_DIM, 3, tracking_dim=0),
        lambda encoder, sentence: (spinn(encoder, sentence), None),
    ),
    "tree-cnn": Case(
        lambda: TreeCNNEncoder(INPUT_DIM, maps=12),
        lambda encoder, sentence: (tree_cnn(encoder, sentence), None),
    ),
    "nti": Case(
        lambda: NTIEncoder(INPUT_DIM, 3),
        lambda encoder, sentence: (nti(encoder, sentence), None),
    ),
    # In evaluation mode: in training mode the trees are drawn at random. With 4 dimensions no two
    # scores are so near that bfloat16 chooses another tree.
    "gumbel-tree": Case(
        lambda: GumbelTreeEncoder(INPUT_DIM, 4).eval(),
        lambda encoder, sentence: (gumbel_tree(encoder, sentence)[0], None),
        choosing=("query",),
    ),
}
