"""One layer of a tree that grows: neighbours are joined to candidates, and one of them is kept.

The nodes [h ; c] of all sentences are the rows of one tensor, sentence after sentence, without
padding. Pair p of a layer is the row left[p] with the row behind it, and row p of the next layer.
Each of the two steps is one node of the autograd graph, with the equations as plain tensor
operations beside it (`genpool.tensors.fast`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from genpool.reproduction.encoders.tree_nodes import join_nodes, new_memory, read_rows, write_rows
from genpool.tensors.fast import fast


class Composition(NamedTuple):
    """The layer from [h_l ; h_r] to the five gates: weight (5 hidden, 2 hidden), bias (5 hidden,).

    In the type of the nodes, which may be wider than that of the parameters.
    """

    weight: Tensor
    bias: Tensor


class Projections:
    """What every node adds to the five gates of a pair, as its left and as its right node.

    Most nodes of a layer are copies of the layer below. Their products with the weights are
    computed once and found again by the number of the node, also in the backward pass: the weights'
    gradient is one product at the end. Nodes are detached here, because their gradients differ from
    layer to layer; `join_neighbours` has them.

    leaves (n, 2 hidden) are the first layer; nodes: how many there will be.
    """

    def __init__(self, composition: Composition, leaves: Tensor, nodes: int) -> None:
        of_left, of_right = composition.weight.chunk(2, dim=1)  # 2 x (5 hidden, hidden)
        self.weight = torch.cat([of_left, of_right])  # (10 hidden, hidden)
        self.bias = functional.pad(composition.bias, (0, len(of_right)))  # (10 hidden,)
        self.gates = len(of_left)
        self.memory = new_memory(2 * nodes, of_left[:, 0])  # (2 nodes, 5 hidden)
        self.count = 0
        self.numbers = self._add(leaves)  # (n,): of the nodes of the present layer

    def of_pairs(self, left: Tensor) -> Tensor:
        """Returns the parts (2 pairs, 5 hidden) of left (pairs,) nodes, then of right ones."""
        numbers = torch.cat([2 * self.numbers[left], 2 * self.numbers[left + 1] + 1])
        self.memory, rows = read_rows(self.memory, numbers)
        return rows

    def keep(self, source: Tensor, chosen: Tensor, nodes: Tensor) -> None:
        """Goes to the next layer: the nodes at source (pairs,), and new ones at chosen (active,).

        nodes (pairs, 2 hidden): those of the next layer.
        """
        new = self._add(nodes.index_select(0, chosen))
        self.numbers = self.numbers[source].index_copy(0, chosen, new)

    def _add(self, nodes: Tensor) -> Tensor:
        """Returns the numbers (n,) of new nodes [h ; c] (n, 2 hidden)."""
        h = nodes.detach()[:, : self.weight.shape[1]]  # (n, hidden)
        rows = torch.addmm(self.bias, h, self.weight.T).view(-1, self.gates)  # (2 n, 5 hidden)
        self.memory = write_rows(self.memory, rows, 2 * self.count)
        self.count += len(nodes)
        return torch.arange(self.count - len(nodes), self.count, device=nodes.device)


def join_neighbours(
    nodes: Tensor, left: Tensor, composition: Composition, parts: Tensor | None = None
) -> Tensor:
    """Returns the candidates [h ; c] (pairs, 2 hidden) above all pairs of neighbours.

    nodes (n, 2 hidden); left (pairs,); parts: of `Projections.of_pairs`, None: computed here.
    """
    if parts is not None:
        arguments = nodes, left, parts, composition.weight.detach()
        joined: Tensor = _Join.apply(*arguments)  # type: ignore[no-untyped-call]
        return joined
    h = nodes.chunk(2, dim=1)[0]  # (n, hidden)
    states = torch.cat([h.index_select(0, left), h.index_select(0, left + 1)], dim=1)
    left_cell, right_cell = _cells(nodes, left)  # 2 x (pairs, hidden)
    gates = functional.linear(states, composition.weight, composition.bias)
    return torch.cat(join_nodes(gates, left_cell, right_cell), dim=1)


def keep_one(
    nodes: Tensor, candidates: Tensor, left: Tensor, weights: Tensor, chosen: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the next layer (pairs, 2 hidden), and the left nodes (sentences, 2 hidden) joined.

    Row p is weights[p] @ [candidate p ; left node ; right node]. One of the three weights is 1 and
    the others are 0, so that a row is copied; the gradients are those of the sum. nodes
    (n, 2 hidden); candidates (pairs, 2 hidden); left (pairs,); weights (pairs, 3); chosen
    (sentences,), the pairs whose candidates are kept.
    """
    if fast():
        arguments = nodes, candidates, weights, left, chosen
        layer: tuple[Tensor, Tensor] = _Keep.apply(*arguments)  # type: ignore[no-untyped-call]
        return layer
    parts = torch.stack([candidates, nodes[left], nodes[left + 1]], dim=1)  # (pairs, 3, 2 hidden)
    return (weights.unsqueeze(2) * parts).sum(dim=1), nodes[left[chosen]]


