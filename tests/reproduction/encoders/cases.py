"""The encoders of the reproduction beside their references, added to those of the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

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


def named(**parameters: nn.Parameter | Tensor) -> dict[str, np.ndarray]:
    return {name: to_numpy(parameter) for name, parameter in parameters.items()}


def attention_weights(module: DirectionalAttention) -> dict[str, np.ndarray]:
    own, seen = module.gate_own, module.gate_seen
    attention = named(W1=module.key.weight, W2=module.query.weight, b_logits=module.query.bias)
    gate = named(W3=own.weight, W4=seen.weight, b_gate=own.bias)
    return named(W=module.inputs.weight, b=module.inputs.bias) | attention | gate


def _disan(encoder: DiSANEncoder, sentence: np.ndarray) -> np.ndarray:
    everyone = [True] * len(sentence)
    return reinforced(encoder, sentence, everyone, everyone)


def mapped(inputs: nn.Module, sentence: np.ndarray) -> np.ndarray:
    """The words at the width of the encoder, as NSE and CAFE need them."""
    return sentence @ to_numpy(inputs.weight).T if isinstance(inputs, nn.Linear) else sentence


def _nse(encoder: NSEEncoder, sentence: np.ndarray) -> np.ndarray:
    compose = to_numpy(encoder.compose.weight), to_numpy(encoder.compose.bias)
    words = mapped(encoder.inputs, sentence)
    return reference.nse(words, direction(encoder.read), compose, direction(encoder.write))


def _cafe(encoder: CAFEEncoder, sentence: np.ndarray) -> np.ndarray:
    def highway(layer: Highway) -> dict[str, np.ndarray]:
        gate, transform = layer.gate, layer.transform
        return named(W_T=gate.weight, b_T=gate.bias, W_H=transform.weight, b_H=transform.bias)

    def machine(module: FactorizationMachine) -> dict[str, np.ndarray]:
        linear = module.linear
        return named(w_0=linear.bias[0], w=linear.weight[0], v=module.factors)

    return reference.cafe(
        mapped(encoder.inputs, sentence),
        [highway(cast(Highway, layer)) for layer in encoder.highways],
        (to_numpy(encoder.key.weight), to_numpy(encoder.key.bias)),
        [machine(module) for module in (encoder.joined, encoder.difference, encoder.product)],
        direction(encoder.lstm),
    )


def _resan(encoder: ReSANEncoder, sentence: np.ndarray) -> np.ndarray:
    def chosen(selector: Selector) -> list[bool]:
        hidden, output = selector.hidden, selector.output
        weights = named(W=hidden.weight, b=hidden.bias, w=output.weight[0], b_w=output.bias[0])
        return [odds >= 0 for odds in reference.log_odds(sentence, weights)]

    return reinforced(
        encoder, sentence, chosen(encoder.head_selector), chosen(encoder.dependent_selector)
    )


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
                sentence, attention_weights(part), part.reverse, heads, dependents
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


def gumbel_leaves(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> list[Node]:
    return tree_reference.lstm_nodes(sentence, direction(encoder.leaves))


def gumbel_tree(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> tuple[np.ndarray, Nested]:
    leaves = gumbel_leaves(encoder, sentence)
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
