"""Encoders over trees: every shape of tree, in any batch, against recursion one node at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from genpool.errors import InputError
from genpool.reproduction.encoders import (
    GumbelTreeEncoder,
    NTIEncoder,
    SPINNEncoder,
    TreeCNNEncoder,
    spinn,
)
from genpool.reproduction.encoders.gumbel_tree import straight_through
from genpool.reproduction.encoders.shared import join_nodes, lstm_leaves
from genpool.reproduction.trees import RELATIONS
from tests.encoder.cases import INPUT_DIM, lively, to_numpy
from tests.helpers.tree_shapes import (
    Nested,
    every_tree,
    left_chain,
    random_dependencies,
    random_tree,
    reductions,
    right_chain,
)

from . import cases

LONG = 200


def batch_of(lengths: Sequence[int], seed: int = 0) -> tuple[Tensor, Tensor]:
    """Token vectors and a mask; sentences are moved to the right by a few padding positions."""
    random = torch.Generator().manual_seed(seed)
    time = max(lengths) + 3
    mask = torch.zeros(len(lengths), time, dtype=torch.bool)
    for row, length in enumerate(lengths):
        mask[row, row % 3 : row % 3 + length] = True
    inputs = torch.randn(*mask.shape, INPUT_DIM, generator=random, dtype=torch.float64)
    return inputs.masked_fill(~mask.unsqueeze(2), torch.nan), mask


def padded(rows: Sequence[np.ndarray], mask: Tensor) -> Tensor:
    """Trees (tokens, columns) as one tensor, with values at padding that are no tree."""
    trees = torch.full((*mask.shape, rows[0].shape[1]), 99, dtype=torch.long)
    for row, tree in enumerate(rows):
        trees[row, mask[row]] = torch.from_numpy(tree).long()
    return trees


def binary(trees: Sequence[Nested], lengths: Sequence[int], mask: Tensor) -> Tensor:
    columns = [
        np.array(reductions(tree, length)).reshape(-1, 1)
        for tree, length in zip(trees, lengths, strict=True)
    ]
    return padded(columns, mask)


def assert_states(
    states: Tensor, mask: Tensor, expected: Iterable[np.ndarray], atol: float = 1e-12
) -> None:
    for row, values in enumerate(expected):
        np.testing.assert_allclose(to_numpy(states[row, mask[row]]), values, rtol=0, atol=atol)


SMALL_TREES = [(tree, tokens) for tokens in range(1, 7) for tree in every_tree(0, tokens)]
LARGE_TREES = [(left_chain(LONG), LONG), (right_chain(LONG), LONG), (left_chain(9), 9)] + [
    (random_tree(0, tokens, np.random.default_rng(tokens)), tokens)
    for tokens in (39, 24, 17, 31, 12)
]


@pytest.mark.parametrize(
    ("tracking_dim", "trees", "atol"),
    [(0, SMALL_TREES, 1e-12), (2, SMALL_TREES, 1e-12), (2, LARGE_TREES, 1e-10)],
    ids=["no tracking", "up to six tokens", "chains of 200 and random trees"],
)
def test_spinn_agrees_with_the_stack_machine(tracking_dim: int, trees: list, atol: float) -> None:
    assert len(SMALL_TREES) == 1 + 1 + 2 + 5 + 14 + 42
    encoder = lively(SPINNEncoder(INPUT_DIM, 3, tracking_dim)).double()
    shapes, lengths = zip(*trees, strict=True)
    inputs, mask = batch_of(lengths)
    states = encoder(inputs, mask, annotations=binary(shapes, lengths, mask)).states
    sentences = (to_numpy(inputs[row, mask[row]]) for row in range(len(trees)))
    expected = (cases.spinn(encoder, *pair) for pair in zip(sentences, shapes, strict=True))
    assert_states(states, mask, expected, atol)


def test_gradients_through_random_trees_agree_with_finite_differences() -> None:
    random = np.random.default_rng(1)
    lengths = [4, 1, 3]
    inputs, mask = batch_of(lengths)
    vectors = inputs.nan_to_num().requires_grad_()
    shapes = [random_tree(0, length, random) for length in lengths]
    heads = padded(
        [random_dependencies(length, random, len(RELATIONS)) for length in lengths], mask
    )
    spinn = lively(SPINNEncoder(INPUT_DIM, 3, 2)).double()
    cnn = lively(TreeCNNEncoder(INPUT_DIM, 3)).double()
    trees = binary(shapes, lengths, mask)
    assert torch.autograd.gradcheck(lambda x: spinn(x, mask, annotations=trees).states, (vectors,))
    assert torch.autograd.gradcheck(lambda x: cnn(x, mask, annotations=heads).states, (vectors,))


def test_all_sentences_of_a_batch_are_composed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, calls = lively(SPINNEncoder(INPUT_DIM, 3, 2)), []

    def count(composition: nn.Linear, left: Tensor, *others: Tensor) -> Tensor:
        calls.append(len(left))
        return join_nodes(composition, left, *others)

    monkeypatch.setattr(spinn, "join_nodes", count)
    lengths = [9] * 30
    inputs, mask = batch_of(lengths)
    random = np.random.default_rng(2)
    shapes = [random_tree(0, 9, random) for _ in lengths]
    encoder(inputs.float(), mask, annotations=binary(shapes, lengths, mask))
    assert sum(calls) == 30 * 8  # one for every node above two others
    assert len(calls) <= 2 * 9 - 2  # and one call for every step after the first


@pytest.mark.parametrize("wrong", [[0, 0, 1], [0, 2, 0], [1, 0, 1], [0, 1, 2], [0, -1, 3]], ids=str)
def test_reductions_that_are_no_tree_are_refused(wrong: list[int]) -> None:
    encoder, mask = SPINNEncoder(INPUT_DIM, 3), torch.ones(2, 3, dtype=torch.bool)
    trees = torch.tensor([[0, 1, 1], wrong]).unsqueeze(2)
    with pytest.raises(InputError, match="are no binary tree of 3 tokens; expected 2 in total"):
        encoder(torch.zeros(2, 3, INPUT_DIM), mask, annotations=trees)


def test_trees_of_another_kind_and_impossible_options_are_refused() -> None:
    with pytest.raises(InputError, match="tracking_dim is -1; expected 0 or more"):
        SPINNEncoder(4, tracking_dim=-1)
    for value in (0.0, float("nan")):
        with pytest.raises(InputError, match=f"temperature is {value}; expected a number above 0"):
            GumbelTreeEncoder(4, temperature=value)
    inputs, mask = torch.zeros(1, 3, INPUT_DIM), torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(InputError, match=r"2 columns.* BinaryTrees are 1 columns"):
        SPINNEncoder(INPUT_DIM, 3)(inputs, mask, annotations=torch.zeros(1, 3, 2, dtype=torch.long))
    with pytest.raises(InputError, match="DependencyTrees are 2 columns"):
        TreeCNNEncoder(INPUT_DIM, 3)(
            inputs, mask, annotations=torch.zeros(1, 3, 1, dtype=torch.long)
        )


@pytest.mark.parametrize("seed", range(3))
def test_tree_cnn_agrees_with_a_loop_over_words_and_dependents(seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = [*random.integers(1, 30, size=10).tolist(), LONG]
    encoder = lively(TreeCNNEncoder(INPUT_DIM, 5), seed).double()
    inputs, mask = batch_of(lengths, seed)
    trees = [random_dependencies(length, random, len(RELATIONS)) for length in lengths]
    states = encoder(inputs, mask, annotations=padded(trees, mask)).states
    expected = (
        cases.tree_cnn(encoder, to_numpy(inputs[row, mask[row]]), *tree.T.tolist())
        for row, tree in enumerate(trees)
    )
    assert_states(states, mask, expected)


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ([[1, 0], [3, 0], [-1, 0]], "a head is 3; expected the index of a token"),
        ([[1, 0], [-2, 0], [-1, 0]], "a head is -2"),
        ([[1, 0], [-1, 0], [1, -5]], "a relation is -5"),
        ([[1, 0], [-1, 99], [1, 99]], "a relation is 99; expected an index of the 37 relations"),
    ],
)
def test_heads_and_relations_that_do_not_exist_are_refused(tree, problem: str) -> None:
    encoder, mask = TreeCNNEncoder(INPUT_DIM, 3), torch.ones(2, 4, dtype=torch.bool)
    mask[0, 3] = False
    trees = torch.zeros(2, 4, 2, dtype=torch.long)
    trees[:, 0, 0], trees[0, :3] = -1, torch.tensor(tree)
    with pytest.raises(InputError, match=problem):
        encoder(torch.zeros(2, 4, INPUT_DIM), mask, annotations=trees)


@pytest.mark.parametrize("tokens", [*range(1, 18), 31, 32, 33, LONG])
def test_nti_agrees_with_recursion_for_every_length(tokens: int) -> None:
    encoder = lively(NTIEncoder(INPUT_DIM, 3)).double()
    inputs, mask = batch_of([tokens, 3])
    expected = cases.nti(encoder, to_numpy(inputs[0, mask[0]]))
    assert_states(encoder(inputs, mask).states, mask, [expected])


def test_gumbel_tree_chooses_the_trees_of_the_reference() -> None:
    encoder = lively(GumbelTreeEncoder(INPUT_DIM, 4)).double().eval()
    lengths = [1, 2, 3, 9, 17, LONG, 5]
    inputs, mask = batch_of(lengths)
    states, trees = encoder(inputs, mask).states, encoder.chosen_trees(inputs, mask)
    chosen = [cases.gumbel_tree(encoder, to_numpy(inputs[row, mask[row]])) for row in range(7)]
    assert_states(states, mask, (expected for expected, _ in chosen))
    for row, (length, (_, tree)) in enumerate(zip(lengths, chosen, strict=True)):
        assert trees[row, mask[row], 0].tolist() == reductions(tree, length)
        assert (trees[row, ~mask[row]] == 0).all()


def plain_states(encoder: GumbelTreeEncoder, words: Tensor) -> Tensor:
    """States (tokens, hidden) of one sentence by the equations: every layer copies every node."""
    nodes = list(lstm_leaves(encoder.leaves, words, (1,) * len(words)))
    ends, states = list(range(len(nodes))), [Tensor()] * len(nodes)
    while len(nodes) > 1:
        left, right = torch.stack(nodes[:-1]), torch.stack(nodes[1:])
        candidates = join_nodes(encoder.composition, left, right)
        scores = (candidates[:, : encoder.output_dim] @ encoder.query).unsqueeze(0)
        y = straight_through(scores, torch.ones_like(scores).bool(), encoder.temperature)[0]
        place = int(y.argmax())
        states[ends.pop(place)] = nodes[place]  # nothing larger will end there
        nodes = [
            y[j] * candidates[j] + y[j + 1 :].sum() * left[j] + y[:j].sum() * right[j]
            for j in range(len(y))
        ]
    states[ends[0]] = nodes[0]
    return torch.stack(states)[:, : encoder.output_dim]


def test_gradients_in_training_are_those_of_straight_through_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all states, not of the root alone: a later choice is told what its copies were for."""
    monkeypatch.setattr(torch, "rand_like", lambda logits: torch.full_like(logits, 0.3))
    encoder = lively(GumbelTreeEncoder(INPUT_DIM, 4)).double().train()
    inputs, mask = batch_of([9, 1, 4, 2])
    vectors = inputs.nan_to_num().requires_grad_()
    plain = [plain_states(encoder, vectors[row, mask[row]]) for row in range(4)]
    trees = (cases.gumbel_tree(encoder, to_numpy(vectors[row, mask[row]])) for row in range(4))
    assert_states(encoder(vectors, mask).states, mask, (states for states, _ in trees))
    results = []
    for states in (encoder(vectors, mask).states[mask], torch.cat(plain)):
        loss = (states * torch.arange(states.numel()).view_as(states).sin()).sum()
        gradients = torch.autograd.grad(loss, [vectors, *encoder.parameters()])
        results.append([states.detach(), *gradients])
        assert all(gradient.any() for gradient in gradients)
    torch.testing.assert_close(*results, rtol=0, atol=1e-10)


