"""The order of training: every row once an epoch, similar lengths together, decided by the seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from genpool.training.dataset import count_epochs, count_steps, epoch_batches
from genpool.training.settings import TrainingSettings

BUFFER_BATCHES = TrainingSettings().buffer_batches


def lengths_of(count: int, sides: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(1, 60, (count, sides))


@given(
    count=st.integers(1, 700),
    sides=st.integers(1, 2),
    batch_size=st.integers(1, 40),
    seed=st.integers(0, 2**40),
    epoch=st.integers(0, 5),
    shuffle=st.sampled_from(["rows", "batches"]),
)
def test_every_example_is_in_exactly_one_batch_of_an_epoch(
    count: int, sides: int, batch_size: int, seed: int, epoch: int, shuffle: Any
) -> None:
    settings = TrainingSettings(batch_size=batch_size, seed=seed, shuffle=shuffle)
    batches = epoch_batches(lengths_of(count, sides), settings, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(count))
    assert max(map(len, batches)) <= batch_size
    assert len(batches) == -(-count // batch_size)


def listed(batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    settings = TrainingSettings(batch_size=batch_size, seed=seed)
    return [batch.tolist() for batch in epoch_batches(lengths_of(300), settings, epoch)]


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


def test_sentences_of_similar_length_come_together() -> None:
    batch_size = 16
    lengths = lengths_of(BUFFER_BATCHES * batch_size, sides=1)
    batches = epoch_batches(lengths, TrainingSettings(batch_size=batch_size), epoch=0)
    as_they_come = np.split(np.random.default_rng(0).permutation(len(lengths)), BUFFER_BATCHES)
    longest = lengths.max(axis=1)
    assert padding(batches, longest) < padding(as_they_come, longest) / 20
    # Within a buffer the order is by length, so each batch begins where another ends.
    spans = sorted((int(longest[batch].min()), int(longest[batch].max())) for batch in batches)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_the_longer_side_of_a_pair_decides_its_place() -> None:
    lengths = np.array([[1, 50], [50, 1], [10, 10], [11, 2]] * 4)
    batches = epoch_batches(lengths, TrainingSettings(batch_size=8), epoch=0)
    assert {frozenset(lengths[batch].max(axis=1).tolist()) for batch in batches} == {
        frozenset({50}),
        frozenset({10, 11}),
    }


def test_short_and_long_batches_come_in_no_order_of_length() -> None:
    lengths = lengths_of(800, 1)
    batches = epoch_batches(lengths, TrainingSettings(batch_size=8), epoch=0)
    longest = [int(lengths[batch].max()) for batch in batches]
    rises = sum(after > before for before, after in pairwise(longest))
    assert 0.3 < rises / len(longest) < 0.7


# --- The rule of the released program ------------------------------------------------------------


def test_by_the_second_side_it_alone_decides_the_place() -> None:
    lengths = np.array([[1, 50], [50, 1], [10, 10], [70, 2]] * 4)
    settings = TrainingSettings(batch_size=8, sort_by="second")
    batches = epoch_batches(lengths, settings, epoch=0)
    assert {frozenset(lengths[batch][:, 1].tolist()) for batch in batches} == {
        frozenset({1, 2}),
        frozenset({10, 50}),
    }


def test_of_single_sentences_the_second_side_is_the_only_one() -> None:
    lengths = lengths_of(100, sides=1)
    one = epoch_batches(lengths, TrainingSettings(sort_by="second"), epoch=0)
    other = epoch_batches(lengths, TrainingSettings(sort_by="longest"), epoch=0)
    assert [batch.tolist() for batch in one] == [batch.tolist() for batch in other]


@pytest.mark.parametrize("sort_by", ["longest", "second"])
def test_shuffling_batches_alone_keeps_the_buffers_of_the_file(sort_by: Any) -> None:
    lengths = lengths_of(130)
    settings = TrainingSettings(
        batch_size=4, buffer_batches=5, sort_by=sort_by, shuffle="batches", seed=3
    )
    batches = [batch.tolist() for batch in epoch_batches(lengths, settings, epoch=2)]
    key = {
        "longest": lambda row: (max(lengths[row]), sum(lengths[row])),
        "second": lambda row: lengths[row][1],
    }[sort_by]
    expected = []  # buffer by buffer, the batches of each in the order of length
    for start in range(0, 130, 20):
        ranked = sorted(range(start, min(start + 20, 130)), key=key)
        expected.append([ranked[at : at + 4] for at in range(0, len(ranked), 4)])
    order = []
    for buffer in expected:
        found, batches = batches[: len(buffer)], batches[len(buffer) :]
        assert sorted(found) == sorted(buffer)
        order.append([buffer.index(batch) for batch in found])
    assert not batches
    assert any(places != sorted(places) for places in order)
    assert order[0] != order[1]  # each buffer has an order of its own


def test_a_buffer_is_as_large_as_the_settings_say() -> None:
    lengths = np.arange(64)[:, None]
    settings = TrainingSettings(batch_size=4, buffer_batches=2, shuffle="batches")
    batches = epoch_batches(lengths, settings, epoch=0)
    assert {frozenset(batch.tolist()) for batch in batches} == {
        frozenset(range(start, start + 4)) for start in range(0, 64, 4)
    }
    for at in range(0, 16, 2):
        assert sorted(np.concatenate(batches[at : at + 2]).tolist()) == list(
            range(4 * at, 4 * at + 8)
        )


@pytest.mark.parametrize(
    ("rows", "batch_size", "steps", "epochs"),
    [
        (100, 25, None, 40),  # 4 steps an epoch
        (100, 25, 20, 5),
        (100, 25, 21, 6),
        (7, 32, 600, 40),  # no more than `epochs`
        (33, 8, 100, 20),  # 5 steps an epoch, the last with a single row
        (1000, 8, 100, 3),  # no fewer than `min_epochs`
    ],
)
def test_the_fewer_rows_the_more_epochs(
    rows: int, batch_size: int, steps: int | None, epochs: int
) -> None:
    settings = TrainingSettings(epochs=40, batch_size=batch_size, steps=steps, min_epochs=3)
    lengths = np.ones((rows, 1), dtype=np.int64)
    assert count_epochs(lengths, settings) == epochs
    assert count_steps(rows, settings) == len(epoch_batches(lengths, settings, 0))


@pytest.mark.parametrize(("tokens", "epochs"), [(10, 20), (50, 20), (100, 10), (999, 3)])
def test_long_texts_get_fewer_epochs(tokens: int, epochs: int) -> None:
    """20 epochs would give the 100 steps; 1,000 tokens per sentence allow for one, so it is 3."""
    settings = TrainingSettings(epochs=40, batch_size=2, steps=100, min_epochs=3, max_tokens=10_000)
    lengths = np.full((10, 1), tokens)  # 5 steps an epoch
    assert count_epochs(lengths, settings) == epochs