def _cells(nodes: Tensor, left: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the cells (pairs, hidden) of left and of right nodes."""
    c = nodes.chunk(2, dim=1)[1]  # (n, hidden)
    return c.index_select(0, left), c.index_select(0, left + 1)


class _Join(torch.autograd.Function):
    """`join_nodes` of all pairs; cells are gathered again in the backward pass."""

    @staticmethod
    def forward(ctx: Any, nodes: Tensor, left: Tensor, parts: Tensor, weight: Tensor) -> Tensor:
        left_cell, right_cell = _cells(nodes, left)  # 2 x (pairs, hidden)
        hidden = left_cell.shape[1]
        gates = torch.add(*parts.chunk(2))  # (pairs, 5 hidden)
        gates[:, : 4 * hidden].sigmoid_()
        gates[:, 4 * hidden :].tanh_()
        i, f_left, f_right, o, g = gates.chunk(5, dim=1)
        joined = nodes.new_empty(len(left), nodes.shape[1])  # (pairs, 2 hidden)
        h, c = joined.chunk(2, dim=1)
        torch.mul(f_left, left_cell, out=c).addcmul_(f_right, right_cell).addcmul_(i, g)
        tanh = c.tanh()  # (pairs, hidden)
        torch.mul(o, tanh, out=h)
        ctx.save_for_backward(nodes, left, weight, gates, tanh)
        return joined

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        nodes, left, weight, gates, tanh = ctx.saved_tensors
        left_cell, right_cell = _cells(nodes, left)  # 2 x (pairs, hidden)
        hidden = tanh.shape[1]
        i, f_left, f_right, o, g = gates.chunk(5, dim=1)
        grad_h, grad_c = grads[0].chunk(2, dim=1)
        through_h = grad_h * o  # (pairs, hidden)
        grad_c = torch.addcmul(grad_c + through_h, through_h * tanh, tanh, value=-1)
        slopes = torch.empty_like(gates)  # (pairs, 5 hidden): first the slopes of the activations
        sigmoids = gates[:, : 4 * hidden]
        torch.addcmul(sigmoids, sigmoids, sigmoids, value=-1, out=slopes[:, : 4 * hidden])
        torch.mul(g, g, out=slopes[:, 4 * hidden :]).neg_().add_(1)
        above = (grad_c, g), (grad_c, left_cell), (grad_c, right_cell), (grad_h, tanh), (grad_c, i)
        for part, (gradient, factor) in zip(slopes.chunk(5, dim=1), above, strict=True):
            part.mul_(gradient).mul_(factor)
        grad_states = slopes @ weight  # (pairs, 2 hidden)
        to_left, to_right = grad_states.chunk(2, dim=1)
        grad_nodes = torch.zeros_like(nodes)
        grad_nodes.index_copy_(0, left, torch.cat([to_left, grad_c * f_left], dim=1))
        grad_nodes.index_add_(0, left + 1, torch.cat([to_right, grad_c * f_right], dim=1))
        return grad_nodes, None, torch.cat([slopes, slopes]), None


class _Keep(torch.autograd.Function):
    """The sum of three parts as a copy of one of them; nothing but copies in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any, nodes: Tensor, candidates: Tensor, weights: Tensor, left: Tensor, chosen: Tensor
    ) -> tuple[Tensor, Tensor]:
        source = left + (weights[:, 2] > 0)  # (pairs,): the node that is copied
        retired = nodes.index_select(0, left[chosen])  # (sentences, 2 hidden)
        layer = nodes.index_select(0, source)  # (pairs, 2 hidden)
        layer.index_copy_(0, chosen, candidates.index_select(0, chosen))
        ctx.save_for_backward(nodes, candidates, left, chosen, source)
        return layer, retired

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        nodes, candidates, left, chosen, source = ctx.saved_tensors
        grad, grad_retired = grads
        grad_candidates = torch.zeros_like(candidates)
        grad_candidates.index_copy_(0, chosen, grad.index_select(0, chosen))
        # No two pairs copy the same node. A pair that is joined copies none, and its left node, in
        # whose place the candidate's gradient was written, has the gradient of the other result.
        grad_nodes = torch.zeros_like(nodes).index_copy_(0, source, grad)
        grad_nodes.index_copy_(0, left[chosen], grad_retired)
        grad_weights = None
        if ctx.needs_input_grad[2]:
            parts = candidates, nodes.index_select(0, left), nodes.index_select(0, left + 1)
            dots = [torch.linalg.vecdot(grad, part) for part in parts]  # 3 x (pairs,)
            grad_weights = torch.stack(dots, dim=1)  # (pairs, 3)
        return grad_nodes, grad_candidates, grad_weights, None, None
