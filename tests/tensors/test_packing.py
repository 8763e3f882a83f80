"""Packed rows: in time order, and back again."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from genpool.tensors.packing import Packing


@st.composite
def masks(draw: st.DrawFn) -> Tensor:
    """Any mask, down to no sentence and no token."""
    batch, time = draw(st.integers(0, 5)), draw(st.integers(0, 6))
    row = st.lists(st.booleans(), min_size=time, max_size=time)
    rows = draw(st.lists(row, min_size=batch, max_size=batch))
    return torch.tensor(rows, dtype=torch.bool).view(batch, time)


properties = settings(max_examples=80, deadline=None, database=None)


def numbered(mask: Tensor) -> Tensor:
    """A tensor (batch, time, 2) in which every position has its own value, from 1."""
    positions = torch.arange(1, mask.numel() + 1, dtype=torch.float32).view(*mask.shape, 1)
    return torch.cat([positions, -positions], dim=2)


def real_tokens(mask: Tensor) -> list[list[int]]:
    return [[t for t, real in enumerate(row) if real] for row in mask.tolist()]


@properties
@given(masks())
def test_rows_are_the_real_tokens_in_time_order(mask: Tensor) -> None:
    packing = Packing.from_mask(mask)
    tokens = real_tokens(mask)
    # First tokens of all sentences, then second tokens, ...; longer sentences first, then by index.
    order = sorted(range(len(tokens)), key=lambda row: -len(tokens[row]))
    longest = max(map(len, tokens), default=0)
    expected = [(row, step) for step in range(longest) for row in order if step < len(tokens[row])]
    assert list(zip(packing.sentence.tolist(), packing.step.tolist(), strict=True)) == expected
    time = mask.shape[1]
    assert packing.index.tolist() == [row * time + tokens[row][step] for row, step in expected]
    assert packing.sizes == tuple(
        sum(len(positions) > step for positions in tokens) for step in range(longest)
    )
    assert packing.shape == tuple(mask.shape)


@properties
@given(masks())
def test_unpack_undoes_pack_and_leaves_zeros_at_padding(mask: Tensor) -> None:
    packing, padded = Packing.from_mask(mask), numbered(mask)
    rows = packing.pack(padded)
    assert rows.shape == (int(mask.sum()), 2)
    assert torch.equal(packing.unpack(rows), padded * mask.unsqueeze(-1))


@properties
@given(masks())
def test_align_moves_every_sentence_to_the_start(mask: Tensor) -> None:
    packing, padded = Packing.from_mask(mask), numbered(mask)
    rows = packing.pack(padded)
    aligned = packing.align(rows)
    tokens = real_tokens(mask)
    expected = torch.zeros(len(tokens), max(map(len, tokens), default=0), 2)
    for row, positions in enumerate(tokens):
        for step, position in enumerate(positions):
            expected[row, step] = padded[row, position]
    assert torch.equal(aligned, expected)
    assert torch.equal(aligned.flatten(0, 1)[packing.aligned().index], rows)


def test_right_padded_sentences_are_packed_as_pytorch_packs_them() -> None:
    lengths = [3, 5, 1, 5, 2]
    mask = torch.arange(5) < torch.tensor(lengths).unsqueeze(1)
    padded = numbered(mask)
    theirs = pack_padded_sequence(padded, lengths, batch_first=True, enforce_sorted=False)
    packing = Packing.from_mask(mask)
    assert packing.sizes == tuple(theirs.batch_sizes.tolist())
    ours, steps = packing.pack(padded), theirs.batch_sizes.tolist()
    for one, other in zip(ours.split(steps), theirs.data.split(steps), strict=True):
        assert sorted(one[:, 0].tolist()) == sorted(other[:, 0].tolist())


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (3, 0), (3, 4)])
def test_nothing_real_gives_no_rows_and_zeros_back(shape: tuple[int, int]) -> None:
    packing = Packing.from_mask(torch.zeros(shape, dtype=torch.bool))
    rows = packing.pack(torch.full((*shape, 2), float("nan")))
    assert rows.shape == (0, 2) and packing.sizes == ()
    assert torch.equal(packing.unpack(rows), torch.zeros(*shape, 2))
    assert packing.align(rows).shape == (shape[0], 0, 2)


def test_padding_gets_no_gradient_and_real_tokens_get_theirs() -> None:
    mask = torch.tensor([[False, True, True], [True, False, False]])
    padded = torch.full((2, 3, 1), float("nan"))
    padded[mask] = 1.0
    padded.requires_grad_()
    packing = Packing.from_mask(mask)
    (gradient,) = torch.autograd.grad((packing.unpack(packing.pack(padded)) * 3).sum(), padded)
    assert torch.equal(gradient.squeeze(-1), 3 * mask.float())
