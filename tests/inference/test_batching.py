"""Running a model over many sentences: sorted by length, returned in order, in bounded memory."""

from __future__ import annotations

from itertools import count, islice, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from genpool.inference.sentence_vectors import (
    PADDED_TOKENS_PER_SENTENCE,
    WINDOW_BATCHES,
    length_groups,
    map_by_length,
)

properties = settings(max_examples=100, deadline=None, database=None)
lengths_of = st.lists(st.one_of(st.integers(0, 30), st.integers(0, 2000)), max_size=60)


@properties
@given(lengths_of, st.integers(1, 8))
def test_groups_are_as_large_as_the_batch_and_its_memory_allow(lengths, batch_size: int) -> None:
    groups = list(length_groups(lengths, batch_size))
    max_padded = batch_size * PADDED_TOKENS_PER_SENTENCE
    assert sorted(place for group in groups for place in group) == list(range(len(lengths)))
    assert [lengths[place] for group in groups for place in group] == sorted(lengths)
    for group in groups:
        padded = len(group) * max(lengths[place] for place in group)
        assert 1 <= len(group) <= batch_size and (padded <= max_padded or len(group) == 1)
    for group, following in pairwise(groups):
        padded = (len(group) + 1) * lengths[following[0]]
        assert len(group) == batch_size or padded > max_padded


def squares(group: list[int]) -> Tensor:
    """A row per item: the item and its square."""
    return torch.tensor([[item, item**2] for item in group])


@properties
@given(st.lists(st.integers(0, 400), max_size=200), st.integers(1, 2))
def test_rows_come_in_the_order_of_the_items(items: list[int], batch_size: int) -> None:
    chunks = list(map_by_length(items, int, squares, batch_size))
    rows = [row for chunk in chunks for row in chunk.tolist()]
    assert rows == [[item, item**2] for item in items]
    assert [len(chunk) for chunk in chunks[:-1]] == [WINDOW_BATCHES * batch_size] * (
        len(chunks) - 1
    )


def test_each_group_is_reported_when_it_is_done() -> None:
    told: list[int] = []
    chunks = map_by_length(islice(count(), 5), lambda item: 1, squares, 2, told.append)
    assert told == []
    list(chunks)
    assert told == [2, 2, 1]


def test_a_run_that_loses_rows_is_noticed() -> None:
    with pytest.raises(ValueError, match="3 sentences went in, 2 rows"):
        list(map_by_length([1, 2, 3], int, lambda group: squares(group[:-1]), 3))
