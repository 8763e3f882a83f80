"""Convolution over dependency trees (Mou et al. 2016)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.reproduction.encoders.shared import PackedEncoder, initialize_parts
from genpool.reproduction.trees import RELATIONS, DependencyTrees, tree_rows
from genpool.tensors.modules import require_positive
from genpool.tensors.packing import Packing


class TreeCNNEncoder(PackedEncoder):
    """Tree-based convolution (Mou et al. 2016): a filter sees a word and its dependents.

        y_p = relu(W_p x_p + sum over dependents c of p: W_relation(c) x_c + b)

    There is one matrix for each relation of `RELATIONS`; all others share that of "dep". A token's
    state is y of its node; the paper takes the maximum over all nodes, which is max pooling.

    Chosen here: the list of relations (the paper does not say which it tells apart), and Xavier
    weights. The published model has 300 maps.

    Args:
        maps: dimensions of a state. Default: 300.
        parser: what parses text that has no parse: "spacy" (the extra `parse`). Default: None,
            balanced trees.

    Example:
        >>> trees = torch.tensor([[[1, 19], [2, 26], [-1, 0]]])   # heads, relations: A man sleeps
        >>> states, _ = TreeCNNEncoder(300)(vectors, mask, annotations=trees)   # (1, 3, 300)
    """

    annotator_class = DependencyTrees

    def __init__(
        self, input_dim: int, maps: int = 300, parser: Literal["spacy"] | None = None
    ) -> None:
        require_positive(input_dim=input_dim, maps=maps)
        super().__init__(input_dim, output_dim=maps)
        self.parser = parser
        self.parent = nn.Linear(input_dim, maps)
        self.relations = nn.Parameter(torch.empty(len(RELATIONS), maps, input_dim))
        initialize_parts(self.parent)
        with torch.no_grad():
            for weights in self.relations:
                nn.init.xavier_uniform_(weights)

    def make_annotator(self) -> DependencyTrees:
        return DependencyTrees(self.parser)

    def states(self, rows: Tensor, packing: Packing) -> Tensor:
        nodes: Tensor = self.parent(rows)  # (rows, maps)
        head, relation = tree_rows(packing, DependencyTrees).unbind(dim=1)  # 2 x (rows,)
        wrong = (relation < 0) | (relation >= len(RELATIONS))
        if bool(wrong.any()):
            raise InputError(
                f"a relation is {int(relation[wrong][0])}; expected an index of the "
                f"{len(RELATIONS)} relations of genpool.reproduction.trees.RELATIONS."
            )
        head = _row_of_head(head, packing)  # (rows,)
        dependents = (head >= 0).nonzero().squeeze(1)  # (dependents,)
        order = dependents[relation[dependents].argsort(stable=True)]
        counts = torch.bincount(relation[order], minlength=len(RELATIONS)).tolist()
        groups = torch.split(rows.index_select(0, order), counts)  # by relation
        weights = self.relations.unbind()
        products = [group @ w.T for group, w in zip(groups, weights, strict=True) if len(group)]
        if products:
            messages = torch.cat(products).to(nodes.dtype)  # (dependents, maps)
            nodes = nodes.index_add(0, head.index_select(0, order), messages)
        return nodes.relu()


def _row_of_head(head: Tensor, packing: Packing) -> Tensor:
    """Returns the packed row (rows,) of each token's head; head (rows,) counts in its sentence."""
    sizes = torch.tensor(packing.sizes, device=head.device)  # (steps,)
    offsets = sizes.cumsum(0) - sizes  # (steps,)
    rank = torch.arange(len(head), device=head.device) - offsets[packing.step]  # (rows,)
    known = head.clamp(0, len(sizes) - 1)
    wrong = (head >= len(sizes)) | (head < -1) | (rank >= sizes[known])
    if bool(wrong.any()):
        given = int(head[wrong][0])
        raise InputError(
            f"a head is {given}; expected the index of a token of its sentence, or -1."
        )
    return torch.where(head < 0, -1, offsets[known] + rank)
