"""The order of training: every row once an epoch, like lengths together, decided by the seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.training.batches import BUFFER, epoch_batches, process_share


def lengths_of(count: int, sides: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 60, (count, sides))


@given(
    count=st.integers(1, 700),
    sides=st.integers(1, 2),
    batch_size=st.integers(1, 40),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 5),
)
def test_every_example_is_in_exactly_one_batch_of_an_epoch(
    count: int, sides: int, batch_size: int, seed: int, epoch: int
) -> None:
    batches = epoch_batches(lengths_of(count, sides), batch_size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert max(map(len, batches)) <= batch_size
    assert len(batches) == -(-count // batch_size)


def listed(*given: int) -> list[list[int]]:
    return [batch.tolist() for batch in epoch_batches(lengths_of(300), *given)]


def test_seed_and_epoch_decide_the_order() -> None:
    assert listed(8, 3, 0) == listed(8, 3, 0)
    assert listed(8, 3, 0) != listed(8, 3, 1)
    assert listed(8, 3, 0) != listed(8, 4, 0)
    # Not only the order of the batches changes: other examples meet.
    assert {frozenset(batch) for batch in listed(8, 3, 0)} != {
        frozenset(batch) for batch in listed(8, 3, 1)
    }


def padding(batches: list[np.ndarray], longest: np.ndarray) -> int:
    return sum(int(len(batch) * longest[batch].max() - longest[batch].sum()) for batch in batches)


def test_sentences_of_like_length_come_together() -> None:
    batch_size = 16
    lengths = lengths_of(BUFFER * batch_size, sides=1)
    batches = epoch_batches(lengths, batch_size, seed=0, epoch=0)
    as_they_come = np.split(np.random.default_rng(0).permutation(len(lengths)), BUFFER)
    longest = lengths.max(axis=1)
    assert padding(batches, longest) < padding(as_they_come, longest) / 20
    # Within a buffer the order is by length, so each batch begins where another ends.
    spans = sorted((int(longest[batch].min()), int(longest[batch].max())) for batch in batches)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_the_longer_side_of_a_pair_decides_its_place() -> None:
    lengths = np.array([[1, 50], [50, 1], [10, 10], [11, 2]] * 4)
    batches = epoch_batches(lengths, batch_size=8, seed=0, epoch=0)
    assert {frozenset(lengths[batch].max(axis=1).tolist()) for batch in batches} == {
        frozenset({50}),
        frozenset({10, 11}),
    }


def test_short_and_long_batches_come_in_no_order_of_length() -> None:
    longest = [
        int(lengths_of(800, 1)[batch].max()) for batch in epoch_batches(lengths_of(800, 1), 8, 0, 0)
    ]
    rises = sum(after > before for before, after in pairwise(longest))
    assert 0.3 < rises / len(longest) < 0.7


@given(count=st.integers(0, 50), processes=st.integers(1, 5))
def test_the_shares_of_the_processes_make_up_the_batch(count: int, processes: int) -> None:
    batch = np.random.default_rng(0).permutation(count)
    shares = [process_share(batch, process, processes) for process in range(processes)]
    assert sorted(np.concatenate(shares).tolist()) == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_one_process_takes_the_whole_batch_in_its_order() -> None:
    batch = np.array([4, 1, 7])
    assert process_share(batch, 0, 1).tolist() == [4, 1, 7]


@pytest.mark.parametrize("processes", [2, 3])
def test_the_same_process_always_has_the_same_share(processes: int) -> None:
    batch = np.arange(7)
    for process in range(processes):
        one, other = (
            process_share(batch, process, processes),
            process_share(batch, process, processes),
        )
        assert one.tolist() == other.tolist()