def test_the_choice_is_drawn_from_the_softmax_of_the_scores() -> None:
    scores = torch.tensor([[0.5, -1.0, 2.0, 0.0]], dtype=torch.float64).expand(40_000, 4)
    valid = torch.tensor([True, True, True, False]).expand(40_000, 4)
    torch.manual_seed(3)
    choices = straight_through(scores, valid, 1.0)
    assert choices.unique().tolist() == [0, 1]  # never a mixture
    shares = choices.mean(dim=0)
    expected = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    # Five standard deviations of a share.
    np.testing.assert_allclose(shares[:3], expected, rtol=0, atol=5 * 0.5 / 200)
    assert shares[3] == 0


def test_the_gradient_of_a_choice_is_that_of_the_noisy_softmax() -> None:
    logits = torch.tensor([[0.3, -0.2, 1.0]], dtype=torch.float64, requires_grad=True)
    valid, weights = torch.tensor([[True, True, True]]), torch.tensor([[1.0, -2.0, 0.5]]).double()
    torch.manual_seed(7)
    (gradient,) = torch.autograd.grad(
        (straight_through(logits, valid, 0.5) * weights).sum(), logits
    )
    torch.manual_seed(7)
    noise = -np.log(-np.log(torch.rand(1, 3, dtype=torch.float64).numpy()))
    noisy = (to_numpy(logits) + noise) / 0.5
    soft = np.exp(noisy) / np.exp(noisy).sum()
    jacobian = (np.diag(soft[0]) - np.outer(soft[0], soft[0])) / 0.5
    np.testing.assert_allclose(to_numpy(gradient)[0], jacobian @ weights[0].numpy(), atol=1e-12)
