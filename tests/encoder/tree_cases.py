"""The tree encoders beside their references, and what translates the weights."""

from __future__ import annotations

from typing import cast

import numpy as np
from torch import Tensor, nn

from genpool.encoder import GumbelTreeEncoder, NTIEncoder, SPINNEncoder, TreeCNNEncoder
from genpool.encoder.lstm import LSTMDirection
from tests.helpers.tree_shapes import Nested, halves, middle_heads

from . import tree_reference as reference
from .tree_reference import Layer, Node


def to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def layer(module: nn.Linear) -> Layer:
    bias = np.zeros(module.out_features) if module.bias is None else to_numpy(module.bias)
    return Layer(to_numpy(module.weight), bias)


def direction(module: LSTMDirection) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    parts = [np.split(to_numpy(weights), 4) for weights in module.weights]
    return {name: (w, u, b) for name, w, u, b in zip("ifog", *parts, strict=True)}


def spinn(encoder: SPINNEncoder, sentence: np.ndarray, tree: Nested | None = None) -> np.ndarray:
    tracking = None
    if encoder.tracking_dim:
        buffer, stack = layer(encoder.tracking_buffer), layer(encoder.tracking_stack)

        def tracking(first, top, below, e):
            return buffer(first) + stack(top, below, e)

    return reference.spinn(
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
    return reference.tree_cnn(
        sentence,
        middle_heads(len(sentence)) if heads is None else heads,
        [0] * len(sentence) if relations is None else relations,
        layer(encoder.parent),
        to_numpy(encoder.relations),
    )


def nti(encoder: NTIEncoder, sentence: np.ndarray) -> np.ndarray:
    return reference.nti(
        sentence,
        direction(encoder.leaves),
        layer(encoder.gates),
        layer(encoder.candidate),
        layer(encoder.output_gate),
    )


def gumbel_leaves(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> list[Node]:
    first = encoder.leaf_maps[0]
    if isinstance(first, nn.Linear):
        return [Node(*np.split(layer(first)(x), 2)) for x in sentence]
    leaves = reference.lstm_nodes(sentence, direction(cast(LSTMDirection, first)))
    if len(encoder.leaf_maps) == 1:
        return leaves
    second = direction(cast(LSTMDirection, encoder.leaf_maps[1]))
    backwards = reference.lstm_nodes(sentence[::-1], second)[::-1]
    return [
        Node(np.concatenate([one.h, other.h]), np.concatenate([one.c, other.c]))
        for one, other in zip(leaves, backwards, strict=True)
    ]


def gumbel_tree(encoder: GumbelTreeEncoder, sentence: np.ndarray) -> tuple[np.ndarray, Nested]:
    leaves = gumbel_leaves(encoder, sentence)
    return reference.gumbel_tree(leaves, layer(encoder.composition), to_numpy(encoder.query))
